// InterPodAffinity: required terms of the asking pod and required anti-affinity of placed pods close domains, the
// preferred ones of both (and the placed pods' required affinity) are scored.
#include <algorithm>

#include "sched/plugins/near.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

using ledger::HeldTerm;
using ledger::Hold;
using ledger::TopologyKey;

constexpr PluginId kPlugin = PluginId::InterPodAffinity;

// A sum per domain of one key, and 0 for the rows that lack it.
struct Sums {
    const TopologyKey* key;
    std::vector<int64_t> by_domain;
};

// Sums for as many keys as the terms use: one or two as a rule.
class SumsByKey {
public:
    std::vector<int64_t>& of(const TopologyKey& key) {
        for (auto& sums : all_) {
            if (sums.key == &key) return sums.by_domain;
        }
        return all_.emplace_back(Sums{&key, std::vector<int64_t>(key.domains() + 1)}).by_domain;
    }
    std::span<const Sums> all() const { return all_; }

private:
    std::vector<Sums> all_;
};

const ledger::NodeFilter kAllNodes;

void add_times(const ledger::Counts& counts, int64_t each, std::vector<int64_t>& sums) {
    const auto many = counts.many();
    add_counts(many.data(), each, many.size(), sums.data());
    if (many.empty()) counts.each([&](Domain domain, uint32_t count) { sums[domain] += each * count; });
}

void mark_where_any(const ledger::Counts& counts, uint8_t mark, std::vector<uint8_t>& marks) {
    const auto many = counts.many();
    mark_counted(many.data(), mark, many.size(), marks.data());
    if (many.empty()) counts.each([&](Domain domain, uint32_t) { marks[domain] = mark; });
}

using Domains = std::vector<ClosedDomains>;

const ledger::Tally& about(const model::PodTerm& term, const ledger::Terms& terms, uint64_t* looks) {
    return terms.tally({{&term, 1}, false, looks}, kAllNodes, term.topology_key);
}

// What placed pods hold about the ask, times weight(term), summed into `sums`.
template <class Weight>
void add_held(const Ask& ask, const ledger::Terms& terms, const std::vector<ReservationIndex>& unseen, Weight weight,
              SumsByKey& sums) {
    const std::vector<uint32_t> held = terms.held_about(ask.spec->ns, ask.spec->labels);
    for (const uint32_t id : held) {
        const HeldTerm& term = terms.held(id);
        const int64_t each = weight(term);
        if (each == 0 || term.holders.nonzero() == 0) continue;
        add_times(term.holders, each, sums.of(*term.key));
    }
    if (held.empty()) return;
    terms.each_held_by(unseen, [&](uint32_t id, Domain domain) {
        if (!std::binary_search(held.begin(), held.end(), id)) return;
        const HeldTerm& term = terms.held(id);
        const int64_t each = weight(term);
        if (each != 0) sums.of(*term.key)[domain] -= each;
    });
}

bool spoken_of(const Ask& ask, const View& ledger) {
    return !ledger.near().held_about(ask.spec->ns, ask.spec->labels).empty();
}

class AffinityFilter final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    bool concerns(const Ask& ask, const View& ledger) const override {
        return !ask.spec->affinity.empty() || !ask.spec->anti_affinity.empty() || spoken_of(ask, ledger);
    }

    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (!strikes.any_open() || !concerns(ask, ledger)) return;
        const Closed closed = closed_to(ask, ledger);
        if (closed.far.empty() && closed.near.empty() && closed.shunning.empty()) return;
        const auto far = strikes.refusal(kPlugin, {"node(s) didn't match pod affinity rules"}, true);
        const auto near = strikes.refusal(kPlugin, {"node(s) didn't match pod anti-affinity rules"}, false);
        const auto refused =
            strikes.refusal(kPlugin, {"node(s) didn't satisfy existing pods anti-affinity rules"}, false);
        const auto any = [](const Domains& keys, Row row) {
            return std::any_of(keys.begin(), keys.end(), [&](const ClosedDomains& key) { return key.closes(row); });
        };
        strikes.each_open([&](Row row) {
            if (any(closed.far, row)) return strikes.strike(row, far);
            if (any(closed.near, row)) return strikes.strike(row, near);
            if (any(closed.shunning, row)) return strikes.strike(row, refused);
        });
    }

    std::optional<Domains> closed_domains(const Ask& ask, const View& ledger) const override {
        auto [all, near, shunning] = closed_to(ask, ledger);
        for (auto* more : {&near, &shunning}) {
            for (auto& key : *more) add_closed(std::move(key), all);
        }
        return all;
    }

