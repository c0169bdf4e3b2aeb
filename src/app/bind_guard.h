#pragma once

#include <memory>
#include <variant>

#include "app/bind_rules.h"
#include "base/clock.h"
#include "ledger/ledger.h"
#include "store/guard.h"
#include "store/store.h"

namespace berth::app {

// The judge of the embedded server: a ledger kept at the store's head, inside its commit order. A bind, or a
// reservation that takes its place, is refused when it does not fit, or holds what another holds, whoever asks; so two
// schedulers, or one with an old view, cannot oversell a node. Pods created on a node, resizes and nodes that shrink
// count, but are not refused.
class BindGuard final : public store::Guard {
public:
    // Reads what is stored; before the store's first write.
    explicit BindGuard(const store::Store& store, const base::Clock& clock = base::system_clock());

    std::shared_ptr<void> prepare(const store::Write& write) const override;
    Status admit(std::span<const store::EventPtr> events, const store::Head& head) override;
    void rolled_back(store::Revision) override {}  // nothing is admitted after that

    const ledger::Ledger& ledger() const { return ledger_; }

private:
    using PodPtr = std::shared_ptr<const model::Pod>;
    using NodePtr = std::shared_ptr<const model::Node>;
    using ReservationPtr = std::shared_ptr<const model::Reservation>;
    using Object = std::variant<std::monostate, PodPtr, NodePtr, ReservationPtr>;

    static Object read(const store::Event& event);
    Status judge(const store::Event& event, const Object& object) const;
    void count(const store::Event& event, const Object& object);
    void count_storage(std::string_view kind, const store::Event& event);

    const base::Clock& clock_;
    ledger::Ledger ledger_;
    BindRules rules_;
};

}  // namespace berth::app
