#include "sched/kept_parts.h"

#include <algorithm>

#include "sched/which.h"

namespace berth::sched {
namespace {

using ledger::CpuBits;

void less(model::DeviceAmounts& amounts, const model::DeviceAmounts& by) {
    amounts.subtract(amounts.or_less(by));
}

// What of a promise nobody has on a row. What reservations that the ask does not draw from are to give is theirs, and
// need not be kept.
class Keeping {
public:
    Keeping(const View& ledger, Row row, const Yielding& before, const Credit* credit)
        : ledger_(ledger), row_(row), before_(before), credit_(credit) {}

    model::Which rest(const Promised& promised) const { return {cores(promised), devices(promised), {}, {}}; }
    // Those who are to give it, without an amount.
    ledger::Charges charges(const Promised& promised) const {
        ledger::Charges out;
        for (const auto& charge : promised.charges) {
            if (gives(charge)) out.push_back({charge.reservation, {}});
        }
        return out;
    }

private:
    bool gives(const ledger::Charge& charge) const { return credit_ && credit_->covers(charge.reservation); }

    model::CoreRecord cores(const Promised& promised) const {
        const ledger::NodeCores* node = ledger_.cores().at(row_);
        if (!node || !node->layout) return {};
        CpuBits untaken = node->free;
        for (const auto& charge : promised.charges) {
            if (gives(charge)) untaken.add(node->remaining(charge.reservation));
        }
        model::CoreRecord out{CpuBits(promised.which->cores.cpus).within(untaken).ids(), {}};
        const auto& numas = node->layout->numas;
        for (const auto& [id, amount] : promised.which->cores.numa) {
            for (size_t place = 0; place < numas.size(); ++place) {
                if (numas[place].id == id) out.numa.push_back({id, rest_of(amount, *node, place, promised)});
            }
        }
        return out;
    }

    model::Resources rest_of(model::Resources amount, const ledger::NodeCores& node, size_t place,
                             const Promised& promised) const {
        each_leaving([&](const model::Which& which) {
            for (const auto& [numa, theirs] : which.cores.numa) {
                if (numa == node.layout->numas[place].id) amount.subtract(theirs);
            }
        });
        model::Resources out;
        amount.for_each([&](model::ResourceId id, int64_t rest) {
            for (const auto& charge : promised.charges) {
                if (!gives(charge)) rest -= node.remaining(charge.reservation, place, id);
            }
            if (rest > 0) out.set(id, rest);
        });
        return out;
    }

    model::DeviceRecord devices(const Promised& promised) const {
        const ledger::NodeDevices* node = ledger_.devices().at(row_);
        model::DeviceRecord out;
        for (model::DeviceShare share : promised.which->devices) {
            each_leaving([&](const model::Which& which) { take_out(share, which.devices); });
            for (size_t place = 0; node && place < node->unit_count(); ++place) {
                if (node->unit(place).type != share.type || node->unit(place).minor != share.minor) continue;
                for (const auto& charge : promised.charges) {
                    if (!gives(charge)) less(share.amounts, node->remaining(charge.reservation, place));
                }
            }
            if (!share.amounts.none() || !share.functions.empty()) out.push_back(std::move(share));
        }
        return out;
    }

    static void take_out(model::DeviceShare& share, const model::DeviceRecord& theirs) {
        for (const auto& other : theirs) {
            if (other.type != share.type || other.minor != share.minor) continue;
            less(share.amounts, other.amounts);
            std::erase_if(share.functions, [&](const auto& function) {
                return std::find(other.functions.begin(), other.functions.end(), function) != other.functions.end();
            });
        }
    }

    template <class F>
    void each_leaving(F f) const {
        for (const auto index : before_.leaving) {
            if (const auto& which = ledger_.pod(index).which) f(*which);
        }
    }

    const View& ledger_;
    Row row_;
    const Yielding& before_;
    const Credit* credit_;
};

// A pod that asks for nothing.
model::Pod stand_in(const model::Pod& pod) {
    model::Pod out;
    out.meta.uid = pod.meta.uid;
    auto spec = std::make_shared<model::PodSpec>();
    spec->priority = pod.spec->priority;
    spec->cores.exclusive = pod.spec->cores.exclusive;
    out.spec = std::move(spec);
    return out;
}

}  // namespace

KeptParts::KeptParts(const Ask& ask, Ledger& ledger, Row row, const Yielding& before) : ledger_(ledger) {
    const bool any = std::any_of(before.pods.begin(), before.pods.end(),
                                 [](const auto& place) { return place.promised && place.promised->which; });
    if (!any || !wants_parts(ask, ledger, row)) return;
    // As the row will be: what there was may have changed since it was promised.
    const auto places = Overlay(ledger, row, before).parts();
    for (const auto& [pod, promised] : places) {
        const Keeping keeping(ledger, row, before, ask.credit(row));
        model::Which rest = keeping.rest(*promised);
        if (rest.empty()) continue;
        ledger.assume(stand_in(*pod), row, keeping.charges(*promised),
                      std::make_shared<const model::Which>(std::move(rest)));
        kept_.push_back(pod->meta.uid);
    }
}

KeptParts::~KeptParts() {
    for (const auto& uid : kept_) ledger_.remove_pod(uid);
}

}  // namespace berth::sched
