#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"
#include "ledger/ledger.h"
#include "ledger/spaces.h"
#include "sched/strikes.h"
#include "share/answer.h"

namespace berth::sched {

using ledger::Row;
using ledger::SpaceId;
using ledger::View;

// It was its namespace's share that kept the pod from a node.
bool refused_by_share(const Strikes& strikes);

// What namespaces deserve, from the scheduler's own ledger, so that a pod never waits for somebody else's cycle. It is
// solved anew when what is asked for, what there is or a rule has changed; a pod that we place was asked for before.
class Shares {
public:
    // Where a pod stands in the queue.
    struct Rank {
        int64_t minus_priority = 0;
        base::Time created;
        std::string uid;
        auto operator<=>(const Rank&) const = default;
    };
    explicit Shares(share::Settings settings);
    ~Shares();
    Shares(const Shares&) = delete;
    Shares& operator=(const Shares&) = delete;

    // Brings it up to date with a ledger that counts spaces. True: there is another answer than before.
    bool follow(ledger::Ledger& ledger, base::Time wall);

    // --- the predicate, as of the last follow()
    // Why a pod of this spec may not start, in the words of its condition; empty: it may. `paid` of it is held for its
    // namespace already, `uid` is its own.
    std::string refusal(const View& ledger, const model::PodSpec& spec, std::string_view uid,
                        const Resources& paid = {}) const;
    // What of a pod's draws its namespace is charged for already, whoever draws it.
    Resources paid(const View& ledger, const model::PodSpec& spec, const ledger::Charges& charges) const;

    // --- who waits for more
    void refused(const View& ledger, const model::Pod& pod);
    void forget(std::string_view uid);
    bool anybody_waits() const { return !waits_of_.empty(); }
    // Those who were refused and may start now, each beside those before it.
    std::vector<std::string> may_start(const View& ledger);

    // --- preemption
    // A pod that waits until others have left takes part of its namespace's share, and they are as good as gone.
    void promise(const View& ledger, const model::Pod& pod, std::vector<std::string> victims);
    void end_promise(std::string_view uid);
    // Drops those who may not go for a pod of this namespace and size: they would push their namespace below what it is
    // guaranteed, or the pod's own has more than it deserves and theirs has not. In the order of importance, which
    // stays: the last are the first to go.
    void spare(const View& ledger, const model::PodSpec& claim, std::vector<ledger::PodIndex>& pods) const;
    // Another one whenever spare() may answer otherwise.
    uint64_t epoch(const View& ledger) const;

    // Whether the cluster as a whole has room for it.
    bool has_room(const View& ledger, const model::PodSpec& spec) const;
    // follow() would find something new.
    bool behind(const View& ledger) const;

    // Used, deserved, borrowed and lent, by name.
    std::vector<share::Account> accounts(const View& ledger) const;

private:
    struct Limits {
        Resources reserved;
        Resources hard;  // with the smallest quota's
        bool infinite = false;
    };
    // Sets of resources that somebody asks for together, in the order of the problem's leaves; and what by each.
    using Sets = std::vector<std::vector<model::ResourceId>>;
    using Wishes = std::map<std::vector<model::ResourceId>, share::Leaf>;
    struct Promise {
        SpaceId space = ledger::kNone;
        Resources size;
        std::vector<std::string> victims;
    };

    // What is free without end unless somebody says how much there is.
    static bool endless(model::ResourceId id);
    Resources capacity(const View& ledger, base::Time wall);
    Resources size_of(const model::PodSpec& spec) const;
    bool tidy(ledger::Spaces& spaces);
    void read_rules(const View& ledger);
    void count_claims(const View& ledger);
    bool enough(const ledger::Spaces& spaces);
    Resources demand(const View& ledger, SpaceId id) const;
    Wishes wishes_of(const View& ledger, SpaceId id) const;
    bool meet(const share::Leaf& leaf);
    void build(const View& ledger);
    void update(const View& ledger, SpaceId id);
    const Resources& deserved(const View& ledger, SpaceId id) const;
    Resources taken(const View& ledger, SpaceId id) const;
    bool overused(const View& ledger, SpaceId id) const;

    share::Settings settings_;
    std::unique_ptr<share::Solver> solver_;
    std::vector<Limits> limits_;                                    // by space
    std::vector<Sets> sets_;                                        // by space
    std::vector<std::pair<Resources, Resources>> storage_;          // of claims, bound and waiting, by space
    mutable std::vector<std::pair<uint64_t, Resources>> deserved_;  // by space: of which solution, and what
    Resources known_capacity_;                                      // what nodes and settings say
    Resources capacity_;                                            // and 0 of what somebody asks for and nobody has
    bool resized_ = false;                                          // the solver does not know yet
    base::Time wall_;
    std::optional<base::Time> next_lost_;  // when a node that is not ready stops to count
    bool plain_ = false;   // no rule keeps anybody from getting all that is asked for where there is enough for all
    bool enough_ = false;  // and there is: everybody deserves what is asked for, and nothing has to be solved
    // Then so many of a batch may ask (Spaces::batch_asked), and nothing has to be added up.
    uint64_t batch_ = 0;
    int64_t most_ = 0;
    bool cordoned_ = false;  // there is such a node: what is used on it counts
    bool percents_ = false;
    bool counts_limits_ = false;
    bool counts_storage_ = false;
    bool stale_ = false;  // the problem has to be built anew when it is needed
    uint64_t solved_ = 0;
    uint64_t demand_seen_ = 0, rules_seen_ = 0, nodes_seen_ = 0, sums_seen_ = 0, claims_seen_ = 0;
    uint64_t promised_ = 0;
    std::map<std::string, Promise, std::less<>> promises_;  // by the pod's uid
    struct Wait {
        SpaceId space;
        Rank rank;
    };
    std::map<SpaceId, std::map<Rank, std::shared_ptr<const model::PodSpec>>> waits_;
    base::StringMap<Wait> waits_of_;  // by uid
    // What was taken, deserved and promised when it was last looked who may start.
    std::map<SpaceId, std::tuple<Resources, Resources, uint64_t>> looked_at_;
};

}  // namespace berth::sched
