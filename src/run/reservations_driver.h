#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/json_fwd.h"
#include "base/metrics.h"
#include "base/string_map.h"
#include "control/ages.h"
#include "control/writes.h"
#include "ledger/ledger.h"
#include "link/recorder.h"
#include "link/server.h"
#include "link/traffic.h"

namespace berth::run {

// The reservation controller with its doors. It keeps a ledger of stored objects alone, so that what the scheduler has
// only assumed never shows in a status. Destroying it stops it.
class ReservationsDriver {
public:
    ReservationsDriver(std::unique_ptr<link::Server> server, base::Duration gc, const base::Clock& clock,
                       base::Metrics& metrics);
    ~ReservationsDriver();
    ReservationsDriver(const ReservationsDriver&) = delete;
    ReservationsDriver& operator=(const ReservationsDriver&) = delete;

    bool synced() const { return traffic_.synced(); }

private:
    // What a scrape reads: the ledger is looked at under the lock, and not after the run has ended.
    struct Shown {
        std::mutex mutex;
        const ledger::Ledger* ledger = nullptr;
    };
    void run();
    bool turn();
    void apply(const std::string& kind, const link::FeedEvent& event);
    void put(const model::Pod& pod);
    void reconcile();
    void judge_nodes();
    void carry_out(const control::Writes& writes);
    void tell(const control::Event& event);
    void tell_unreadable(const std::string& kind, JsonView object, const Error& error);
    void send(const std::string& uid, link::Request request);
    void take_answers();

    link::Traffic<std::string> traffic_;  // by uid; none for nodes
    const base::Duration gc_;
    const base::Clock& clock_;
    ledger::Ledger ledger_;
    control::Ages ages_;
    link::Recorder recorder_;
    // By uid: a write under way (0), or answered and not yet seen (its revision). Until then nothing more is written.
    base::StringMap<uint64_t> awaited_;
    std::set<std::string, std::less<>> nodes_;  // names of those that changed since they were judged
    std::shared_ptr<Shown> shown_ = std::make_shared<Shown>();
    std::thread thread_;
};

}  // namespace berth::run
