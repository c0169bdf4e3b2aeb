#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/functional/function_ref.h>

#include "sched/ask.h"
#include "sched/fast/kernel.h"

namespace berth::sched::fast {

// What a row with credit is worth to a pod.
struct CreditPlace {
    int64_t supplied = 0;  // the reservation score, which outranks the key
    Key key = 0;
    Row row = ledger::kNoRow;
    bool open = false;
    bool odd = false;  // nothing is supplied, yet the row is open or closed only because of the reservations
    auto operator<=>(const CreditPlace&) const = default;
};

// Pods that are the same to every reservation (but for those that name a pod), and the rows where they have credit, the
// best last. Follows the ledger by its change log.
class Side {
public:
    using Judge = absl::FunctionRef<CreditPlace(const Ask& ask, Row row)>;

    // `pod` is one of them. Its name and uid are forgotten.
    explicit Side(const model::Pod& pod);
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    bool speaks_for(const model::Pod& pod) const;
    // `judge` says what a row with credit is worth now; all are judged anew when the nodes changed.
    void follow(const Ledger& ledger, Judge judge);

    const std::string& fault() const { return ask_.fault; }
    bool must_draw() const { return ask_.wishes.affinity.has_value(); }
    bool empty() const { return places_.empty(); }
    bool any_open() const { return !open_.empty(); }
    size_t odd() const { return odd_; }
    // The best open place, if any supplies something.
    const CreditPlace* best() const;
    // Whether no other place supplies as much.
    bool alone_best() const;
    // Whether a reservation that is claimed by this very pod is among those that all others must leave alone.
    bool claims(const model::Pod& pod, const Ledger& ledger) const;

    uint64_t last_use = 0;

private:
    void start_over(const Ledger& ledger, Judge judge);
    void look_at(const Ledger& ledger, Row row, Judge judge);
    void forget(Row row);

    model::Pod pod_;
    Ask ask_;  // its credits are those of the row that is looked at
    absl::flat_hash_map<Row, CreditPlace> places_;
    absl::btree_set<CreditPlace> open_;
    absl::flat_hash_set<Row> claimed_;
    size_t odd_ = 0;
    uint64_t sequence_ = 0;
    uint64_t epoch_ = UINT64_MAX;
};

// Whether any reservation might be for the pod.
bool may_match(const model::Pod& pod, const Ledger& ledger);
// Whether a reservation names this pod.
bool named_by_reservation(const model::Pod& pod, const Ledger& ledger);

}  // namespace berth::sched::fast
