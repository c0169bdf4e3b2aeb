#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/metrics.h"
#include "base/string_map.h"
#include "control/ages.h"
#include "control/writes.h"
#include "ledger/intake.h"
#include "link/recorder.h"
#include "link/session.h"
#include "run/driver.h"

namespace berth::run {

// The reservation controller with its doors. It keeps a ledger of stored objects alone, so that what the scheduler has
// only assumed never shows in a status.
class ReservationsDriver final : public Driver {
public:
    ReservationsDriver(std::unique_ptr<link::ApiClient> server, link::Wake wake, base::Duration gc,
                       base::Metrics& metrics);
    ~ReservationsDriver() override;
    ReservationsDriver(const ReservationsDriver&) = delete;
    ReservationsDriver& operator=(const ReservationsDriver&) = delete;

    void turn(const Moment& now) override;
    base::Instant next() const override { return next_; }
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

private:
    // What a scrape reads, on a thread of its own: the ledger is looked at under the lock, and not after our end.
    struct Shown {
        std::mutex mutex;
        const ledger::Ledger* ledger = nullptr;
    };
    void apply(const ledger::Kind& kind, const link::FeedEvent& event);
    void put(const model::Pod& pod);
    void reconcile();
    void judge_nodes();
    void carry_out(const control::Writes& writes);
    void tell(const control::Event& event);
    void tell_unreadable(const ledger::Kind& kind, const link::FeedEvent& event, const Error& error);
    void send(const std::string& uid, link::Request request);
    void take_answers();

    link::Session<std::string> session_;  // by uid; none for nodes
    const base::Duration gc_;
    ledger::Ledger ledger_;
    control::Ages ages_;
    link::Recorder recorder_;
    // By uid: a write under way (0), or answered and not yet seen (its revision). Until then nothing more is written.
    base::StringMap<uint64_t> awaited_;
    std::set<std::string, std::less<>> nodes_;  // names of those that changed since they were judged
    std::shared_ptr<Shown> shown_ = std::make_shared<Shown>();
    Moment now_;  // of this turn
    base::Instant next_;
    bool stopping_ = false;
};

}  // namespace berth::run
