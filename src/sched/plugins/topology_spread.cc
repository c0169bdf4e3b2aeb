// PodTopologySpread: the filter for DoNotSchedule and the score for ScheduleAnyway.
#include <algorithm>
#include <cmath>

#include "sched/plugins/near.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

using ledger::kNoDomain;
using model::SpreadConstraint;

constexpr PluginId kPlugin = PluginId::PodTopologySpread;
constexpr std::string_view kHostname = "kubernetes.io/hostname";

// The constraints of one kind that hold for an ask.
struct Constraints {
    std::vector<SpreadConstraint> list;
    bool all_keys = true;  // nodes that miss one of the keys take no part
};

bool has(const std::vector<SpreadConstraint>& constraints, bool hard) {
    return std::any_of(constraints.begin(), constraints.end(), [&](const auto& c) { return c.hard == hard; });
}

std::vector<SpreadConstraint> only(const std::vector<SpreadConstraint>& constraints, bool hard) {
    std::vector<SpreadConstraint> out;
    std::copy_if(constraints.begin(), constraints.end(), std::back_inserter(out),
                 [&](const auto& c) { return c.hard == hard; });
    return out;
}

Selector siblings_of(const Ask& ask, const View& ledger) {
    const model::OwnerRef* controller = ask.pod ? ask.pod->meta.controller() : nullptr;
    return ledger.workloads().siblings(ask.spec->ns, ask.spec->labels, controller);
}

// Whether constraints_of() is not empty.
bool constrained(const Ask& ask, const View& ledger, const SpreadDefaults& defaults, bool hard) {
    if (!ask.spec->spread.empty()) return has(ask.spec->spread, hard);
    if (ledger.workloads().empty() || !has(defaults.constraints, hard)) return false;
    return !siblings_of(ask, ledger).matches_everything();
}

// The pod's own, or else the defaults over the pods that belong with it.
Constraints constraints_of(const Ask& ask, const View& ledger, const SpreadDefaults& defaults, bool hard) {
    if (!ask.spec->spread.empty()) return {only(ask.spec->spread, hard), true};
    if (!has(defaults.constraints, hard)) return {};
    const Selector siblings = siblings_of(ask, ledger);
    if (siblings.matches_everything()) return {};
    Constraints out{only(defaults.constraints, hard), !defaults.system};
    for (auto& constraint : out.list) constraint.selector = siblings;
    return out;
}

// An empty selector counts nobody, though the pod itself matches it.
model::PodTerm pods_of(const SpreadConstraint& constraint, const model::PodSpec& spec) {
    const bool counts = constraint.selector && !constraint.selector->matches_everything();
    model::PodTerm term;
    if (counts) term.selector = constraint.selector;
    term.namespaces = {spec.ns};
    return term;
}

const ledger::Tally& living(const Ask& ask, const ledger::Terms& terms, const model::PodTerm& pods,
                            const ledger::NodeFilter& nodes, std::string_view key) {
    return terms.tally({{&pods, 1}, true, ask.looks}, nodes, key);
}

ledger::NodeFilter nodes_of(const SpreadConstraint& constraint, const Constraints& all, const model::PodSpec& spec) {
    ledger::NodeFilter filter;
    if (all.all_keys) {
        for (const auto& other : all.list) filter.keys.push_back(other.topology_key);
        std::sort(filter.keys.begin(), filter.keys.end());
    }
    if (constraint.honor_affinity) {
        filter.node_selector = spec.node_selector;
        filter.required_nodes = spec.required_nodes;
    }
    if (constraint.honor_taints) filter.tolerations = spec.tolerations;
    return filter;
}

// Closed where count + self - least > maxSkew. With fewer domains than minDomains the least counts as 0.
// E.g. zones with 3, 1, 1 pods, maxSkew 1, the pod matches itself: 3 + 1 - 1 > 1 is closed, 1 + 1 - 1 is open.
ClosedDomains limit_of(const SpreadConstraint& constraint, const ledger::Tally& tally, const Labels& labels) {
    const auto domains = static_cast<int64_t>(tally.scope->present());
    int64_t least = domains == 0 ? INT32_MAX : tally.least();
    if (domains < constraint.min_domains.value_or(1)) least = 0;
    const int64_t self = constraint.selector && constraint.selector->matches(labels) ? 1 : 0;
    const int64_t room = constraint.max_skew - self + least;
    const auto& key = tally.scope->key();
    ClosedDomains limit{key.rows(), std::vector<uint8_t>(key.domains() + 1, room < 0)};
    limit.closed.back() = 1;
    if (room < 0) return limit;
    const auto many = tally.counts.many();
    const auto most = static_cast<uint32_t>(std::min<int64_t>(room, UINT32_MAX));
    mark_above(many.data(), most, many.size(), limit.closed.data());
    if (many.empty()) tally.counts.each([&](Domain domain, uint32_t count) { limit.closed[domain] = count > most; });
    return limit;
}

