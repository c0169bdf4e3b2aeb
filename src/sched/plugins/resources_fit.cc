// NodeResourcesFit: the filter and its LeastAllocated score.
#include <fmt/format.h>

#include <algorithm>
#include <bitset>

#include "sched/draw.h"
#include "sched/plugins/registry.h"
#include "sched/points.h"

namespace berth::sched::plugins {
namespace {

constexpr PluginId kPlugin = PluginId::NodeResourcesFit;

struct Want {
    model::ResourceId id;
    int64_t amount;
    const ledger::Column* column;  // nullptr: no node has any
    std::string reason;
};

bool is_ignored(const FitOptions& options, model::ResourceId id) {
    if (std::find(options.ignored.begin(), options.ignored.end(), id) != options.ignored.end()) return true;
    const std::string_view name = model::resource_name(id);
    return std::any_of(options.ignored_groups.begin(), options.ignored_groups.end(), [&](const std::string& group) {
        return name.size() > group.size() && name.starts_with(group) && name[group.size()] == '/';
    });
}

// "Too many pods" first, then cpu, memory, ephemeral-storage, then the others by name. A zero asks for nothing.
std::vector<Want> wants_of(const model::PodSpec& spec, const View& ledger, const FitOptions& options) {
    std::vector<Want> wants;
    spec.requests.for_each([&](model::ResourceId id, int64_t amount) {
        if (amount <= 0 || is_ignored(options, id)) return;
        const bool slot = id == model::kPods;
        wants.push_back({id, amount, ledger.column(id),
                         slot ? "Too many pods" : fmt::format("Insufficient {}", model::resource_name(id))});
    });
    const auto place = [](const Want& want) {
        if (want.id == model::kPods) return -1;
        return want.id.index < 3 ? static_cast<int>(want.id.index) : 3;
    };
    std::sort(wants.begin(), wants.end(), [&](const Want& a, const Want& b) {
        return place(a) != place(b) ? place(a) < place(b) : a.reason < b.reason;
    });
    return wants;
}

class FitFilter final : public Filter {
public:
    explicit FitFilter(FitOptions options) : options_(std::move(options)) {}
    PluginId plugin() const override { return kPlugin; }
    RowTerm row_term() const override {
        return options_.ignored.empty() && options_.ignored_groups.empty() ? RowTerm::Fit : RowTerm::None;
    }

    bool ignores(model::ResourceId id) const { return is_ignored(options_, id); }

    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        const std::vector<Want> wants = wants_of(*ask.spec, ledger, options_);
        Refusals refusals{strikes, {}};
        strikes.each_open([&](Row row) {
            const Credit* credit = ask.credit(row);
            if (!credit) return strike_if(wants, row, refusals, [&](const Want& want) { return lacks(want, row); });
            const Resources lacking = draw_on(*credit, ask, ledger, row).lacking;
            if (lacking.empty()) return;
            strike_if(wants, row, refusals, [&](const Want& want) { return lacking.has(want.id); });
        });
    }

private:
    // What is short is the same list for many rows: its words are made once. A list is one bit a want, and one for
    // "unresolvable".
    struct Refusals {
        Strikes& strikes;
        std::vector<std::pair<std::bitset<64>, Strikes::RefusalId>> known;
    };

    // The node alone has too little.
    static bool lacks(const Want& want, Row row) {
        return want.amount > (want.column ? want.column->allocatable[row] - want.column->used[row] : 0);
    }
    template <class IsShort>
    static void strike_if(const std::vector<Want>& wants, Row row, Refusals& refusals, IsShort is_short) {
        if (std::any_of(wants.begin(), wants.end(), is_short)) refuse(wants, row, is_short, refusals);
    }
    // Lists everything that is short; more than the node has at all cannot be cured by evictions.
    template <class IsShort>
    static void refuse(const std::vector<Want>& wants, Row row, IsShort is_short, Refusals& refusals) {
        std::bitset<64> list;
        for (size_t i = 0; i < wants.size(); ++i) {
            const Want& want = wants[i];
            if (!is_short(want)) continue;
            list.set(std::min<size_t>(i, kMostListed - 1));
            if (!want.column || want.amount > want.column->allocatable[row]) list.set(kMostListed);
        }
        const auto same = [&](const auto& entry) { return entry.first == list; };
        auto found = std::find_if(refusals.known.begin(), refusals.known.end(), same);
        if (found == refusals.known.end() || wants.size() >= kMostListed) {
            refusals.known.emplace_back(list, words(wants, is_short, list.test(kMostListed), refusals.strikes));
            found = refusals.known.end() - 1;
        }
        refusals.strikes.strike(row, found->second);
    }
    template <class IsShort>
    static Strikes::RefusalId words(const std::vector<Want>& wants, IsShort is_short, bool unresolvable,
                                    Strikes& strikes) {
        std::vector<std::string> reasons;
        for (const Want& want : wants) {
            if (is_short(want)) reasons.push_back(want.reason);
        }
        return strikes.refusal(kPlugin, std::move(reasons), unresolvable);
    }

    static constexpr size_t kMostListed = 63;

    FitOptions options_;
};

class LeastAllocated final : public Scorer {
public:
    PluginId plugin() const override { return kPlugin; }
    RowTerm row_term() const override { return RowTerm::LeastAllocated; }
    void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
               std::span<int64_t> points) const override {
        const auto* cpu = ledger.column(model::kCpu);
        const auto* memory = ledger.column(model::kMemory);
        for (size_t i = 0; i < feasible.size(); ++i) {
            const Row row = feasible[i];
            const RowUse use{cpu ? cpu->allocatable[row] : 0, ledger.scoring_cpu()[row],
                             memory ? memory->allocatable[row] : 0, ledger.scoring_memory()[row]};
            points[i] = least_allocated_points(use, ask.spec->asked_cpu_milli(), ask.spec->asked_memory());
        }
    }
};

}  // namespace

std::shared_ptr<const Filter> fit_filter(FitOptions options) {
    return std::make_shared<FitFilter>(std::move(options));
}

bool ignores(const Filter& fit, model::ResourceId id) {
    const auto* filter = dynamic_cast<const FitFilter*>(&fit);
    return filter != nullptr && filter->ignores(id);
}

std::shared_ptr<const Scorer> least_allocated() {
    return std::make_shared<LeastAllocated>();
}

}  // namespace berth::sched::plugins
