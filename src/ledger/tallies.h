#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ledger/counts.h"
#include "ledger/label_index.h"
#include "ledger/pod_groups.h"
#include "ledger/pod_terms.h"
#include "ledger/topology.h"

namespace berth::ledger {

// Which placed pods to count: those that every one of these terms of an asking pod speaks of.
struct PodFilter {
    std::span<const model::PodTerm> all;  // at least one; topology keys are not looked at
    bool living = false;                  // without terminating pods
    uint64_t* looks = nullptr;            // where what it costs is counted; nullptr: nowhere
};

// How many such pods each domain has, on the nodes of its scope.
struct Tally {
    const Scope* scope = nullptr;
    Counts counts;
    int64_t unlabelled = 0;  // on nodes without the key
    uint32_t matcher = 0;
    uint64_t used = 0;  // when it was last asked for

    void add(Row row, int64_t delta);
    // The least of the domains that are there.
    int64_t least() const { return counts.nonzero() < scope->present() ? 0 : counts.least(); }
};

// Tallies made when they are first asked for, kept up to date while they are kept, dropped when too many were not asked
// for lately: a cache, so dropping one changes no answer.
class Tallies {
public:
    Tallies(PodGroups& groups, Topology& topology, const NamespaceLabels& namespaces)
        : groups_(groups), topology_(topology), namespaces_(namespaces) {}

    // Good until the next trim().
    const Tally& get(const PodFilter& pods, const NodeFilter& nodes, std::string_view key) {
        return tally_of(find_matcher(pods), nodes, key, pods.looks);
    }
    // The same for each of some keys: the pods are looked up once.
    std::vector<const Tally*> get(const PodFilter& pods, const NodeFilter& nodes,
                                  std::span<const std::string_view> keys);
    void trim();

    // A group begins: finds who counts its pods.
    void join(PodGroup& group);
    void count(const PodGroup& group, Row row, bool terminating, int delta);
    // The namespace has other labels now, or is gone.
    void rematch(std::string_view ns);

    template <class F>
    void each(F f) const {
        for (const auto& matcher : matchers_) {
            for (const auto& tally : matcher.tallies) f(*tally);
        }
    }
    size_t size() const { return tally_count_; }
    // What a question costs, in looks at one term on one row.
    static constexpr uint64_t kLooksPerTerm = 16;
    static constexpr uint64_t kLooksPerGroup = 4;
    // How many are kept.
    size_t limit() const;

private:
    struct Matcher {
        std::vector<model::PodTerm> all;  // none: the entry is free
        bool living = false;
        size_t hash = 0;
        std::vector<std::unique_ptr<Tally>> tallies;
    };

    uint32_t find_matcher(const PodFilter& pods);
    Tally& tally_of(uint32_t id, const NodeFilter& nodes, std::string_view key, uint64_t* looks);
    void free_matcher(uint32_t id);
    bool matches(const Matcher& matcher, const PodGroup& group) const;
    void seed(Tally& tally, const PodGroup& group, int delta) const;
    // Calls f(group) for each group whose pods it might count.
    template <class F>
    void each_group(const Matcher& matcher, F f, uint64_t* looks = nullptr) {
        const model::PodTerm& first = matcher.all.front();
        const auto look = [&](PodGroup& group) {
            if (looks) *looks += kLooksPerGroup;
            f(group);
        };
        if (first.ns_selector) return groups_.each(look);
        for (size_t i = 0; i < first.namespaces.size(); ++i) {
            const bool again = i > 0 && first.namespaces[i] == first.namespaces[i - 1];
            if (!again) groups_.each_in(first.namespaces[i], look);
        }
    }

    PodGroups& groups_;
    Topology& topology_;
    const NamespaceLabels& namespaces_;
    std::vector<Matcher> matchers_;
    std::vector<uint32_t> free_;
    absl::flat_hash_map<size_t, std::vector<uint32_t>> by_hash_;
    LabelIndex index_;
    size_t tally_count_ = 0;
    uint64_t now_ = 0;
};

}  // namespace berth::ledger
