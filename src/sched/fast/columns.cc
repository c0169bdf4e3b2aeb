#include "sched/fast/columns.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace berth::sched::fast {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float rounded_up(int64_t amount) {
    const auto near = static_cast<float>(amount);
    return std::fabs(near) < 16777216.0f ? near : std::nextafter(near, kInfinity);
}

float free_of_row(const ledger::Column* column, Row row) {
    return column ? rounded_up(column->allocatable[row] - column->used[row]) : 0.0f;
}

}  // namespace

void Columns::follow(const View& ledger) {
    const auto& changes = ledger.changes();
    absl::erase_if(others_, [&](const auto& entry) { return ledger.column({entry.first}) == nullptr; });
    if (changes.member_epoch() != member_epoch_) {
        beyond_ = ledger.rows() > kMaxRank;
        if (beyond_) return;
        resize(ledger.rows());
        rank_names(ledger);
        refresh_all(ledger);
        member_epoch_ = changes.member_epoch();
        sequence_ = changes.sequence();
    } else if (changes.remembers(looked_)) {
        changes.replay(looked_, [&](Row row) { look_at(ledger, row); });
    } else {
        for (Row row = 0; row < ledger.rows(); ++row) look_at(ledger, row);
    }
    looked_ = changes.sequence();
}

void Columns::bring_up(const View& ledger) {
    const auto& changes = ledger.changes();
    if (changes.remembers(sequence_) && changes.sequence() - sequence_ < ledger.rows()) {
        changes.replay(sequence_, [&](Row row) { refresh(ledger, row); });
    } else {
        refresh_all(ledger);
    }
    sequence_ = changes.sequence();
}

void Columns::look_at(const View& ledger, Row row) {
    const auto* cpu = ledger.column(model::kCpu);
    const auto* memory = ledger.column(model::kMemory);
    const int64_t cpus = cpu ? cpu->allocatable[row] : 0;
    const int64_t bytes = memory ? memory->allocatable[row] : 0;
    if (cpus < 0 || bytes < 0) beyond_ = true;
    if (cpus <= 0 || bytes <= 0) return;
    const int64_t any = cpu->used[row] | memory->used[row] | ledger.scoring_cpu()[row] | ledger.scoring_memory()[row];
    if (any < 0) beyond_ = true;
}

void Columns::resize(size_t rows) {
    const size_t padded = (rows + kBlock - 1) / kBlock * kBlock;
    for (auto* column :
         {&cpu_used_, &memory_used_, &cpu_scored_, &memory_scored_, &cpu_per_, &memory_per_, &free_pods_})
        column->resize(padded);
    for (auto& [id, column] : others_) column.resize(padded);
    reversed_rank_.resize(padded);
}

void Columns::rank_names(const View& ledger) {
    row_at_rank_.clear();
    for (Row row = 0; row < ledger.rows(); ++row) {
        if (ledger.alive(row)) row_at_rank_.push_back(row);
    }
    std::sort(row_at_rank_.begin(), row_at_rank_.end(), [&](Row a, Row b) { return ledger.name(a) < ledger.name(b); });
    for (uint32_t rank = 0; rank < row_at_rank_.size(); ++rank) reversed_rank_[row_at_rank_[rank]] = kMaxRank - rank;
}

void Columns::refresh_all(const View& ledger) {
    anomalous_.clear();
    for (Row row = 0; row < ledger.rows(); ++row) refresh(ledger, row);
}

void Columns::refresh(const View& ledger, Row row) {
    const auto* cpu = ledger.column(model::kCpu);
    const auto* memory = ledger.column(model::kMemory);
    const int64_t cpus = cpu ? cpu->allocatable[row] : 0;
    const int64_t bytes = memory ? memory->allocatable[row] : 0;
    for (auto& [id, column] : others_) column[row] = free_of_row(ledger.column({id}), row);
    const auto* pods = ledger.column(model::kPods);
    constexpr int64_t kMany = 1 << 20;
    free_pods_[row] =
        pods ? static_cast<float>(std::clamp<int64_t>(pods->allocatable[row] - pods->used[row], -kMany, kMany)) : 0.0f;
    look_at(ledger, row);
    if (cpus <= 0 || bytes <= 0) {
        cpu_used_[row] = memory_used_[row] = kInfinity;
        cpu_per_[row] = memory_per_[row] = 1.0f;
        if (ledger.alive(row)) anomalous_.insert(row);
        return;
    }
    if (!anomalous_.empty()) anomalous_.erase(row);
    const auto scored_cpu = ledger.scoring_cpu()[row];
    const auto scored_memory = ledger.scoring_memory()[row];
    cpu_used_[row] = static_cast<float>(cpu->used[row]);
    memory_used_[row] = static_cast<float>(memory->used[row]);
    cpu_scored_[row] = static_cast<float>(scored_cpu);
    memory_scored_[row] = static_cast<float>(scored_memory);
    cpu_per_[row] = static_cast<float>(100.0 / static_cast<double>(cpus));
    memory_per_[row] = static_cast<float>(100.0 / static_cast<double>(bytes));
}

RowColumns Columns::rows() const {
    return {cpu_used_.data(), memory_used_.data(), cpu_scored_.data(), memory_scored_.data(),
            cpu_per_.data(),  memory_per_.data(),  free_pods_.data(),  reversed_rank_.data()};
}

const std::vector<float>& Columns::free_of(model::ResourceId id, const View& ledger) {
    const auto [found, fresh] = others_.try_emplace(id.index);
    if (fresh) {
        found->second.resize(cpu_used_.size());
        for (Row row = 0; row < ledger.rows(); ++row) found->second[row] = free_of_row(ledger.column(id), row);
    }
    return found->second;
}

}  // namespace berth::sched::fast