private:
    struct Closed {
        Domains far;       // without the pods that the ask must be near
        Domains near;      // with pods that it shuns
        Domains shunning;  // with pods that shun it
    };
    // Once for each key.
    static void add_closed(ClosedDomains more, Domains& keys) {
        const auto same = [&](const ClosedDomains& key) { return key.domains.data() == more.domains.data(); };
        const auto known = std::find_if(keys.begin(), keys.end(), same);
        if (known == keys.end()) {
            keys.push_back(std::move(more));
        } else {
            mark_also(more.closed.data(), more.closed.size(), known->closed.data());
        }
    }
    static Closed closed_to(const Ask& ask, const View& ledger) {
        const ledger::Terms& terms = ledger.near();
        terms.trim();
        const auto unseen = invisible(ask);
        return {unmet_affinity(ask, terms, unseen), own_anti_affinity(ask, terms, unseen),
                held_anti_affinity(ask, terms, unseen)};
    }
    static std::vector<uint8_t>& add_key(const TopologyKey& key, bool closed, Domains& keys) {
        return keys.emplace_back(ClosedDomains{key.rows(), std::vector<uint8_t>(key.domains() + 1, closed)}).closed;
    }

    // The one of this key, open as a whole when it is new.
    static std::vector<uint8_t>& key_in(const TopologyKey& key, Domains& keys) {
        for (auto& known : keys) {
            if (known.domains.data() == key.rows().data()) return known.closed;
        }
        return add_key(key, false, keys);
    }

    // A domain is open when it has a pod that all the terms speak of. When there is none anywhere and the ask itself is
    // such a pod, it is the first of its group: every domain is open, but the labels must be there.
    static Domains unmet_affinity(const Ask& ask, const ledger::Terms& terms,
                                  const std::vector<ReservationIndex>& unseen) {
        const auto& own = ask.spec->affinity;
        if (own.empty()) return {};
        std::vector<std::string_view> names;
        for (const auto& term : own) {
            if (std::find(names.begin(), names.end(), term.topology_key) != names.end()) continue;
            if (!terms.anywhere(term.topology_key)) return {closed_everywhere(terms)};
            names.push_back(term.topology_key);
        }
        Domains keys;
        bool any = false;
        for (const ledger::Tally* shared : terms.tallies({own, false, ask.looks}, kAllNodes, names)) {
            const SeenTally tally(terms, *shared, unseen);
            any = any || tally->counts.nonzero() != 0;
            auto& closed = add_key(tally->scope->key(), true, keys);
            mark_where_any(tally->counts, 0, closed);
        }
        const bool first = !any && std::all_of(own.begin(), own.end(), [&](const auto& term) {
            return terms.asked_matches(term, ask.spec->ns, ask.spec->labels);
        });
        if (first) {
            for (auto& key : keys) std::fill(key.closed.begin(), key.closed.end() - 1, 0);
        }
        return keys;
    }

    static Domains own_anti_affinity(const Ask& ask, const ledger::Terms& terms,
                                     const std::vector<ReservationIndex>& unseen) {
        Domains keys;
        for (const auto& term : ask.spec->anti_affinity) {
            if (!terms.anywhere(term.topology_key)) continue;
            const SeenTally tally(terms, about(term, terms, ask.looks), unseen);
            if (tally->counts.nonzero() == 0) continue;
            mark_where_any(tally->counts, 1, key_in(tally->scope->key(), keys));
        }
        return keys;
    }

    static Domains held_anti_affinity(const Ask& ask, const ledger::Terms& terms,
                                      const std::vector<ReservationIndex>& unseen) {
        SumsByKey holders;
        add_held(
            ask, terms, unseen, [](const HeldTerm& term) { return term.hold == Hold::AntiAffinity ? 1 : 0; }, holders);
        Domains keys;
        for (const auto& [key, by_domain] : holders.all()) {
            mark_positive(by_domain.data(), by_domain.size(), add_key(*key, false, keys).data());
        }
        return keys;
    }
};

