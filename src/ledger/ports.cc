#include "ledger/ports.h"

#include <algorithm>

namespace berth::ledger {

namespace {

constexpr std::string_view kAny = "0.0.0.0";

}  // namespace

bool covers(const model::HostPort& taken, const model::HostPort& port) {
    return taken.port == port.port && taken.protocol == port.protocol && (taken.ip == port.ip || taken.ip == kAny);
}

bool clash(const model::HostPort& a, const model::HostPort& b) {
    return covers(a, b) || covers(b, a);
}

void Ports::add(const std::vector<model::HostPort>& ports) {
    held_.insert(held_.end(), ports.begin(), ports.end());
}

void Ports::remove(const std::vector<model::HostPort>& ports) {
    for (const auto& port : ports) {
        const auto found = std::find(held_.begin(), held_.end(), port);
        if (found != held_.end()) held_.erase(found);
    }
}

bool Ports::clashes(const std::vector<model::HostPort>& wanted) const {
    return std::any_of(wanted.begin(), wanted.end(), [&](const auto& port) {
        return std::any_of(held_.begin(), held_.end(), [&](const auto& held) { return clash(port, held); });
    });
}

bool Ports::clashes(const std::vector<model::HostPort>& wanted, std::vector<model::HostPort> left_out) const {
    Ports rest = *this;
    rest.remove(left_out);
    return rest.clashes(wanted);
}

}  // namespace berth::ledger
