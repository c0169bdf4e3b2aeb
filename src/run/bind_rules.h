#pragma once

#include <functional>
#include <map>
#include <string>

#include "ledger/ledger.h"
#include "model/allocated.h"
#include "model/pod.h"
#include "model/reservation.h"
#include "sched/plugin.h"

namespace berth::run {

// What must hold of a placement, whoever asks for it: ports and amounts fit, no claim gets a second holder, the node
// can attach its volumes, and what it draws from is there for it. Volumes are judged as far as the ledger knows of
// them. Amounts that a profile leaves to others (an extender, ignoredResources) are not looked at for its pods.
class BindRules {
public:
    // By schedulerName; the first one places reservations.
    explicit BindRules(const std::map<std::string, sched::Profile, std::less<>>& profiles = {});

    // A pod with the node and the links that it is to have.
    Status judge_bind(const model::Pod& pod, const ledger::View& ledger) const;
    // A pod that is created with its node. The refusal has a cause for `spec.nodeName`: the reason and the message
    // that the node's kubelet has for such a pod.
    Status judge_created(const model::Pod& pod, const ledger::View& ledger) const;
    // A pod that the ledger counts there and that is to be changed: it stays on its node, and may lack no more than it
    // did. What it was is asked for only if it matters.
    Status judge_change(const model::Pod& after, ledger::PodIndex index, ledger::Ledger& ledger,
                        const std::function<Result<model::Pod>()>& before) const;
    // A reservation with the node that it is to have. One that is to wait there needs no room yet; a preempting pod's
    // needs nothing that a pod has.
    Status judge_place(const model::Reservation& reservation, const ledger::View& ledger) const;
    // One that waited and has its room now: which ones of the node's parts it gets.
    static Status judge_opening(const model::Reservation& reservation, const ledger::View& ledger);

private:
    const sched::Profile& fit_for(const model::Pod& pod) const;
    Status judge_growth(const model::Pod& before, const model::Pod& after, const ledger::View& ledger) const;
    Resources lacking(const model::Pod& pod, const ledger::View& ledger) const;
    Status judge_links(const sched::Ask& ask, const model::Links& links, const ledger::View& ledger) const;
    static Status judge_which(const model::Pod& pod, const model::Links& links, const ledger::View& ledger);
    static Status judge_which_serves(const model::Pod& before, const model::Pod& after, const ledger::View& ledger);
    Status judge_volumes(const sched::Ask& ask, const model::Links& links, const ledger::View& ledger) const;

    sched::Profile ports_, fit_, holders_, attachments_;
    sched::Profile reservations_fit_;
    std::map<std::string, sched::Profile, std::less<>> fit_by_scheduler_;
};

}  // namespace berth::run
