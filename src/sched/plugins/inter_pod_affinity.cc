// InterPodAffinity: required terms of the asking pod and required anti-affinity of placed pods close domains, the
// preferred ones of both (and the placed pods' required affinity) are scored.
#include <algorithm>

#include "sched/plugins/near.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

using ledger::Domain;
using ledger::HeldTerm;
using ledger::Hold;
using ledger::kNoDomain;
using ledger::TopologyKey;

constexpr std::string_view kName = "InterPodAffinity";

// A sum per domain of one key.
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
        return all_.emplace_back(Sums{&key, std::vector<int64_t>(key.domains())}).by_domain;
    }
    std::span<const Sums> all() const { return all_; }

private:
    std::vector<Sums> all_;
};

const ledger::NodeFilter kAllNodes;
using Domains = std::vector<ClosedDomains>;

// What placed pods hold about the ask, times weight(term), summed into `sums`.
template <class Weight>
void add_held(const Ask& ask, const ledger::Terms& terms, const std::vector<ReservationIndex>& unseen, Weight weight,
              SumsByKey& sums) {
    const std::vector<uint32_t> held = terms.held_about(ask.spec->ns, ask.spec->labels);
    for (const uint32_t id : held) {
        const HeldTerm& term = terms.held(id);
        const int64_t each = weight(term);
        if (each == 0) continue;
        auto& by_domain = sums.of(*term.key);
        term.holders.each([&](Domain domain, uint32_t count) { by_domain[domain] += each * count; });
    }
    if (held.empty()) return;
    terms.each_held_by(unseen, [&](uint32_t id, Domain domain) {
        if (!std::binary_search(held.begin(), held.end(), id)) return;
        const HeldTerm& term = terms.held(id);
        const int64_t each = weight(term);
        if (each != 0) sums.of(*term.key)[domain] -= each;
    });
}

bool spoken_of(const Ask& ask, const Ledger& ledger) {
    return !ledger.terms().held_about(ask.spec->ns, ask.spec->labels).empty();
}

class AffinityFilter final : public Filter {
public:
    std::string_view name() const override { return kName; }
    bool concerns(const Ask& ask, const Ledger& ledger) const override {
        return !ask.spec->affinity.empty() || !ask.spec->anti_affinity.empty() || spoken_of(ask, ledger);
    }

    void strike(const Ask& ask, const Ledger& ledger, Strikes& strikes) const override {
        if (!concerns(ask, ledger)) return;
        const Closed closed = closed_to(ask, ledger);
        if (closed.far.empty() && closed.near.empty() && closed.shunning.empty()) return;
        const auto far = strikes.refusal(kName, {"node(s) didn't match pod affinity rules"}, true);
        const auto near = strikes.refusal(kName, {"node(s) didn't match pod anti-affinity rules"}, false);
        const auto refused =
            strikes.refusal(kName, {"node(s) didn't satisfy existing pods anti-affinity rules"}, false);
        const auto any = [](const Domains& keys, Row row) {
            return std::any_of(keys.begin(), keys.end(), [&](const ClosedDomains& key) { return key.closes(row); });
        };
        strikes.each_open([&](Row row) {
            if (any(closed.far, row)) return strikes.strike(row, far);
            if (any(closed.near, row)) return strikes.strike(row, near);
            if (any(closed.shunning, row)) return strikes.strike(row, refused);
        });
    }

    std::optional<Domains> closed_domains(const Ask& ask, const Ledger& ledger) const override {
        auto [all, near, shunning] = closed_to(ask, ledger);
        std::move(near.begin(), near.end(), std::back_inserter(all));
        std::move(shunning.begin(), shunning.end(), std::back_inserter(all));
        return all;
    }

private:
    struct Closed {
        Domains far;       // without the pods that the ask must be near
        Domains near;      // with pods that it shuns
        Domains shunning;  // with pods that shun it
    };
    static Closed closed_to(const Ask& ask, const Ledger& ledger) {
        ledger::Terms& terms = ledger.terms();
        terms.trim();
        const auto unseen = invisible(ask);
        return {unmet_affinity(ask, terms, unseen), own_anti_affinity(ask, terms, unseen),
                held_anti_affinity(ask, terms, unseen)};
    }
    static std::vector<uint8_t>& add_key(const TopologyKey& key, bool closed, Domains& keys) {
        return keys.emplace_back(ClosedDomains{key.rows(), std::vector<uint8_t>(key.domains() + 1, closed)}).closed;
    }

