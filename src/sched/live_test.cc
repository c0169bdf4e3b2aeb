#include "sched/live_test.h"

#include <fmt/ranges.h>

#include "model/preemption_hold.h"
#include "model/reservation_status.h"

namespace berth::sched {
namespace {

std::string text(const BindPod& p) {
    return fmt::format("bind {} to {}", p.name, p.node);
}
std::string text(const RefusePod& p) {
    return fmt::format("refuse {}{}: {}", p.name, p.nominated ? " -> " + *p.nominated : "", p.message);
}
std::string text(const EvictPod& p) {
    return fmt::format("{} {} for {}", p.step == EvictPod::Step::Mark ? "mark" : "delete", p.name, p.by);
}
std::string text(const HoldRoom& p) {
    return fmt::format("hold {} for {}", p.node, p.name);
}
std::string text(const DropRoom& p) {
    return "drop " + p.name;
}
std::string text(const KeepVolume& p) {
    return fmt::format("keep {} for {}", p.volume, p.claim.name);
}
std::string text(const SelectNode& p) {
    return fmt::format("select {} for {}", p.node, p.claim.name);
}
std::string text(const AskExtender& p) {
    constexpr const char* kVerbs[] = {"filter", "prioritize", "preempt"};
    std::string without;
    for (const auto& victim : p.victims) without += (without.empty() ? " without " : " ") + victim;
    return fmt::format("{} {} by {}: {}{}", kVerbs[static_cast<size_t>(p.verb)], p.name, p.extender,
                       fmt::join(p.nodes, " "), without);
}
std::string text(const ClearNomination& p) {
    return "clear " + p.name;
}
std::string text(const WriteReservation& p) {
    return "reserve " + p.name + ": " + p.message;
}
std::string text(const ClaimReservation& p) {
    if (!p.pod.empty()) return fmt::format("claim {} for {}", p.name, p.pod);
    return (model::is_final(p.status.phase) ? "end " : "release ") + p.name;
}
std::string text(const OpenReservation& p) {
    return "open " + p.name;
}
std::string text(const ReadBack& p) {
    return "read " + p.name;
}

}  // namespace

LiveTest::LiveTest(SchedulerOptions options, Scheduler::Profiles profiles)
    : scheduler_(std::move(profiles), std::move(options)) {}

LiveTest::~LiveTest() = default;

void LiveTest::node(const std::string& name, int64_t cpu_milli) {
    auto made = std::make_shared<model::Node>();
    made->meta.name = name;
    made->meta.labels.set("kubernetes.io/hostname", name);
    made->allocatable = model::Resources{{model::kCpu, cpu_milli}, {model::kMemory, 32LL << 30}, {model::kPods, 110}};
    scheduler_.put(made, now_);
}

model::Pod& LiveTest::make(const std::string& name, int64_t cpu_milli, int32_t priority) {
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

void LiveTest::bound(const std::string& name, int64_t cpu_milli, int32_t priority, const std::string& on) {
    model::Pod& pod = make(name, cpu_milli, priority);
    pod.node = on;
    put(pod);
}

void LiveTest::pending(const std::string& name, int64_t cpu_milli, int32_t priority, const std::string& nominated,
                       bool never_preempts) {
    model::Pod& pod = make(name, cpu_milli, priority);
    pod.nominated_node = nominated;
    auto spec = std::make_shared<model::PodSpec>(*pod.spec);
    spec->never_preempts = never_preempts;
    pod.spec = spec;
    put(pod);
}

void LiveTest::terminating(const std::string& name) {
    model::Pod& pod = pods_.at(name);
    pod.meta.deleted = base::Time{1};
    pod.preempted = true;
    put(pod);
}

namespace {

bool is_about_status(const Plan& plan) {
    return std::holds_alternative<RefusePod>(plan) || std::holds_alternative<ClearNomination>(plan);
}

}  // namespace

void LiveTest::step(size_t most) {
    for (auto& plan : scheduler_.step(now_, wall_, most)) {
        std::vector<Plan> further;
        if (is_about_status(plan)) further = scheduler_.outcome(plan, Outcome::Done, now_);
        plans_.push_back(std::move(plan));
        std::move(further.begin(), further.end(), std::back_inserter(plans_));
    }
}

Lines LiveTest::told() {
    Lines lines;
    for (const auto& plan : plans_) lines.push_back(std::visit([](const auto& p) { return text(p); }, plan));
    std::swap(answered_, plans_);
    plans_.clear();
    return lines;
}

void LiveTest::answer(Outcome outcome) {
    if (!plans_.empty()) told();
    for (const auto& plan : std::exchange(answered_, {})) {
        seen(plan, outcome);
        for (auto& next : scheduler_.outcome(plan, outcome, now_)) plans_.push_back(std::move(next));
    }
}

int64_t LiveTest::used(const std::string& node) const {
    return scheduler_.ledger().column(model::kCpu)->used[scheduler_.ledger().row_of(node)];
}

model::Reservation LiveTest::reservation(const std::string& name, int64_t cpu_milli,
                                         const std::vector<std::string>& owners) {
    model::Reservation made;
    made.meta.name = made.meta.uid = name;
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    spec->priority = INT32_MAX;
    spec->requests = model::Resources{{model::kCpu, cpu_milli}, {model::kPods, 1}};
    made.spec = std::move(spec);
    for (const auto& pod : owners) made.owners.emplace_back().object.emplace().name = pod;
    return made;
}

void LiveTest::reserved_on(const std::string& node, model::Reservation object) {
    static_cast<model::ReservationStatus&>(object) = model::placed(object, node, object.spec->requests, wall_);
    reserved(std::move(object));
}

void LiveTest::reserved(model::Reservation object) {
    object.meta.revision = ++revision_;
    const auto& kept = reservations_.insert_or_assign(object.meta.uid, std::move(object)).first->second;
    scheduler_.put(std::make_shared<const model::Reservation>(kept), now_);
}

void LiveTest::available(const std::string& uid) {
    model::Reservation next = reservations_.at(uid);
    static_cast<model::ReservationStatus&>(next) = model::available(next, base::Time{});
    reserved(std::move(next));
}

void LiveTest::seen(const Plan& plan, Outcome outcome) {
    if (outcome == Outcome::Done) std::visit([this](const auto& p) { stored(p); }, plan);
}

void LiveTest::stored(const RefusePod& refuse) {
    if (!refuse.nominated || !pods_.contains(refuse.name)) return;
    pods_.at(refuse.name).nominated_node = *refuse.nominated;
    put(pods_.at(refuse.name));
}

void LiveTest::stored(const HoldRoom& hold) {
    reserved(model::stored_preemption_hold(*hold.pod, hold.node, "room", {}));
}

void LiveTest::stored(const DropRoom& drop) {
    reservations_.erase(drop.uid);
    reservation_gone(drop.uid);
}

void LiveTest::stored(const WriteReservation& write) {
    write_status(write.uid, write.status);
}

void LiveTest::stored(const ClaimReservation& claim) {
    write_status(claim.uid, claim.status);
}

void LiveTest::stored(const OpenReservation& open) {
    write_status(open.uid, open.status);
}

void LiveTest::write_status(const std::string& uid, const model::ReservationStatus& status) {
    model::Reservation next = reservations_.at(uid);
    static_cast<model::ReservationStatus&>(next) = status;
    reserved(std::move(next));
}

}  // namespace berth::sched
