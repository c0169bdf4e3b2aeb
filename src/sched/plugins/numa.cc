// NodeNUMAResource: which cores, and how much of which NUMA node, an ask gets on a row.
#include "sched/plugins/numa.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/int128.h"
#include "model/reservation_rules.h"
#include "sched/draw.h"
#include "sched/plugins/numa_places.h"
#include "sched/plugins/numa_take.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

using ledger::CpuBits;
using ledger::NodeCores;
using model::CpuBinding;
using model::NumaPolicy;
using No = CoreAnswer::No;

constexpr PluginId kPlugin = PluginId::NodeNUMAResource;
constexpr int64_t kMilli = 1000;

// What the ask and the row together demand.
struct Terms {
    No no = No::Open;
    bool binds = false;
    CpuBinding binding = CpuBinding::None;
    bool required = false;
    NumaPolicy numa = NumaPolicy::None;
    int64_t count = 0;  // CPUs
};

CpuBinding required_by(const NodeCores& cores) {
    if (cores.rules.required != CpuBinding::None) return cores.rules.required;
    return cores.object && cores.object->full_pcpus_only ? CpuBinding::FullPCPUs : CpuBinding::None;
}

Terms terms_of_binding(Terms terms, const model::PodSpec& spec, const NodeCores* cores, CpuBinding by_node) {
    const int64_t milli = spec.requests.get(model::kCpu);
    terms.count = milli / kMilli;
    if (milli % kMilli != 0) {
        terms.no = No::NotInteger;
    } else if (cores == nullptr || !cores->layout) {
        terms.no = cores != nullptr && cores->fault != NodeCores::Fault::None ? No::Fault : No::NoTopology;
    } else if (by_node != CpuBinding::None && spec.cores.required != CpuBinding::None &&
               by_node != spec.cores.required) {
        terms.no = No::OtherBinding;
    } else {
        const CpuBinding required = by_node != CpuBinding::None ? by_node : spec.cores.required;
        terms.required = required != CpuBinding::None;
        terms.binding = terms.required ? required : spec.cores.preferred;
        const bool halves = required == CpuBinding::FullPCPUs && terms.count % cores->layout->threads != 0;
        if (halves) terms.no = No::SmtAlignment;
    }
    return terms;
}

Terms terms_on(const model::PodSpec& spec, const NodeCores* cores) {
    Terms terms;
    const CpuBinding by_node = cores ? required_by(*cores) : CpuBinding::None;
    const NumaPolicy numa_by_node = cores ? cores->rules.numa : NumaPolicy::None;
    terms.binds = spec.binds_cores() || (by_node != CpuBinding::None && spec.requests.get(model::kCpu) > 0);
    terms.numa = spec.cores.numa != NumaPolicy::None ? spec.cores.numa : numa_by_node;
    if (terms.binds) terms = terms_of_binding(terms, spec, cores, by_node);
    if (terms.no != No::Open || terms.numa == NumaPolicy::None) {
        if (terms.no == No::Open && terms.binds && cores->fault != NodeCores::Fault::None) terms.no = No::Fault;
        return terms;
    }
    const bool differ = numa_by_node != NumaPolicy::None && terms.numa != numa_by_node;
    if (differ) {
        terms.no = No::OtherNumaPolicy;
    } else if (cores != nullptr && cores->fault != NodeCores::Fault::None) {
        terms.no = No::Fault;
    } else if (cores == nullptr || !cores->layout) {
        terms.no = No::NoTopology;
    }
    return terms;
}

bool restricts_cores(ReservationIndex index, const View& ledger) {
    const auto& entry = ledger.reservation(index);
    return entry.policy == model::AllocatePolicy::Restricted && entry.which && !entry.which->cores.cpus.empty() &&
           entry.object->restricts(model::kCpu);
}

// What is there for whoever is charged so: what is free, and what those who pay have left.
Taking taking_for(const Terms& terms, const model::PodSpec& spec, const NodeCores& cores,
                  const ledger::Charges& charges, const View& ledger) {
    Taking out{cores, terms.binding, terms.required, spec.cores.exclusive, {}, cores.free};
    bool restricted = false;
    for (const auto& charge : charges) {
        out.first.add(cores.remaining(charge.reservation));
        restricted = restricted || restricts_cores(charge.reservation, ledger);
    }
    out.first.remove(cores.kept);
    if (restricted) out.pool = {};
    out.pool.add(out.first);
    return out;
}

// A core of one's own counts `amplified` of the node's cpu, as long as others share what is left.
bool amplified_fits(const Terms& terms, const model::PodSpec& spec, const Taking& taking,
                    const ledger::Charges& charges, const View& ledger, Row row) {
    const int64_t more = taking.node.rules.amplified_milli - kMilli;
    if (more == 0) return true;
    const int64_t asked = spec.requests.get(model::kCpu);
    int64_t supplied = 0;
    for (const auto& charge : charges) supplied += ledger.remaining(charge.reservation, model::kCpu);
    const int64_t slack = ledger.free(row, model::kCpu) + std::min(asked, supplied) - asked;
    const int64_t fresh = terms.binds ? std::max<int64_t>(0, terms.count - taking.first.count()) * kMilli : 0;
    return slack >= (static_cast<int128>(taking.node.bound_milli) + fresh) * more / kMilli;
}