    // A domain is open when it has a pod that all the terms speak of. When there is none anywhere and the ask itself is
    // such a pod, it is the first of its group: every domain is open, but the labels must be there.
    static Domains unmet_affinity(const Ask& ask, ledger::Terms& terms, const std::vector<ReservationIndex>& unseen) {
        const auto& own = ask.spec->affinity;
        if (own.empty()) return {};
        const ledger::PodFilter pods{own, false};
        Domains keys;
        bool any = false;
        for (const auto& term : own) {
            const SeenTally tally(terms, terms.tally(pods, kAllNodes, term.topology_key), unseen);
            any = any || tally->counts.nonzero() != 0;
            auto& closed = add_key(tally->scope->key(), true, keys);
            tally->counts.each([&](Domain domain, uint32_t) { closed[domain] = 0; });
        }
        const bool first = !any && std::all_of(own.begin(), own.end(), [&](const auto& term) {
            return terms.asked_matches(term, ask.spec->ns, ask.spec->labels);
        });
        if (first) {
            for (auto& key : keys) std::fill(key.closed.begin(), key.closed.end() - 1, 0);
        }
        return keys;
    }

    static Domains own_anti_affinity(const Ask& ask, ledger::Terms& terms,
                                     const std::vector<ReservationIndex>& unseen) {
        Domains keys;
        for (const auto& term : ask.spec->anti_affinity) {
            const SeenTally tally(terms, terms.tally({{term}, false}, kAllNodes, term.topology_key), unseen);
            if (tally->counts.nonzero() == 0) continue;
            auto& closed = add_key(tally->scope->key(), false, keys);
            tally->counts.each([&](Domain domain, uint32_t) { closed[domain] = 1; });
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
            auto& closed = add_key(*key, false, keys);
            for (size_t domain = 0; domain < by_domain.size(); ++domain) closed[domain] = by_domain[domain] > 0;
        }
        return keys;
    }
};

// trunc(100 x ((sum - min) / (max - min))): sum over keys of the weights of the node's domain.
class AffinityScorer final : public Scorer {
public:
    explicit AffinityScorer(AffinityWeights weights) : weights_(weights) {}
    std::string_view name() const override { return kName; }
    bool concerns(const Ask& ask, const Ledger& ledger) const override {
        return prefers(ask) || (!weights_.ignore_held_when_indifferent && spoken_of(ask, ledger));
    }

    void score(const Ask& ask, const Ledger& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const override {
        score_rows(ask, ledger, {}, [&](size_t i) { return feasible[i]; }, points);
    }
    void score_open(const Ask& ask, const Ledger& ledger, std::span<const uint8_t> open,
                    std::span<int64_t> points) const override {
        score_rows(ask, ledger, open, [](size_t i) { return i; }, points);
    }

private:
    // Of the rows row_at(0), row_at(1), ...; when `open` is not empty, only those that it marks count.
    template <class RowAt>
    void score_rows(const Ask& ask, const Ledger& ledger, std::span<const uint8_t> open, RowAt row_at,
                    std::span<int64_t> points) const {
        std::fill(points.begin(), points.end(), 0);
        if (!concerns(ask, ledger)) return;
        ledger::Terms& terms = ledger.terms();
        terms.trim();
        const auto unseen = invisible(ask);
        SumsByKey sums;
        add_preferred(ask.spec->preferred_affinity, 1, terms, unseen, sums);
        add_preferred(ask.spec->preferred_anti_affinity, -1, terms, unseen, sums);
        add_held(ask, terms, unseen, [&](const HeldTerm& term) { return weight_of(term); }, sums);
        for (const auto& [key, by_domain] : sums.all()) {
            const std::span<const Domain> domains = key->rows();
            const size_t rows = std::min(points.size(), open.empty() ? points.size() : domains.size());
            for (size_t i = 0; i < rows; ++i) {
                const Domain domain = domains[row_at(i)];
                if (domain != kNoDomain) points[i] += by_domain[domain];
            }
        }
        spread_out(points, open);
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

    static void add_preferred(const std::vector<model::WeightedPodTerm>& preferred, int64_t sign, ledger::Terms& terms,
                              const std::vector<ReservationIndex>& unseen, SumsByKey& sums) {
        for (const auto& [weight, term] : preferred) {
            const SeenTally tally(terms, terms.tally({{term}, false}, kAllNodes, term.topology_key), unseen);
            if (tally->counts.nonzero() == 0) continue;
            auto& by_domain = sums.of(tally->scope->key());
            const int64_t each = sign * weight;
            tally->counts.each([&](Domain domain, uint32_t count) { by_domain[domain] += each * count; });
        }
    }

    static void spread_out(std::span<int64_t> points, std::span<const uint8_t> open) {
        int64_t low = INT64_MAX;
        int64_t high = INT64_MIN;
        for (size_t i = 0; i < points.size(); ++i) {
            if (!open.empty() && !open[i]) continue;
            low = std::min(low, points[i]);
            high = std::max(high, points[i]);
        }
        if (low >= high) return std::fill(points.begin(), points.end(), 0);
        for (size_t i = 0; i < open.size(); ++i) points[i] = open[i] ? points[i] : low;
        const auto range = static_cast<double>(high - low);
        map_values(points, low, high, [&](int64_t sum) {
            return static_cast<int64_t>(static_cast<double>(kMaxScore) * (static_cast<double>(sum - low) / range));
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
