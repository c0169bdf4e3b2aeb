#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ledger/held_terms.h"
#include "ledger/tallies.h"
#include "model/workloads.h"

namespace berth::ledger {

// Which pods are near which, as counters per topology domain: what spreading and pod (anti-)affinity ask. Kept up to
// date by the ledger with every pod, reservation, node and namespace; a question costs its own terms' domains, not
// pods.
class Terms {
public:
    Terms() = default;
    Terms(const Terms&) = delete;
    Terms& operator=(const Terms&) = delete;

    // --- nodes. A node may only leave, or come back with other labels or taints, while nobody is counted on its row.
    void enter(Row row, std::shared_ptr<const model::Node> node) { topology_.enter(row, std::move(node)); }
    void leave(Row row) { topology_.leave(row); }
    bool refresh(Row row, const std::shared_ptr<const model::Node>& node) { return topology_.refresh(row, node); }

    void put(model::Namespace space);
    void remove_namespace(std::string_view name);

    // --- placed pods
    GroupId add(const std::shared_ptr<const model::PodSpec>& spec, Row row, bool terminating);
    void remove(GroupId group, Row row, bool terminating);
    // A reservation counts like a pod while it is shown. Both may be repeated.
    void show(ReservationIndex index, const std::shared_ptr<const model::PodSpec>& spec, Row row);
    void hide(ReservationIndex index);

    // --- questions. The counters that they need are made when they are first asked for and kept: a cache, which
    // changes no answer. Pointers are good until trim(), which drops what was not asked for lately.
    void trim() const;
    const TopologyKey& key(std::string_view name) const { return topology_.key(name); }
    const Tally& tally(const PodFilter& pods, const NodeFilter& nodes, std::string_view key) const {
        return tallies_.get(pods, nodes, key);
    }
    std::vector<const Tally*> tallies(const PodFilter& pods, const NodeFilter& nodes,
                                      std::span<const std::string_view> keys) const {
        return tallies_.get(pods, nodes, keys);
    }
    // Of a key that no node has, every row lacks the label; and nobody is in a domain of it.
    bool anywhere(std::string_view key) const { return topology_.anywhere(key); }
    std::span<const Domain> nobody() const { return topology_.nobody(); }
    // The same as if these reservations were not there.
    Tally without(const Tally& tally, std::span<const ReservationIndex> left_out) const;
    std::vector<uint32_t> held_about(std::string_view ns, const Labels& labels) const {
        return held_.about(ns, labels, namespaces_);
    }
    const HeldTerm& held(uint32_t id) const { return held_.at(id); }
    // Calls f(id, domain) for each held term that these reservations have and that has a domain there.
    template <class F>
    void each_held_by(std::span<const ReservationIndex> reservations, F f) const {
        for (const ReservationIndex index : reservations) {
            const Shown* shown = find_shown(index);
            if (!shown) continue;
            for (const uint32_t id : groups_.at(shown->group).terms) {
                const Domain domain = held_.at(id).key->at(shown->row);
                if (domain != kNoDomain) f(id, domain);
            }
        }
    }
    bool asked_matches(const model::PodTerm& term, std::string_view ns, const Labels& labels) const {
        return asked_term_matches(term, namespaces_, ns, labels);
    }

    struct Sizes {
        size_t groups = 0, held = 0, tallies = 0, topology = 0;
    };
    Sizes sizes() const { return {groups_.size(), held_.size(), tallies_.size(), topology_.size()}; }

private:
    struct Shown {
        GroupId group = kNone;  // kNone: not shown
        Row row = kNoRow;
    };
    const Shown* find_shown(ReservationIndex index) const {
        return index < shown_.size() && shown_[index].group != kNone ? &shown_[index] : nullptr;
    }
    void count(GroupId id, Row row, bool terminating, int delta);
    GroupId group_of(const std::shared_ptr<const model::PodSpec>& spec);
    void free_stale_groups();

    NamespaceLabels namespaces_;
    mutable Topology topology_;
    PodGroups groups_;
    HeldTerms held_;
    mutable Tallies tallies_{groups_, topology_, namespaces_};
    std::vector<Shown> shown_;  // by ReservationIndex
    // Pods of one template come one after another, with the reservations they draw from in between.
    struct Recent {
        std::shared_ptr<const model::PodSpec> spec;
        GroupId group = kNone;
    };
    std::array<Recent, 2> recent_;
    mutable size_t needed_ = 0;  // of the topology, when it was last collected
};

}  // namespace berth::ledger