// Whether there is a hard key that no node has. Then no node takes part in counting, so no domain is full, and every
// row lacks a label.
bool key_nowhere(const Ask& ask, const View& ledger) {
    bool nowhere = false;
    for (const auto& constraint : ask.spec->spread) {
        if (!constraint.hard) continue;
        if (constraint.max_skew < 1) return false;
        nowhere = nowhere || !ledger.near().anywhere(constraint.topology_key);
    }
    return nowhere;
}

class SpreadFilter final : public Filter {
public:
    explicit SpreadFilter(SpreadDefaults defaults) : defaults_(std::move(defaults)) {}
    PluginId plugin() const override { return kPlugin; }
    bool concerns(const Ask& ask, const View& ledger) const override {
        return constrained(ask, ledger, defaults_, true);
    }

    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (!strikes.any_open() || !concerns(ask, ledger)) return;
        const auto unlabelled = strikes.refusal(
            kPlugin, {"node(s) didn't match pod topology spread constraints (missing required label)"}, true);
        ledger.near().trim();
        if (key_nowhere(ask, ledger)) {
            return strikes.each_open([&](Row row) { strikes.strike(row, unlabelled); });
        }
        const auto skewed = strikes.refusal(kPlugin, {"node(s) didn't match pod topology spread constraints"}, false);
        const std::vector<ClosedDomains> limits = limits_of(ask, ledger, constraints_of(ask, ledger, defaults_, true));
        strikes.each_open([&](Row row) {
            for (const ClosedDomains& limit : limits) {
                if (limit.lacks(row)) return strikes.strike(row, unlabelled);
                if (limit.closes(row)) return strikes.strike(row, skewed);
            }
        });
    }

    std::optional<std::vector<ClosedDomains>> closed_domains(const Ask& ask, const View& ledger) const override {
        ledger.near().trim();
        if (key_nowhere(ask, ledger)) return std::vector{closed_everywhere(ledger.near())};
        return limits_of(ask, ledger, constraints_of(ask, ledger, defaults_, true));
    }

private:
    static std::vector<ClosedDomains> limits_of(const Ask& ask, const View& ledger, const Constraints& hard) {
        const ledger::Terms& terms = ledger.near();
        const auto unseen = invisible(ask);
        std::vector<ClosedDomains> limits;
        for (const auto& constraint : hard.list) {
            const auto& shared = living(ask, terms, pods_of(constraint, *ask.spec),
                                        nodes_of(constraint, hard, *ask.spec), constraint.topology_key);
            limits.push_back(limit_of(constraint, *SeenTally(terms, shared, unseen), ask.spec->labels));
        }
        return limits;
    }

    SpreadDefaults defaults_;
};

// One ScheduleAnyway constraint made ready. By hostname each node counts its own pods, whatever nodes take part.
struct Preference {
    const SpreadConstraint* constraint;
    const ledger::TopologyKey* key;
    std::span<const Domain> domains;  // of the key
    std::span<const Domain> places;   // of the tally
    SeenTally tally;
    std::vector<double> cost;  // by domain of the tally, and 0 for the rows that have none
};

// cost = sum over constraints of count x ln(size + 2) + maxSkew - 1, rounded, where size is the number of domains among
// the feasible nodes; then 100 x (max + min - cost) / max in integers, or 100 for everybody when all costs are 0.
class SpreadScorer final : public RowsScorer {
public:
    explicit SpreadScorer(SpreadDefaults defaults) : defaults_(std::move(defaults)) {}
    PluginId plugin() const override { return kPlugin; }
    bool concerns(const Ask& ask, const View& ledger) const override {
        return constrained(ask, ledger, defaults_, false);
    }

private:
    void score_rows(const Ask& ask, const View& ledger, ScoredRows& rows, std::span<int64_t> points) const override {
        const Constraints soft = constraints_of(ask, ledger, defaults_, false);
        const auto nowhere = [&](const SpreadConstraint& c) { return !ledger.near().anywhere(c.topology_key); };
        // Without one of the keys a node takes no part, and gets nothing.
        const bool nobody = soft.all_keys && std::any_of(soft.list.begin(), soft.list.end(), nowhere);
        if (soft.list.empty() || nobody) return std::fill(points.begin(), points.end(), 0);
        std::vector<Preference> preferences = preferences_of(ask, ledger, soft, rows);
        // Who is left out does not count and gets 0.
        std::vector<uint8_t> counting(rows.open().begin(), rows.open().end());
        for (const auto& preference : preferences) {
            const auto domains = preference.domains;
            if (soft.all_keys) clear_without_domain(domains.data(), domains.size(), counting.data());
        }
        std::vector<double> costs(points.size());
        for (auto& preference : preferences) {
            weigh(preference, counting, soft.all_keys);
            add_by_domain(preference.places.data(), preference.cost.data(),
                          static_cast<uint32_t>(preference.cost.size() - 1), preference.places.size(), costs.data());
        }
        turn(costs, counting, points);
    }

