#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "ledger/intake.h"
#include "run/bind_rules.h"
#include "store/guard.h"
#include "store/store.h"

namespace berth::run {

// The judge of the embedded server: a ledger kept at the store's head, inside its commit order. Whatever raises what a
// node holds is refused when it does not fit, or holds what another holds, whoever asks: a bind, a pod created with its
// node, one that grows or that leaves the reservation that paid for it, a reservation that takes its place, stops
// waiting, or parts with its owners. So two schedulers, or one with an old view, cannot oversell a node. A node that
// shrinks counts, but is not refused. Of the writes of one transaction at most one takes room.
class BindGuard final : public store::Guard {
public:
    // Reads what is stored; before the store's first write.
    explicit BindGuard(const store::Store& store, BindRules rules = BindRules(),
                       const base::Clock& clock = base::system_clock());

    std::shared_ptr<void> prepare(const store::Write& write) const override;
    Status admit(std::span<const store::EventPtr> events, const store::Head& head) override;
    void rolled_back(store::Revision) override {}  // nothing is admitted after that

    const ledger::View& ledger() const { return ledger_; }

private:
    // What an event says to the ledger, if anything.
    struct Entry {
        const ledger::Kind* kind = nullptr;
        std::optional<ledger::Object> object = {};  // none: it is gone
    };

    static Result<Entry> read(const store::Event& event);
    Status judge(const store::Event& event, const Entry& entry);
    Status judge_pod(const store::Event& event, const model::Pod& pod);
    static Status judge_ended(const store::Event& event, const model::Pod& pod);
    Status judge_reservation(const store::Event& event, const model::Reservation& after) const;
    Status judge_hold(const model::Reservation& before, const model::Reservation& after) const;
    Status judge_owners(const model::Reservation& after) const;
    void count(const store::Event& event, const Entry& entry);

    const base::Clock& clock_;
    ledger::Ledger ledger_;
    BindRules rules_;
};

}  // namespace berth::run