// Without reservations and NUMA policies numbers alone decide.
No counted(const Terms& terms, const NodeCores& cores) {
    int64_t there = cores.free_cpus;
    if (terms.required) there = terms.binding == CpuBinding::FullPCPUs ? cores.whole : cores.started;
    return terms.count <= there ? No::Open : No::NotEnough;
}

model::CoreRecord record_of(const CpuBits& cpus, const NodeCores& cores) {
    model::CoreRecord out{cpus.ids(), {}};
    for (const auto& numa : cores.layout->numas) {
        const int64_t here = cpus.within(numa.cpus).count();
        if (here > 0) out.numa.push_back({numa.id, {{model::kCpu, here * kMilli}}});
    }
    return out;
}

CoreAnswer anywhere(const Terms& terms, const Taking& taking, bool restricted) {
    if (!terms.binds) return {};
    const CpuBits cpus = take(taking, terms.count);
    if (cpus.empty()) return {restricted ? No::NotEnoughReserved : No::NotEnough, {}};
    return {No::Open, record_of(cpus, taking.node)};
}

No judge(const Terms& terms, const model::PodSpec& spec, const NodeCores& cores, const View& ledger, Row row) {
    if (cores.rules.amplified_milli != kMilli) {
        const ledger::Charges none;
        if (!amplified_fits(terms, spec, taking_for(terms, spec, cores, none, ledger), none, ledger, row)) {
            return No::Amplified;
        }
    }
    return terms.binds ? counted(terms, cores) : No::Open;
}

struct Words {
    std::string_view reason;
    bool unresolvable;
};
constexpr std::array<Words, 11> kWords{{
    {"", false},
    {"the requested CPUs must be integer", true},
    {"node(s) CPU Topology not found", true},
    {"", true},
    {"node(s) requested cpus not multiple cpus per core", true},
    {"node(s) cpu bind policy conflicts with pod's required cpu bind policy", true},
    {"node(s) NUMA Topology policy not match", true},
    {"Insufficient amplified cpu", false},
    {"node(s) not enough cpus available to satisfy request", false},
    {"Reservation(s) not enough cpus available to satisfy request", false},
    {"node(s) NUMA Topology affinity error", false},
}};

No answer_on(const Ask& ask, const View& ledger, Row row) {
    const NodeCores* cores = ledger.cores().at(row);
    const Terms terms = terms_on(*ask.spec, cores);
    if (terms.no != No::Open) return terms.no;
    if (cores == nullptr) return No::Open;
    const bool simple = terms.numa == NumaPolicy::None && ask.credit(row) == nullptr;
    if (simple) return judge(terms, *ask.spec, *cores, ledger, row);
    return cores_on(ask, ledger, row, charges_on(ask, ledger, row)).no;
}

// Of the CPUs that may be given, or of the NUMA nodes that would be, what stays free, in hundredths. E.g. 8 CPUs of
// which 6 are free, 2 asked for: 50.
int64_t points_on(const Ask& ask, const View& ledger, Row row) {
    const NodeCores* cores = ledger.cores().at(row);
    if (cores == nullptr || !cores->layout) return 0;
    const Terms terms = terms_on(*ask.spec, cores);
    if (terms.numa != NumaPolicy::None) {
        const auto answer = cores_on(ask, ledger, row, charges_on(ask, ledger, row));
        return points_of(answer.record, *cores);
    }
    const int64_t all = cores->layout->all.without(cores->kept).count();
    return all == 0 ? 0 : std::max<int64_t>(0, cores->free_cpus - terms.count) * kMaxScore / all;
}

class NumaFilter final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    RowTerm row_term() const override { return RowTerm::Cores; }
    bool concerns(const Ask& ask, const View& ledger) const override {
        return asks_for_cores(*ask.spec) || ledger.cores().any_demanding();
    }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (!concerns(ask, ledger)) return;
        const model::PodSpec& spec = *ask.spec;
        if (!spec.cores.fault.empty()) return strikes.refuse(strikes.refusal(kPlugin, {spec.cores.fault}, true));
        strikes.each_open([&](Row row) {
            const No no = answer_on(ask, ledger, row);
            if (no == No::Open) return;
            const Words& words = kWords[static_cast<size_t>(no)];
            std::string reason(words.reason);
            if (no == No::Fault) reason = fmt::format("node(s) give nobody cores: {}", ledger.core_fault(row));
            strikes.strike(row, strikes.refusal(kPlugin, {std::move(reason)}, words.unresolvable));
        });
    }
};

