#include "model/disruption.h"

#include <algorithm>

#include "model/read_selectors.h"
#include "model/reader.h"

namespace berth::model {

bool PodDisruptionBudget::covers(std::string_view ns, const Labels& labels) const {
    return meta.ns == ns && !labels.empty() && !selector.matches_everything() && selector.matches(labels);
}

bool PodDisruptionBudget::already_disrupted(std::string_view pod) const {
    return std::binary_search(disrupted.begin(), disrupted.end(), pod);
}

Result<PodDisruptionBudget> read_pod_disruption_budget(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    PodDisruptionBudget out;
    out.meta = read_meta(root);
    if (out.meta.ns.empty()) out.meta.ns = "default";
    const Reader spec = root["spec"];
    const Reader status = root["status"];
    out.selector = read_selector(spec["selector"]).value_or(Selector::nothing());
    out.disruptions_allowed = status["disruptionsAllowed"].integer();
    const Reader disrupted = status["disruptedPods"];
    disrupted.entries([&](std::string_view name, const Reader&) { out.disrupted.emplace_back(name); });
    std::sort(out.disrupted.begin(), out.disrupted.end());
    if (!trouble.empty()) {
        return base::bad_request("PodDisruptionBudget \"" + out.meta.full_name() + "\": " + trouble);
    }
    return out;
}

Result<PriorityClass> read_priority_class(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    PriorityClass out;
    out.meta = read_meta(root);
    const Reader value = root["value"];
    const int64_t number = value.integer();
    if (number < INT32_MIN || number > INT32_MAX) value.wrong("must fit 32 bits");
    out.value = static_cast<int32_t>(number);
    out.global_default = root["globalDefault"].flag();
    out.never_preempts = root["preemptionPolicy"].text() == "Never";
    if (!trouble.empty()) return base::bad_request("PriorityClass \"" + out.meta.name + "\": " + trouble);
    return out;
}

}  // namespace berth::model