// trunc(100 x ((sum - min) / (max - min))): sum over keys of the weights of the node's domain.
class AffinityScorer final : public RowsScorer {
public:
    explicit AffinityScorer(AffinityWeights weights) : weights_(weights) {}
    PluginId plugin() const override { return kPlugin; }
    bool concerns(const Ask& ask, const View& ledger) const override {
        return prefers(ask) || (!weights_.ignore_held_when_indifferent && spoken_of(ask, ledger));
    }

private:
    void score_rows(const Ask& ask, const View& ledger, ScoredRows& rows, std::span<int64_t> points) const override {
        std::fill(points.begin(), points.end(), 0);
        if (!concerns(ask, ledger)) return;
        const ledger::Terms& terms = ledger.near();
        terms.trim();
        const auto unseen = invisible(ask);
        SumsByKey sums;
        add_preferred(ask, ask.spec->preferred_affinity, 1, terms, unseen, sums);
        add_preferred(ask, ask.spec->preferred_anti_affinity, -1, terms, unseen, sums);
        add_held(ask, terms, unseen, [&](const HeldTerm& term) { return weight_of(term); }, sums);
        if (sums.all().empty()) return;
        for (const auto& [key, by_domain] : sums.all()) {
            const std::span<const Domain> domains = rows.column(*key);
            add_by_domain(domains.data(), by_domain.data(), static_cast<uint32_t>(by_domain.size() - 1), domains.size(),
                          points.data());
        }
        spread_out(points, rows.open());
    }
    static bool prefers(const Ask& ask) {
        return !ask.spec->preferred_affinity.empty() || !ask.spec->preferred_anti_affinity.empty();
    }
    int64_t weight_of(const HeldTerm& term) const {
        switch (term.hold) {
            case Hold::Affinity:
                return weights_.required_affinity;
            case Hold::AntiAffinity:
                return 0;
            case Hold::PreferredAffinity:
                return term.weight;
            case Hold::PreferredAntiAffinity:
                return -term.weight;
        }
        return 0;
    }

    static void add_preferred(const Ask& ask, const std::vector<model::WeightedPodTerm>& preferred, int64_t sign,
                              const ledger::Terms& terms, const std::vector<ReservationIndex>& unseen,
                              SumsByKey& sums) {
        for (const auto& [weight, term] : preferred) {
            if (!terms.anywhere(term.topology_key)) continue;
            const SeenTally tally(terms, about(term, terms, ask.looks), unseen);
            if (tally->counts.nonzero() == 0) continue;
            add_times(tally->counts, sign * weight, sums.of(tally->scope->key()));
        }
    }

    static void spread_out(std::span<int64_t> points, std::span<const uint8_t> open) {
        const Range range = range_of(points.data(), open.data(), points.size());
        if (range.low >= range.high) return std::fill(points.begin(), points.end(), 0);
        const auto width = static_cast<double>(range.high - range.low);
        map_marked(open, range, points, [&](int64_t sum) {
            return static_cast<int64_t>(static_cast<double>(kMaxScore) *
                                        (static_cast<double>(sum - range.low) / width));
        });
    }

    AffinityWeights weights_;
};

}  // namespace

std::shared_ptr<const Filter> pod_affinity_filter() {
    return std::make_shared<AffinityFilter>();
}

std::shared_ptr<const Scorer> pod_affinity_scorer(AffinityWeights weights) {
    return std::make_shared<AffinityScorer>(weights);
}

}  // namespace berth::sched::plugins
