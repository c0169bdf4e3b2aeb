#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "control/reservations.h"
#include "model/device.h"
#include "model/node_topology.h"
#include "run/bind_rules.h"
#include "sched/scheduler.h"

namespace berth::reservations {

// What befalls a town.
struct Fortune {
    bool calm = true;  // no reservation ends, is edited or is deleted
    enum class Deaths : uint8_t {
        None,
        AtRest,   // a scheduler dies when nothing is under way
        AnyTime,  // when something is: of that some is carried out, and some is not, in any order
    } deaths = Deaths::None;
    bool two = false;     // schedulers, neither of which knows what the other has under way
    bool cores = false;   // machines are known, and some want cores of their own
    bool gpus = false;    // nodes have some, and some want a part of one, or several
    bool guard = true;    // false: the server judges no sums, and requests get lost
    bool shifts = false;  // nodes have few slots, change, go and come back; pods complete and are resized
};

// Stored objects before a server that judges, the schedulers and the controllers that follow them, and what the
// schedulers have planned and not yet sent: preemptors of all sorts among reservations that wait, edits of what waits,
// ends that pass between a decision and its bind.
class Town {
public:
    Town(uint64_t seed, Fortune fortune);
    ~Town();
    void run(int steps);

private:
    struct Sent {
        size_t by;  // which scheduler
        sched::Plan plan;
    };

    // ---- what is stored, and those who are told of it
    std::unique_ptr<sched::Scheduler> new_scheduler() const;
    bool somebody_is_nominated() const;
    void die();
    void tell_everything(sched::Scheduler& scheduler);
    void add_node(const std::string& name);
    template <class Part>
    void add_part(std::vector<std::shared_ptr<const Part>>& all, std::shared_ptr<const Part> part);
    void put_node(std::shared_ptr<const model::Node> node);
    void store(model::Pod pod);
    void store(model::Reservation object);
    void erase_pod(const std::string& name);
    void erase_reservation(const std::string& name);
    std::string new_uid();
    bool has_ended(const model::Reservation& object) const;

    // ---- what users do
    std::string step();
    std::string make_pod(int32_t priority);
    void wish_for_cores(model::Meta& meta, model::PodSpec& spec);
    void wish_for_gpus(const model::Meta& meta, model::PodSpec& spec);
    std::string make_reservation();
    std::string edit();
    std::string delete_something();
    template <class Map, class Good>
    std::string any(const Map& objects, Good good);
    void evict(const std::string& name, bool preempted);
    std::string end_pods();
    std::string reconcile();
    std::string shift();
    std::string shift_node();
    std::string lose_node();
    std::string shift_pod();
    std::string put_by_hand();

    // ---- the schedulers and their server
    bool unkind() const { return fortune_.deaths == Fortune::Deaths::AnyTime || fortune_.two; }
    void decide(size_t scheduler, size_t most);
    void send(uint64_t most);
    sched::Outcome deliver(const sched::Plan& plan);
    static bool carry_out(const auto&) { return true; }
    bool carry_out(const sched::BindPod& bind);
    bool carry_out(const sched::RefusePod& refuse);
    bool carry_out(const sched::ClearNomination& clear);
    bool carry_out(const sched::EvictPod& evicted);
    bool carry_out(const sched::HoldRoom& hold);
    bool carry_out(const sched::DropRoom& drop);
    bool carry_out(const sched::WriteReservation& write);
    bool carry_out(const sched::ClaimReservation& claim);
    bool carry_out(const sched::OpenReservation& open);
    bool write_status(const auto& plan, bool placed);

    // ---- what must hold
    using Amounts = std::array<int64_t, 3>;  // cpu, memory, slots
    static Amounts amounts_of(const model::Resources& from);
    Amounts used_on(const std::string& node) const;
    Amounts has(const model::Node& node) const;
    void note_use();
    void check_nodes();
    void check_cores(const std::string& node) const;
    void check_gpus(const std::string& node) const;
    void settle();
    void check_rest();

    base::Random random_;
    const Fortune fortune_;
    base::ManualClock clock_{base::Time{1'800'000'000'000'000'000}};
    control::Ages final_ones_;
    std::vector<std::unique_ptr<sched::Scheduler>> schedulers_;
    ledger::Ledger server_;  // of stored objects: the judge's, and the controllers'
    const run::BindRules rules_;
    std::deque<Sent> outbox_;
    std::vector<std::shared_ptr<const model::Node>> nodes_;
    std::vector<std::shared_ptr<const model::NodeTopology>> machines_;
    std::vector<std::shared_ptr<const model::Device>> devices_;
    std::map<std::string, model::Pod> pods_;
    std::map<std::string, std::shared_ptr<const model::Reservation>> reservations_;
    std::set<std::string> gone_for_;               // uids of pods for which others were evicted
    std::map<std::string, std::string> drawn_by_;  // of those that are used once, by uid
    std::map<std::string, Amounts> used_before_;   // of nodes, when they were last looked at
    bool resting_ = false;                         // every answer comes
    uint64_t revision_ = 0;
    uint64_t uids_ = 0;
    uint64_t names_ = 0;
};

}  // namespace berth::reservations
