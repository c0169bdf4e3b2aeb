// Who preempts for cores or devices of its own has those that it counted on when its victims have gone, and not just as
// many.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/core_wish.h"
#include "model/device.h"
#include "model/device_wish.h"
#include "model/node_topology.h"
#include "model/which.h"
#include "sched/live_test.h"

namespace berth::sched {
namespace {

using model::CpuIds;

class PartsPreemptorsTest : public LiveTest {
protected:
    PartsPreemptorsTest() { node("n1", 8000); }

    // Four cores of two threads.
    void machine() {
        auto out = std::make_shared<model::NodeTopology>();
        out->meta.name = "n1";
        for (int id = 0; id < 8; ++id) out->cpus.push_back({id, id / 2, 0, 0});
        scheduler_.put(std::shared_ptr<const model::NodeTopology>(out), now_);
    }
    void gpus(int32_t count) {
        auto out = std::make_shared<model::Device>();
        out->meta.name = "n1";
        for (int32_t minor = 0; minor < count; ++minor) {
            model::DeviceUnit unit;
            unit.minor = minor;
            unit.healthy = true;
            unit.total = {100, 100, 1000};
            out->units.push_back(unit);
        }
        scheduler_.put(std::shared_ptr<const model::Device>(out), now_);
    }
    // Not told yet.
    model::Pod& with_cores(const std::string& name, int64_t cpus, int32_t priority, bool whole = false) {
        model::Pod& pod = make(name, 1000 * cpus, priority);
        pod.meta.labels.set("koordinator.sh/qosClass", "LSR");
        if (whole) pod.meta.annotations.set(model::kResourceSpec, R"({"requiredCPUBindPolicy":"FullPCPUs"})");
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        spec->labels = pod.meta.labels;
        spec->cores = model::read_core_wish(pod.meta.labels, pod.meta.annotations);
        pod.spec = std::move(spec);
        return pod;
    }
    model::Pod& with_gpus(const std::string& name, int64_t percent, int32_t priority) {
        model::Pod& pod = make(name, 100, priority);
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        spec->requests.set(model::device_resources().gpu, percent);
        spec->devices = model::read_device_wish(spec->requests, pod.meta.annotations);
        pod.spec = std::move(spec);
        return pod;
    }
    // It is bound, and has these.
    void has(model::Pod& pod, const CpuIds& cpus) {
        model::Which which;
        which.cores.cpus = cpus;
        has(pod, which);
    }
    void has(model::Pod& pod, int32_t gpu, int64_t percent) {
        model::Which which;
        which.devices.push_back({model::DeviceType::Gpu, gpu, {percent, percent, percent * 10}, "", {}});
        has(pod, which);
    }
    void has(model::Pod& pod, const model::Which& which) {
        model::write_which(which, pod.meta.annotations);
        pod.node = "n1";
        put(pod);
    }
    // They are told to go, and are going.
    void preempts(const Lines& victims) {
        step();
        told();
        done();
        Lines lines;
        for (const auto& victim : victims) lines.push_back("delete " + victim + " for p");
        ASSERT_EQ(told(), lines);
        done();
        for (const auto& victim : victims) terminating(victim);
    }
    std::vector<int32_t> cores_of(size_t plan) const { return which(plan).cores.cpus; }
    std::vector<int32_t> gpus_of(size_t plan) const {
        std::vector<int32_t> out;
        for (const auto& share : which(plan).devices) out.push_back(share.minor);
        return out;
    }
    model::Which which(size_t plan) const {
        return model::read_which(model::Labels(std::get<BindPod>(plans_.at(plan)).annotations));
    }
};

// 0-1 2-3 4-5 6-7; a has 0-2 and 4, another 6-7, so 3 and 5 are free. When a is gone, p has two whole cores of three:
// one of 3 and 5 may go to somebody else, and not the other.
TEST_F(PartsPreemptorsTest, ThreadsOfTheCoresThatOthersLeaveAreNotGiven) {
    machine();
    has(with_cores("a", 4, 1), {0, 1, 2, 4});
    has(with_cores("stays", 2, 1000), {6, 7});
    put(with_cores("p", 4, 100, true));
    preempts({"a"});
    put(with_cores("x", 1, 1000));
    put(with_cores("y", 1, 1000));
    later(std::chrono::seconds(20));
    step();
    Lines lines = told();
    std::erase_if(lines, [](const auto& line) { return !line.starts_with("bind"); });
    EXPECT_EQ(lines.size(), 1u) << fmt::format("{}", fmt::join(lines, ", "));
    done();
    told();
    gone("a");
    later(std::chrono::seconds(20));
    step();
    EXPECT_EQ(told(), (Lines{"bind y to n1", "bind p to n1"}));
}

// Nor to a reservation, whose priority is its place in the queue.
TEST_F(PartsPreemptorsTest, NorReserved) {
    machine();
    has(with_cores("a", 4, 1), {0, 1, 2, 4});
    has(with_cores("stays", 3, 1000), {3, 6, 7});
    put(with_cores("p", 4, 100, true));
    preempts({"a"});
    model::Reservation one = reservation("r", 1000, {"w"});
    one.meta.labels.set("koordinator.sh/qosClass", "LSR");
    auto spec = std::make_shared<model::PodSpec>(*one.spec);
    spec->labels = one.meta.labels;
    spec->cores = model::read_core_wish(one.meta.labels, one.meta.annotations);
    one.spec = spec;
    reserved(one);
    step();
    EXPECT_EQ(told().at(0).substr(0, 12), "reserve r: 0");
}

// a has 60 of gpu 0 and b of gpu 1; p wants two whole ones, so a goes. Whoever wants 40 has them of gpu 1, not of the
// one that is free.
TEST_F(PartsPreemptorsTest, WhatIsFreeOfTheDevicesIsCountedOn) {
    gpus(3);
    has(with_gpus("a", 60, 1), 0, 60);
    has(with_gpus("b", 60, 2), 1, 60);
    put(with_gpus("p", 200, 100));
    preempts({"a"});
    put(with_gpus("x", 40, 1000));
    later(std::chrono::seconds(20));
    step();
    ASSERT_FALSE(plans_.empty());
    ASSERT_TRUE(std::holds_alternative<BindPod>(plans_.front()));
    EXPECT_EQ(gpus_of(0), std::vector<int32_t>{1});
    told();
    done();
    gone("a");
    later(std::chrono::seconds(20));
    step(1);
    ASSERT_FALSE(plans_.empty());
    ASSERT_TRUE(std::holds_alternative<BindPod>(plans_.front()));
    EXPECT_EQ(gpus_of(0), (std::vector<int32_t>{0, 2}));
}

}  // namespace
}  // namespace berth::sched
