#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/functional/function_ref.h>

#include <optional>
#include <vector>

#include "sched/ask.h"
#include "sched/fast/kernel.h"
#include "sched/fast/row_map.h"

namespace berth::sched::fast {

// What a row with credit is worth to a pod.
struct CreditPlace {
    int64_t supplied = 0;  // the reservation score, which outranks the key
    Key key = 0;
    bool open = false;
    bool anomalous = false;  // nothing is supplied, yet the row is open or closed only because of the reservations
};

// Pods that are the same to every reservation (but for those that name a pod), and the rows where they have credit, by
// worth. Follows the ledger by its change log.
class OwnerClass {
public:
    using Judge = absl::FunctionRef<CreditPlace(const Ask& ask, const Credit& credit, Row row)>;
    struct Rank {
        int64_t supplied = 0;
        Key key = 0;
        Row row = ledger::kNoRow;
        auto operator<=>(const Rank&) const = default;
    };

    // `pod` is one of them. Its name and uid are forgotten.
    explicit OwnerClass(const model::Pod& pod);
    OwnerClass(const OwnerClass&) = delete;
    OwnerClass& operator=(const OwnerClass&) = delete;

    bool speaks_for(const model::Pod& pod) const;
    // `judge` says what a row with credit is worth now; all are judged anew when the nodes changed.
    void follow(const View& ledger, Judge judge);

    const std::string& fault() const { return ask_.fault; }
    bool must_draw() const { return ask_.wishes.affinity.has_value(); }
    bool empty() const { return credits_ == 0; }
    bool any_open() const { return open_ != 0; }
    size_t anomalous() const { return anomalous_; }
    // The best open place, if any supplies something.
    std::optional<Rank> best() const { return ranked_.empty() ? std::nullopt : std::optional(ranked_.front()); }
    // Whether no other place supplies as much.
    bool alone_best();
    // The only reservation on a row that is for these pods; kNone where there are several.
    ReservationIndex only_one(Row row) const;
    // Whether a reservation that is claimed by this very pod is among those that all others must leave alone.
    bool claims(const model::Pod& pod, const View& ledger) const;

    uint64_t last_use = 0;

private:
    struct Known {
        uint64_t reservations_epoch = 0;  // of the row, that `suiting` is of
        Few suiting;  // its reservations that are for these pods, whether or not they may draw from them now
        CreditPlace place;
        bool credit = false;   // one of `suiting` is open; only then is `place` of any meaning
        bool claimed = false;  // the row has a claimed reservation
    };

    void start_over(const View& ledger, Judge judge);
    void look_at(const View& ledger, Row row, Judge judge);
    Known* meet(const View& ledger, Row row, Known* known);
    void note_claims(const View& ledger, Row row);
    void leave(const Known& known);
    bool stands(const Rank& standing) const;
    void put(const Rank& standing);
    void take_best();
    void tidy();

    model::Pod pod_;
    Ask ask_;
    RowMap<Known> known_;
    size_t known_rows_ = 0;  // for which `suiting` is not empty
    // A heap, the best first, of the places that supply something. What a place was worth before stays in it until it
    // comes to the top, or until most of it is of that kind.
    std::vector<Rank> ranked_;
    size_t supplying_ = 0;
    absl::flat_hash_set<Row> claimed_;
    size_t credits_ = 0;
    size_t open_ = 0;
    size_t anomalous_ = 0;
    uint64_t sequence_ = 0;
    uint64_t epoch_ = UINT64_MAX;
};

// Whether any reservation might be for the pod.
bool may_match(const model::Pod& pod, const View& ledger);
// Whether a reservation names this pod.
bool named_by_reservation(const model::Pod& pod, const View& ledger);

}  // namespace berth::sched::fast
