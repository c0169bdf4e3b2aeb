#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "sched/decide.h"

namespace berth::sched {

// Pods that wait for a node which preemption is emptying for them. Asks of no higher priority yield to them there.
// A pod whose room is already held by a reservation does not belong here.
class Nominated {
public:
    void put(std::shared_ptr<const model::Pod> pod, std::string_view node);
    void remove(std::string_view uid);
    bool empty() const { return node_of_.empty(); }
    bool contains(std::string_view uid) const { return node_of_.contains(uid); }

    // Those on the node that an ask must yield to: of its priority or above, other than itself; by uid.
    std::vector<std::shared_ptr<const model::Pod>> before(const Ask& ask, std::string_view node) const;
    // Those on the node that must yield to the ask: of lower priority. Their nomination ends when it preempts there.
    std::vector<std::shared_ptr<const model::Pod>> behind(const Ask& ask, std::string_view node) const;
    // Nodes with nominated pods, by name.
    std::vector<std::string> nodes() const;

private:
    base::StringMap<std::vector<std::shared_ptr<const model::Pod>>> by_node_;
    base::StringMap<std::string> node_of_;
};

// While it lives, these pods count as placed on the row.
class Overlay {
public:
    Overlay(Ledger& ledger, Row row, const std::vector<std::shared_ptr<const model::Pod>>& pods);
    ~Overlay();
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;
    bool empty() const { return uids_.empty(); }

private:
    Ledger& ledger_;
    std::vector<std::string> uids_;
};

// A row must pass twice where pods are nominated: with them, and, since they may yet go elsewhere, without them.
Strikes filter(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated, Row begin, Row end);

// Whether nominated pods close a row that would be open to the ask. If not, they change nothing for it.
bool yields(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated);

}  // namespace berth::sched
