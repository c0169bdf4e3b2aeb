#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "sched/plugin_id.h"

namespace berth::sched {

using ledger::Row;

// Why a filter refused a row. Unresolvable: no eviction could change it, so the row is no candidate for preemption.
struct Refusal {
    PluginId plugin;
    std::vector<std::string> reasons;
    bool unresolvable = false;
    bool operator==(const Refusal&) const = default;
};

// The rows still open to an ask, and for each closed one the refusal of the first filter that closed it.
// The scope is [begin, end): the whole table, or a single row when preemption asks "and without these pods?".
class Strikes {
public:
    using RefusalId = uint16_t;

    Strikes(const ledger::View& ledger, Row begin, Row end);
    // Over the whole table, with these rows open.
    explicit Strikes(std::vector<uint8_t> open);

    // Calls f(row) for each row that is still open; f may strike it.
    template <class F>
    void each_open(F f) const {
        for (Row row = begin_; row < end_; ++row) {
            if (open_[row - begin_]) f(row);
        }
    }
    // The same refusal always has the same id, so a filter makes it once, before its loop.
    RefusalId refusal(PluginId plugin, std::vector<std::string> reasons, bool unresolvable);
    void strike(Row row, RefusalId id) {
        open_[row - begin_] = 0;
        why_[row - begin_] = id;
    }
    // What a plugin says before any row is looked at: it closes every row, struck ones too, and is told once for all of
    // them. The first such refusal stands.
    void refuse(RefusalId id);
    // Takes over what was found out about a row elsewhere: nullptr when it is open.
    void overrule(Row row, const Refusal* refusal);

    bool open(Row row) const { return open_[row - begin_] != 0; }
    bool any_open() const { return std::find(open_.begin(), open_.end(), 1) != open_.end(); }
    std::vector<Row> open_rows() const;
    // nullptr when the row is open or empty.
    const Refusal* why(Row row) const;
    // The refusal that was told once for all rows, if any.
    const Refusal* refused() const { return refused_ == kNoRefusal ? nullptr : &refusals_[refused_]; }
    // Calls f(refusal, rows) for each refusal that closed so many rows.
    template <class F>
    void each_refusal(F f) const {
        std::vector<size_t> rows(refusals_.size());
        for (const RefusalId id : why_) {
            if (id != kNoRefusal) ++rows[id];
        }
        for (size_t id = 0; id < rows.size(); ++id) {
            if (rows[id] > 0) f(refusals_[id], rows[id]);
        }
    }
    Row begin() const { return begin_; }
    Row end() const { return end_; }

private:
    static constexpr RefusalId kNoRefusal = UINT16_MAX;
    Row begin_;
    Row end_;
    std::vector<uint8_t> open_;
    std::vector<RefusalId> why_;
    std::vector<Refusal> refusals_;
    RefusalId refused_ = kNoRefusal;
};

}  // namespace berth::sched
