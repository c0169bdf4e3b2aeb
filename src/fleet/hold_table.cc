#include "fleet/hold_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace berth::fleet {
namespace {

Quantity amount(const Amounts& amounts, const std::string& name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? Quantity() : found->second;
}

void add(Amounts& to, const Amounts& what) {
    for (const auto& [name, given] : what) to[name] += given;
}

void subtract(Amounts& from, const Amounts& what) {
    for (const auto& [name, given] : what) {
        auto& left = from[name];
        left -= given;
        CHECK(!left.is_negative());
        if (left.is_zero()) from.erase(name);
    }
}

}  // namespace

// None: it fits. The hold that it comes instead of is counted as free.
HoldReason HoldTable::refusal(const Amounts& asked, const Amounts* instead_of) const {
    HoldReason out = HoldReason::None;
    const auto say = [&](HoldReason reason) {
        if (out == HoldReason::None || reason < out) out = reason;
    };
    for (const auto& [name, wanted] : asked) {
        if (wanted.is_zero()) continue;
        const Quantity all = amount(capacity_, name);
        Quantity held = amount(held_, name);
        if (instead_of != nullptr) held -= amount(*instead_of, name);
        const Quantity with_machines = wanted + amount(used_, name);
        if (wanted > all) {
            say(HoldReason::Unsatisfiable);
        } else if (with_machines > all) {
            say(HoldReason::Insufficient);
        } else if (with_machines + held > all) {
            say(HoldReason::Contended);
        }
    }
    return out;
}

// Tenths of what would stay free of the scarcest resource: floor(10 x (capacity - used - held - asked) / capacity).
// E.g. 4 cpu, 1 used, 1 asked: floor(10 x 2 / 4) = 5.
int32_t HoldTable::score(const Amounts& asked) const {
    int64_t out = 10;
    for (const auto& [name, wanted] : asked) {
        const auto all = static_cast<int128>(amount(capacity_, name).milli());
        if (all <= 0) continue;
        const Quantity left = amount(capacity_, name) - amount(used_, name) - amount(held_, name) - wanted;
        const int128 tenths = static_cast<int128>(std::max<int64_t>(0, left.milli())) * 10 / all;
        out = std::min(out, static_cast<int64_t>(tenths));
    }
    return static_cast<int32_t>(std::clamp<int64_t>(out, 0, 10));
}

bool HoldTable::fenced(const std::string& lineage, uint64_t attempt) const {
    const auto found = fences_.find(lineage);
    return found != fences_.end() && attempt <= found->second.attempt;
}

void HoldTable::raise_fence(const std::string& lineage, uint64_t attempt, Instant now) {
    Fence& fence = fences_[lineage];
    fence.attempt = std::max(fence.attempt, attempt);
    fence.until = now + times_.tombstone;
    changes_.insert(lineage);
}

void HoldTable::touch(Hold& hold) {
    hold.sequence = ++sequence_;
    changes_.insert(hold.ask.lineage);
}

void HoldTable::set_until(Hold& hold, std::optional<Instant> until) {
    if (hold.until) ends_.erase({*hold.until, hold.ask.lineage});
    hold.until = until;
    if (until) ends_.insert({*until, hold.ask.lineage});
}

// A hold for a machine has a short lease until its machine is on its way; one that somebody keeps has what is left of
// its duration, or no end.
std::optional<Instant> HoldTable::lease_end(const Hold& hold, Instant now) const {
    if (!hold.ask.keeps()) return now + (hold.committed ? times_.committed : times_.hold);
    if (hold.until) return hold.until;
    if (hold.ask.duration) return now + *hold.ask.duration;
    return std::nullopt;
}

void HoldTable::set_state(Hold& hold, HoldState state, HoldReason reason, Instant now) {
    const bool was_live = hold.live();
    hold.state = state;
    hold.reason = reason;
    if (was_live && !hold.live()) subtract(held_, hold.ask.resources);
    if (!was_live && hold.live()) add(held_, hold.ask.resources);
    if (!hold.live()) {
        hold.committed = false;
        set_until(hold, now + times_.tombstone);
    }
    touch(hold);
}

void HoldTable::forget(Holds::iterator hold) {
    if (hold->second.live()) subtract(held_, hold->second.ask.resources);
    set_until(hold->second, std::nullopt);
    changes_.insert(hold->first);
    holds_.erase(hold);
}

HoldAnswer HoldTable::reserve(const HoldAsk& ask, Instant now) {
    pass_time(now);
    if (machines_.contains(ask.lineage)) return {HoldState::Bound};
    const auto known = holds_.find(ask.lineage);
    if (known != holds_.end()) {
        if (known->second.ask.attempt > ask.attempt) return {HoldState::Rejected, HoldReason::Fenced};
        if (known->second.ask.attempt == ask.attempt) return *answer(ask.lineage, now);
        forget(known);
    }
    if (fenced(ask.lineage, ask.attempt)) return {HoldState::Rejected, HoldReason::Fenced};
    Hold& hold = holds_[ask.lineage];
    hold.ask = ask;
    hold.order = ++orders_;
    const HoldReason why = refusal(ask.resources, nullptr);
    if (why == HoldReason::None) {
        hold.score = score(ask.resources);
        set_state(hold, HoldState::Accepted, why, now);
        set_until(hold, lease_end(hold, now));
    } else {
        set_state(hold, HoldState::Rejected, why, now);
    }
    return *answer(ask.lineage, now);
}