class NumaScorer final : public Scorer {
public:
    PluginId plugin() const override { return kPlugin; }
    RowTerm row_term() const override { return RowTerm::Cores; }
    bool concerns(const Ask& ask, const View&) const override { return asks_for_cores(*ask.spec); }
    void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const override {
        std::fill(points.begin(), points.end(), 0);
        if (!asks_for_cores(*ask.spec)) return;
        for (size_t i = 0; i < feasible.size(); ++i) points[i] = points_on(ask, ledger, feasible[i]);
    }
};

}  // namespace

bool asks_for_cores(const model::PodSpec& spec) {
    return spec.binds_cores() || spec.cores.numa != NumaPolicy::None || !spec.cores.fault.empty();
}

bool cores_open(const model::PodSpec& spec, const View& ledger, Row row) {
    Ask ask;
    ask.spec = &spec;
    return spec.cores.fault.empty() && answer_on(ask, ledger, row) == No::Open;
}

int64_t core_points(const model::PodSpec& spec, const View& ledger, Row row) {
    Ask ask;
    ask.spec = &spec;
    return points_on(ask, ledger, row);
}

bool wants_cores(const Ask& ask, const View& ledger, Row row) {
    if (asks_for_cores(*ask.spec)) return true;
    const NodeCores* cores = ledger.cores().at(row);
    return cores != nullptr && cores->demanding();
}

CoreAnswer cores_on(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges) {
    const NodeCores* cores = ledger.cores().at(row);
    const Terms terms = terms_on(*ask.spec, cores);
    if (terms.no != No::Open) return {terms.no, {}};
    if (cores == nullptr || (!cores->layout && terms.numa == NumaPolicy::None && !terms.binds)) return {};
    const Taking taking = taking_for(terms, *ask.spec, *cores, charges, ledger);
    if (!amplified_fits(terms, *ask.spec, taking, charges, ledger, row)) return {No::Amplified, {}};
    const bool restricted = std::any_of(charges.begin(), charges.end(), [&](const auto& charge) {
        return restricts_cores(charge.reservation, ledger);
    });
    if (terms.numa == NumaPolicy::None) return anywhere(terms, taking, restricted);
    if (terms.binds && takeable(taking) < terms.count) return anywhere(terms, taking, restricted);
    const PlaceAsk places{*ask.spec, taking, charges, terms.numa, terms.binds ? terms.count : 0};
    if (auto record = best_places(places)) return {No::Open, *std::move(record)};
    if (terms.numa != NumaPolicy::BestEffort) return {No::NotAligned, {}};
    return anywhere(terms, taking, restricted);
}

std::string judge_record(const model::CoreRecord& record, const model::PodSpec& spec, const View& ledger, Row row,
                         const ledger::Charges& charges) {
    if (record.empty()) return "";
    const NodeCores* cores = ledger.cores().at(row);
    if (auto fault = ledger.core_fault(row); !fault.empty()) return fault;
    if (cores == nullptr || !cores->layout) return "its CPU topology is not known";
    const CpuBits cpus(record.cpus);
    const auto number = static_cast<int64_t>(record.cpus.size());
    if (number > 0 && number * kMilli != spec.requests.get(model::kCpu)) {
        return fmt::format("{} CPUs are named for {}m cpu", number, spec.requests.get(model::kCpu));
    }
    Terms terms;
    const Taking taking = taking_for(terms, spec, *cores, charges, ledger);
    const CpuBits lacking = cpus.without(taking.pool);
    if (const int32_t cpu = lacking.first(); cpu >= 0) {
        const bool there = cores->layout->all.has(cpu);
        const bool kept = cores->kept.has(cpu);
        return fmt::format("CPU {} {}", cpu, !there ? "is not there" : kept ? "is reserved" : "is another's");
    }
    for (const auto& [node, amount] : record.numa) {
        if (auto why = lacks_on_numa(node, amount, taking, charges); !why.empty()) return why;
    }
    return "";
}

std::string judge_amplified(const model::PodSpec& spec, int64_t cores, const View& ledger, Row row,
                            const ledger::Charges& charges) {
    const NodeCores* node = ledger.cores().at(row);
    if (node == nullptr || node->rules.amplified_milli == kMilli || spec.requests.get(model::kCpu) <= 0) return "";
    Terms terms;
    terms.binds = cores > 0;
    terms.count = cores;
    const Taking taking = taking_for(terms, spec, *node, charges, ledger);
    if (amplified_fits(terms, spec, taking, charges, ledger, row)) return "";
    return std::string(kWords[static_cast<size_t>(No::Amplified)].reason);
}

std::shared_ptr<const Filter> numa_filter() {
    return std::make_shared<NumaFilter>();
}

std::shared_ptr<const Scorer> numa_scorer() {
    return std::make_shared<NumaScorer>();
}

}  // namespace berth::sched::plugins
