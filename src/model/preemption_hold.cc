#include "model/preemption_hold.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"
#include "base/json_view.h"

namespace berth::model {
namespace {

std::string_view name_of(Requirement::Op op) {
    switch (op) {
        case Requirement::Op::NotIn:
        case Requirement::Op::NotEquals:
            return "NotIn";
        case Requirement::Op::Exists:
            return "Exists";
        case Requirement::Op::DoesNotExist:
            return "DoesNotExist";
        default:
            return "In";
    }
}

Json document(const Selector& selector) {
    JsonObject labels;
    JsonArray expressions;
    for (const auto& requirement : selector.requirements()) {
        if (requirement.op == Requirement::Op::Equals) {
            labels[requirement.key] = requirement.values.front();
            continue;
        }
        JsonObject expression{{"key", requirement.key}, {"operator", name_of(requirement.op)}};
        if (!requirement.values.empty()) {
            expression["values"] = JsonArray(requirement.values.begin(), requirement.values.end());
        }
        expressions.push_back(std::move(expression));
    }
    return JsonObject{{"matchLabels", std::move(labels)}, {"matchExpressions", std::move(expressions)}};
}

// Terms that match nothing keep nobody away.
JsonArray documents(const std::vector<PodTerm>& terms) {
    JsonArray out;
    for (const auto& term : terms) {
        if (!term.selector || term.selector->matches_nothing()) continue;
        JsonObject made{{"labelSelector", document(*term.selector)}, {"topologyKey", term.topology_key}};
        if (!term.namespaces.empty()) made["namespaces"] = JsonArray(term.namespaces.begin(), term.namespaces.end());
        if (term.ns_selector && !term.ns_selector->matches_nothing()) {
            made["namespaceSelector"] = document(*term.ns_selector);
        }
        out.push_back(std::move(made));
    }
    return out;
}

JsonArray documents(const std::vector<Toleration>& tolerations) {
    JsonArray out;
    for (const auto& toleration : tolerations) {
        JsonObject made;
        if (!toleration.key.empty()) made["key"] = toleration.key;
        if (!toleration.op.empty()) made["operator"] = toleration.op;
        if (!toleration.value.empty()) made["value"] = toleration.value;
        if (!toleration.effect.empty()) made["effect"] = toleration.effect;
        if (toleration.toleration_seconds) made["tolerationSeconds"] = *toleration.toleration_seconds;
        out.push_back(std::move(made));
    }
    return out;
}

JsonArray documents(const std::vector<HostPort>& ports) {
    constexpr std::string_view kProtocols[] = {"TCP", "UDP", "SCTP"};
    JsonArray out;
    for (const auto& port : ports) {
        JsonObject made{{"containerPort", port.port},
                        {"hostPort", port.port},
                        {"protocol", kProtocols[static_cast<size_t>(port.protocol)]}};
        if (port.ip != "0.0.0.0") made["hostIP"] = port.ip;
        out.push_back(std::move(made));
    }
    return out;
}

JsonArray claims(const std::vector<Volume>& volumes) {
    JsonArray out;
    for (const auto& volume : volumes) {
        if (volume.kind != VolumeKind::Claim) continue;
        out.push_back(
            JsonObject{{"name", volume.name}, {"persistentVolumeClaim", JsonObject{{"claimName", volume.id}}}});
    }
    return out;
}

JsonObject requests(const Resources& amounts) {
    JsonObject out;
    amounts.for_each([&](ResourceId id, int64_t amount) {
        if (id == kPods || amount <= 0) return;
        out[resource_name(id)] = quantity_text(id, amount);
    });
    return out;
}

}  // namespace

Reservation stored_preemption_hold(const Pod& pod, std::string_view node, std::string uid, base::Time created) {
    const std::string text = base::to_text(preemption_hold_for(pod, node));
    base::JsonParser parser;
    auto hold = read_reservation(parser.parse(text).value());
    CHECK(hold.ok());
    hold->meta.uid = std::move(uid);
    hold->meta.created = created;
    return *std::move(hold);
}

std::string preemption_hold_name(std::string_view pod_uid) {
    return fmt::format("preemption-{}", pod_uid);
}

Json preemption_hold_for(const Pod& pod, std::string_view node) {
    const PodSpec& spec = *pod.spec;
    JsonObject labels;
    for (const auto& [key, value] : pod.meta.labels) labels[key] = value;
    const JsonObject amounts = requests(spec.requests);
    JsonObject container{
        {"name", "room"}, {"image", "room"}, {"resources", JsonObject{{"requests", amounts}, {"limits", amounts}}}};
    if (!spec.ports.empty()) container["ports"] = documents(spec.ports);
    JsonObject made{{"nodeName", node},
                    {"schedulerName", spec.scheduler_name},
                    {"containers", JsonArray{std::move(container)}},
                    {"tolerations", documents(spec.tolerations)}};
    if (JsonArray terms = documents(spec.anti_affinity); !terms.empty()) {
        made["affinity"] = JsonObject{
            {"podAntiAffinity", JsonObject{{"requiredDuringSchedulingIgnoredDuringExecution", std::move(terms)}}}};
    }
    if (JsonArray volumes = claims(spec.volumes); !volumes.empty()) made["volumes"] = std::move(volumes);
    const JsonObject owner{{"apiVersion", "v1"},
                           {"kind", "Pod"},
                           {"namespace", pod.meta.ns},
                           {"name", pod.meta.name},
                           {"uid", pod.meta.uid}};
    return JsonObject{
        {"apiVersion", "scheduling.koordinator.sh/v1alpha1"},
        {"kind", "Reservation"},
        {"metadata",
         JsonObject{{"name", preemption_hold_name(pod.meta.uid)}, {"labels", JsonObject{{kMadeFor, kForPreemption}}}}},
        {"spec",
         JsonObject{{"owners", JsonArray{JsonObject{{"object", owner}}}},
                    {"preAllocation", true},
                    {"allocateOnce", true},
                    {"allocatePolicy", "Restricted"},
                    {"template", JsonObject{{"metadata", JsonObject{{"namespace", pod.meta.ns}, {"labels", labels}}},
                                            {"spec", std::move(made)}}}}}};
}

std::string_view preemption_hold_owner(const Reservation& reservation) {
    if (reservation.meta.labels.get(kMadeFor) != kForPreemption || !reservation.made_by_us()) return "";
    const auto& owner = reservation.owners.front().object;
    return owner ? std::string_view(owner->uid) : "";
}

}  // namespace berth::model