std::optional<HoldAnswer> HoldTable::answer(const std::string& lineage, Instant now) const {
    if (machines_.contains(lineage)) return HoldAnswer{HoldState::Bound};
    const auto found = holds_.find(lineage);
    if (found == holds_.end()) return std::nullopt;
    const Hold& hold = found->second;
    HoldAnswer out{hold.state, hold.reason, hold.score, std::nullopt, hold.committed};
    if (hold.live() && hold.until) out.lease = std::max(*hold.until - now, Duration::zero());
    return out;
}

Result<HoldAnswer> HoldTable::renew(const std::string& lineage, Instant now) {
    pass_time(now);
    if (machines_.contains(lineage)) return HoldAnswer{HoldState::Bound};
    const auto found = holds_.find(lineage);
    if (found == holds_.end()) return base::not_found(fmt::format("reservation {}: nothing is held", lineage));
    Hold& hold = found->second;
    // Somebody still waits: a refusal is remembered as long.
    set_until(hold, hold.live() ? lease_end(hold, now) : now + times_.tombstone);
    changes_.insert(lineage);
    return *answer(lineage, now);
}

Result<HoldAnswer> HoldTable::confirm(const std::string& lineage, uint64_t attempt, Instant now) {
    pass_time(now);
    if (machines_.contains(lineage)) return HoldAnswer{HoldState::Bound};
    const auto found = holds_.find(lineage);
    if (found == holds_.end() || !found->second.live())
        return base::not_found(fmt::format("reservation {}: nothing is held", lineage));
    Hold& hold = found->second;
    if (hold.ask.attempt != attempt)
        return base::conflict(
            fmt::format("reservation {}: attempt {} is held, not {}", lineage, hold.ask.attempt, attempt));
    const bool news = !hold.committed;
    hold.committed = true;
    set_until(hold, lease_end(hold, now));
    if (news) touch(hold);
    changes_.insert(lineage);
    return *answer(lineage, now);
}

bool HoldTable::release(const std::string& lineage, Instant now) {
    const auto found = holds_.find(lineage);
    if (found == holds_.end()) return false;
    const bool was_live = found->second.live();
    const uint64_t attempt = found->second.ask.attempt;
    const bool bound = found->second.state == HoldState::Bound;
    forget(found);
    // A late copy of the request to reserve holds nothing; the machine of a bound one may still ask for its place.
    if (!bound) raise_fence(lineage, attempt, now);
    if (was_live) wake_refused(now);
    return true;
}

Status HoldTable::place(const Machine& machine, Instant now) {
    pass_time(now);
    const std::string& lineage = machine.lineage;
    if (machines_.contains(lineage)) return {};
    const auto found = holds_.find(lineage);
    Hold* hold = found == holds_.end() ? nullptr : &found->second;
    const uint64_t known = hold == nullptr ? 0 : hold->ask.attempt;
    const auto fence = fences_.find(lineage);
    const bool deleted = fence != fences_.end() && machine.attempt <= fence->second.attempt;
    if (machine.attempt < known || deleted)
        return base::conflict(fmt::format(
            "machine {}: attempt {} came too late; a later one is known, or it was deleted", lineage, machine.attempt));
    // What was lost or given back is placed elsewhere by now, or will be: that attempt has ended here.
    if (hold != nullptr && machine.attempt == known &&
        (hold->state == HoldState::Lost || hold->state == HoldState::Released))
        return base::conflict(fmt::format("machine {}: attempt {} has lost its hold", lineage, machine.attempt));
    const Amounts* mine = hold != nullptr && hold->live() ? &hold->ask.resources : nullptr;
    const HoldReason why = refusal(machine.amounts, mine);
    if (why != HoldReason::None)
        return base::Error{Reason::TooManyRequests, fmt::format("machine {}: {} room", lineage, name_of(why))};
    if (hold != nullptr) set_state(*hold, HoldState::Bound, HoldReason::None, now);
    machines_.emplace(lineage, machine);
    add(used_, machine.amounts);
    changes_.insert(lineage);
    return {};
}

Status HoldTable::change(const std::string& lineage, const Amounts& amounts, Instant now) {
    pass_time(now);
    const auto found = machines_.find(lineage);
    if (found == machines_.end()) return base::not_found(fmt::format("machine {} is not known", lineage));
    Amounts& has = found->second.amounts;
    Amounts more;
    for (const auto& [name, wanted] : amounts) {
        const Quantity extra = wanted - amount(has, name);
        if (!extra.is_negative() && !extra.is_zero()) more.emplace(name, extra);
    }
    const HoldReason why = refusal(more, nullptr);
    if (why != HoldReason::None)
        return base::Error{Reason::TooManyRequests, fmt::format("machine {}: {} room", lineage, name_of(why))};
    subtract(used_, has);
    has = amounts;
    add(used_, has);
    changes_.insert(lineage);
    wake_refused(now);
    return {};
}

