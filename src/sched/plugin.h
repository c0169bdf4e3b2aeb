#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "sched/ask.h"
#include "sched/plugin_id.h"
#include "sched/strikes.h"

namespace berth::sched {

// The plugins whose answer for a row depends on that row's sums and reservations alone, and that sched/fast computes by
// itself.
enum class RowTerm : uint8_t { None, Fit, Ports, Credit, LeastAllocated, BalancedAllocation, Cores, Devices };

// Domains of one label key that are closed to an ask.
struct ClosedDomains {
    std::span<const ledger::Domain> domains;  // by row; kNoDomain where the node lacks the key
    std::vector<uint8_t> closed;              // by domain, then one for the rows that lack the key

    bool lacks(Row row) const { return domains[row] == ledger::kNoDomain; }
    bool closes(Row row) const { return closed[std::min<size_t>(domains[row], closed.size() - 1)] != 0; }
};

// Strikes the rows where the ask cannot go. Preparation is the top of the function, then one plain loop over the rows.
struct Filter {
    virtual ~Filter() = default;
    virtual PluginId plugin() const = 0;
    std::string_view name() const { return name_of(plugin()); }
    virtual void strike(const Ask& ask, const View& ledger, Strikes& strikes) const = 0;

    // What the fast way (sched/fast) may rely on. The defaults are always right, and make the ask take the plain way.
    // False only when no row can be struck for this ask, whatever its sums.
    virtual bool concerns(const Ask&, const View&) const { return true; }
    // False only when it concerns no ask of this spec, whatever is in the ledger: asked once for all pods of a class.
    virtual bool may_concern(const model::PodSpec&) const { return true; }
    // Whether a row's answer depends on its Node object and, of the spec, on tolerations, nodeSelector, required node
    // terms and nodeName alone.
    virtual bool by_node_alone() const { return false; }
    virtual RowTerm row_term() const { return RowTerm::None; }
    // All that it strikes, when that is whole domains.
    virtual std::optional<std::vector<ClosedDomains>> closed_domains(const Ask&, const View&) const {
        return std::nullopt;
    }
};

inline constexpr int64_t kMaxScore = 100;

// Writes 0..100 for each feasible row, already normalised over them; points[i] belongs to feasible[i].
// Exact integers decide; a float may only prefer, and is rounded here.
struct Scorer {
    virtual ~Scorer() = default;
    virtual PluginId plugin() const = 0;
    std::string_view name() const { return name_of(plugin()); }
    virtual void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
                       std::span<int64_t> points) const = 0;

    // Why it cannot score the ask; empty: it can.
    virtual std::string fault(const Ask&) const { return {}; }
    // For the fast way, as above. False only when all rows get the same points for this ask.
    virtual bool concerns(const Ask&, const View&) const { return true; }
    virtual RowTerm row_term() const { return RowTerm::None; }
    // The same over a whole table: points[row] of the rows that are open; the others get anything.
    virtual void score_open(const Ask& ask, const View& ledger, std::span<const uint8_t> open,
                            std::span<int64_t> points) const;
};

enum class Scaling : uint8_t { None, ByMax, ByMaxReversed };

// Points of the row's Node object and, of the spec, of tolerations, preferred node terms and images alone, scaled over
// the feasible rows afterwards.
struct NodeScorer : Scorer {
    virtual void raw(const Ask& ask, const View& ledger, std::span<const Row> rows,
                     std::span<int64_t> points) const = 0;
    virtual Scaling scaling() const = 0;
    void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const final;
};

// What a scheduler name stands for: which plugins, in which order, with which weights.
struct Profile {
    struct Weighted {
        std::shared_ptr<const Scorer> scorer;
        int64_t weight = 1;
    };
    std::vector<std::shared_ptr<const Filter>> filters;
    std::vector<Weighted> scorers;
    bool preempts = true;
    bool packs_devices = false;                               // asks pack (Ask::packs)
    base::Duration bind_timeout = std::chrono::seconds(600);  // how long a pod waits for its volumes
};

// kube-scheduler's default profile: that of an empty configuration.
const Profile& default_profile();

// Scales raw values to 0..100 by their maximum, as kube-scheduler's DefaultNormalizeScore; reversed: 100 - that.
void normalize(std::span<int64_t> points, bool reversed);
// The same of one value, when the largest is known.
int64_t scaled(int64_t point, int64_t highest, bool reversed);

}  // namespace berth::sched
