#pragma once

#include <string>
#include <thread>

#include "base/clock.h"
#include "base/string_map.h"
#include "control/ages.h"
#include "control/writes.h"
#include "ledger/ledger.h"
#include "link/recorder.h"
#include "link/server.h"
#include "link/traffic.h"

namespace berth::app {

// The reservation controller with its doors. It keeps a ledger of stored objects alone, so that what the scheduler has
// only assumed never shows in a status. Destroying it stops it.
class ReservationsRun {
public:
    ReservationsRun(std::unique_ptr<link::Server> server, base::Duration gc, const base::Clock& clock);
    ~ReservationsRun();
    ReservationsRun(const ReservationsRun&) = delete;
    ReservationsRun& operator=(const ReservationsRun&) = delete;

    bool synced() const { return traffic_.synced(); }

private:
    void run();
    void apply(const std::string& kind, const link::FeedEvent& event);
    void reconcile();
    void carry_out(const control::Writes& writes);
    void send(const std::string& uid, link::Request request);
    void take_answers();

    link::Traffic<std::string> traffic_;  // by uid
    const base::Duration gc_;
    const base::Clock& clock_;
    ledger::Ledger ledger_;
    control::Ages ages_;
    link::Recorder recorder_;
    // By uid: a write under way (0), or answered and not yet seen (its revision). Until then nothing more is written.
    base::StringMap<uint64_t> awaited_;
    std::thread thread_;
};

}  // namespace berth::app
