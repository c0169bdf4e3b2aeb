#include "sched/fast/decider.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sched/plugins/device_share.h"
#include "sched/plugins/numa.h"
#include "sched/points.h"

namespace berth::sched::fast {
namespace {

constexpr size_t kMaxTreeBytes = 64 << 20;
constexpr size_t kMaxClasses = 20'000;
constexpr size_t kMaxNodeClasses = 256;

bool is_column(model::ResourceId id) {
    return id == model::kCpu || id == model::kMemory || id == model::kPods;
}

RowUse use_of(const ledger::Column* cpu, const ledger::Column* memory, Row row) {
    return {cpu ? cpu->allocatable[row] : 0, cpu ? cpu->used[row] : 0, memory ? memory->allocatable[row] : 0,
            memory ? memory->used[row] : 0};
}

// Computing one row costs about as much as a hundred in a fill.
bool worth_replaying(uint64_t changed, size_t rows) {
    return changed <= std::max<uint64_t>(32, rows / 120);
}

}  // namespace

Decider::Decider(const Profile& profile, uint64_t* looks)
    : profile_(profile), looks_(looks), terms_(terms_of(profile)) {}

Decider::~Decider() = default;

Row Decider::choose(const model::Pod& pod, const View& ledger) {
    credit_ = true;
    only_one_ = ledger::kNone;
    if (const auto rows = named_rows(*pod.spec, ledger)) {
        ++counts_.named;
        return best_among(ask_for(pod, ledger, looks_), ledger, *rows);
    }
    columns_.follow(ledger);
    if (!terms_.usable || columns_.beyond()) return choose_plain(ask_for(pod, ledger, looks_), ledger);
    // Without reservations only a pod that must draw from one is different.
    credit_ = !ledger.owner_index().empty() || !pod.meta.annotations.empty();
    if (credit_ && !terms_.credit) return choose_plain(ask_for(pod, ledger, looks_), ledger);
    Class& c = class_of(pod.spec);
    if (credit_ && c.owner_classes.empty()) credit_ = !pod.meta.annotations.empty() || may_match(pod, ledger);
    if (!open_anywhere(c, ledger)) return ledger::kNoRow;
    if (credit_ && (c.cores || c.devices)) return choose_plain(ask_for(pod, ledger, looks_), ledger);
    if (credit_) return choose_with_owners(c, pod, ledger);
    Ask ask;
    ask.spec = pod.spec.get();
    ask.pod = &pod;
    ask.looks = looks_;
    return choose_without_credit(c, ask, ledger);
}

Row Decider::choose(const model::Reservation& reservation, const View& ledger) {
    const Ask ask = ask_for(reservation, looks_);
    if (const auto rows = named_rows(*ask.spec, ledger)) {
        ++counts_.named;
        return best_among(ask, ledger, *rows);
    }
    columns_.follow(ledger);
    if (!terms_.usable || columns_.beyond()) return choose_plain(ask, ledger);
    Class& c = class_of(reservation.spec);
    return open_anywhere(c, ledger) ? choose_without_credit(c, ask, ledger) : ledger::kNoRow;
}

Row Decider::choose_plain(const Ask& ask, const View& ledger) {
    ++counts_.plain;
    return decide(ask, ledger, profile_).chosen;
}

Row Decider::choose_without_credit(Class& c, const Ask& ask, const View& ledger) {
    std::vector<MaxTree>& trees = trees_of(c, ledger);
    if (reaches_far(c, ask, ledger)) {
        ++counts_.far;
        return choose_far(c, ask, ledger, trees);
    }
    const Key key = best(c, ledger, trees);
    return key == 0 ? ledger::kNoRow : columns_.row_of(key);
}

// Row by row; for a few rows.
Row Decider::best_among(const Ask& ask, const View& ledger, std::span<const Row> rows) const {
    std::vector<Row> feasible;
    for (const Row row : rows) {
        if (filter(ask, ledger, profile_, row, row + 1).open(row)) feasible.push_back(row);
    }
    return best_of(ask, ledger, profile_, feasible);
}

// Some rows ask something of those who ask for no cores.
bool Decider::cores_are_far(const Ask& ask, const View& ledger) const {
    return terms_.cores != nullptr && ledger.cores().any_demanding() && !plugins::asks_for_cores(*ask.spec);
}

bool Decider::reaches_far(const Class& c, const Ask& ask, const View& ledger) const {
    const auto concerns = [&](const auto* plugin) { return plugin->concerns(ask, ledger); };
    const auto& of_reservations = terms_.credit_filters;
    return cores_are_far(ask, ledger) || std::any_of(c.far_filters.begin(), c.far_filters.end(), concerns) ||
           (ask.reservation && std::any_of(of_reservations.begin(), of_reservations.end(), concerns)) ||
           std::any_of(c.far_scorers.begin(), c.far_scorers.end(), concerns);
}

// ---- classes

Decider::Class& Decider::class_of(const std::shared_ptr<const model::PodSpec>& spec) {
    ++uses_;
    if (last_ != nullptr && last_->spec == spec) {
        last_->last_use = uses_;
        return *last_;
    }
    const auto same = classes_.find(spec.get());
    Class& found = same == classes_.end() ? equal_class(spec) : *same->second;
    found.last_use = uses_;
    if (&found != &passing_) last_ = &found;
    return found;
}

// A spec that is met for the first time may be the last of its kind: it is kept when it comes again.
Decider::Class& Decider::equal_class(const std::shared_ptr<const model::PodSpec>& spec) {
    const size_t hash = spec->hash();
    if (const auto equal = by_spec_.find(Hashed{*spec, hash}); equal != by_spec_.end()) return **equal;
    if (met_once_.size() >= kMaxClasses) met_once_.clear();
    if (met_once_.insert(hash).second) {
        begin(passing_, spec, hash);
        return passing_;
    }
    if (classes_.size() >= kMaxClasses || tree_bytes_ > kMaxTreeBytes) forget_old();
    Class& made = *classes_.emplace(spec.get(), std::make_unique<Class>()).first->second;
    begin(made, spec, hash);
    by_spec_.insert(&made);
    return made;
}

void Decider::begin(Class& c, const std::shared_ptr<const model::PodSpec>& spec, size_t hash) const {
    c.spec = spec;
    c.hash = hash;
    c.wants.clear();
    c.node_class = nullptr;
    c.owner_classes.clear();
    c.numbers = {};
    c.cores = terms_.cores != nullptr && plugins::asks_for_cores(*spec);
    c.devices = terms_.devices && spec->devices.asks();
    find_far(c);
    constexpr float kNoLimit = std::numeric_limits<float>::max();
    ClassNumbers& n = c.numbers;
    n.cpu_limit = n.memory_limit = kNoLimit;
    spec->requests.for_each([&](model::ResourceId id, int64_t amount) {
        if (amount <= 0) return;
        c.wants.push_back({id, amount});
        if (id == model::kCpu) n.cpu_limit = 100 + kSlack;
        if (id == model::kMemory) n.memory_limit = 100 + kSlack;
    });
    c.cpu = spec->requests.get(model::kCpu);
    c.memory = spec->requests.get(model::kMemory);
    c.scored_cpu = spec->asked_cpu_milli();
    c.scored_memory = spec->asked_memory();
    n.cpu = static_cast<float>(c.cpu);
    n.memory = static_cast<float>(c.memory);
    n.cpu_scored = static_cast<float>(c.scored_cpu);
    n.memory_scored = static_cast<float>(c.scored_memory);
    const int64_t pods = spec->requests.get(model::kPods);
    n.pods = pods > 0 ? static_cast<float>(std::min<int64_t>(pods, 1 << 20)) : -kNoLimit;
    n.least_weight = static_cast<int32_t>(terms_.least_weight);
    n.balanced_weight = c.cpu == 0 && c.memory == 0 ? 0 : static_cast<int32_t>(terms_.balanced_weight);
}

void Decider::find_far(Class& c) const {
    c.far_filters.clear();
    c.far_scorers.clear();
    for (const auto* filter : terms_.far_filters) {
        if (filter->may_concern(*c.spec)) c.far_filters.push_back(filter);
    }
    for (const auto& weighted : terms_.far_scorers) c.far_scorers.push_back(weighted.scorer.get());
}

// Forgets the half that was used least recently.
void Decider::forget_old() {
    std::vector<uint64_t> uses;
    for (const auto& [spec, c] : classes_) uses.push_back(c->last_use);
    last_ = nullptr;
    const auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
    std::nth_element(uses.begin(), middle, uses.end());
    absl::erase_if(classes_, [&, oldest = *middle](const auto& entry) {
        if (entry.second->last_use >= oldest) return false;
        for (const auto& tree : entry.second->trees) tree_bytes_ -= tree.bytes();
        by_spec_.erase(entry.second.get());
        return true;
    });
}

std::shared_ptr<const NodeClass> Decider::node_class_for(const model::PodSpec& spec, const View& ledger) {
    if (node_classes_.size() >= kMaxNodeClasses) node_classes_.clear();
    auto& found = node_classes_[constraints_of(spec, ledger)];
    if (!found || found->epoch != ledger.changes().static_epoch()) {
        found = node_class_of(constraints_of(spec, ledger), ledger, terms_);
    }
    return found;
}

// ---- keys

// Whether the nodes themselves leave any row open to the class.
bool Decider::open_anywhere(Class& c, const View& ledger) {
    if (!c.node_class || c.node_class->epoch != ledger.changes().static_epoch()) {
        c.node_class = node_class_for(*c.spec, ledger);
        c.filled = false;
    }
    return !c.node_class->groups.empty();
}

std::vector<MaxTree>& Decider::trees_of(Class& c, const View& ledger) {
    const auto& changes = ledger.changes();
    const uint64_t behind = changes.sequence() - c.sequence;
    if (!c.filled || !changes.remembers(c.sequence) || !worth_replaying(behind, ledger.rows())) {
        for (const auto& tree : c.trees) tree_bytes_ -= tree.bytes();
        fill(c, ledger, c.trees);
        c.filled = true;
        c.exact_keys = false;
        for (const auto& tree : c.trees) tree_bytes_ += tree.bytes();
    } else {
        ++counts_.replays;
        changes.replay(c.sequence, [&](Row row) {
            if (c.node_class->base[row] != 0) set(c, row, exact(c, ledger, row), c.trees);
        });
    }
    c.sequence = changes.sequence();
    return c.trees;
}

void Decider::fill(Class& c, const View& ledger, std::vector<MaxTree>& trees) {
    ++counts_.fills;
    columns_.bring_up(ledger);
    c.settled.assign(c.node_class->base.size() / 64, 0);
    const size_t groups = c.node_class->groups.size();
    trees.resize(groups);
    if (groups == 0) return;
    const uint16_t* base = base_of(c, ledger);
    if (groups == 1) {
        trees[0].resize(c.node_class->base.size());
        upper_keys(columns_.rows(), c.numbers, base, columns_.blocks(), trees[0].keys(), trees[0].block_tops());
        trees[0].filled();
    } else {
        fill_groups(c, base, trees);
    }
    for (const Row row : columns_.anomalous()) {
        if (c.node_class->base[row] != 0) set(c, row, exact(c, ledger, row), trees);
    }
}

void Decider::fill_groups(const Class& c, const uint16_t* base, std::vector<MaxTree>& trees) {
    keys_.resize(c.node_class->base.size());
    tops_.resize(columns_.blocks());
    upper_keys(columns_.rows(), c.numbers, base, columns_.blocks(), keys_.data(), tops_.data());
    for (size_t i = 0; i < trees.size(); ++i) {
        trees[i].resize(c.node_class->group_size[i]);
        trees[i].clear_keys();
    }
    for (Row row = 0; row < c.node_class->group.size(); ++row) {
        if (c.node_class->base[row] != 0) trees[c.node_class->group[row]].keys()[c.node_class->place[row]] = keys_[row];
    }
    for (auto& tree : trees) tree.keys_filled();
}

// The node class's own, or a copy without the rows that are short of a resource that has no column in the kernel, and
// with the most that cores and devices may add.
const uint16_t* Decider::base_of(const Class& c, const View& ledger) {
    bool copied = false;
    for (const auto& want : c.wants) {
        if (is_column(want.id) || want.amount <= 0) continue;
        if (!copied) base_ = c.node_class->base;
        copied = true;
        if (ledger.column(want.id) == nullptr) {  // no node has it, so nothing is kept of it
            std::fill(base_.begin(), base_.end(), uint16_t{0});
            continue;
        }
        const float asked = std::nextafter(static_cast<float>(want.amount), 0.0f);
        strike_short(columns_.free_of(want.id, ledger).data(), asked, columns_.blocks(), base_.data());
    }
    const int64_t of_parts = (c.cores ? terms_.cores_weight : 0) + (c.devices ? terms_.devices_weight : 0);
    if (of_parts > 0) {
        if (!copied) base_ = c.node_class->base;
        copied = true;
        const auto most = static_cast<uint16_t>(of_parts * kMaxScore);
        for (uint16_t& base : base_) base = base == 0 ? base : static_cast<uint16_t>(base + most);
    }
    return copied ? base_.data() : c.node_class->base.data();
}

// The row's key, exactly.
void Decider::set(Class& c, Row row, Key key, std::vector<MaxTree>& trees) const {
    c.settled[row / 64] |= uint64_t{1} << row % 64;
    if (c.node_class->group.empty()) {
        trees[0].set(row, key);
    } else {
        trees[c.node_class->group[row]].set(c.node_class->place[row], key);
    }
}

Key Decider::exact(const Class& c, const View& ledger, Row row) const {
    if (c.node_class->base[row] == 0) return 0;
    for (const auto& want : c.wants) {
        if (want.amount > ledger.free(row, want.id)) return 0;
    }
    if (terms_.ports && !c.spec->ports.empty() && ledger.at(row).ports.clashes(c.spec->ports)) return 0;
    if (c.cores && !plugins::cores_open(*c.spec, ledger, row)) return 0;
    if (c.devices && !plugins::devices_open(*c.spec, ledger, row)) return 0;
    return worth(c, ledger, row);
}

// The key whether or not the pod fits by what is free.
Key Decider::worth(const Class& c, const View& ledger, Row row) const {
    const uint16_t base = c.node_class->base[row];
    if (base == 0) return 0;
    const RowUse real = use_of(ledger.column(model::kCpu), ledger.column(model::kMemory), row);
    int64_t score = base;
    if (terms_.least_weight != 0) {
        const RowUse scored{real.cpu_allocatable, ledger.scoring_cpu()[row], real.memory_allocatable,
                            ledger.scoring_memory()[row]};
        score += terms_.least_weight * least_allocated_points(scored, c.scored_cpu, c.scored_memory);
    }
    if (c.numbers.balanced_weight != 0) {
        score += c.numbers.balanced_weight * balanced_points(real, c.cpu, c.memory);
    }
    if (c.cores && terms_.cores_weight > 0) score += terms_.cores_weight * plugins::core_points(*c.spec, ledger, row);
    if (c.devices) {
        for (const auto& [scorer, weight] : terms_.device_scorers) {
            score += weight * scorer->points(*c.spec, ledger, row);
        }
    }
    return static_cast<Key>(score) << kRankBits | columns_.reversed_rank(row);
}

// Lowers the group's top until it is exact. A key that was set since the last fill is: every change of its row sets it.
Key Decider::true_top(Class& c, const View& ledger, std::vector<MaxTree>& trees, size_t group) {
    while (true) {
        const Key top = trees[group].top();
        if (top == 0) return 0;
        const Row row = columns_.row_of(top);
        if (c.is_settled(row)) return top;
        const Key key = exact(c, ledger, row);
        set(c, row, key, trees);
        if (key == top) return top;
        ++counts_.lowered;
    }
}

// Within a group the highest key is best. Between groups what the scaled scorers give is added: it depends on the
// highest raw values among the groups that have a feasible row.
Key Decider::best(Class& c, const View& ledger, std::vector<MaxTree>& trees) {
    if (trees.size() == 1) return true_top(c, ledger, trees, 0);
    tops_.resize(trees.size());
    std::vector<int64_t> highest(terms_.scaled.size(), std::numeric_limits<int64_t>::min());
    for (size_t i = 0; i < trees.size(); ++i) {
        tops_[i] = true_top(c, ledger, trees, i);
        if (tops_[i] == 0) continue;
        for (size_t term = 0; term < highest.size(); ++term) {
            highest[term] = std::max(highest[term], c.node_class->groups[i][term]);
        }
    }
    std::pair<int64_t, Key> best_total{-1, 0};
    Key best_key = 0;
    for (size_t i = 0; i < trees.size(); ++i) {
        if (tops_[i] == 0) continue;
        int64_t total = tops_[i] >> kRankBits;
        for (size_t term = 0; term < highest.size(); ++term) {
            const auto& [scorer, weight] = terms_.scaled[term];
            total += weight *
                     scaled(c.node_class->groups[i][term], highest[term], scorer->scaling() == Scaling::ByMaxReversed);
        }
        const std::pair<int64_t, Key> here{total, tops_[i] & kMaxRank};
        if (here <= best_total) continue;
        best_total = here;
        best_key = tops_[i];
    }
    return best_key;
}

}  // namespace berth::sched::fast
