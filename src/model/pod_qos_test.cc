#include "model/pod_qos.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

Json pod_with(std::string_view resources) {
    auto pod = base::parse_json(R"({"spec":{"containers":[{"resources":)" + std::string(resources) + "}]}}");
    return pod ? *pod : Json();
}

TEST(PodQos, ByWhatContainersSay) {
    EXPECT_EQ(kube_qos(pod_with("{}")), KubeQos::BestEffort);
    EXPECT_EQ(kube_qos(pod_with(R"({"requests":{"cpu":"1"}})")), KubeQos::Burstable);
    EXPECT_EQ(kube_qos(pod_with(R"({"limits":{"cpu":"1","memory":"1Gi"}})")), KubeQos::Guaranteed);
    EXPECT_EQ(kube_qos(pod_with(R"({"requests":{"kubernetes.io/batch-cpu":"1000"}})")), KubeQos::BestEffort);
    auto said = pod_with("{}");
    base::object_at(said, {"status"})["qosClass"] = "Guaranteed";
    EXPECT_EQ(kube_qos(said), KubeQos::Guaranteed);
}

TEST(PodQos, LabelsGoFirst) {
    Labels labels;
    EXPECT_EQ(qos_of(labels, KubeQos::Guaranteed), Qos::LSR);
    EXPECT_EQ(qos_of(labels, KubeQos::Burstable), Qos::LS);
    EXPECT_EQ(qos_of(labels, KubeQos::BestEffort), Qos::BE);
    labels.set(std::string(kQosClass), "LSE");
    EXPECT_EQ(qos_of(labels, KubeQos::BestEffort), Qos::LSE);
    EXPECT_EQ(text_of(qos_of(labels, KubeQos::BestEffort)), "LSE");
}

TEST(PodQos, BandsOfPriority) {
    Labels labels;
    EXPECT_EQ(band_of(labels, 9999, Qos::LS), PriorityBand::Prod);
    EXPECT_EQ(band_of(labels, 7000, Qos::LS), PriorityBand::Mid);
    EXPECT_EQ(band_of(labels, 5999, Qos::LS), PriorityBand::Batch);
    EXPECT_EQ(band_of(labels, 6000, Qos::LS), PriorityBand::Prod);
    EXPECT_EQ(band_of(labels, 0, Qos::BE), PriorityBand::Batch);
    labels.set(std::string(kPriorityClass), "koord-free");
    EXPECT_EQ(band_of(labels, 9999, Qos::LS), PriorityBand::Free);
}

}  // namespace
}  // namespace berth::model
