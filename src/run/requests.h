#pragma once

#include "base/clock.h"
#include "link/api_client.h"
#include "link/recorder.h"
#include "sched/plan.h"

namespace berth::ledger {
struct Kind;
}

namespace berth::run {

// The request that a plan stands for.
link::Request request_for(const sched::Plan& plan, base::Time now);
// What the answer says of the plan. A pod that vanished or was bound by somebody else is a refusal.
sched::Outcome outcome_of(const sched::Plan& plan, const Result<link::Reply>& reply);
// Of what is to be read again.
const ledger::Kind& kind_of(const sched::ReadBack& read);
// Tells people.
void record(link::Recorder& recorder, const sched::Plan& plan, sched::Outcome outcome, base::Time now);

}  // namespace berth::run
