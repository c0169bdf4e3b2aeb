#include "fleet/round.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "base/random.h"

namespace berth::fleet {
namespace {

using base::Duration;
using base::Instant;
using model::HoldAnswer;
using model::HoldReason;
using model::HoldState;

uint64_t hash_of(std::string_view a, std::string_view b) {
    uint64_t h = 1469598103934665603ULL;
    for (const std::string_view text : {a, std::string_view("/"), b}) {
        for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
    return base::Random(h).next();
}

bool contains(const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

// Who has said that it is asking below has so much more time than who has said nothing.
constexpr int kPatience = 3;
constexpr Duration kMargin = std::chrono::seconds(2);
constexpr Duration kLeast = std::chrono::milliseconds(500);

// One reservation, looked at once.
class Look {
public:
    Look(const Asked& asked, RoundMemory& memory, std::span<const Pool> pools, const ReplyTimes& times,
         const RoundRules& rules, Instant now)
        : asked_(asked), memory_(memory), pools_(pools), times_(times), rules_(rules), now_(now) {
        // Of a pool that is no longer there only a Machine counts.
        for (const auto& entry : asked.entries) {
            if (exists(entry.name) || entry.answer.state == HoldState::Bound) by_name_[entry.name] = &entry.answer;
        }
        for (const auto& name : asked.pools) memory_.asked_at.try_emplace(name, now);
        named_.insert(asked.pools.begin(), asked.pools.end());
    }

    Round whole() {
        if (const auto* bound = best(HoldState::Bound)) return decided(*bound);
        if (!asked_.origin && asked_.told.state == HoldState::Lost) return gone();  // it may be elsewhere by now
        return asked_.for_machine ? waves() : everywhere();
    }

private:
    Round waves() {
        const bool closed = !asked_.origin && asked_.told.state == HoldState::Rejected;
        if (closed) return reopened();
        const auto* accepted = best(HoldState::Accepted);
        const bool waiting = waits();
        if (accepted != nullptr && (!waiting || patience_passed())) return choose(*accepted);
        if (accepted != nullptr) return pending();
        const bool promised = !asked_.origin && asked_.told.state == HoldState::Accepted;
        if (promised || !asked_.commit.empty()) return gone();
        auto wave = next_wave();
        if (!wave.empty() && (!waiting || patience_passed())) return ask(std::move(wave));
        return waiting ? pending() : refusal();
    }

    // Somebody wants the room itself: it is held in every pool that is named.
    Round everywhere() {
        for (const auto& pool : pools_) {
            if (asked_.pools.empty() && eligible(pool)) memory_.asked_at.try_emplace(pool.name, now_);
        }
        if (const auto* accepted = best(HoldState::Accepted)) return decided(*accepted);
        return waits() ? pending() : refusal();
    }

    Round decided(const std::string& pool) const {
        Round out;
        out.decided = true;
        out.pool = pool;
        out.answer = *by_name_.at(pool);
        return out;
    }

    Round choose(const std::string& pool) const {
        Round out = decided(pool);
        if (asked_.pools.size() != 1) out.ask = std::vector<std::string>{pool};
        return out;
    }

    Round ask(std::vector<std::string> wave) {
        Round out = pending();
        for (const auto& name : wave) memory_.asked_at.try_emplace(name, now_);
        std::vector<std::string> all = asked_.pools;
        all.insert(all.end(), wave.begin(), wave.end());
        out.ask = std::move(all);
        out.next = now_ + std::min(times_.p95(), rules_.deadline);
        return out;
    }

    Round pending() const {
        Round out;
        for (const auto& [name, since] : memory_.asked_at) {
            for (const Instant at : {since + times_.p95(), since + limit(name)}) {
                if (at > now_ && (!out.next || at < *out.next)) out.next = at;
            }
        }
        return out;
    }

    // What was chosen is no longer there.
    Round gone() const {
        Round out;
        out.decided = true;
        out.answer.state = HoldState::Lost;
        return out;
    }

    Round refusal() const {
        Round out;
        out.decided = true;
        const bool silent = std::any_of(asked_.pools.begin(), asked_.pools.end(), [&](const auto& name) {
            const auto state = state_of(name);
            return exists(name) && (state == HoldState::Pending || state == HoldState::NoReply);
        });
        out.answer.state = silent ? HoldState::NoReply : HoldState::Rejected;
        out.answer.reason = HoldReason::Unsatisfiable;
        bool any = false;
        for (const auto& [name, answer] : by_name_) {
            if (answer->state != HoldState::Rejected) continue;
            out.answer.reason = any ? std::max(out.answer.reason, answer->reason) : answer->reason;
            any = true;
        }
        if (silent && !any) out.answer.reason = HoldReason::None;
        // Losing what was held, or giving it back, is as good as being refused for others' sake, whatever others say.
        if (had() && !silent) out.answer.reason = std::max(out.answer.reason, HoldReason::Contended);
        return out;
    }

    bool had() const { return best(HoldState::Lost) != nullptr || best(HoldState::Released) != nullptr; }

    // It was refused; the layer above may ask anew when that could end otherwise.
    Round reopened() {
        Round out;
        out.decided = true;
        out.answer = asked_.told;
        const bool retry = std::any_of(by_name_.begin(), by_name_.end(), [](const auto& entry) {
            return entry.second->state == HoldState::Rejected && entry.second->reason == HoldReason::Retry;
        });
        if (retry || !next_wave().empty()) out.answer.reason = HoldReason::Retry;
        if (had()) out.answer.reason = std::max(out.answer.reason, HoldReason::Contended);
        return out;
    }

    HoldState state_of(const std::string& pool) const {
        const auto found = by_name_.find(pool);
        return found == by_name_.end() ? HoldState::Pending : found->second->state;
    }
    Duration limit(const std::string& pool) const {
        return std::min(by_name_.contains(pool) ? rules_.deadline * kPatience : rules_.deadline,
                        whole_time(asked_, rules_));
    }

    bool waits() const {
        return std::any_of(memory_.asked_at.begin(), memory_.asked_at.end(), [&](const auto& each) {
            const bool asked = asked_.pools.empty() ? !asked_.for_machine : named_.contains(each.first);
            return asked && exists(each.first) && state_of(each.first) == HoldState::Pending &&
                   now_ - each.second < limit(each.first);
        });
    }
    bool patience_passed() const {
        Instant newest;
        for (const auto& name : asked_.pools) {
            const auto since = memory_.asked_at.find(name);
            if (since != memory_.asked_at.end()) newest = std::max(newest, since->second);
        }
        return now_ - newest >= times_.p95();
    }
    // The best pool in that state: the highest score, then the first name.
    const std::string* best(HoldState state) const {
        const std::string* out = nullptr;
        int32_t score = 0;
        for (const auto& [name, answer] : by_name_) {
            if (answer->state != state) continue;
            const bool counts = state != HoldState::Accepted || asked_.pools.empty() || named_.contains(name);
            if (!counts || (out != nullptr && answer->score <= score)) continue;
            out = &name;
            score = answer->score;
        }
        return out;
    }

    bool exists(const std::string& name) const {
        return std::any_of(pools_.begin(), pools_.end(), [&](const Pool& pool) { return pool.name == name; });
    }
    bool eligible(const Pool& pool) const { return why_not(asked_, pool).empty(); }

    // Those that were not asked yet, in an order that differs from lineage to lineage, so that not all ask the same
    // ones.
    std::vector<std::string> next_wave() const {
        std::vector<std::pair<uint64_t, std::string>> fresh;
        for (const auto& pool : pools_) {
            const bool known = by_name_.contains(pool.name) || named_.contains(pool.name);
            if (!known && eligible(pool)) fresh.emplace_back(hash_of(asked_.lineage, pool.name), pool.name);
        }
        std::sort(fresh.begin(), fresh.end());
        if (fresh.size() > rules_.wave) fresh.resize(rules_.wave);
        std::vector<std::string> out;
        for (auto& [hash, name] : fresh) out.push_back(std::move(name));
        return out;
    }

    const Asked& asked_;
    absl::flat_hash_set<std::string_view> named_;  // its pools, of which a writer may name thousands
    RoundMemory& memory_;
    std::span<const Pool> pools_;
    const ReplyTimes& times_;
    const RoundRules& rules_;
    const Instant now_;
    std::map<std::string, const HoldAnswer*> by_name_;
};

}  // namespace

void ReplyTimes::add(Duration took) {
    if (last_.size() < kKept) {
        last_.push_back(took);
    } else {
        last_[at_++ % kKept] = took;
    }
}

Duration ReplyTimes::p95() const {
    if (last_.size() < 20) return kUnknown;
    std::vector<Duration> sorted = last_;
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() * 95 / 100);
    std::nth_element(sorted.begin(), at, sorted.end());
    return std::max<Duration>(*at, std::chrono::milliseconds(5));
}

HoldAnswer upward(const Asked& asked) {
    const bool open = asked.told.state == HoldState::Pending || asked.told.state == HoldState::Accepted;
    if (!open || !asked.for_machine || asked.pools.size() != 1) return asked.told;
    for (const auto& [name, answer] : asked.entries) {
        const bool holds = answer.state == HoldState::Accepted || answer.state == HoldState::Bound;
        if (name == asked.pools.front() && holds) return answer;
    }
    return asked.told;
}

Duration whole_time(const Asked& asked, const RoundRules& rules) {
    return asked.within.value_or(rules.deadline * kPatience);
}

Duration time_below(const Asked& asked, const RoundRules& rules) {
    return std::max<Duration>(whole_time(asked, rules) - kMargin, kLeast);
}

std::string why_not(const Asked& asked, const Pool& pool) {
    if (!pool.ready) return "it is not ready";
    if (!asked.pinned.empty() && !contains(asked.pinned, pool.name)) return "its layer is pinned to other pools";
    for (const auto& [key, value] : asked.selector) {
        const std::string* has = pool.labels.find(key);
        if (has == nullptr || *has != value) return "the selector wants " + key + "=" + value;
    }
    for (const auto& taint : pool.taints) {
        if (!model::tolerates(asked.tolerations, taint)) return "the taint " + taint.key + " is not tolerated";
    }
    return "";
}

Round next_round(const Asked& asked, RoundMemory& memory, std::span<const Pool> pools, const ReplyTimes& times,
                 const RoundRules& rules, Instant now) {
    return Look(asked, memory, pools, times, rules, now).whole();
}

Duration backoff(uint64_t failures, std::string_view lineage) {
    const uint64_t doublings = std::min<uint64_t>(failures == 0 ? 0 : failures - 1, 6);
    const Duration most = std::min<Duration>(std::chrono::seconds(1) * (1 << doublings), std::chrono::seconds(60));
    base::Random random(hash_of(lineage, std::to_string(failures)));
    return most / 2 + Duration(static_cast<int64_t>(random.below(static_cast<uint64_t>((most / 2).count()) + 1)));
}

}  // namespace berth::fleet
