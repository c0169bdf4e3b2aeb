#pragma once

#include <vector>

#include "model/pod.h"

namespace berth::ledger {

// Whether two host ports cannot be held on one node: same port and protocol, and equal addresses or one of them
// 0.0.0.0.
bool clash(const model::HostPort& a, const model::HostPort& b);
// Whether who holds `taken` has the whole of `port`, e.g. 0.0.0.0:80 has 127.0.0.1:80.
bool covers(const model::HostPort& taken, const model::HostPort& port);

// The host ports held on one node, with multiplicity (others may have placed pods that clash).
class Ports {
public:
    void add(const std::vector<model::HostPort>& ports);
    void remove(const std::vector<model::HostPort>& ports);
    bool clashes(const std::vector<model::HostPort>& wanted) const;
    // The same with some held ports left out, e.g. those of a matched reservation.
    bool clashes(const std::vector<model::HostPort>& wanted, std::vector<model::HostPort> left_out) const;
    const std::vector<model::HostPort>& held() const { return held_; }

private:
    std::vector<model::HostPort> held_;
};

}  // namespace berth::ledger
