#pragma once

#include <string>

#include "ledger/ledger.h"
#include "model/pod.h"
#include "sched/plugin.h"

namespace berth::app {

// What must hold of a placement, whoever asks for it: ports and amounts fit, and what it draws from is there for it.
class BindRules {
public:
    BindRules();

    // A pod with the node and the links that it is to have.
    Status judge_bind(const model::Pod& pod, const ledger::Ledger& ledger) const;
    Status judge_room(const sched::Ask& ask, const std::string& node, const ledger::Ledger& ledger) const;

private:
    sched::Profile filters_;
};

}  // namespace berth::app
