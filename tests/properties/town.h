#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "run/bind_rules.h"
#include "sched/decide.h"
#include "sched/fast/decider.h"

namespace berth::properties {

// A few machines whose parts have owners: random pods, reservations, deletions and restarts, and two schedulers that
// see what the other did late. Whoever inherits says what machines are like and what pods ask for, and judges by the
// stored records alone, after every step.
class Town {
public:
    explicit Town(uint64_t seed) : random_(seed) {}
    virtual ~Town() = default;

    void step();
    size_t bound() const { return bound_; }
    size_t refused() const { return refused_; }
    size_t drawn() const { return drawn_; }

protected:
    using Tell = std::function<void(ledger::Ledger&)>;
    void tell(const Tell& news);
    void everybody_listens();

    virtual model::Labels labels() = 0;
    virtual model::Labels wishes() = 0;
    virtual std::shared_ptr<model::PodSpec> spec(const model::Labels& labels, const model::Labels& notes) = 0;
    // Something else that happens now and then.
    virtual void disturb() {}
    virtual void judge() = 0;
    // What a scheduler that begins anew is told of the machines, and whether it then counts as the truth does.
    virtual void tell_machines(ledger::Ledger& fresh) = 0;
    virtual void compare(const ledger::Ledger& fresh) = 0;

    base::Random random_;
    std::map<std::string, model::Pod> pods_;
    std::map<std::string, model::Reservation> reservations_;
    ledger::Ledger truth_;
    uint64_t revision_ = 0;

private:
    // One that decides from what it has seen, and is told of the rest later.
    struct Scheduler {
        ledger::Ledger ledger;
        std::unique_ptr<sched::fast::Decider> decider =
            std::make_unique<sched::fast::Decider>(sched::default_profile());
        std::deque<Tell> news;
        void listen(size_t most);
    };

    void place(Scheduler& scheduler);
    void reserve(Scheduler& scheduler);
    void store(model::Reservation object);
    void delete_pod();
    void end_reservation();
    void restart(Scheduler& scheduler);

    run::BindRules rules_;
    std::array<Scheduler, 2> schedulers_;
    size_t next_ = 0, bound_ = 0, refused_ = 0, drawn_ = 0;
};

// BERTH_SEED=n is one seed, BERTH_SEEDS=n that many from 1. At the end it must have been worth it: so many bound, drawn
// from reservations, and refused since the other scheduler was there first.
struct Worth {
    size_t bound, drawn, refused;
};
void live_in_towns(const std::function<std::unique_ptr<Town>(uint64_t seed)>& make, uint64_t seeds, Worth worth);

}  // namespace berth::properties
