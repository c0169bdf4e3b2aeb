#include "ledger/tallies.h"

#include <absl/hash/hash.h>

#include <algorithm>

namespace berth::ledger {
namespace {

// A tally's scope costs about 5 bytes a row; together they may take this much.
constexpr size_t kBytes = size_t{256} << 20;
constexpr size_t kFewest = 256;
constexpr size_t kMost = 4096;

size_t hash_of(const PodFilter& pods) {
    size_t hash = pods.living;
    for (const auto& term : pods.all) hash = absl::HashOf(hash, hash_of_pods(term));
    return hash;
}

bool same(std::span<const model::PodTerm> a, std::span<const model::PodTerm> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_pods);
}

// A group's matchers, ascending.
bool contains(const std::vector<uint32_t>& ids, uint32_t id) {
    return std::binary_search(ids.begin(), ids.end(), id);
}

void insert(std::vector<uint32_t>& ids, uint32_t id) {
    ids.insert(std::lower_bound(ids.begin(), ids.end(), id), id);
}

}  // namespace

void Tally::add(Row row, int64_t delta) {
    if (!scope->nodes().has(row)) return;
    const Domain domain = scope->key().at(row);
    if (domain == kNoDomain) {
        unlabelled += delta;
    } else {
        counts.add(domain, delta, scope->key().domains());
    }
}

bool Tallies::matches(const Matcher& matcher, const PodGroup& group) const {
    return std::all_of(matcher.all.begin(), matcher.all.end(), [&](const auto& term) {
        return asked_term_matches(term, namespaces_, group.spec->ns, group.spec->labels);
    });
}

uint32_t Tallies::find_matcher(const PodFilter& pods) {
    if (pods.looks) *pods.looks += kLooksPerTerm * pods.all.size();
    const size_t hash = hash_of(pods);
    auto& alike = by_hash_[hash];
    for (const uint32_t id : alike) {
        if (matchers_[id].living == pods.living && same(matchers_[id].all, pods.all)) return id;
    }
    uint32_t id = 0;
    if (free_.empty()) {
        id = static_cast<uint32_t>(matchers_.size());
        matchers_.emplace_back();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    alike.push_back(id);
    matchers_[id] = {{pods.all.begin(), pods.all.end()}, pods.living, hash, {}};
    const auto& selector = pods.all.front().selector;
    if (!selector) return id;
    index_.add(*selector, id);
    const auto meet = [&](PodGroup& group) {
        if (matches(matchers_[id], group)) insert(group.matchers, id);
    };
    each_group(matchers_[id], meet, pods.looks);
    return id;
}

void Tallies::free_matcher(uint32_t id) {
    Matcher& matcher = matchers_[id];
    each_group(matcher, [&](PodGroup& group) { std::erase(group.matchers, id); });
    const auto alike = by_hash_.find(matcher.hash);
    std::erase(alike->second, id);
    if (alike->second.empty()) by_hash_.erase(alike);
    const auto& selector = matcher.all.front().selector;
    if (selector) index_.remove(*selector, id);
    matcher = Matcher();
    free_.push_back(id);
}

void Tallies::seed(Tally& tally, const PodGroup& group, int delta) const {
    const auto add = [&](Row row, uint32_t members) { tally.add(row, delta * int64_t{members}); };
    group.living.each(add);
    if (!matchers_[tally.matcher].living) group.terminating.each(add);
}

std::vector<const Tally*> Tallies::get(const PodFilter& pods, const NodeFilter& nodes,
                                       std::span<const std::string_view> keys) {
    std::vector<const Tally*> out;
    const uint32_t id = find_matcher(pods);
    for (const auto key : keys) out.push_back(&tally_of(id, nodes, key, pods.looks));
    return out;
}

Tally& Tallies::tally_of(uint32_t id, const NodeFilter& nodes, std::string_view key, uint64_t* looks) {
    Matcher& matcher = matchers_[id];
    ++now_;
    for (auto& tally : matcher.tallies) {
        if (tally->scope->key().key() != key || tally->scope->nodes().filter() != nodes) continue;
        tally->used = now_;
        return *tally;
    }
    Tally& made = *matcher.tallies.emplace_back(std::make_unique<Tally>());
    made.scope = &topology_.scope(key, nodes);
    made.matcher = id;
    made.used = now_;
    ++tally_count_;
    const auto count = [&](PodGroup& group) {
        if (contains(group.matchers, id)) seed(made, group, 1);
    };
    each_group(matcher, count, looks);
    return made;
}

size_t Tallies::limit() const {
    return std::clamp(kBytes / (5 * topology_.rows() + 1), kFewest, kMost);
}

// Down to three quarters at once, so that it is done seldom.
void Tallies::trim() {
    if (tally_count_ <= limit()) return;
    std::vector<uint64_t> uses;
    each([&](const Tally& tally) { uses.push_back(tally.used); });
    const size_t drop = uses.size() - limit() * 3 / 4;
    std::nth_element(uses.begin(), uses.begin() + static_cast<ptrdiff_t>(drop), uses.end());
    const uint64_t oldest_kept = uses[drop];
    for (uint32_t id = 0; id < matchers_.size(); ++id) {
        auto& tallies = matchers_[id].tallies;
        if (tallies.empty()) continue;
        tally_count_ -= std::erase_if(tallies, [&](const auto& tally) { return tally->used < oldest_kept; });
        if (tallies.empty()) free_matcher(id);
    }
}

void Tallies::join(PodGroup& group) {
    index_.candidates(group.spec->labels, [&](uint32_t id) {
        if (!contains(group.matchers, id) && matches(matchers_[id], group)) insert(group.matchers, id);
    });
}

void Tallies::count(const PodGroup& group, Row row, bool terminating, int delta) {
    for (const uint32_t id : group.matchers) {
        if (terminating && matchers_[id].living) continue;
        for (auto& tally : matchers_[id].tallies) tally->add(row, delta);
    }
}

void Tallies::rematch(std::string_view ns) {
    for (uint32_t id = 0; id < matchers_.size(); ++id) {
        Matcher& matcher = matchers_[id];
        const auto& all = matcher.all;
        if (std::none_of(all.begin(), all.end(), [](const auto& term) { return term.ns_selector.has_value(); }))
            continue;
        groups_.each_in(ns, [&](PodGroup& group) {
            const bool was = contains(group.matchers, id);
            const bool is = matches(matcher, group);
            if (was == is) return;
            for (auto& tally : matcher.tallies) seed(*tally, group, is ? 1 : -1);
            if (is) insert(group.matchers, id);
            if (!is) std::erase(group.matchers, id);
        });
    }
}

}  // namespace berth::ledger
