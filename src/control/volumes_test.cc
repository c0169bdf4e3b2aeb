#include "control/volumes.h"

#include "control/test_cluster.h"

namespace berth::control {
namespace {

constexpr const char* kVolumes = "persistentvolumes";
constexpr const char* kClaims = "persistentvolumeclaims";

class VolumesTest : public testing::Test {
protected:
    VolumesTest() : cluster(reconcilers()) {
        storage_class("slow", "kubernetes.io/no-provisioner", "Immediate");
        storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
        storage_class("made", "berth.dev/simulated", "Immediate");
        storage_class("made-late", "berth.dev/simulated", "WaitForFirstConsumer");
        cluster.put_text("nodes", R"({"metadata":{"name":"n1"}})");
    }
    static Reconcilers reconcilers() {
        Reconcilers out;
        out.push_back(claim_binder_reconciler());
        out.push_back(volume_binder_reconciler());
        out.push_back(simulated_provisioner_reconciler());
        out.push_back(ephemeral_volumes_reconciler());
        return out;
    }
    void storage_class(const std::string& name, const std::string& provisioner, const std::string& mode,
                       const std::string& more = "") {
        cluster.put_text("storage.k8s.io/storageclasses",
                         fmt::format(R"({{"metadata":{{"name":"{}"}},"provisioner":"{}","volumeBindingMode":"{}"{}}})",
                                     name, provisioner, mode, more));
    }
    void volume(const std::string& name, const std::string& size, const std::string& of, const std::string& more = "",
                const std::string& notes = "{}") {
        cluster.put_text(
            kVolumes,
            fmt::format(R"({{"metadata":{{"name":"{}","annotations":{}}},"spec":{{"capacity":{{"storage":"{}"}},)"
                        R"("accessModes":["ReadWriteOnce"],"storageClassName":"{}"{}}}}})",
                        name, notes, size, of, more));
    }
    void claim(const std::string& name, const std::string& size, const std::string& of, const std::string& notes = "{}",
               const std::string& more = "") {
        cluster.put_text(
            kClaims,
            fmt::format(
                R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid","annotations":{3}}},"spec":{{)"
                R"("accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"{1}"}}}},)"
                R"("storageClassName":"{2}"{4}}}}})",
                name, size, of, notes, more));
    }
    std::string of_claim(const std::string& name, std::initializer_list<std::string_view> path) {
        const auto object = cluster.objects.find(kClaims, "default", name);
        return object ? std::string(base::find_string(object->document(), path)) : "no claim";
    }
    std::string of_volume(const std::string& name, std::initializer_list<std::string_view> path) {
        const auto object = cluster.objects.find(kVolumes, "", name);
        return object ? std::string(base::find_string(object->document(), path)) : "no volume";
    }
    std::string claim_phase(const std::string& name) { return of_claim(name, {"status", "phase"}); }
    std::string volume_phase(const std::string& name) { return of_volume(name, {"status", "phase"}); }
    void delete_claim(const std::string& name) { cluster.objects.remove(kClaims, "default", name); }

    Cluster cluster;
};

