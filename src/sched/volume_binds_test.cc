// Pods with unbound claims, decided by the live scheduler: volumes first, then the bind.
#include "base/yaml.h"
#include "ledger/intake.h"
#include "sched/live_test.h"

namespace berth::sched {
namespace {

class VolumeBindsTest : public LiveTest {
protected:
    VolumeBindsTest() {
        node("n1", 4000);
        storage_class("late", "example.com/disks");
        storage_class("local", "kubernetes.io/no-provisioner");
    }
    void storage_class(const std::string& name, const std::string& provisioner) {
        auto made = std::make_shared<model::StorageClass>();
        made->meta.name = name;
        made->provisioner = provisioner;
        made->wait_for_consumer = true;
        scheduler_.put(made, now_);
    }
    model::PersistentVolumeClaim& claim(const std::string& name, const std::string& of) {
        model::PersistentVolumeClaim made;
        made.meta.ns = "default";
        made.meta.name = name;
        made.meta.uid = name + "-uid";
        made.storage_class = of;
        made.request = *model::Quantity::parse("1Gi");
        claims_[name] = std::move(made);
        store(claims_[name]);
        return claims_[name];
    }
    model::PersistentVolume& volume(const std::string& name, const std::string& of) {
        model::PersistentVolume made;
        made.meta.name = name;
        made.meta.uid = name + "-uid";
        made.storage_class = of;
        made.capacity = *model::Quantity::parse("1Gi");
        made.phase = model::VolumePhase::Available;
        volumes_[name] = std::move(made);
        store(volumes_[name]);
        return volumes_[name];
    }
    void store(model::PersistentVolumeClaim& object) {
        object.meta.revision = ++revision_;
        scheduler_.put(std::make_shared<const model::PersistentVolumeClaim>(object), now_);
    }
    void store(model::PersistentVolume& object) {
        object.meta.revision = ++revision_;
        scheduler_.put(std::make_shared<const model::PersistentVolume>(object), now_);
    }
    void pod_with(const std::string& name, const std::vector<std::string>& claims) {
        model::Pod& pod = make(name, 1000, 0);
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        for (const auto& claim : claims) {
            model::Volume volume;
            volume.kind = model::VolumeKind::Claim;
            volume.name = claim;
            volume.id = claim;
            spec->volumes.push_back(volume);
        }
        pod.spec = spec;
        put(pod);
    }
    // A pod with one claim, decided.
    void decide(const std::string& pod, const std::string& its_claim, const std::string& of) {
        claim(its_claim, of);
        pod_with(pod, {its_claim});
        step();
    }
    void select(const std::string& name) {
        claims_[name].selected_node = "n1";
        store(claims_[name]);
    }
    void bind_claim(const std::string& name, const std::string& to) {
        claims_[name].volume = to;
        claims_[name].bind_completed = true;
        claims_[name].phase = model::ClaimPhase::Bound;
        store(claims_[name]);
    }

