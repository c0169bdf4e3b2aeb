#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "sched/evictions.h"
#include "sched/extender.h"
#include "sched/nominated.h"
#include "sched/plan.h"
#include "sched/volume_binds.h"

namespace berth::sched {

// What attempts take from, and give back to.
struct Sources {
    Ledger& ledger;
    Nominated& nominated;
    Evictions& evictions;
    std::set<std::string> claims = {};  // uids of reservations whose claim may have to be released, or that may end
    bool freed = false;                 // somebody may have room now who was not told yet

    // Takes the pod out of the ledger; what it was charged to is free again.
    void take_back(std::string_view pod);
    // What the pod draws from now it may not draw from any more, or as one that is bound.
    void leaves(ledger::PodIndex pod);
};

// ---- on the way to a node

// Extenders are asked about the nodes that the filters leave: what they have said so far.
struct Consultation {
    uint64_t serial = 0;
    std::vector<std::string> nodes;  // that all so far let pass, by name
    std::map<std::string, ExtenderRefusal> refused;
    std::map<std::string, int64_t> scores;
    size_t filtered = 0;  // extenders up to here were asked to filter
    bool prioritized = false;
    size_t unanswered = 0;
};

// The bind waits until what the pod draws from is stored, then for claims.
struct Claiming {
    BindPod bind;
    size_t unanswered = 0;
    uint64_t serial = 0;  // 0: nothing is claimed yet
};

// ---- on the way to room that others leave

// An extender is asked about those who are to go.
struct VictimsAsked {
    uint64_t serial = 0;
    size_t next = 0;  // extender
    std::string node;
    int64_t violations = 0;
    std::vector<EvictPod> evictions;
};

// A reservation that holds the room was asked for; when it stands these go.
struct HoldAsked {
    std::vector<EvictPod> evictions;
    base::Instant at;
};

// Its nomination is being written: when it is stored for whom they go, these go.
struct NominationAsked {
    std::vector<EvictPod> evictions;
};

// A pod that waits for its node, and all that was taken for it: a place in the ledger, volumes, claims, questions to
// extenders, a nomination, those who were told to go. Dropped, it gives all of that back.
class Attempt {
public:
    explicit Attempt(Sources& from) : from_(&from) {}
    ~Attempt();
    Attempt(Attempt&& other) noexcept;
    Attempt& operator=(Attempt&&) = delete;

    model::Pod pod;
    std::string refusal;   // that was last written
    uint32_t telling = 0;  // writes to its status that are under way: until they are answered nothing is decided
    bool turned = false;   // its turn came meanwhile
    // Its share lets it start, and no node takes it, since then.
    std::optional<base::Instant> roomless_since = {};

    // Which stage it is in, if it is this one; almost every pod has none.
    template <class Stage>
    Stage* at() {
        auto* found = std::get_if<std::unique_ptr<Stage>>(&stage_);
        return found ? found->get() : nullptr;
    }
    template <class Stage>
    const Stage* at() const {
        const auto* found = std::get_if<std::unique_ptr<Stage>>(&stage_);
        return found ? found->get() : nullptr;
    }
    template <class Stage>
    Stage& enter(Stage stage) {
        return *stage_.emplace<std::unique_ptr<Stage>>(std::make_unique<Stage>(std::move(stage)));
    }
    // Ends the stage, and what it took is kept.
    template <class Stage>
    Stage leave() {
        Stage stage = std::move(*at<Stage>());
        stage_ = {};
        return stage;
    }

    template <class Demand>
    Demand* demands() {
        auto* found = std::get_if<std::unique_ptr<Demand>>(&demand_);
        return found ? found->get() : nullptr;
    }
    template <class Demand>
    bool demands() const {
        return std::holds_alternative<std::unique_ptr<Demand>>(demand_);
    }
    template <class Demand>
    void demand(Demand demand) {
        demand_ = std::make_unique<Demand>(std::move(demand));
    }
    void demand_nothing() { demand_ = {}; }
    // Those who wait until the hold stands that was asked for, or the nomination.
    std::vector<EvictPod> take_evictions();

    // In the ledger, until it is given back or the feed has the pod bound. Its nomination rests meanwhile.
    void place(Row row, const ledger::Charges& charges, ledger::WhichPtr which);
    bool placed() const { return placed_; }
    // It has its place, and its bind waits for something: nothing has been sent of it.
    bool waits_to_be_bound() const { return at<VolumesFirst>() || at<Claiming>(); }
    void landed() { placed_ = false; }
    // Its place, and the stage it was in.
    void give_back();

    // The pod as it is now waits for the node, which its victims leave; it is promised what it has there then.
    std::shared_ptr<const model::Pod> nominate(std::string_view node, std::vector<std::string> victims,
                                               PromisedPtr promised);
    // Its stored object says so. What is known about that stands; false: nothing was.
    bool nominate(std::string_view node);
    // Others need not yield to it any longer; false: they did not have to.
    bool end_nomination();

    void evict(const std::string& victim);
    // Whether anybody was told to go for it, by this scheduler.
    bool evicts() const { return evicts_; }

private:
    // Nobody goes any more for a nomination that has come to an end.
    void forget_nomination();

    Sources* from_;  // nullptr: moved from
    std::variant<std::monostate, std::unique_ptr<Consultation>, std::unique_ptr<VolumesFirst>,
                 std::unique_ptr<Claiming>>
        stage_;
    std::variant<std::monostate, std::unique_ptr<VictimsAsked>, std::unique_ptr<HoldAsked>,
                 std::unique_ptr<NominationAsked>>
        demand_;
    struct Nomination {
        std::string node;
        std::vector<std::string> victims;
        PromisedPtr promised;
    };
    std::unique_ptr<Nomination> nomination_;  // the last one; nullptr: none, or it came to an end
    bool placed_ = false;
    bool nominated_ = false;
    bool evicts_ = false;
};

}  // namespace berth::sched
