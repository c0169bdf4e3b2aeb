#include "control/migration.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/reservation.h"

namespace berth::control {
namespace {

std::string text_at(const Json& object, std::initializer_list<std::string_view> path) {
    return std::string(base::find_string(object, path));
}

Status may_move(const Json& pod) {
    const std::string name = text_at(pod, {"metadata", "name"});
    const auto no = [&](std::string_view why) { return base::bad_request(fmt::format("pod \"{}\" {}", name, why)); };
    if (text_at(pod, {"spec", "nodeName"}).empty()) return no("is not bound to a node: there is nothing to move");
    if (base::find(pod, {"metadata", "deletionTimestamp"}) != nullptr) return no("is being deleted already");
    const auto phase = text_at(pod, {"status", "phase"});
    if (phase == "Succeeded" || phase == "Failed") return no("has ended: there is nothing to move");
    const Json* controller = controller_of(pod);
    if (controller == nullptr) return no("has no controller: nothing would recreate it");
    if (text_at(*controller, {"kind"}) == "DaemonSet")
        return no("belongs to its node: its DaemonSet would bring it back there");
    if (text_at(*controller, {"kind"}) == "Node") return no("is a static pod: only its node can move it");
    return {};
}

// Every term of the required node affinity, or one new term, also says: (not) on this node.
void limit_to(JsonObject& spec, const char* how, const std::string& node) {
    Json document(spec);
    JsonObject& required =
        base::object_at(document, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
    const JsonObject place{{"key", "metadata.name"}, {"operator", how}, {"values", JsonArray{node}}};
    Json& terms = required["nodeSelectorTerms"];
    if (!terms.is_array() || terms.as_array().empty()) terms = JsonArray{JsonObject{}};
    for (auto& term : terms.as_array()) {
        Json& fields = term.as_object()["matchFields"];
        if (!fields.is_array()) fields = JsonArray{};
        fields.as_array().push_back(place);
    }
    spec = document.as_object();
}

std::string reservation_name(const Json& pod) {
    const std::string uid = text_at(pod, {"metadata", "uid"});
    return fmt::format("migrate-{}-{}", text_at(pod, {"metadata", "name"}).substr(0, 230),
                       uid.substr(uid.size() - std::min<size_t>(uid.size(), 5)));
}

}  // namespace

const Json* controller_of(const Json& pod) {
    const Json* owners = base::find(pod, {"metadata", "ownerReferences"});
    if (owners == nullptr || !owners->is_array()) return nullptr;
    for (const auto& owner : owners->as_array()) {
        const Json* controls = base::find(owner, {"controller"});
        if (controls != nullptr && controls->is_bool() && controls->as_bool()) return &owner;
    }
    return nullptr;
}

Result<Json> migration_of(const Json& pod, const MigrationWishes& wishes) {
    TRY(may_move(pod));
    const Json& controller = *controller_of(pod);
    JsonObject spec = base::find(pod, {"spec"})->as_object();
    const std::string node = text_at(pod, {"spec", "nodeName"});
    spec.erase("nodeName");
    limit_to(spec, "NotIn", node);
    if (!wishes.to.empty()) limit_to(spec, "In", wishes.to);
    JsonObject meta{{"namespace", text_at(pod, {"metadata", "namespace"})}};
    if (const Json* labels = base::find(pod, {"metadata", "labels"})) meta["labels"] = *labels;
    const JsonObject owner{{"controller", JsonObject{{"apiVersion", text_at(controller, {"apiVersion"})},
                                                     {"kind", text_at(controller, {"kind"})},
                                                     {"namespace", text_at(pod, {"metadata", "namespace"})},
                                                     {"name", text_at(controller, {"name"})},
                                                     {"uid", text_at(controller, {"uid"})},
                                                     {"controller", true}}}};
    const std::string made_for(model::kMadeFor);
    return Json(JsonObject{
        {"apiVersion", "scheduling.koordinator.sh/v1alpha1"},
        {"kind", "Reservation"},
        {"metadata", JsonObject{{"name", reservation_name(pod)}, {"labels", JsonObject{{made_for, "migration"}}}}},
        {"spec", JsonObject{{"allocateOnce", true},
                            {"allocatePolicy", "Restricted"},
                            {"preAllocation", wishes.pre_allocate},
                            {"ttl", fmt::format("{}s", wishes.ttl_s)},
                            {"owners", JsonArray{owner}},
                            {"template", JsonObject{{"metadata", meta}, {"spec", spec}}}}}});
}

Json eviction_of(const Json& pod) {
    const JsonObject same{{"uid", text_at(pod, {"metadata", "uid"})}};
    return JsonObject{{"apiVersion", "policy/v1"},
                      {"kind", "Eviction"},
                      {"metadata", JsonObject{{"name", text_at(pod, {"metadata", "name"})},
                                              {"namespace", text_at(pod, {"metadata", "namespace"})}}},
                      {"deleteOptions", JsonObject{{"preconditions", same}}}};
}

}  // namespace berth::control
