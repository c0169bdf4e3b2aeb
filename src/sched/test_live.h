#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/json_view.h"
#include "model/reservation_status.h"
#include "model/room.h"
#include "sched/scheduler.h"

namespace berth::sched {

using Lines = std::vector<std::string>;

// A live scheduler whose server is the test: events by hand, plans as lines of text.
class LiveTest : public testing::Test {
protected:
    explicit LiveTest(SchedulerOptions options = {}, Scheduler::Profiles profiles = {{"berth", default_profile()}})
        : scheduler_(std::move(profiles), options) {}

    void node(const std::string& name, int64_t cpu_milli) {
        auto made = std::make_shared<model::Node>();
        made->meta.name = name;
        made->meta.labels.set("kubernetes.io/hostname", name);
        made->allocatable =
            model::Resources{{model::kCpu, cpu_milli}, {model::kMemory, 32LL << 30}, {model::kPods, 110}};
        scheduler_.put(std::shared_ptr<const model::Node>(made), now_);
    }
    model::Pod& make(const std::string& name, int64_t cpu_milli, int32_t priority) {
        model::Pod made;
        made.meta.ns = "default";
        made.meta.name = name;
        made.meta.uid = name;
        made.meta.created = base::Time{static_cast<int64_t>(pods_.size())};
        auto spec = std::make_shared<model::PodSpec>();
        spec->ns = "default";
        spec->scheduler_name = "berth";
        spec->priority = priority;
        spec->requests = model::Resources{{model::kCpu, cpu_milli}, {model::kPods, 1}};
        spec->scoring_cpu_milli = cpu_milli;
        made.spec = spec;
        return pods_.insert_or_assign(name, std::move(made)).first->second;
    }
    void put(const model::Pod& pod) { scheduler_.put(pod, now_); }
    void bound(const std::string& name, int64_t cpu_milli, int32_t priority, const std::string& on) {
        model::Pod& pod = make(name, cpu_milli, priority);
        pod.node = on;
        put(pod);
    }
    void pending(const std::string& name, int64_t cpu_milli, int32_t priority, const std::string& nominated = "",
                 bool never_preempts = false) {
        model::Pod& pod = make(name, cpu_milli, priority);
        pod.nominated_node = nominated;
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        spec->never_preempts = never_preempts;
        pod.spec = spec;
        put(pod);
    }
    void terminating(const std::string& name) {
        model::Pod& pod = pods_.at(name);
        pod.meta.deleted = base::Time{1};
        pod.preempted = true;
        put(pod);
    }
    void gone(const std::string& name) { scheduler_.remove_pod(name, now_); }
    void later(base::Duration by) { now_ = now_ + by; }

    void step(size_t most = 100) {
        for (auto& plan : scheduler_.step(now_, base::Time{}, most)) plans_.push_back(std::move(plan));
    }
    // What was planned since the last answer, as text.
    Lines told() {
        Lines lines;
        for (const auto& plan : plans_) lines.push_back(std::visit([](const auto& p) { return text(p); }, plan));
        std::swap(answered_, plans_);
        plans_.clear();
        return lines;
    }
    // Everything that told() told was carried out so; what follows from that is planned.
    void answer(Outcome outcome) {
        if (!plans_.empty()) told();
        for (const auto& plan : std::exchange(answered_, {})) {
            seen(plan, outcome);
            for (auto& next : scheduler_.outcome(plan, outcome, now_)) plans_.push_back(std::move(next));
        }
    }
    void done() { answer(Outcome::Done); }
    int64_t used(const std::string& node) const {
        return scheduler_.ledger().column(model::kCpu)->used[scheduler_.ledger().row_of(node)];
    }

    void reserved(model::Reservation object) {
        object.meta.revision = ++revision_;
        const auto& kept = rooms_.insert_or_assign(object.meta.uid, std::move(object)).first->second;
        scheduler_.put(std::make_shared<const model::Reservation>(kept), now_);
    }
    // What the reservation controller does when the node has room.
    void available(const std::string& uid) {
        model::Reservation next = rooms_.at(uid);
        static_cast<model::ReservationStatus&>(next) = model::available(next, base::Time{});
        reserved(std::move(next));
    }

    base::Instant now_{1};
    Scheduler scheduler_;
    std::map<std::string, model::Pod> pods_;
    std::map<std::string, model::Reservation> rooms_;
    uint64_t revision_ = 0;
    std::vector<Plan> plans_;
    std::vector<Plan> answered_;

private:
    // The feed brings what was written.
    void seen(const Plan& plan, Outcome outcome) {
        if (outcome == Outcome::Done) std::visit([this](const auto& p) { stored(p); }, plan);
    }
    void stored(const auto&) {}
    void stored(const RefusePod& refuse) {
        if (!refuse.nominated || !pods_.contains(refuse.name)) return;
        pods_.at(refuse.name).nominated_node = *refuse.nominated;
        put(pods_.at(refuse.name));
    }
    void stored(const HoldRoom& hold) {
        base::JsonParser parser;
        const std::string text = base::to_text(model::room_for(*hold.pod, hold.node));
        auto room = model::read_reservation(*parser.parse(text));
        ASSERT_TRUE(room.ok()) << room.error().message;
        room->meta.uid = "room";
        reserved(*std::move(room));
    }
    void stored(const DropRoom& drop) {
        rooms_.erase(drop.uid);
        scheduler_.remove_reservation(drop.uid, now_);
    }
    void stored(const WriteReservation& write) {
        model::Reservation next = rooms_.at(write.uid);
        static_cast<model::ReservationStatus&>(next) = write.status;
        reserved(std::move(next));
    }
    static std::string text(const BindPod& p) { return fmt::format("bind {} to {}", p.name, p.node); }
    static std::string text(const RefusePod& p) {
        return fmt::format("refuse {}{}: {}", p.name, p.nominated ? " -> " + *p.nominated : "", p.message);
    }
    static std::string text(const EvictPod& p) {
        return fmt::format("{} {} for {}", p.step == EvictPod::Step::Mark ? "mark" : "delete", p.name, p.by);
    }
    static std::string text(const HoldRoom& p) { return fmt::format("hold {} for {}", p.node, p.name); }
    static std::string text(const DropRoom& p) { return "drop " + p.name; }
    static std::string text(const KeepVolume& p) { return fmt::format("keep {} for {}", p.volume, p.claim.name); }
    static std::string text(const SelectNode& p) { return fmt::format("select {} for {}", p.node, p.claim.name); }
    static std::string text(const AskExtender& p) {
        constexpr const char* kVerbs[] = {"filter", "prioritize", "preempt"};
        std::string without;
        for (const auto& victim : p.victims) without += (without.empty() ? " without " : " ") + victim;
        return fmt::format("{} {} by {}: {}{}", kVerbs[static_cast<size_t>(p.verb)], p.name, p.extender,
                           fmt::join(p.nodes, " "), without);
    }
    static std::string text(const ClearNomination& p) { return "clear " + p.name; }
    static std::string text(const WriteReservation& p) { return "reserve " + p.name + ": " + p.message; }
    static std::string text(const ReadBack& p) { return "read " + p.name; }
};

}  // namespace berth::sched
