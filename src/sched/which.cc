#include "sched/which.h"

#include "sched/plugins/device_share.h"
#include "sched/plugins/numa.h"

namespace berth::sched {

bool may_have(const model::Which& which, const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges) {
    using model::NumaPolicy;
    model::CoreRecord cores = which.cores;
    const ledger::NodeCores* node = ledger.cores().at(row);
    const NumaPolicy by_node = node ? node->rules.numa : NumaPolicy::None;
    const NumaPolicy policy = ask.spec->cores.numa != NumaPolicy::None ? ask.spec->cores.numa : by_node;
    // Elsewhere amounts of NUMA nodes are written down, and nobody asked for them.
    if (policy != NumaPolicy::SingleNUMANode && policy != NumaPolicy::Restricted) cores.numa.clear();
    return plugins::judge_record(cores, *ask.spec, ledger, row, charges).empty() &&
           (which.devices.empty() || plugins::judge_devices(which.devices, *ask.spec, ledger, row, charges).empty());
}

bool wants_parts(const Ask& ask, const View& ledger, Row row) {
    return plugins::wants_cores(ask, ledger, row) || plugins::wants_devices(ask, ledger, row);
}

bool finds_parts(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges) {
    if (plugins::wants_cores(ask, ledger, row) &&
        plugins::cores_on(ask, ledger, row, charges).no != plugins::CoreAnswer::No::Open) {
        return false;
    }
    return !plugins::wants_devices(ask, ledger, row) || plugins::devices_on(ask, ledger, row, charges).refusal.empty();
}

bool lacks_parts(const Ask& ask, const View& ledger, Row row, const ledger::WhichPtr& which) {
    const bool cores = which && !which->cores.empty(), devices = which && !which->devices.empty();
    return (!cores && plugins::wants_cores(ask, ledger, row)) || (!devices && plugins::wants_devices(ask, ledger, row));
}

ledger::WhichPtr which_on(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges) {
    const bool cores = plugins::wants_cores(ask, ledger, row), devices = plugins::wants_devices(ask, ledger, row);
    if (!cores && !devices) return nullptr;
    model::Which which;
    if (cores) which.cores = plugins::cores_on(ask, ledger, row, charges).record;
    if (devices) which.devices = plugins::devices_on(ask, ledger, row, charges).record;
    return which.empty() ? nullptr : std::make_shared<const model::Which>(std::move(which));
}

}  // namespace berth::sched
