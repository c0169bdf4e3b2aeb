// Any object that decisions read, to the part of the scheduler that cares for it.
#include "ledger/intake.h"
#include "sched/scheduler.h"
#include "sched/shares.h"

namespace berth::sched {

void Scheduler::put(const ledger::Object& object, base::Instant now) {
    if (const auto pod = object.as<model::Pod>()) return put_pod(*pod, now);
    if (auto node = object.as<model::Node>()) return put_node(std::move(node), now);
    if (auto reservation = object.as<model::Reservation>()) return put_reservation(std::move(reservation), now);
    const ledger::Kind& kind = ledger::kind_of(object);
    kind.put(ledger_, object);
    if (kind.reader == ledger::Reader::Shares) return;  // whoever may start then is told by name
    if (shares_ && kind.kind == "PersistentVolumeClaim") ledger_.spaces()->touch_claims();
    notify(kind.change, now);
}

void Scheduler::remove(const ledger::Kind& kind, const model::Meta& gone, base::Instant now) {
    if (kind.kind == "Pod") return remove_pod(gone.uid, now);
    if (kind.kind == "Node") return remove_node(gone.name, now);
    if (kind.kind == "Reservation") return remove_reservation(gone.uid, now);
    kind.remove(ledger_, gone);
    if (kind.reader == ledger::Reader::Shares) return;
    if (shares_ && kind.kind == "PersistentVolumeClaim") ledger_.spaces()->touch_claims();
    notify(kind.change, now);
}

}  // namespace berth::sched
