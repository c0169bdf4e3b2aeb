#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/write.h"
#include "run/agenda.h"
#include "run/driver.h"

namespace berth::run {

inline constexpr const char* kLeases = "coordination.k8s.io/leases";
inline constexpr const char* kPoolLeases = "ironcore-machinepool-lease";  // their namespace
// A pool whose lease nobody has renewed for so long, by the clock of who looks, is not ready.
inline constexpr base::Duration kPoolSilent = std::chrono::seconds(50);

// The heartbeat of a pool, as IronCore has it: a Lease that its poollet renews every 10 s.
class PoolLease {
public:
    explicit PoolLease(std::string pool) : pool_(std::move(pool)) {}

    // What is to be written now; the next one when that was answered.
    std::optional<model::Write> next(const Moment& now);
    // The code of the answer; 0: there was none.
    void answered(int code, base::Instant now);
    // When the next one is due; nothing as long as one is under way.
    std::optional<base::Instant> at() const { return under_way_ ? std::nullopt : std::optional(at_); }

private:
    enum class Step : uint8_t { Renew, Make, MakeNamespace };
    const std::string pool_;
    Step step_ = Step::Renew;
    bool under_way_ = false;
    bool told_ = false;
    base::Instant at_;
};

// Which pools have fallen silent. Times of others are not compared: a lease counts from when its change was heard.
class PoolPulses {
public:
    void heard(const std::string& pool, base::Instant now) {
        last_[pool] = now;
        due_.at(pool, now + kPoolSilent);
    }
    void gone(const std::string& pool) { last_.erase(pool); }
    // Those that have become so by now, each told once until it is heard again.
    std::vector<std::string> silent(base::Instant now);
    std::optional<base::Instant> next() const { return due_.next(); }

private:
    std::map<std::string, base::Instant> last_;
    Agenda due_;
};

}  // namespace berth::run
