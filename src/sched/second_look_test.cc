// A bind that had to wait is looked at once more: others may have taken meanwhile what it was decided about. w1 waits
// for the answer to its claim of r while something happens to n1.
#include "model/core_wish.h"
#include "model/device.h"
#include "model/device_wish.h"
#include "model/node_reservation.h"
#include "model/node_topology.h"
#include "model/reservation_status.h"
#include "sched/live_test.h"

namespace berth::sched {
namespace {

// n1 has 4 cpu, r holds 1 of it for w1.
class SecondLookTest : public LiveTest {
protected:
    SecondLookTest() : LiveTest({.claims_first = true}) {
        node_with(4000, 110);
        reserved_on("n1", reservation("r", 1000, {"w1"}));
    }
    void node_with(int64_t cpu_milli, int64_t slots, const std::string& annotation = "") {
        auto made = std::make_shared<model::Node>();
        made->meta.name = "n1";
        made->meta.labels.set("kubernetes.io/hostname", "n1");
        if (!annotation.empty()) made->meta.annotations.set(model::kNodeReservation, annotation);
        made->allocatable = model::Resources{{model::kCpu, cpu_milli}, {model::kPods, slots}};
        scheduler_.put(made, now_);
    }
    // Asks for more than that by `change(spec, meta)`.
    template <class F>
    void wants(int64_t cpu_milli, F change) {
        make("w1", cpu_milli, 0);
        with("w1", change);
    }
    template <class F>
    void with(const std::string& pod, F change) {
        auto spec = std::make_shared<model::PodSpec>(*pods_.at(pod).spec);
        change(*spec, pods_.at(pod).meta);
        pods_.at(pod).spec = std::move(spec);
        put(pods_.at(pod));
    }
    void wants(int64_t cpu_milli) {
        wants(cpu_milli, [](auto&, auto&) {});
    }
    // Somebody else put it there.
    template <class F>
    void others_bind(const std::string& name, int64_t cpu_milli, F change) {
        make(name, cpu_milli, 0).node = "n1";
        with(name, change);
    }
    void machine(int cpus) {
        auto out = std::make_shared<model::NodeTopology>();
        out->meta.name = "n1";
        for (int id = 0; id < cpus; ++id) out->cpus.push_back({id, id / 2, 0, 0});
        scheduler_.put(std::shared_ptr<const model::NodeTopology>(out), now_);
    }
    static void own_cores(model::PodSpec& spec, model::Meta& meta) {
        meta.labels.set("koordinator.sh/qosClass", "LSR");
        spec.labels = meta.labels;
        spec.cores = model::read_core_wish(meta.labels, meta.annotations);
    }
    void gpus(int healthy) {
        auto out = std::make_shared<model::Device>();
        out->meta.name = "n1";
        for (int32_t minor = 0; minor < 2; ++minor) {
            model::DeviceUnit unit;
            unit.minor = minor;
            unit.healthy = minor >= 2 - healthy;
            if (unit.healthy) unit.total = {100, 100, 1000};
            out->units.push_back(unit);
        }
        scheduler_.put(std::shared_ptr<const model::Device>(out), now_);
    }
    static void one_gpu(model::PodSpec& spec, model::Meta& meta) {
        spec.requests.set(model::device_resources().gpu, 100);
        spec.devices = model::read_device_wish(spec.requests, meta.annotations);
    }

    // A reusable one of all of n1, whose placement is stored and looked at with the next step.
    void is_placed_for_w1(model::AllocatePolicy policy) {
        reservation_gone("r");
        model::Reservation made = reservation("r", 4000, {"w1"});
        made.allocate_once = false;
        made.policy = policy;
        reserved(made);
        wants(4000);
        step();
        ASSERT_EQ(told(), Lines{"reserve r: Successfully reserved on n1"});
        done();
    }

