#include "cli/migrate.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/live.h"
#include "cli/until.h"
#include "model/reservation.h"

namespace berth::cli {
namespace {

constexpr std::string_view kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
const link::Resource kFollowed{"scheduling.koordinator.sh", "v1alpha1", "reservations"};

struct Flags {
    std::string kind;
    std::string name;
    ServerFlags server;
    int timeout_s = 180;
    bool dry_run = false;
};

std::string text_at(const Json& object, std::initializer_list<std::string_view> path) {
    return std::string(base::find_string(object, path));
}

const Json* controller_of(const Json& pod) {
    const Json* owners = base::find(pod, {"metadata", "ownerReferences"});
    if (owners == nullptr || !owners->is_array()) return nullptr;
    for (const auto& owner : owners->as_array()) {
        const Json* controls = base::find(owner, {"controller"});
        if (controls != nullptr && controls->is_bool() && controls->as_bool()) return &owner;
    }
    return nullptr;
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

// Every term of the required node affinity, or one new term, also says: not on this node.
void keep_off(JsonObject& spec, const std::string& node) {
    Json document(spec);
    JsonObject& required =
        base::object_at(document, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
    const JsonObject elsewhere{{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", JsonArray{node}}};
    Json& terms = required["nodeSelectorTerms"];
    if (!terms.is_array() || terms.as_array().empty()) terms = JsonArray{JsonObject{}};
    for (auto& term : terms.as_array()) {
        Json& fields = term.as_object()["matchFields"];
        if (!fields.is_array()) fields = JsonArray{};
        fields.as_array().push_back(elsewhere);
    }
    spec = document.as_object();
}

std::string reservation_name(const Json& pod) {
    const std::string uid = text_at(pod, {"metadata", "uid"});
    return fmt::format("migrate-{}-{}", text_at(pod, {"metadata", "name"}).substr(0, 230),
                       uid.substr(uid.size() - std::min<size_t>(uid.size(), 5)));
}

Status remove(link::Server& server, const std::string& name) {
    TRY(ask_object(server, {"DELETE", fmt::format("{}/{}", kReservations, name)}));
    return {};
}

Status evict(link::Server& server, const Json& pod, bool only_ask) {
    const std::string ns = text_at(pod, {"metadata", "namespace"}), name = text_at(pod, {"metadata", "name"});
    const Json body(JsonObject{
        {"apiVersion", "policy/v1"},
        {"kind", "Eviction"},
        {"metadata", JsonObject{{"name", name}, {"namespace", ns}}},
        {"deleteOptions", JsonObject{{"preconditions", JsonObject{{"uid", text_at(pod, {"metadata", "uid"})}}}}}});
    const auto answer = ask_object(
        server,
        {"POST", fmt::format("/api/v1/namespaces/{}/pods/{}/eviction{}", ns, name, only_ask ? "?dryRun=All" : ""),
         base::to_text(body)});
    if (!answer)
        return base::bad_request(fmt::format("pod \"{}\" may not be evicted: {}", name, answer.error().message));
    return {};
}

// The node that was found, or why there is none.
Result<std::string> wait_for_place(link::Server& server, const std::string& name, int timeout_s) {
    std::string node, trouble;
    until(server, kFollowed, timeout_s, [&](const Json& object, bool gone) {
        if (text_at(object, {"metadata", "name"}) != name) return false;
        const auto phase = text_at(object, {"status", "phase"});
        trouble = gone ? "the reservation was deleted" : condition_message(object, "Scheduled");
        if (phase == "Available") node = text_at(object, {"status", "nodeName"});
        return gone || !node.empty() || !trouble.empty();
    });
    if (!node.empty()) return node;
    return base::bad_request(
        fmt::format("there is no room elsewhere: {}", trouble.empty() ? "nobody placed the reservation" : trouble));
}

// The pod that took the room.
Result<std::string> wait_for_owner(link::Server& server, const std::string& name, int timeout_s) {
    std::string owner, trouble;
    until(server, kFollowed, timeout_s, [&](const Json& object, bool gone) {
        if (text_at(object, {"metadata", "name"}) != name) return false;
        const auto phase = text_at(object, {"status", "phase"});
        if (gone || phase == "Failed")
            trouble = condition_message(object, "Ready") + " the reservation ended before anyone used it";
        const Json* owners = base::find(object, {"status", "currentOwners"});
        if (owners != nullptr && owners->is_array() && !owners->as_array().empty()) {
            owner = text_at(owners->as_array().front(), {"name"});
        }
        return !owner.empty() || !trouble.empty();
    });
    if (!owner.empty()) return owner;
    return Error{
        Reason::Timeout,
        trouble.empty()
            ? fmt::format("no replacement came within {} s; reservation \"{}\" still holds its room", timeout_s, name)
            : trouble};
}

Status run(const Flags& flags) {
    const auto connection = TRY(open_connection(flags.server));
    link::Server& server = *connection.server;
    const Json pod =
        TRY(ask_object(server, {"GET", fmt::format("/api/v1/namespaces/{}/pods/{}", connection.ns, flags.name)}));
    const Json reservation = TRY(migration_of(pod, flags.timeout_s + 60));
    TRY(evict(server, pod, true));
    const std::string name = text_at(reservation, {"metadata", "name"});
    TRY(ask_object(server, {"POST", fmt::format("{}{}", kReservations, flags.dry_run ? "?dryRun=All" : ""),
                            base::to_text(reservation)}));
    if (flags.dry_run) {
        fmt::print("pod/{} may be moved away from {} (dry run)\n", flags.name, text_at(pod, {"spec", "nodeName"}));
        return {};
    }
    fmt::print("reservation/{} created\n", name);
    const auto node = wait_for_place(server, name, flags.timeout_s);
    if (!node) {
        TRY(remove(server, name));
        return node.error();
    }
    fmt::print("reservation/{} holds room on {}\n", name, *node);
    if (auto evicted = evict(server, pod, false); !evicted) {
        TRY(remove(server, name));
        return evicted;
    }
    fmt::print("pod/{} evicted from {}\n", flags.name, text_at(pod, {"spec", "nodeName"}));
    const std::string owner = TRY(wait_for_owner(server, name, flags.timeout_s));
    fmt::print("pod/{} took its place on {}\n", owner, *node);
    return {};
}

}  // namespace

Result<Json> migration_of(const Json& pod, int ttl_s) {
    TRY(may_move(pod));
    const Json& controller = *controller_of(pod);
    JsonObject spec = base::find(pod, {"spec"})->as_object();
    const std::string node = text_at(pod, {"spec", "nodeName"});
    spec.erase("nodeName");
    keep_off(spec, node);
    JsonObject meta;
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
                            {"ttl", fmt::format("{}s", ttl_s)},
                            {"owners", JsonArray{owner}},
                            {"template", JsonObject{{"metadata", meta}, {"spec", spec}}}}}});
}

int migrate(std::vector<std::string> words) {
    Flags flags;
    CommandLine line(
        "Moves a pod: holds room for its replacement on another node, evicts it, and sees the replacement land there.",
        "berth migrate");
    line.option("kind", flags.kind, "pod").required().one_of({"pod", "pods", "po"});
    line.option("name", flags.name, "its name").required();
    add_server_flags(line, flags.server);
    line.option("--timeout", flags.timeout_s, "seconds to wait for room, and then for the replacement")
        .within(1, 86400);
    line.flag("--dry-run", flags.dry_run, "say whether the pod may be moved, change nothing");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (const auto done = run(flags); !done) {
        fmt::print(stderr, "berth: {}\n", done.error().message);
        return kFailed;
    }
    return kDone;
}

}  // namespace berth::cli
