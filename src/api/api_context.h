#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/identity.h"
#include "base/clock.h"
#include "base/random.h"
#include "model/kinds/kinds.h"
#include "store/store.h"

namespace berth::api {

struct AuditEvent;
class ServiceRanges;

// Names, uids and other numbers that need only be unlike one another. Any thread.
class Ids {
public:
    explicit Ids(uint64_t seed) : random_(seed) {}
    std::string uid();
    // Five characters that spell no words, for generateName.
    std::string suffix();
    uint64_t below(uint64_t n);

private:
    std::mutex mutex_;
    base::Random random_;
};

// What is beside the server in this process, and how it takes what nobody acts on.
struct Surroundings {
    bool simulated = false;        // the controllers and nodes of `berth up`; else whoever connects
    bool strict_policies = false;  // policy that would only be stored is refused
    bool shares = false;           // an arbitrator keeps Consumers
    bool share_gates = false;      // new pods wait until it lets them in, but for these namespaces
    std::vector<std::string> ungated_namespaces;
    std::vector<std::string> absent;  // controllers that were left out
};

// What the handlers work with. Any thread.
class ApiContext {
public:
    ApiContext(store::Store& store, const base::Clock& clock, uint64_t seed);
    ~ApiContext();

    store::Store& store;
    const base::Clock& clock;
    Ids ids;
    const std::unique_ptr<ServiceRanges> services;
    Surroundings here = {};  // said before the first request
    std::function<std::optional<Identity>(std::string_view)> identify_token = [](std::string_view) {
        return std::optional<Identity>{};
    };
    // Whether what somebody was known by still counts.
    std::function<bool(const Identity&)> still_welcome = [](const Identity&) { return true; };
    // Is told of writes and refusals; empty when nobody wants to know. Any thread, and must be brief.
    std::function<void(AuditEvent&&)> audit = {};

    std::shared_ptr<const model::Kinds> kinds() const;
    void publish(std::shared_ptr<const model::Kinds> kinds);

    // The wall clock as objects write it.
    std::string now_text() const;

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const model::Kinds> kinds_;
};

}  // namespace berth::api
