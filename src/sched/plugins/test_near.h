#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "sched/plugins/registry.h"

// A small table for tests of spreading and pod affinity, and the two plugins run on it alone.
namespace berth::sched::plugins {

inline constexpr std::string_view kZone = "topology.kubernetes.io/zone";
inline constexpr std::string_view kHost = "kubernetes.io/hostname";
inline constexpr std::string_view kSkewed = "node(s) didn't match pod topology spread constraints";
inline constexpr std::string_view kUnlabelled =
    "node(s) didn't match pod topology spread constraints (missing required label)";
inline constexpr std::string_view kFar = "node(s) didn't match pod affinity rules";
inline constexpr std::string_view kNear = "node(s) didn't match pod anti-affinity rules";
inline constexpr std::string_view kShunned = "node(s) didn't satisfy existing pods anti-affinity rules";

using Reasons = std::map<std::string, std::string>;  // by node; "" where it may go
using Scores = std::map<std::string, int64_t>;

inline Selector chosen(std::string_view text) {
    return *Selector::parse(text);
}

inline model::PodTerm term(std::string_view selector, std::string_view key, std::string ns = "default") {
    model::PodTerm out;
    out.selector = chosen(selector);
    out.namespaces = {std::move(ns)};
    out.topology_key = key;
    return out;
}

inline model::SpreadConstraint spread(int32_t skew, std::string_view key, std::string_view selector, bool hard = true) {
    model::SpreadConstraint out;
    out.max_skew = skew;
    out.topology_key = key;
    out.selector = chosen(selector);
    out.hard = hard;
    return out;
}

inline model::PodSpec spec_of(Labels labels, std::string ns = "default") {
    model::PodSpec out;
    out.ns = std::move(ns);
    out.labels = std::move(labels);
    return out;
}

class NearTable {
public:
    Ledger ledger;

    void node(const std::string& name, Labels labels, std::vector<model::Taint> taints = {}) {
        auto made = std::make_shared<model::Node>();
        made->meta.name = name;
        made->meta.labels = std::move(labels);
        made->taints = std::move(taints);
        ledger.put(std::shared_ptr<const model::Node>(std::move(made)));
    }
    // A node with its name as hostname, in a zone.
    void zoned(const std::string& name, const std::string& zone) {
        node(name, {{std::string(kHost), name}, {std::string(kZone), zone}});
    }
    static model::Pod pod(const std::string& name, const model::PodSpec& spec) {
        model::Pod made;
        made.meta.name = name;
        made.meta.uid = "uid-" + name;
        made.meta.ns = spec.ns;
        made.meta.labels = spec.labels;
        made.spec = std::make_shared<model::PodSpec>(spec);
        return made;
    }
    void place(const std::string& name, const std::string& node, const model::PodSpec& spec, bool terminating = false) {
        model::Pod made = pod(name, spec);
        made.node = node;
        if (terminating) made.meta.deleted = base::Time{1};
        ledger.put(made);
    }
    // An Available one, whose template has this spec; its owners carry its name as label "for".
    std::shared_ptr<const model::Reservation> reservation(const std::string& name, const std::string& node,
                                                          const model::PodSpec& spec) {
        auto made = std::make_shared<model::Reservation>();
        made->meta.name = name;
        made->meta.uid = "uid-" + name;
        made->spec = std::make_shared<model::PodSpec>(spec);
        made->owners.push_back({std::nullopt, std::nullopt, chosen("for=" + name)});
        made->allocate_once = false;
        made->phase = model::ReservationPhase::Available;
        made->node = node;
        ledger.put(std::shared_ptr<const model::Reservation>(made));
        return made;
    }
    void place_owner(const std::string& name, const model::Reservation& of, model::PodSpec spec) {
        spec.labels.set("for", of.meta.name);
        model::Pod made = pod(name, spec);
        made.node = of.node;
        const std::string link = R"({"name":")" + of.meta.name + R"(","uid":")" + of.meta.uid + R"("})";
        made.meta.annotations.set(model::kReservationAllocated, link);
        ledger.put(made);
    }

    Ask ask(const model::PodSpec& spec) const {
        Ask made;
        made.spec = &spec;
        return made;
    }
    Reasons strikes(const Ask& ask, const Filter& filter) const {
        Strikes strikes(ledger, 0, static_cast<Row>(ledger.rows()));
        filter.strike(ask, ledger, strikes);
        Reasons reasons;
        for (Row row = 0; row < ledger.rows(); ++row) {
            if (!ledger.alive(row)) continue;
            const Refusal* why = strikes.why(row);
            reasons[std::string(ledger.name(row))] = why ? why->reasons.front() : "";
        }
        return reasons;
    }
    Scores scores(const Ask& ask, const Scorer& scorer) const {
        std::vector<Row> rows;
        for (Row row = 0; row < ledger.rows(); ++row) {
            if (ledger.alive(row)) rows.push_back(row);
        }
        return scores(ask, scorer, rows);
    }
    Scores scores(const Ask& ask, const Scorer& scorer, std::span<const Row> rows) const {
        std::vector<int64_t> points(rows.size(), -7);
        scorer.score(ask, ledger, rows, points);
        Scores scores;
        for (size_t i = 0; i < rows.size(); ++i) scores[std::string(ledger.name(rows[i]))] = points[i];
        return scores;
    }

    Reasons spread_strikes(const model::PodSpec& spec) const { return strikes(ask(spec), *spread_filter_); }
    Scores spread_scores(const model::PodSpec& spec) const { return scores(ask(spec), *spread_scorer_); }
    Reasons affinity_strikes(const model::PodSpec& spec) const { return strikes(ask(spec), *affinity_filter_); }
    Scores affinity_scores(const model::PodSpec& spec) const { return scores(ask(spec), *affinity_scorer_); }

    const std::shared_ptr<const Filter> spread_filter_ = spread_filter(system_spread_defaults());
    const std::shared_ptr<const Scorer> spread_scorer_ = spread_scorer(system_spread_defaults());
    const std::shared_ptr<const Filter> affinity_filter_ = pod_affinity_filter();
    const std::shared_ptr<const Scorer> affinity_scorer_ = pod_affinity_scorer({});
};

}  // namespace berth::sched::plugins