TEST_F(VolumesTest, TheSmallestThatSuitsIsTakenAtOnce) {
    volume("large", "10Gi", "slow");
    volume("small", "1Gi", "slow");
    volume("fits", "3Gi", "slow");
    volume("other", "2Gi", "local");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(volume_phase("fits"), "Available");
    claim("c", "2Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(of_claim("c", {"spec", "volumeName"}), "fits");
    EXPECT_EQ(claim_phase("c"), "Bound");
    EXPECT_EQ(of_claim("c", {"metadata", "annotations", "pv.kubernetes.io/bind-completed"}), "yes");
    EXPECT_EQ(of_claim("c", {"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}), "yes");
    EXPECT_EQ(of_claim("c", {"status", "capacity", "storage"}), "3Gi");
    EXPECT_EQ(volume_phase("fits"), "Bound");
    EXPECT_EQ(of_volume("fits", {"spec", "claimRef", "uid"}), "c-uid");
    EXPECT_EQ(volume_phase("large"), "Available");
}

TEST_F(VolumesTest, TwoClaimsNeverShareAVolume) {
    volume("v", "3Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    claim("a", "2Gi", "slow");
    claim("b", "2Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ((claim_phase("a") == "Bound") + (claim_phase("b") == "Bound"), 1);
    EXPECT_EQ((claim_phase("a") == "Pending") + (claim_phase("b") == "Pending"), 1);
}

TEST_F(VolumesTest, AClassThatWaitsTakesOnlyWhatTheSchedulerChose) {
    volume("v", "3Gi", "local");
    claim("c", "2Gi", "local");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(claim_phase("c"), "Pending");
    volume("chosen", "5Gi", "local", R"(,"claimRef":{"namespace":"default","name":"c","uid":"c-uid"})",
           R"({"pv.kubernetes.io/bound-by-controller":"yes"})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(of_claim("c", {"spec", "volumeName"}), "chosen");
    EXPECT_EQ(claim_phase("c"), "Bound");
}

TEST_F(VolumesTest, AVolumeKeptByHandIsForThatNameAlone) {
    volume("kept", "3Gi", "slow", R"(,"claimRef":{"namespace":"default","name":"mine"})");
    claim("other", "1Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(claim_phase("other"), "Pending");
    EXPECT_EQ(volume_phase("kept"), "Available");
    claim("mine", "1Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(of_claim("mine", {"spec", "volumeName"}), "kept");
    EXPECT_EQ(of_volume("kept", {"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}), "");
}

TEST_F(VolumesTest, AClaimMayNameItsVolume) {
    volume("v", "3Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    claim("c", "1Gi", "slow", "{}", R"(,"volumeName":"v")");
    claim("late", "1Gi", "slow", "{}", R"(,"volumeName":"v")");
    claim("none", "1Gi", "slow", "{}", R"(,"volumeName":"nowhere")");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ((claim_phase("c") == "Bound") + (claim_phase("late") == "Bound"), 1);
    EXPECT_EQ(claim_phase("none"), "Pending");
}

TEST_F(VolumesTest, AClaimWhoseVolumeIsGoneIsLost) {
    volume("v", "3Gi", "slow");
    claim("c", "1Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    ASSERT_EQ(claim_phase("c"), "Bound");
    cluster.objects.remove(kVolumes, "", "v");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(claim_phase("c"), "Lost");
}

TEST_F(VolumesTest, AReleasedVolumeGoesByItsPolicy) {
    volume("kept", "3Gi", "slow", R"(,"persistentVolumeReclaimPolicy":"Retain")");
    volume("wiped", "4Gi", "slow", R"(,"persistentVolumeReclaimPolicy":"Recycle")");
    volume("by-hand", "5Gi", "slow", R"(,"persistentVolumeReclaimPolicy":"Delete")");
    volume("elsewhere", "6Gi", "slow", R"(,"persistentVolumeReclaimPolicy":"Delete")",
           R"({"pv.kubernetes.io/provisioned-by":"example.com/disks"})");
    ASSERT_TRUE(cluster.settle());
    for (const auto* name : {"a", "b", "c", "d"}) claim(name, "3Gi", "slow");
    for (const auto* name : {"b", "c", "d"}) delete_claim(name);
    claim("b", "4Gi", "slow");
    claim("c", "5Gi", "slow");
    claim("d", "6Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    for (const auto* name : {"a", "b", "c", "d"}) {
        ASSERT_EQ(claim_phase(name), "Bound") << name;
        delete_claim(name);
    }
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(volume_phase("kept"), "Released");
    EXPECT_EQ(volume_phase("wiped"), "Failed");
    EXPECT_EQ(volume_phase("by-hand"), "Failed");
    EXPECT_EQ(volume_phase("elsewhere"), "Released") << "its own provisioner deletes it";
    claim("again", "3Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(claim_phase("again"), "Pending") << "what was released is nobody's";
}

TEST_F(VolumesTest, AVolumeKeptForAClaimThatNeverCameIsFreeAgain) {
    volume("v", "3Gi", "local", R"(,"claimRef":{"namespace":"default","name":"gone","uid":"gone-uid"})",
           R"({"pv.kubernetes.io/bound-by-controller":"yes"})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(of_volume("v", {"spec", "claimRef", "name"}), "");
    EXPECT_EQ(volume_phase("v"), "Available");
}

TEST_F(VolumesTest, VolumesAreMadeAtOnce) {
    claim("c", "7Gi", "made");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(of_claim("c", {"spec", "volumeName"}), "pvc-c-uid");
    EXPECT_EQ(claim_phase("c"), "Bound");
    EXPECT_EQ(of_volume("pvc-c-uid", {"spec", "capacity", "storage"}), "7Gi");
    EXPECT_EQ(volume_phase("pvc-c-uid"), "Bound");
    delete_claim("c");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(volume_phase("pvc-c-uid"), "no volume") << "made for it, gone with it";
}

TEST_F(VolumesTest, NothingIsMadeWhereAVolumeSuits) {
    volume("v", "10Gi", "made");
    ASSERT_TRUE(cluster.settle());
    claim("c", "7Gi", "made");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(of_claim("c", {"spec", "volumeName"}), "v");
    EXPECT_EQ(volume_phase("pvc-c-uid"), "no volume");
}

TEST_F(VolumesTest, OrWhenANodeWasSelected) {
    storage_class(
        "zoned", "berth.dev/simulated", "WaitForFirstConsumer",
        R"(,"reclaimPolicy":"Retain","allowedTopologies":[{"matchLabelExpressions":[{"key":"zone","values":["a","b"]}]}])");
    claim("waits", "1Gi", "zoned");
    claim("c", "1Gi", "zoned", R"({"volume.kubernetes.io/selected-node":"n1"})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(claim_phase("waits"), "Pending");
    EXPECT_EQ(claim_phase("c"), "Bound");
    const auto made = cluster.objects.find(kVolumes, "", "pvc-c-uid");
    ASSERT_TRUE(made);
    const auto typed = volume_of(*made);
    ASSERT_TRUE(typed && typed->affinity);
    EXPECT_TRUE(typed->affinity->matches("", model::Labels{{"zone", "b"}}));
    EXPECT_FALSE(typed->affinity->matches("", model::Labels{{"zone", "c"}}));
    delete_claim("c");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(volume_phase("pvc-c-uid"), "Released");
}

TEST_F(VolumesTest, ANodeThatIsGoneIsHandedBackToTheScheduler) {
    claim("c", "1Gi", "made-late", R"({"volume.kubernetes.io/selected-node":"gone"})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(of_claim("c", {"metadata", "annotations", "volume.kubernetes.io/selected-node"}), "");
    EXPECT_EQ(claim_phase("c"), "Pending");
}

TEST_F(VolumesTest, BrokenObjectsHarmNobodyElse) {
    cluster.put_text(
        kVolumes, R"({"metadata":{"name":"broken"},"spec":{"capacity":{"storage":"many"},"storageClassName":"slow"}})");
    cluster.put_text(
        kClaims,
        R"({"metadata":{"name":"broken","namespace":"default"},"spec":{"resources":{"requests":{"storage":"much"}}}})");
    volume("v", "3Gi", "slow");
    claim("c", "1Gi", "slow");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(claim_phase("c"), "Bound");
}

TEST_F(VolumesTest, AnEphemeralVolumeHasAClaimOfItsPod) {
    claim("pod-old", "1Gi", "made");
    cluster.put_text("pods", R"({"metadata":{"name":"pod","namespace":"default","uid":"p"},"spec":{"containers":[],
        "volumes":[{"name":"scratch","ephemeral":{"volumeClaimTemplate":{"metadata":{"labels":{"a":"b"}},
          "spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"made","resources":{"requests":{"storage":"2Gi"}}}}}},
        {"name":"old","ephemeral":{"volumeClaimTemplate":{"spec":{}}}},{"name":"none","emptyDir":{}}]}})");
    ASSERT_TRUE(cluster.settle());
    EXPECT_EQ(claim_phase("pod-scratch"), "Bound");
    EXPECT_EQ(of_claim("pod-scratch", {"metadata", "labels", "a"}), "b");
    const auto made = cluster.objects.find(kClaims, "default", "pod-scratch");
    ASSERT_NE(made->meta.controller(), nullptr);
    EXPECT_EQ(made->meta.controller()->uid, "p");
    EXPECT_EQ(cluster.objects.find(kClaims, "default", "pod-old")->meta.controller(), nullptr) << "it was there before";
    EXPECT_EQ(cluster.objects.list(kClaims).size(), 2u);
}

}  // namespace
}  // namespace berth::control
