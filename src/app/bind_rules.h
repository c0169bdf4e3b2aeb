#pragma once

#include <string>

#include "ledger/ledger.h"
#include "model/allocated.h"
#include "model/pod.h"
#include "model/reservation.h"
#include "sched/plugin.h"

namespace berth::app {

// What must hold of a placement, whoever asks for it: ports and amounts fit, no claim gets a second holder, the node
// can attach its volumes, and what it draws from is there for it. Volumes are judged as far as the ledger knows of
// them.
class BindRules {
public:
    BindRules();

    // A pod with the node and the links that it is to have.
    Status judge_bind(const model::Pod& pod, const ledger::Ledger& ledger) const;
    // A reservation with the node that it is to have. One that is to wait there needs no room yet; a preempting pod's
    // needs nothing that a pod has.
    Status judge_place(const model::Reservation& reservation, const ledger::Ledger& ledger) const;

private:
    Status judge_links(const sched::Ask& ask, const model::Links& links, const ledger::Ledger& ledger) const;
    Status judge_volumes(const sched::Ask& ask, const model::Links& links, const ledger::Ledger& ledger) const;

    sched::Profile ports_, fit_, holders_, attachments_;
};

}  // namespace berth::app