    // What happens while the claim is under way keeps w1 from being bound, and the claim is given back...
    template <class F>
    void is_not_bound_after(F what) {
        step();
        ASSERT_EQ(told(), Lines{"claim r for w1"});
        what();
        done();
        EXPECT_EQ(told(), Lines{});
        step();
        EXPECT_EQ(told(), Lines{"release r"});
        done();
    }
    // ... or does not.
    template <class F>
    void is_bound_after(F what) {
        step();
        ASSERT_EQ(told(), Lines{"claim r for w1"});
        what();
        done();
        EXPECT_EQ(told(), Lines{"bind w1 to n1"});
    }
};

TEST_F(SecondLookTest, TheNodeBecameSmaller) {
    wants(4000);
    is_not_bound_after([&] { node_with(3000, 110); });
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told().at(0).substr(0, 9), "refuse w1") << "it is decided anew";
}

TEST_F(SecondLookTest, ItIsStillLargeEnough) {
    wants(3000);
    is_bound_after([&] { node_with(3000, 110); });
}

TEST_F(SecondLookTest, WhatIsKeptForOthersGrew) {
    wants(4000);
    is_not_bound_after([&] { node_with(4000, 110, R"({"resources":{"cpu":"1"}})"); });
}

TEST_F(SecondLookTest, ASlotIsGone) {
    bound("other", 0, 0, "n1");
    wants(1000);
    is_not_bound_after([&] { node_with(4000, 1); });
}

// It comes from the reservation, and the node has it still.
TEST_F(SecondLookTest, AnotherSlotIsGone) {
    wants(1000);
    is_bound_after([&] { node_with(4000, 1); });
}

TEST_F(SecondLookTest, AnotherWasBoundByHand) {
    wants(4000);
    is_not_bound_after([&] { bound("other", 1000, 0, "n1"); });
}

TEST_F(SecondLookTest, AnotherGrew) {
    bound("other", 1000, 0, "n1");
    wants(3000);
    is_not_bound_after([&] { bound("other", 2000, 0, "n1"); });
}

TEST_F(SecondLookTest, AReservationCame) {
    wants(4000);
    is_not_bound_after([&] { reserved_on("n1", reservation("r2", 1000, {"w2"})); });
}

TEST_F(SecondLookTest, AReservationGrew) {
    reserved_on("n1", reservation("r2", 1000, {"w2"}));
    wants(3000);
    is_not_bound_after([&] { reserved_on("n1", reservation("r2", 2000, {"w2"})); });
}

// The node equation is checked without those that wait; it is in their way no more than a pod that runs there.
TEST_F(SecondLookTest, OneThatWaitsForRoomIsNotInItsWay) {
    wants(4000);
    is_bound_after([&] {
        model::Reservation waits = reservation("r2", 4000, {"w2"});
        static_cast<model::ReservationStatus&>(waits) =
            model::placed_waiting(waits, "n1", waits.spec->requests, waits.spec->requests, wall_);
        reserved(std::move(waits));
    });
}

TEST_F(SecondLookTest, TheNodeWent) {
    wants(1000);
    is_not_bound_after([&] {
        scheduler_.remove(
            *ledger::kind_named("Node"),
            [] {
                model::Meta meta;
                meta.name = "n1";
                return meta;
            }(),
            now_);
    });
}

TEST_F(SecondLookTest, TheNodeWentAndCameBackSmaller) {
    wants(4000);
    is_not_bound_after([&] {
        model::Meta gone;
        gone.name = "n1";
        scheduler_.remove(*ledger::kind_named("Node"), gone, now_);
        node_with(3000, 110);
    });
}

TEST_F(SecondLookTest, APortIsTaken) {
    const auto port = [](model::PodSpec& spec, model::Meta&) {
        spec.ports.push_back({8080, model::Protocol::TCP, "0.0.0.0"});
    };
    wants(1000, port);
    is_not_bound_after([&] { others_bind("other", 0, port); });
}

TEST_F(SecondLookTest, AClaimForOnePodIsUsed) {
    auto claim = std::make_shared<model::PersistentVolumeClaim>();
    claim->meta.ns = "default";
    claim->meta.name = claim->meta.uid = "c";
    claim->modes.bits = static_cast<uint8_t>(model::AccessMode::ReadWriteOncePod);
    claim->volume = "v";
    claim->bind_completed = true;
    claim->phase = model::ClaimPhase::Bound;
    scheduler_.put(std::shared_ptr<const model::PersistentVolumeClaim>(claim), now_);
    auto volume = std::make_shared<model::PersistentVolume>();
    volume->meta.name = volume->meta.uid = "v";
    volume->phase = model::VolumePhase::Bound;
    volume->claim = model::ClaimRef{"default", "c", "c"};
    scheduler_.put(std::shared_ptr<const model::PersistentVolume>(volume), now_);
    const auto uses = [](model::PodSpec& spec, model::Meta&) {
        model::Volume used;
        used.kind = model::VolumeKind::Claim;
        used.name = used.id = "c";
        spec.volumes.push_back(used);
    };
    wants(1000, uses);
    is_not_bound_after([&] { others_bind("other", 0, uses); });
}

TEST_F(SecondLookTest, ItsCoresAreKeptForOthers) {
    machine(4);
    wants(2000, own_cores);
    is_not_bound_after([&] { node_with(4000, 110, R"({"reservedCPUs":"0-1","applyPolicy":"ReservedCPUsOnly"})"); });
}

TEST_F(SecondLookTest, OtherCoresAreKeptForOthers) {
    machine(4);
    wants(2000, own_cores);
    is_bound_after([&] { node_with(4000, 110, R"({"reservedCPUs":"2-3","applyPolicy":"ReservedCPUsOnly"})"); });
}

TEST_F(SecondLookTest, ItsCoresAreGone) {
    machine(4);
    wants(4000, own_cores);
    is_not_bound_after([&] { machine(2); });
}

TEST_F(SecondLookTest, ItsGpuIsBroken) {
    gpus(2);
    wants(1000, one_gpu);
    is_not_bound_after([&] { gpus(1); });
}

// The other ways to wait: for the placement of what it draws from...
TEST_F(SecondLookTest, WhileThePlacementIsStored) {
    is_placed_for_w1(model::AllocatePolicy::Default);
    node_with(3000, 110);
    step();
    EXPECT_EQ(told().at(0).substr(0, 9), "refuse w1");
}

TEST_F(SecondLookTest, WhatARestrictedOneHasBecameLess) {
    is_placed_for_w1(model::AllocatePolicy::Restricted);
    model::Reservation less = reservations_.at("r");
    less.allocatable.set(model::kCpu, 3000);
    reserved(less);
    step();
    EXPECT_EQ(told().at(0).substr(0, 9), "refuse w1");
}

// ... or for a volume.
TEST_F(SecondLookTest, WhileAVolumeIsBound) {
    reservation_gone("r");
    auto late = std::make_shared<model::StorageClass>();
    late->meta.name = "late";
    late->provisioner = "example.com/disks";
    late->wait_for_consumer = true;
    scheduler_.put(std::shared_ptr<const model::StorageClass>(late), now_);
    model::PersistentVolumeClaim claim;
    claim.meta.ns = "default";
    claim.meta.name = claim.meta.uid = "c";
    claim.storage_class = "late";
    scheduler_.put(std::make_shared<const model::PersistentVolumeClaim>(claim), now_);
    wants(4000, [](model::PodSpec& spec, model::Meta&) {
        model::Volume used;
        used.kind = model::VolumeKind::Claim;
        used.name = used.id = "c";
        spec.volumes.push_back(used);
    });
    step();
    ASSERT_EQ(told(), Lines{"select n1 for c"});
    done();
    node_with(3000, 110);
    model::PersistentVolume made;
    made.meta.name = made.meta.uid = "v";
    made.storage_class = "late";
    made.phase = model::VolumePhase::Bound;
    made.claim = model::ClaimRef{"default", "c", "c"};
    scheduler_.put(std::make_shared<const model::PersistentVolume>(made), now_);
    claim.selected_node = "n1";
    claim.volume = "v";
    claim.bind_completed = true;
    claim.phase = model::ClaimPhase::Bound;
    scheduler_.put(std::make_shared<const model::PersistentVolumeClaim>(claim), now_);
    step();
    EXPECT_EQ(told(), Lines{});
    EXPECT_EQ(used("n1"), 0);
}

// A reservation that waited for room was to have these cores; that was refused, and they are not there any more.
TEST_F(SecondLookTest, AnOpeningThatIsTriedAgainNamesCoresThatAreThere) {
    reservation_gone("r");
    machine(4);
    bound("other", 3000, 0, "n1");
    model::Reservation waits = reservation("r2", 2000, {"w2"});
    auto spec = std::make_shared<model::PodSpec>(*waits.spec);
    own_cores(*spec, waits.meta);
    waits.spec = spec;
    static_cast<model::ReservationStatus&>(waits) =
        model::placed_waiting(waits, "n1", spec->requests, model::Resources{{model::kCpu, 1000}}, wall_);
    reserved(waits);
    gone("other");
    step();
    ASSERT_EQ(plans_.size(), 1u);
    EXPECT_EQ(std::get<OpenReservation>(plans_.front()).status.which.cores.cpus, (model::CpuIds{0, 1}));
    ASSERT_EQ(told(), Lines{"open r2"});
    answer(Outcome::Refused);
    node_with(4000, 110, R"({"reservedCPUs":"0-1","applyPolicy":"ReservedCPUsOnly"})");
    later(std::chrono::seconds(1));
    step();
    ASSERT_EQ(told(), Lines{"read r2"});
    scheduler_.outcome(answered_.front(), Outcome::Done, now_);
    step();
    ASSERT_EQ(plans_.size(), 1u);
    EXPECT_EQ(std::get<OpenReservation>(plans_.front()).status.which.cores.cpus, (model::CpuIds{2, 3}));
}

}  // namespace
}  // namespace berth::sched
