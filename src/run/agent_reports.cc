#include "run/agent_reports.h"

#include <algorithm>

#include "model/kinds/path.h"
#include "model/times.h"

namespace berth::run {
namespace {

Json amounts(const node::Used& used) {
    return JsonObject{
        {"resources", JsonObject{{"cpu", Quantity::from_milli(used.cpu).text()},
                                 {"memory", Quantity::from_value(used.memory, Quantity::Format::BinarySI).text()}}}};
}

JsonObject pod_metric(const node::NodePod& pod, const node::Used& used) {
    return {{"namespace", pod.ns},
            {"name", pod.name},
            {"podUsage", amounts(used)},
            {"priority", model::text_of(pod.band)},
            {"qos", model::text_of(pod.qos)}};
}

// E.g. a pod that asks for 4 cpu and uses 2: 4 - 2.2.
node::Used reclaimable(const node::Situation& situation) {
    node::Used out;
    for (const auto& pod : situation.pods) {
        const auto used = situation.usage.of(pod);
        if (pod.band != model::PriorityBand::Prod || !situation.usage.pods.contains(pod.full_name())) continue;
        out.cpu += std::max<int64_t>(0, pod.cpu_request - used.cpu - used.cpu / 10);
        out.memory += std::max<int64_t>(0, pod.memory_request - used.memory - used.memory / 10);
    }
    return out;
}

}  // namespace

Json new_metric(const std::string& node, const std::string& uid) {
    const JsonObject owner{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", uid}};
    return JsonObject{{"apiVersion", "slo.koordinator.sh/v1alpha1"},
                      {"kind", "NodeMetric"},
                      {"metadata", JsonObject{{"name", node}, {"ownerReferences", JsonArray{owner}}}},
                      {"spec", JsonObject()}};
}

JsonObject metric_status(const node::Situation& situation, base::Time now) {
    JsonArray pods;
    for (const auto& pod : situation.pods) {
        if (situation.usage.pods.contains(pod.full_name())) pods.push_back(pod_metric(pod, situation.usage.of(pod)));
    }
    return {{"updateTime", model::time_text(now)},
            {"nodeMetric", JsonObject{{"nodeUsage", amounts(situation.usage.node)},
                                      {"systemUsage", amounts(situation.usage.system())}}},
            {"podsMetric", std::move(pods)},
            {"prodReclaimableMetric", JsonObject{{"resource", amounts(reclaimable(situation))}}}};
}

void keep_others(const Json& topology, Json& wanted) {
    const auto named = [](const JsonArray& list, std::string_view name) {
        return std::find_if(list.begin(), list.end(),
                            [&](const Json& each) { return model::string_at(each, ".name") == name; });
    };
    Json* zones = wanted.get_object().if_contains("zones");
    if (zones == nullptr) return;
    for (auto& zone : zones->get_array()) {
        const auto& all = model::list_at(topology, ".zones");
        const auto before = named(all, model::string_at(zone, ".name"));
        if (before == all.end()) continue;
        auto& resources = zone.get_object()["resources"].get_array();
        for (const auto& its : model::list_at(*before, ".resources")) {
            const auto name = model::string_at(its, ".name");
            if (name.find('/') != std::string_view::npos && named(resources, name) == resources.end())
                resources.push_back(its);
        }
    }
}

bool has_all(const Json& object, const Json& wanted) {
    if (!wanted.is_object() || !object.is_object()) return object == wanted;
    return std::all_of(wanted.get_object().begin(), wanted.get_object().end(), [&](const auto& member) {
        const Json* its = object.get_object().if_contains(member.key());
        return its != nullptr && has_all(*its, member.value());
    });
}

}  // namespace berth::run
