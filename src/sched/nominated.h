#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "sched/decide.h"

namespace berth::sched {

inline constexpr std::string_view kAwaited = "node(s) had a reservation that preempting pods wait for";

// Nominated pods of a row, and who is about to leave it for them, as far as it matters to what they draw.
struct Yielding {
    std::vector<std::shared_ptr<const model::Pod>> pods;
    std::vector<ledger::PodIndex> leaving;
    bool empty() const { return pods.empty(); }
};

// Pods that wait for a node which preemption is emptying for them. There asks of no higher priority yield to them, and
// every reservation: it preempts nobody, so its priority is only its place in the queue. A pod that draws from a
// reservation of the node waits for room that is partly that reservation's, which no other can hold for it: everybody
// yields to it, but for those who were nominated there before it, at any priority: others went for them. A pod whose
// room is already held by a reservation does not belong here.
class Nominated {
public:
    // The victims, by uid, if they are known, go for it.
    void put(std::shared_ptr<const model::Pod> pod, std::string_view node, std::vector<std::string> victims = {});
    void remove(std::string_view uid);
    bool empty() const { return waits_.empty(); }
    bool contains(std::string_view uid) const { return waits_.contains(uid); }

    // Who was to go for it when it was nominated, by uid.
    std::vector<std::string> victims(std::string_view uid) const;

    // Those on the row that an ask must yield to, other than itself; by uid.
    Yielding before(const Ask& ask, const Ledger& ledger, Row row) const;
    // Those on the row that must yield to the ask. Their nomination ends when it preempts there.
    std::vector<std::shared_ptr<const model::Pod>> behind(const Ask& ask, const Ledger& ledger, Row row) const;
    // Nodes with nominated pods, by name.
    std::vector<std::string> nodes() const;

private:
    std::vector<std::shared_ptr<const model::Pod>> those(const Ask& ask, const Ledger& ledger, Row row,
                                                         bool yields) const;

    base::StringMap<std::vector<std::shared_ptr<const model::Pod>>> by_node_;
    struct Wait {
        std::string node;
        uint64_t turn = 0;  // who was nominated first
        std::vector<std::string> victims;
    };
    base::StringMap<Wait> waits_;  // by uid
    uint64_t turns_ = 0;
};

// What is missing where somebody draws: amounts, and how often a reservation that must supply cannot.
struct Lack {
    model::Resources amounts;
    size_t refusals = 0;
    bool exceeds(const Lack& other) const;
};

// While it lives, these pods count as placed on the row, and draw from its reservations what they will draw there once
// those who leave for them are gone.
class Overlay {
public:
    Overlay(Ledger& ledger, Row row, const Yielding& pods);
    // The same after one that is charged so.
    Overlay(Ledger& ledger, Row row, const model::Pod& first, const ledger::Charges& charges, const Yielding& then);
    ~Overlay();
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;
    // What those who draw will lack there, added up.
    const Lack& lack() const { return lack_; }

private:
    void put(const model::Pod& pod, Row row, const ledger::Charges& charges);
    void put(const Yielding& pods, Row row);

    Ledger& ledger_;
    std::vector<std::string> uids_;
    Lack lack_;
};

// A row must pass twice where pods are nominated: with them, and, since they may yet go elsewhere, without them. And it
// is closed while the ask would take what one of them is to draw.
Strikes filter(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated, Row begin, Row end);

// Whether that is all that closes the row: the ask has its turn there when the other is bound, or is nominated no more.
bool waits_its_turn(const Strikes& strikes, Row row);

// Whether nominated pods close a row that would be open to the ask, or wait where it would draw. If not, they change
// nothing for it.
bool yields(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated);

}  // namespace berth::sched
