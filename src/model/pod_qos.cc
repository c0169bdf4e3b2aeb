#include "model/pod_qos.h"

#include <array>
#include <string>
#include <utility>

#include "model/kinds/path.h"

namespace berth::model {
namespace {

constexpr std::array kQosNames{std::pair{Qos::LSE, "LSE"}, std::pair{Qos::LSR, "LSR"}, std::pair{Qos::LS, "LS"},
                               std::pair{Qos::BE, "BE"}, std::pair{Qos::System, "SYSTEM"}};

struct Band {
    PriorityBand band;
    const char* name;
    int32_t least;  // of a thousand
};
constexpr std::array kBands{Band{PriorityBand::Prod, "koord-prod", 9000}, Band{PriorityBand::Mid, "koord-mid", 7000},
                            Band{PriorityBand::Batch, "koord-batch", 5000},
                            Band{PriorityBand::Free, "koord-free", 3000}};

}  // namespace

std::string_view text_of(KubeQos qos) {
    return qos == KubeQos::BestEffort ? "BestEffort" : qos == KubeQos::Guaranteed ? "Guaranteed" : "Burstable";
}

KubeQos kube_qos_of_spec(const Json& pod) {
    bool guaranteed = true, best_effort = true;
    for (const auto* list : {".spec.containers", ".spec.initContainers"}) {
        for (const auto& container : list_at(pod, list)) {
            for (const auto* name : {"cpu", "memory"}) {
                const auto limit = base::find_string(container, {"resources", "limits", name});
                const auto request = base::find_string(container, {"resources", "requests", name});
                if (!limit.empty() || !request.empty()) best_effort = false;
                if (limit.empty() || (request != limit && !request.empty())) guaranteed = false;
            }
        }
    }
    return best_effort ? KubeQos::BestEffort : guaranteed ? KubeQos::Guaranteed : KubeQos::Burstable;
}

KubeQos kube_qos(const Json& pod) {
    const auto said = string_at(pod, ".status.qosClass");
    for (const auto qos : {KubeQos::Guaranteed, KubeQos::Burstable, KubeQos::BestEffort}) {
        if (said == text_of(qos)) return qos;
    }
    return kube_qos_of_spec(pod);
}

Qos qos_of(const Labels& labels, KubeQos kube) {
    if (const std::string* said = labels.find(kQosClass)) {
        for (const auto& [qos, name] : kQosNames) {
            if (*said == name) return qos;
        }
    }
    return kube == KubeQos::Guaranteed ? Qos::LSR : kube == KubeQos::Burstable ? Qos::LS : Qos::BE;
}

std::string_view text_of(Qos qos) {
    for (const auto& [known, name] : kQosNames) {
        if (known == qos) return name;
    }
    return "";
}

PriorityBand band_of(const Labels& labels, int32_t priority, Qos qos) {
    const std::string* said = labels.find(kPriorityClass);
    for (const auto& [band, name, least] : kBands) {
        if (said != nullptr ? *said == name : priority >= least && priority < least + 1000) return band;
    }
    return qos == Qos::BE ? PriorityBand::Batch : PriorityBand::Prod;
}

std::string_view text_of(PriorityBand band) {
    for (const auto& each : kBands) {
        if (each.band == band) return each.name;
    }
    return "";
}

}  // namespace berth::model
