#include "cli/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/key_values.h"

namespace berth::cli {
namespace {

// Batches grow, so that many are decided in one go and few in vain.
constexpr int64_t kMostAtOnce = 1024;

std::string full_name(const Json& pod) {
    const auto ns = base::find_string(pod, {"metadata", "namespace"});
    return fmt::format("{}/{}", ns.empty() ? "default" : ns, base::find_string(pod, {"metadata", "name"}));
}

// As somebody would create it now, without hurting others.
Json copy_of(const Json& pod, int64_t number) {
    Json out = pod;
    JsonObject& meta = base::object_at(out, {"metadata"});
    const std::string name(base::find_string(pod, {"metadata", "name"}));
    meta["name"] = fmt::format("{}-fit-{}", name.empty() ? "pod" : name, number);
    meta.erase("uid");
    meta.erase("creationTimestamp");
    JsonObject& spec = base::object_at(out, {"spec"});
    spec.erase("nodeName");
    spec["preemptionPolicy"] = "Never";
    out.as_object().erase("status");
    return out;
}

}  // namespace

Result<Fit> fit(run::World& world, const Json& pod, int64_t most) {
    Fit out;
    int64_t made = 0;
    for (int64_t batch = 1; made < most && out.why.empty(); batch = std::min(2 * batch, kMostAtOnce)) {
        std::set<std::string> ours;
        for (const int64_t until = std::min(made + batch, most); made < until;) {
            const Json copy = copy_of(pod, ++made);
            ours.insert(full_name(copy));
            TRY(world.put(copy));
        }
        for (const auto& answer : world.settle()) {
            if (answer.is_reservation || !ours.contains(answer.ns + "/" + answer.name)) continue;
            if (!answer.node.empty()) {
                ++out.count;
                ++out.by_node[answer.node];
            } else if (out.why.empty()) {
                out.why = answer.error.empty() ? answer.message : answer.error;
            }
        }
    }
    out.all = out.count == most;
    return out;
}

Result<Json> node_of_shape(const std::vector<std::string>& shape, const std::vector<std::string>& labels,
                           int64_t number) {
    JsonObject amounts = TRY(amounts_given(shape, "--shape"));
    if (!amounts.contains("pods")) amounts["pods"] = "110";
    const std::string name = fmt::format("added-{}", number);
    JsonObject marks = TRY(key_values(labels, "--shape-labels"));
    marks["kubernetes.io/hostname"] = name;
    return Json(JsonObject{{"apiVersion", "v1"},
                           {"kind", "Node"},
                           {"metadata", JsonObject{{"name", name}, {"labels", marks}}},
                           {"status", JsonObject{{"capacity", amounts}, {"allocatable", amounts}}}});
}

Result<Need> need(const std::function<Result<Trial>(int64_t nodes)>& make) {
    Need out{0, true, TRY(make(0))};
    if (out.trial.refused == 0) return out;
    const int64_t most = out.trial.wanted;  // a node for each
    int64_t too_few = 0;
    for (int64_t nodes = 1;; nodes = std::min(2 * nodes, most)) {
        out.nodes = nodes;
        out.trial = TRY(make(nodes));
        out.enough = out.trial.refused == 0;
        if (out.enough) break;
        if (nodes >= most) return out;
        too_few = nodes;
    }
    while (out.nodes - too_few > 1) {
        const int64_t middle = too_few + (out.nodes - too_few) / 2;
        Trial trial = TRY(make(middle));
        if (trial.refused > 0) {
            too_few = middle;
        } else {
            out.nodes = middle;
            out.trial = std::move(trial);
        }
    }
    return out;
}

}  // namespace berth::cli