    std::map<std::string, model::PersistentVolumeClaim> claims_;
    std::map<std::string, model::PersistentVolume> volumes_;
};

TEST_F(VolumeBindsTest, AVolumeIsMadeForTheNodeThenThePodIsBound) {
    decide("p", "c", "late");
    EXPECT_EQ(told(), Lines{"select n1 for c"});
    EXPECT_EQ(used("n1"), 1000);
    done();
    select("c");
    step();
    EXPECT_EQ(told(), Lines{}) << "not bound yet";
    auto& made = volume("made", "late");
    made.claim = model::ClaimRef{"default", "c", "c-uid"};
    store(made);
    bind_claim("c", "made");
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
    EXPECT_EQ(used("n1"), 1000);
}

TEST_F(VolumeBindsTest, AVolumeThatIsThereIsKeptForItsClaim) {
    volume("v", "local");
    decide("p", "c", "local");
    EXPECT_EQ(told(), Lines{"keep v for c"});
    // Nobody else gets it meanwhile.
    decide("q", "other", "local");
    EXPECT_EQ(told().at(0).substr(0, 8), "refuse q");
    answer(Outcome::Done);
    volumes_["v"].claim = model::ClaimRef{"default", "c", "c-uid"};
    store(volumes_["v"]);
    bind_claim("c", "v");
    step(0);
    EXPECT_EQ(told(), Lines{});
}

TEST_F(VolumeBindsTest, TheBindWaitsForEveryWriteAndEveryClaim) {
    volume("v", "local");
    claim("a", "local");
    claim("b", "late");
    pod_with("p", {"a", "b"});
    step();
    const Lines lines = told();
    ASSERT_EQ(lines.size(), 2u);
    const auto writes = answered_;
    volumes_["v"].claim = model::ClaimRef{"default", "a", "a-uid"};
    store(volumes_["v"]);
    bind_claim("a", "v");
    scheduler_.outcome(writes[0], Outcome::Done, now_);
    step();
    EXPECT_EQ(told(), Lines{});
    scheduler_.outcome(writes[1], Outcome::Done, now_);
    select("b");
    step();
    EXPECT_EQ(told(), Lines{});
    bind_claim("b", "made");
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
}

TEST_F(VolumeBindsTest, ARefusedWriteGivesEverythingBack) {
    volume("v", "local");
    decide("p", "c", "local");
    told();
    answer(Outcome::Refused);
    EXPECT_EQ(used("n1"), 0);
    decide("q", "other", "local");
    EXPECT_EQ(told(), Lines{"keep v for other"});
}

TEST_F(VolumeBindsTest, AnUnknownWriteIsDecidedAnewFromWhatIsStored) {
    decide("p", "c", "late");
    told();
    answer(Outcome::Unknown);
    EXPECT_EQ(used("n1"), 0);
    select("c");  // it had taken effect
    later(std::chrono::seconds(2));
    step();
    EXPECT_EQ(told(), Lines{}) << "nothing is left to write";
    bind_claim("c", "made");
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
}

TEST_F(VolumeBindsTest, AnswersOfAnEarlierTryDoNotCount) {
    claim("c", "late");
    claim("d", "late");
    pod_with("p", {"c", "d"});
    step();
    EXPECT_EQ(told(), (Lines{"select n1 for c", "select n1 for d"}));
    const std::vector<Plan> first = std::exchange(answered_, {});
    scheduler_.outcome(first[0], Outcome::Refused, now_);
    later(std::chrono::seconds(2));
    step();
    EXPECT_EQ(told().size(), 2u);
    scheduler_.outcome(first[1], Outcome::Done, now_);
    done();
    for (const auto* name : {"c", "d"}) {
        claims_[name].selected_node = "n1";
        bind_claim(name, std::string("made-") + name);
    }
    step();
    EXPECT_EQ(told(), Lines{"bind p to n1"});
}

TEST_F(VolumeBindsTest, AProvisionerMayTakeTheNodeBack) {
    decide("p", "c", "late");
    told();
    done();
    select("c");
    claims_["c"].selected_node.reset();
    store(claims_["c"]);
    step();
    EXPECT_EQ(used("n1"), 0);
    later(std::chrono::seconds(2));
    step();
    EXPECT_EQ(told(), Lines{"select n1 for c"});
}

TEST_F(VolumeBindsTest, NobodyWaitsForEver) {
    decide("p", "c", "late");
    told();
    done();
    select("c");
    step();
    EXPECT_EQ(scheduler_.next_wake(), base::Instant{1} + std::chrono::seconds(600));
    later(std::chrono::seconds(600));
    step();
    EXPECT_EQ(used("n1"), 0);
}

TEST_F(VolumeBindsTest, ADeletedPodLetsGo) {
    volume("v", "local");
    decide("p", "c", "local");
    told();
    gone("p");
    EXPECT_EQ(used("n1"), 0);
    decide("q", "other", "local");
    EXPECT_EQ(told(), Lines{"keep v for other"});
    EXPECT_EQ(answered_.size(), 1u);
}

TEST_F(VolumeBindsTest, AClaimThatVanishesEndsTheWaiting) {
    decide("p", "c", "late");
    told();
    done();
    model::Meta gone;
    gone.ns = "default";
    gone.name = "c";
    scheduler_.remove(*ledger::kind_named("PersistentVolumeClaim"), gone, now_);
    step();
    EXPECT_EQ(used("n1"), 0);
}

}  // namespace
}  // namespace berth::sched
