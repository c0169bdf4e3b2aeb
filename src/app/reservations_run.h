#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"
#include "control/ages.h"
#include "control/writes.h"
#include "ledger/ledger.h"
#include "link/bell.h"
#include "link/recorder.h"
#include "link/server.h"

namespace berth::app {

// The reservation controller with its doors. It keeps a ledger of stored objects alone, so that what the scheduler has
// only assumed never shows in a status. Destroying it stops it.
class ReservationsRun {
public:
    ReservationsRun(std::unique_ptr<link::Server> server, base::Duration gc, const base::Clock& clock);
    ~ReservationsRun();
    ReservationsRun(const ReservationsRun&) = delete;
    ReservationsRun& operator=(const ReservationsRun&) = delete;

private:
    struct Followed {
        std::string kind;
        std::unique_ptr<link::Feed> feed;
        bool synced = false;
        uint64_t seen = 0;
    };
    struct Answer {
        std::string uid;
        Result<link::Reply> reply;
    };

    void run();
    bool poll_feeds();
    void apply(const std::string& kind, const link::FeedEvent& event);
    void reconcile();
    void carry_out(const control::Writes& writes);
    void send(const std::string& uid, link::Request request);
    void take_answers();

    std::unique_ptr<link::Server> server_;
    const base::Duration gc_;
    const base::Clock& clock_;
    ledger::Ledger ledger_;
    control::Ages ages_;
    link::Recorder recorder_;
    link::Bell bell_;
    std::vector<Followed> followed_;
    // By uid: a write under way (0), or answered and not yet seen (its revision). Until then nothing more is written.
    base::StringMap<uint64_t> awaited_;
    std::mutex answers_mutex_;
    std::vector<Answer> answers_;
    size_t under_way_ = 0;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

}  // namespace berth::app