bool HoldTable::remove(const std::string& lineage, Instant now, uint64_t known) {
    const auto found = machines_.find(lineage);
    const auto hold = holds_.find(lineage);
    uint64_t attempt = hold == holds_.end() ? 0 : hold->second.ask.attempt;
    if (found == machines_.end()) {
        raise_fence(lineage, std::max(attempt, known), now);
        return false;
    }
    attempt = std::max(attempt, found->second.attempt);
    subtract(used_, found->second.amounts);
    machines_.erase(found);
    if (hold != holds_.end()) forget(hold);
    raise_fence(lineage, attempt, now);
    wake_refused(now);
    return true;
}

void HoldTable::pass_time(Instant now) {
    bool freed = false;
    while (!ends_.empty() && ends_.begin()->first <= now) {
        const std::string lineage = ends_.begin()->second;
        const auto found = holds_.find(lineage);
        CHECK(found != holds_.end());
        if (found->second.live()) {
            freed = true;
            set_state(found->second, HoldState::Lost, HoldReason::None, now);
        } else if (found->second.state == HoldState::Bound && machines_.contains(lineage)) {
            set_until(found->second, std::nullopt);
        } else {
            forget(found);
        }
    }
    if (now >= sweep_) forget_fences(now);
    if (freed) wake_refused(now);
}

void HoldTable::forget_fences(Instant now) {
    sweep_ = now + times_.tombstone / 8;
    for (auto it = fences_.begin(); it != fences_.end();) {
        if (it->second.until > now) {
            ++it;
            continue;
        }
        changes_.insert(it->first);
        it = fences_.erase(it);
    }
}

std::optional<Instant> HoldTable::next() const {
    if (ends_.empty()) return std::nullopt;
    return ends_.begin()->first;
}

// Those that were refused and would fit now hear so, the most important and oldest first, as many as there is room for.
// Who could never fit asks no more by itself: that it could by now it hears, too, whoever is promised the room first.
void HoldTable::wake_refused(Instant now) {
    std::vector<Hold*> refused;
    for (auto& [lineage, hold] : holds_) {
        if (hold.state == HoldState::Rejected && hold.reason != HoldReason::Fenced) refused.push_back(&hold);
    }
    std::sort(refused.begin(), refused.end(), [](const Hold* a, const Hold* b) {
        return std::pair(-int64_t{a->ask.priority}, a->order) < std::pair(-int64_t{b->ask.priority}, b->order);
    });
    Amounts promised;  // what those who are woken will take
    for (Hold* hold : refused) {
        Amounts asked = hold->ask.resources;
        add(asked, promised);
        for (auto it = asked.begin(); it != asked.end();)
            it = hold->ask.resources.contains(it->first) ? std::next(it) : asked.erase(it);
        const bool fits = refusal(asked, nullptr) == HoldReason::None;
        const bool could = hold->reason == HoldReason::Unsatisfiable &&
                           refusal(hold->ask.resources, nullptr) != HoldReason::Unsatisfiable;
        if (!fits && !could) continue;
        if (fits) add(promised, hold->ask.resources);
        if (hold->reason != HoldReason::Retry) set_state(*hold, HoldState::Rejected, HoldReason::Retry, now);
    }
}

std::vector<std::string> HoldTable::resize(Amounts capacity, Instant now) {
    pass_time(now);
    capacity_ = std::move(capacity);
    std::vector<Hold*> live;
    for (auto& [lineage, hold] : holds_) {
        if (hold.live()) live.push_back(&hold);
    }
    std::sort(live.begin(), live.end(), [](const Hold* a, const Hold* b) { return a->order > b->order; });
    std::vector<std::string> lost;
    const auto exceeds = [&](const Amounts& asked) {
        return std::any_of(asked.begin(), asked.end(), [&](const auto& entry) {
            return amount(used_, entry.first) + amount(held_, entry.first) > amount(capacity_, entry.first);
        });
    };
    for (Hold* hold : live) {
        if (!exceeds(hold->ask.resources)) continue;
        set_state(*hold, HoldState::Lost, HoldReason::None, now);
        lost.push_back(hold->ask.lineage);
    }
    wake_refused(now);
    return lost;
}

void HoldTable::restore(Hold hold) {
    const std::string lineage = hold.ask.lineage;
    const auto until = std::exchange(hold.until, std::nullopt);
    orders_ = std::max(orders_, hold.order);
    sequence_ = std::max(sequence_, hold.sequence);
    if (hold.live()) add(held_, hold.ask.resources);
    set_until(holds_.insert_or_assign(lineage, std::move(hold)).first->second, until);
}

void HoldTable::restore(Machine machine) {
    add(used_, machine.amounts);
    machines_.insert_or_assign(machine.lineage, std::move(machine));
}

void HoldTable::restore(const std::string& lineage, Fence fence) {
    fences_[lineage] = fence;
}

}  // namespace berth::fleet
