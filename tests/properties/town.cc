#include "town.h"

#include <algorithm>
#include <cstdlib>

#include "model/allocated.h"
#include "model/reservation_status.h"
#include "sched/credit.h"
#include "sched/cycle.h"

namespace berth::properties {

void Town::Scheduler::listen(size_t most) {
    for (; most > 0 && !news.empty(); --most) {
        news.front()(ledger);
        news.pop_front();
    }
}

void Town::step() {
    for (auto& scheduler : schedulers_) scheduler.listen(random_.below(4));
    const uint64_t what = random_.below(100);
    if (what < 25) delete_pod();
    if (what >= 25 && what < 33) end_reservation();
    if (what >= 33 && what < 36) restart(schedulers_[random_.below(2)]);
    if (what >= 36 && what < 46) reserve(schedulers_[random_.below(2)]);
    if (what >= 46 && what < 49) disturb();
    if (what >= 49) place(schedulers_[random_.below(2)]);
    judge();
}

void Town::tell(const Tell& news) {
    news(truth_);
    for (auto& scheduler : schedulers_) scheduler.news.push_back(news);
}

void Town::everybody_listens() {
    for (auto& scheduler : schedulers_) scheduler.listen(1000);
}

void Town::place(Scheduler& scheduler) {
    model::Pod pod;
    pod.meta.ns = "default";
    pod.meta.name = pod.meta.uid = fmt::format("p{}", next_++);
    pod.meta.labels = labels();
    pod.meta.annotations = wishes();
    pod.spec = spec(pod.meta.labels, pod.meta.annotations);
    const auto decision = sched::decide_pod(pod, scheduler.ledger, sched::default_profile());
    ASSERT_EQ(scheduler.decider->choose(pod, scheduler.ledger), decision.verdict.chosen) << "the fast way";
    if (decision.verdict.chosen == ledger::kNoRow) return;
    scheduler.ledger.assume(pod, decision.verdict.chosen, decision.charges, decision.which);
    pod.node = scheduler.ledger.name(decision.verdict.chosen);
    for (const auto& [key, value] : decision.annotations) pod.meta.annotations.set(key, value);
    if (const auto fits = rules_.judge_bind(pod, truth_); !fits) {
        ++refused_;
        return scheduler.ledger.remove_pod(pod.meta.uid);
    }
    ++bound_;
    drawn_ += decision.charges.empty() ? 0 : 1;
    pods_[pod.meta.uid] = pod;
    tell([pod](ledger::Ledger& ledger) { ledger.put(pod); });
    const auto links = model::read_links(pod.meta.annotations);
    for (const auto& link : links->named()) {
        model::Reservation used = reservations_.at(link.uid);
        if (!used.allocate_once) continue;
        static_cast<model::ReservationStatus&>(used) = model::succeeded(used, {});
        store(std::move(used));
    }
}

void Town::store(model::Reservation object) {
    object.meta.revision = ++revision_;
    reservations_[object.meta.uid] = object;
    const auto shared = std::make_shared<const model::Reservation>(object);
    tell([shared](ledger::Ledger& ledger) { ledger.put(shared); });
}

void Town::reserve(Scheduler& scheduler) {
    model::Reservation object;
    object.meta.name = object.meta.uid = fmt::format("r{}", next_++);
    object.meta.revision = ++revision_;
    object.meta.labels = labels();
    object.spec = spec(object.meta.labels, wishes());
    model::ReservationOwner owner;
    owner.labels = model::Selector::parse(random_.chance(1, 2) ? "app=web" : "app=db").value();
    object.owners.push_back(owner);
    object.allocate_once = random_.chance(1, 2);
    if (random_.chance(1, 3)) object.policy = model::AllocatePolicy::Restricted;
    const auto pending = std::make_shared<const model::Reservation>(object);
    scheduler.ledger.put(pending);
    const auto decision = sched::decide_reservation(object, scheduler.ledger, sched::default_profile());
    ASSERT_EQ(scheduler.decider->choose(object, scheduler.ledger), decision.verdict.chosen) << "the fast way";
    if (decision.verdict.chosen == ledger::kNoRow) return scheduler.ledger.remove_reservation(object.meta.uid);
    const std::string node(scheduler.ledger.name(decision.verdict.chosen));
    scheduler.ledger.assume_reservation(scheduler.ledger.find_reservation(object.meta.uid), decision.verdict.chosen,
                                        false, decision.which);
    static_cast<model::ReservationStatus&>(object) = model::placed(object, node, object.spec->requests, {});
    if (decision.which) object.which = *decision.which;
    if (!rules_.judge_place(object, truth_)) {
        ++refused_;
        return scheduler.ledger.remove_reservation(object.meta.uid);
    }
    store(std::move(object));
}

void Town::delete_pod() {
    if (pods_.empty()) return;
    auto chosen = pods_.begin();
    std::advance(chosen, static_cast<long>(random_.below(pods_.size())));
    const std::string uid = chosen->first;
    pods_.erase(chosen);
    tell([uid](ledger::Ledger& ledger) { ledger.remove_pod(uid); });
}

void Town::end_reservation() {
    if (reservations_.empty()) return;
    auto chosen = reservations_.begin();
    std::advance(chosen, static_cast<long>(random_.below(reservations_.size())));
    const std::string uid = chosen->first;
    reservations_.erase(chosen);
    tell([uid](ledger::Ledger& ledger) { ledger.remove_reservation(uid); });
}

// It knows what is stored, and nothing else.
void Town::restart(Scheduler& scheduler) {
    Scheduler fresh;
    tell_machines(fresh.ledger);
    for (const auto& [uid, object] : reservations_) {
        fresh.ledger.put(std::make_shared<const model::Reservation>(object));
    }
    for (const auto& [uid, pod] : pods_) fresh.ledger.put(pod);
    compare(fresh.ledger);
    scheduler = std::move(fresh);
}

void live_in_towns(const std::function<std::unique_ptr<Town>(uint64_t seed)>& make, uint64_t seeds, Worth worth) {
    const char* given = std::getenv("BERTH_SEED");
    const char* many = std::getenv("BERTH_SEEDS");
    const uint64_t first = given ? std::stoull(given) : 1;
    const uint64_t last = given ? first : many ? std::stoull(many) : seeds;
    size_t bound = 0, refused = 0, drawn = 0;
    for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("BERTH_SEED={}", seed));
        const auto town = make(seed);
        for (int step = 0; step < 150 && !testing::Test::HasFailure(); ++step) town->step();
        bound += town->bound();
        refused += town->refused();
        drawn += town->drawn();
    }
    fmt::print("seeds {}-{}: {} bound, {} of them drew, {} refused\n", first, last, bound, drawn, refused);
    if (given) return;
    EXPECT_GT(bound, worth.bound);
    EXPECT_GT(drawn, worth.drawn);
    EXPECT_GT(refused, worth.refused) << "the schedulers never met";
}

}  // namespace berth::properties
