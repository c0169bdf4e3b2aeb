#include "sched/shares.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/saturating.h"
#include "model/preemption_hold.h"
#include "model/reservation_rules.h"
#include "share/admission.h"
#include "share/answer.h"

namespace berth::sched {
namespace {

using ledger::PodIndex;
using ledger::Space;
using ledger::Spaces;
using model::ResourceId;

// What an area has is what those below it have; what it deserves is known, unless nothing had to be solved.
void add_up(std::vector<share::Account>& accounts, bool deserved_too) {
    const share::Above ways = share::above(share::names_of(accounts));
    for (const uint32_t i : ways.upwards) {
        if (ways.parent[i] == share::kNobody) continue;
        share::Account& area = accounts[ways.parent[i]];
        area.used.add(accounts[i].used);
        if (deserved_too) area.share.deserved.add(accounts[i].share.deserved);
    }
}

}  // namespace

Shares::Shares(share::Settings settings) : settings_(std::move(settings)) {}

Shares::~Shares() = default;

// Spaces that nobody has any more give back their numbers. True: those of others are new.
bool Shares::tidy(Spaces& spaces) {
    if (!spaces.worth_tidying()) return false;
    absl::flat_hash_set<SpaceId> needed;
    for (const auto& [uid, promise] : promises_) needed.insert(promise.space);
    for (const auto& [id, waits] : waits_) needed.insert(id);
    for (SpaceId id = 0; counts_storage_ && id < storage_.size(); ++id) {
        if (!storage_[id].first.empty() || !storage_[id].second.empty()) needed.insert(id);
    }
    const std::vector<SpaceId> numbers = spaces.tidy(needed);
    if (numbers.empty()) return false;
    for (auto& [uid, promise] : promises_) promise.space = numbers[promise.space];
    for (auto& [uid, wait] : waits_of_) wait.space = numbers[wait.space];
    for (auto& [id, waits] : std::exchange(waits_, {})) waits_.emplace(numbers[id], std::move(waits));
    looked_at_.clear();
    return true;
}

bool Shares::follow(ledger::Ledger& ledger, base::Time wall) {
    Spaces& spaces = *ledger.spaces();
    const bool renumbered = tidy(spaces);
    wall_ = std::max(wall_, wall);
    const bool asked = spaces.demand_epoch() != demand_seen_;
    const bool nodes = spaces.nodes_epoch() != nodes_seen_ || (next_lost_ && *next_lost_ <= wall_) ||
                       (cordoned_ && spaces.sums_epoch() != sums_seen_);
    const bool claims = counts_storage_ && spaces.claims_epoch() != claims_seen_;
    bool anew = renumbered || !solver_ || spaces.rules_epoch() != rules_seen_ || spaces.size() != limits_.size();
    if (!asked && !nodes && !claims && !anew) return false;
    demand_seen_ = spaces.demand_epoch();
    if (enough_ && !nodes && !claims && !anew && spaces.batches() == batch_ && spaces.batch_asked() <= most_) {
        sums_seen_ = spaces.sums_epoch();
        return true;
    }
    nodes_seen_ = spaces.nodes_epoch();
    rules_seen_ = spaces.rules_epoch();
    sums_seen_ = spaces.sums_epoch();
    const bool first = !solver_;
    if (nodes || anew) {
        Resources known = capacity(ledger, wall_);
        if (known != known_capacity_) {
            known_capacity_ = known;
            capacity_ = std::move(known);
            resized_ = true;
            anew = anew || percents_;
        }
    }
    if (anew) read_rules(ledger);
    enough_ = !first && enough(spaces);
    if (enough_) {
        stale_ = stale_ || anew;
        deserved_.resize(spaces.size());
        return true;
    }
    anew = anew || std::exchange(stale_, false);
    const std::vector<SpaceId> changed = spaces.take_changed();
    if (anew || claims) count_claims(ledger);
    if (anew || (claims && counts_storage_)) {
        build(ledger);
    } else {
        if (std::exchange(resized_, false)) {
            for (const auto& consumer : solver_->problem().consumers) {
                for (const auto& leaf : consumer.leaves) meet(leaf);
            }
            solver_->set_capacity(capacity_);
        }
        for (const SpaceId id : changed) update(ledger, id);
    }
    solver_->solve();
    ++solved_;
    return true;
}

// With one more rule it would have to be asked who gets what.
bool Shares::enough(const Spaces& spaces) {
    if (!plain_) return false;
    bool enough = true;
    const Resources& asked = spaces.asked();
    asked.for_each(
        [&](ResourceId id, int64_t amount) { enough = enough && (amount <= capacity_.get(id) || endless(id)); });
    batch_ = spaces.batches();
    int64_t more = INT32_MAX;
    spaces.batch_size().for_each([&](ResourceId id, int64_t amount) {
        if (amount > 0 && !endless(id)) more = std::min(more, (capacity_.get(id) - asked.get(id)) / amount);
    });
    most_ = spaces.batch_asked() + more;
    return enough;
}

const Resources& Shares::deserved(const View& ledger, SpaceId id) const {
    auto& [when, amounts] = deserved_[id];
    if (enough_) {
        amounts = demand(ledger, id);
        when = 0;
    } else if (when != solved_) {
        amounts = solver_->deserved(id);
        when = solved_;
    }
    return amounts;
}

// ---- the predicate

Resources Shares::taken(const View& ledger, SpaceId id) const {
    Resources taken = ledger.spaces()->at(id).used;
    taken.add(ledger.spaces()->at(id).held);
    return taken;
}

std::string Shares::refusal(const View& ledger, const model::PodSpec& spec, std::string_view uid,
                            const Resources& paid) const {
    const Spaces& spaces = *ledger.spaces();
    if (enough_ && promises_.empty()) return {};
    const SpaceId id = spaces.find(spec.ns);
    if (id >= limits_.size() || limits_[id].infinite) return {};
    const Space& space = spaces.at(id);
    Resources in_flight = space.held;
    int64_t pods = space.pods;
    for (const auto& [other, promise] : promises_) {
        if (promise.space != id || other == uid) continue;
        in_flight.add(promise.size);
        ++pods;
    }
    Resources size = size_of(spec);
    if (!paid.empty()) size.subtract(paid);
    const std::string why = share::refusal({space.used, in_flight, deserved(ledger, id), limits_[id].hard, pods}, size);
    return why.empty() ? why : fmt::format("the share of namespace {}: {}", space.name, why);
}

Resources Shares::paid(const View& ledger, const model::PodSpec& spec, const ledger::Charges& charges) const {
    Resources out;
    for (const auto& charge : charges) {
        const auto& reservation = ledger.reservation(charge.reservation);
        if (!model::preemption_hold_owner(*reservation.object).empty()) continue;
        if (model::namespace_of_owners(*reservation.object) != spec.ns) continue;
        const Resources open = ledger::undrawn(reservation);
        charge.amount.for_each([&](ResourceId id, int64_t amount) {
            const int64_t here = std::min(amount, open.get(id));
            if (here > 0) out.add(id, here);
        });
    }
    return out;
}

// ---- who waits for more

void Shares::refused(const View& ledger, const model::Pod& pod) {
    const SpaceId id = ledger.spaces()->find(pod.spec->ns);
    if (id == ledger::kNone) return;
    forget(pod.meta.uid);
    const Rank rank{-static_cast<int64_t>(pod.spec->priority), pod.meta.created, pod.meta.uid};
    waits_of_.emplace(pod.meta.uid, Wait{id, rank});
    waits_[id].emplace(rank, pod.spec);
}

void Shares::forget(std::string_view uid) {
    const auto found = waits_of_.find(uid);
    if (found == waits_of_.end()) return;
    const auto space = waits_.find(found->second.space);
    space->second.erase(found->second.rank);
    if (space->second.empty()) {
        looked_at_.erase(space->first);
        waits_.erase(space);
    }
    waits_of_.erase(found);
}

std::vector<std::string> Shares::may_start(const View& ledger) {
    std::vector<std::string> out;
    for (const auto& [id, waits] : waits_) {
        std::tuple now(taken(ledger, id), deserved(ledger, id), promised_);
        auto& before = looked_at_[id];
        if (now == before) continue;
        Resources in_flight;
        int64_t pods = ledger.spaces()->at(id).pods;
        for (const auto& [uid, promise] : promises_) {
            if (promise.space != id) continue;
            in_flight.add(promise.size);
            ++pods;
        }
        for (const auto& [rank, spec] : waits) {
            const Resources size = size_of(*spec);
            const bool may =
                limits_[id].infinite ||
                share::refusal({std::get<0>(now), in_flight, std::get<1>(now), limits_[id].hard, pods}, size).empty();
            if (!may) continue;
            out.push_back(rank.uid);
            in_flight.add(size);
            ++pods;
        }
        before = std::move(now);
    }
    for (const auto& uid : out) forget(uid);
    return out;
}

// ---- preemption

void Shares::promise(const View& ledger, const model::Pod& pod, std::vector<std::string> victims) {
    const SpaceId id = ledger.spaces()->find(pod.spec->ns);
    if (id != ledger::kNone)
        promises_.insert_or_assign(pod.meta.uid, Promise{id, size_of(*pod.spec), std::move(victims)});
    ++promised_;
}

void Shares::end_promise(std::string_view uid) {
    const auto found = promises_.find(uid);
    if (found == promises_.end()) return;
    promises_.erase(found);
    ++promised_;
}

bool Shares::overused(const View& ledger, SpaceId id) const {
    if (enough_ || id >= limits_.size() || limits_[id].infinite) return false;
    bool over = false;
    const Resources& most = deserved(ledger, id);
    taken(ledger, id).for_each([&](ResourceId key, int64_t amount) {
        over = over || (!endless(key) && amount > most.get(key));
    });
    return over;
}

// left = used - what is about to go, and for the claim's own namespace + the claim.
void Shares::spare(const View& ledger, const model::PodSpec& claim, std::vector<PodIndex>& pods) const {
    const Spaces& spaces = *ledger.spaces();
    const SpaceId own = spaces.find(claim.ns);
    const bool greedy = overused(ledger, own);
    std::map<SpaceId, Resources> left;
    const auto left_of = [&](SpaceId id) -> Resources& {
        const auto [found, fresh] = left.try_emplace(id);
        if (!fresh) return found->second;
        found->second = taken(ledger, id);
        found->second.subtract(spaces.at(id).releasing);
        if (id == own) found->second.add(size_of(claim));
        for (const auto& [by, promise] : promises_) {
            for (const auto& uid : promise.victims) {
                const PodIndex victim = ledger.find_pod(uid);
                if (victim == ledger::kNone || ledger.pod(victim).terminating) continue;
                if (spaces.find(ledger.pod(victim).ns()) == id)
                    found->second.subtract(size_of(*ledger.pod(victim).spec));
            }
        }
        return found->second;
    };
    std::vector<PodIndex> kept;
    for (size_t i = pods.size(); i-- > 0;) {
        const auto& pod = ledger.pod(pods[i]);
        const SpaceId id = spaces.find(pod.ns());
        if (id >= limits_.size()) continue;
        if (greedy && id != own && !overused(ledger, id)) continue;
        if (!pod.terminating && !limits_[id].reserved.empty()) {
            Resources& rest = left_of(id);
            const Resources size = size_of(*pod.spec);
            bool breaks = false;
            size.for_each([&](ResourceId key, int64_t amount) {
                const int64_t least = limits_[id].reserved.get(key);
                breaks = breaks || (amount > 0 && least > 0 && rest.get(key) - amount < least);
            });
            if (breaks) continue;
            rest.subtract(size);
        }
        kept.push_back(pods[i]);
    }
    std::reverse(kept.begin(), kept.end());
    pods = std::move(kept);
}

uint64_t Shares::epoch(const View& ledger) const {
    return ledger.spaces()->sums_epoch() + promised_ + solved_;
}

bool Shares::has_room(const View& ledger, const model::PodSpec& spec) const {
    const Resources size = size_of(spec);
    Resources used;
    for (SpaceId id = 0; id < limits_.size(); ++id) used.add(taken(ledger, id));
    bool room = true;
    size.for_each([&](ResourceId id, int64_t amount) {
        room = room && (!capacity_.has(id) || base::saturating_add(used.get(id), amount) <= capacity_.get(id));
    });
    return room;
}

bool Shares::behind(const View& ledger) const {
    const Spaces& spaces = *ledger.spaces();
    return spaces.demand_epoch() != demand_seen_ || spaces.nodes_epoch() != nodes_seen_ ||
           spaces.rules_epoch() != rules_seen_;
}

// ---- seeing it

std::vector<share::Account> Shares::accounts(const View& ledger) const {
    std::vector<share::Account> out;
    if (!solver_) return out;
    for (SpaceId id = 0; id < limits_.size(); ++id) {
        share::Account& account = out.emplace_back();
        account.name = ledger.spaces()->at(id).name;
        if (const auto found = ledger.spaces()->consumers().find(account.name);
            found != ledger.spaces()->consumers().end()) {
            account.parent = found->second->parent;
            account.lending_limit = found->second->lending_limit;
        }
        account.infinite = limits_[id].infinite;
        account.reserved = limits_[id].reserved;
        account.hard = limits_[id].hard;
        account.used = taken(ledger, id);
        account.share.deserved = deserved(ledger, id);
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    add_up(out, enough_);
    share::lend(out);
    return out;
}

}  // namespace berth::sched
