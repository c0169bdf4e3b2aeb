#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "model/labels.h"

namespace berth::model {

// Kubernetes' class. Guaranteed: every container limits cpu and memory and requests just that. BestEffort: none says
// anything.
enum class KubeQos : uint8_t { Guaranteed, Burstable, BestEffort };
std::string_view text_of(KubeQos qos);
// From status.qosClass, else from what the containers say.
KubeQos kube_qos(const Json& pod);
// From what the containers say alone.
KubeQos kube_qos_of_spec(const Json& pod);

// Koordinator's class, by label; without one (or with an unknown one) by Kubernetes' class: Guaranteed is LSR,
// Burstable LS, BestEffort BE.
enum class Qos : uint8_t { LSE, LSR, LS, BE, System };
inline constexpr std::string_view kQosClass = "koordinator.sh/qosClass";
Qos qos_of(const Labels& labels, KubeQos kube);
std::string_view text_of(Qos qos);

// How dear a pod is, by label koordinator.sh/priority-class or by its priority: koord-prod 9000-9999, koord-mid
// 7000-7999, koord-batch 5000-5999, koord-free 3000-3999; any other by its QoS: batch for BE, prod for the rest.
enum class PriorityBand : uint8_t { Prod, Mid, Batch, Free };
inline constexpr std::string_view kPriorityClass = "koordinator.sh/priority-class";
PriorityBand band_of(const Labels& labels, int32_t priority, Qos qos);
std::string_view text_of(PriorityBand band);

}  // namespace berth::model
