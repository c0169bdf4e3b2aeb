#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "sched/decide.h"

namespace berth::sched {

// What a pod is to have on its node when its victims have gone.
struct Promised {
    ledger::Charges charges;
    ledger::WhichPtr which;  // of the node's parts
};
using PromisedPtr = std::shared_ptr<const Promised>;

// Nominated pods of a row, and who is about to leave it for them, as far as reservations, cores or devices make that
// matter.
struct Yielding {
    struct Place {
        std::shared_ptr<const model::Pod> pod;
        PromisedPtr promised;  // nullptr: it is not known what it draws
    };
    std::vector<Place> pods;
    std::vector<ledger::PodIndex> leaving;
    bool empty() const { return pods.empty(); }
};

// Pods that wait for a node which preemption is emptying for them. There asks of no higher priority yield to them, and
// every reservation: it preempts nobody, so its priority is only its place in the queue.
//
// A pod that draws from a reservation of the node waits for room that is partly that reservation's, which no other can
// hold for it. It is promised what it will draw there once its victims have gone, and everybody yields to that, at any
// priority: nothing is decided on the node that does not fit beside all that is promised there. Sums only shrink when
// somebody goes, so whoever was promised a place has it when the last of those who leave has left, whoever comes first.
// The same goes for a pod that wants cores or devices of its own: it is promised which, and of those nobody else is
// given any (kept_parts.h). A pod whose room is already held by a reservation does not belong here.
class Nominated {
public:
    // The victims, by uid, if they are known, go for it; `promised` is what it draws when they have.
    void put(std::shared_ptr<const model::Pod> pod, std::string_view node, std::vector<std::string> victims = {},
             PromisedPtr promised = nullptr);
    void remove(std::string_view uid);
    bool empty() const { return waits_.empty(); }
    bool contains(std::string_view uid) const { return waits_.contains(uid); }

    // Who was to go for it when it was nominated, by uid.
    std::vector<std::string> victims(std::string_view uid) const;

    // Those on the row that an ask must yield to, other than itself; by uid.
    Yielding before(const Ask& ask, const View& ledger, Row row) const;
    // Those on the row that must yield to the ask. Their nomination ends when it preempts there.
    std::vector<std::shared_ptr<const model::Pod>> behind(const Ask& ask, const View& ledger, Row row) const;
    // Whether it was settled what the pod has there.
    bool promised(const Ask& ask, const View& ledger, Row row) const;
    // The ask as far as the row is concerned, where it draws what it was promised there; the same ask, if that is
    // nothing, or not there for it any more.
    Ask as_promised(const Ask& ask, const View& ledger, Row row) const;
    // Nodes with nominated pods, by name.
    std::vector<std::string> nodes() const;

private:
    struct Wait {
        std::string node;
        std::vector<std::string> victims;
        PromisedPtr promised;
    };
    bool yields(const Ask& ask, const View& ledger, Row row, const model::Pod& to) const;

    base::StringMap<std::vector<std::shared_ptr<const model::Pod>>> by_node_;
    base::StringMap<Wait> waits_;  // by uid
};

// While it lives, the row is as it will be: these pods are there with what they draw, and those who leave for them are
// gone.
class Overlay {
public:
    Overlay(Ledger& ledger, Row row, const Yielding& those);
    ~Overlay();
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;
    // Those of them who have some of the row's parts, and which.
    std::vector<Yielding::Place> parts() const;

private:
    Ledger& ledger_;
    std::vector<ledger::PodIndex> gone_;
    std::vector<std::shared_ptr<const model::Pod>> placed_;
};

// A row must pass twice where pods are nominated: as it will be with them, and, since they may yet go elsewhere or come
// later, as it is. Whoever draws must have both times what it is charged.
Strikes filter(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated, Row begin, Row end);

// What the ask is charged on a row that passes so, and which of the row's parts it gets with these charges.
ledger::Charges charges_beside(const Ask& ask, Ledger& ledger, const Nominated& nominated, Row row);
ledger::WhichPtr which_beside(const Ask& ask, Ledger& ledger, const Nominated& nominated, Row row,
                              const ledger::Charges& charges);

// What a pod can be promised on the row when those that leave for it are out of it.
PromisedPtr promise_beside(const Ask& ask, Ledger& ledger, const Nominated& nominated, Row row);

// Whether the pod only has to wait for others to leave the row until it has what it was promised there.
bool keeps_its_place(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated, Row row);

// Whether nominated pods close a row that would be open to the ask, or wait where it would draw. If not, they change
// nothing for it.
bool yields(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated);

}  // namespace berth::sched
