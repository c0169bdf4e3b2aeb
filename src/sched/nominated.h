#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "sched/decide.h"

namespace berth::sched {

// Pods that wait for a node which preemption is emptying for them. There asks of no higher priority yield to them, and
// every reservation: it preempts nobody, so its priority is only its place in the queue. A pod that draws from a
// reservation of the node waits for room that is partly that reservation's, which no other can hold for it: everybody
// yields to it, and of two of these the one that came later, at any priority: others went for the first. A pod whose
// room is already held by a reservation does not belong here.
class Nominated {
public:
    void put(std::shared_ptr<const model::Pod> pod, std::string_view node);
    void remove(std::string_view uid);
    bool empty() const { return waits_.empty(); }
    bool contains(std::string_view uid) const { return waits_.contains(uid); }

    // Those on the row that an ask must yield to, other than itself; by uid.
    std::vector<std::shared_ptr<const model::Pod>> before(const Ask& ask, const Ledger& ledger, Row row) const;
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
    };
    base::StringMap<Wait> waits_;  // by uid
    uint64_t turns_ = 0;
};

// While it lives, these pods count as placed on the row, and draw from its reservations what they would draw.
class Overlay {
public:
    Overlay(Ledger& ledger, Row row, const std::vector<std::shared_ptr<const model::Pod>>& pods);
    ~Overlay();
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;
    bool empty() const { return uids_.empty(); }
    // Whether any of them draws.
    bool draws() const { return draws_; }

private:
    Ledger& ledger_;
    std::vector<std::string> uids_;
    bool draws_ = false;
};

// A row must pass twice where pods are nominated: with them, and, since they may yet go elsewhere, without them.
Strikes filter(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated, Row begin, Row end);

// Whether nominated pods close a row that would be open to the ask, or draw there from what it would draw from. If not,
// they change nothing for it.
bool yields(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated);

}  // namespace berth::sched
