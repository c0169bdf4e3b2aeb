// Any object that decisions read, to the part of the scheduler that cares for it.
#include <algorithm>

#include "ledger/intake.h"
#include "sched/scheduler.h"

namespace berth::sched {

// What it does more than to keep, or differently.
struct Scheduler::Followed {
    std::type_index type;
    void (*put)(Scheduler&, const ledger::Object&, base::Instant);
    void (*remove)(Scheduler&, const model::Meta&, base::Instant);
};

const Scheduler::Followed* Scheduler::followed(std::type_index type) {
    static const Followed kFollowed[] = {
        {typeid(model::Pod),
         [](Scheduler& self, const ledger::Object& object, base::Instant now) {
             self.put_pod(*object.as<model::Pod>(), now);
         },
         [](Scheduler& self, const model::Meta& gone, base::Instant now) { self.remove_pod(gone.uid, now); }},
        {typeid(model::Node),
         [](Scheduler& self, const ledger::Object& object, base::Instant now) {
             self.put_node(object.as<model::Node>(), now);
         },
         [](Scheduler& self, const model::Meta& gone, base::Instant now) { self.remove_node(gone.name, now); }},
        {typeid(model::Reservation),
         [](Scheduler& self, const ledger::Object& object, base::Instant now) {
             self.put_reservation(object.as<model::Reservation>(), now);
         },
         [](Scheduler& self, const model::Meta& gone, base::Instant now) { self.remove_reservation(gone.uid, now); }},
    };
    const auto found =
        std::find_if(std::begin(kFollowed), std::end(kFollowed), [&](const Followed& row) { return row.type == type; });
    return found == std::end(kFollowed) ? nullptr : found;
}

void Scheduler::put(const ledger::Object& object, base::Instant now) {
    if (const Followed* own = followed(object.type())) return own->put(*this, object, now);
    const ledger::Kind& kind = ledger::kind_of(object.type());
    kind.put(ledger_, object);
    notify(kind.change, now);
}

void Scheduler::remove(const ledger::Kind& kind, const model::Meta& gone, base::Instant now) {
    if (const Followed* own = followed(kind.type)) return own->remove(*this, gone, now);
    kind.remove(ledger_, gone);
    notify(kind.change, now);
}

}  // namespace berth::sched