    static std::vector<Preference> preferences_of(const Ask& ask, const View& ledger, const Constraints& soft,
                                                  ScoredRows& rows) {
        const ledger::Terms& terms = ledger.near();
        terms.trim();
        const auto unseen = invisible(ask);
        std::vector<Preference> out;
        for (const auto& constraint : soft.list) {
            const auto pods = pods_of(constraint, *ask.spec);
            const bool each_node = constraint.topology_key == kHostname;
            const auto& shared =
                each_node ? living(ask, terms, pods, {}, ledger::kEachNode)
                          : living(ask, terms, pods, nodes_of(constraint, soft, *ask.spec), constraint.topology_key);
            const auto& places = shared.scope->key();
            const auto& key = each_node ? terms.key(kHostname) : places;
            out.push_back(
                {&constraint, &key, rows.column(key), rows.column(places), SeenTally(terms, shared, unseen), {}});
        }
        return out;
    }

    static void weigh(Preference& preference, std::span<const uint8_t> counting, bool all_keys) {
        const ledger::Tally& tally = *preference.tally;
        const auto& key = tally.scope->key();
        const bool each_node = key.key() == ledger::kEachNode;
        const size_t size = each_node ? count_marked(counting.data(), counting.size())
                                      : domains_among(key, preference.places, counting);
        const double weight = std::log(static_cast<double>(size + 2));
        const double skew = preference.constraint->max_skew - 1;
        preference.cost.resize(key.domains() + 1);
        const auto many = tally.counts.many();
        weigh_counts(many.data(), weight, skew, many.size(), preference.cost.data());
        std::fill(preference.cost.begin() + static_cast<ptrdiff_t>(many.size()), preference.cost.end() - 1, skew);
        const auto few = [&](Domain domain, uint32_t count) { preference.cost[domain] = count * weight + skew; };
        if (many.empty()) tally.counts.each(few);
        if (each_node && !all_keys) forgive_unlabelled(preference);
        // A node without the label is in the domain of those that say "".
        const Domain blank = key.find("");
        if (blank == kNoDomain || tally.unlabelled == 0) return;
        const auto count = static_cast<double>(tally.counts.at(blank) + tally.unlabelled);
        preference.cost[blank] = count * weight + skew;
    }

    // Where each node counts its own pods: one without the hostname label takes no part.
    static void forgive_unlabelled(Preference& preference) {
        const auto domains = preference.key->rows();
        clear_without_domain(domains.data(), std::min(domains.size(), preference.cost.size() - 1),
                             preference.cost.data());
    }

    static size_t domains_among(const ledger::TopologyKey& key, std::span<const Domain> domains,
                                std::span<const uint8_t> counting) {
        std::vector<uint8_t> seen(key.domains() + 1);  // the last: nodes without the label
        const Domain blank = key.find("");
        const Domain without = blank == kNoDomain ? static_cast<Domain>(key.domains()) : blank;
        const bool lacking = any_without_domain(domains.data(), counting.data(), domains.size());
        const size_t possible = key.domains() + (lacking ? 1 : 0);
        size_t size = 0;
        for (size_t i = 0; i < domains.size() && size < possible; ++i) {
            if (!counting[i]) continue;
            uint8_t& mark = seen[domains[i] == kNoDomain ? without : domains[i]];
            size += mark == 0;
            mark = 1;
        }
        return size;
    }

    // Least cost to most points.
    static void turn(std::span<const double> costs, std::span<const uint8_t> counting, std::span<int64_t> points) {
        round_costs(costs.data(), costs.size(), points.data());
        const Range range = range_of(points.data(), counting.data(), points.size());
        const auto [least, most] = range;
        map_marked(counting, range, points, [least = least, most = most](int64_t cost) {
            return most == 0 ? kMaxScore : kMaxScore * (most + least - cost) / most;
        });
    }

    SpreadDefaults defaults_;
};

}  // namespace

SpreadDefaults system_spread_defaults() {
    SpreadConstraint hosts;
    hosts.topology_key = kHostname;
    hosts.hard = false;
    hosts.max_skew = 3;
    SpreadConstraint zones = hosts;
    zones.topology_key = "topology.kubernetes.io/zone";
    zones.max_skew = 5;
    return {{hosts, zones}, true};
}

std::shared_ptr<const Filter> spread_filter(SpreadDefaults defaults) {
    return std::make_shared<SpreadFilter>(std::move(defaults));
}

std::shared_ptr<const Scorer> spread_scorer(SpreadDefaults defaults) {
    return std::make_shared<SpreadScorer>(std::move(defaults));
}

}  // namespace berth::sched::plugins
