#include "sched/strikes.h"

#include <algorithm>

#include "base/check.h"

namespace berth::sched {

Strikes::Strikes(const ledger::View& ledger, Row begin, Row end)
    : begin_(begin), end_(end), open_(end - begin), why_(end - begin, kNoRefusal) {
    for (Row row = begin; row < end; ++row) open_[row - begin] = ledger.alive(row);
}

Strikes::Strikes(std::vector<uint8_t> open)
    : begin_(0), end_(static_cast<Row>(open.size())), open_(std::move(open)), why_(open_.size(), kNoRefusal) {}

Strikes::RefusalId Strikes::refusal(PluginId plugin, std::vector<std::string> reasons, bool unresolvable) {
    Refusal made{plugin, std::move(reasons), unresolvable};
    const auto found = std::find(refusals_.begin(), refusals_.end(), made);
    if (found != refusals_.end()) return static_cast<RefusalId>(found - refusals_.begin());
    CHECK(refusals_.size() < kNoRefusal);
    refusals_.push_back(std::move(made));
    return static_cast<RefusalId>(refusals_.size() - 1);
}

void Strikes::refuse(RefusalId id) {
    if (refused_ != kNoRefusal) return;
    refused_ = id;
    for (size_t i = 0; i < open_.size(); ++i) {
        if (open_[i] || why_[i] != kNoRefusal) why_[i] = id;
        open_[i] = 0;
    }
}

void Strikes::overrule(Row row, const Refusal* found) {
    open_[row - begin_] = found == nullptr;
    why_[row - begin_] = found ? refusal(found->plugin, found->reasons, found->unresolvable) : kNoRefusal;
}

std::vector<Row> Strikes::open_rows() const {
    std::vector<Row> rows;
    each_open([&](Row row) { rows.push_back(row); });
    return rows;
}

const Refusal* Strikes::why(Row row) const {
    const RefusalId id = why_[row - begin_];
    return id == kNoRefusal ? nullptr : &refusals_[id];
}

}  // namespace berth::sched
