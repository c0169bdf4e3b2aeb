#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "link/recorder.h"
#include "link/session.h"
#include "run/allocations.h"
#include "run/driver.h"
#include "run/share_desk.h"
#include "run/share_metrics.h"
#include "run/shares_scene.h"
#include "share/reclaiming.h"

namespace berth::run {

struct ArbitratorOptions {
    share::Settings settings;  // all but the time
    base::Duration cycle = std::chrono::seconds(1);
    base::Duration grace = std::chrono::seconds(30);
    share::ReclaimLimits limits;
    bool gates = false;    // our gate is taken from pods that may start
    bool extender = true;  // schedulers ask before they bind; else whoever has no gate any more was let in
    bool dry_run = false;  // nothing is written; what would be is logged
};

// The arbitrator with its doors: follows a server, and in every cycle in which something changed says what each
// namespace deserves, makes Consumers where they are missing, publishes Allocations that differ, and takes back what
// others need. A cycle begins when what the one before it wrote was answered and seen; the first one takes nothing.
class ArbitratorDriver final : public Driver {
public:
    struct Doors {
        std::unique_ptr<link::ApiClient> server;
        link::Wake wake;
        base::Metrics& metrics;
        std::shared_ptr<ShareDesk> desk = {};  // what schedulers ask; none: nobody asks
    };
    ArbitratorDriver(Doors doors, ArbitratorOptions options);
    ~ArbitratorDriver() override;
    ArbitratorDriver(const ArbitratorDriver&) = delete;
    ArbitratorDriver& operator=(const ArbitratorDriver&) = delete;

    void turn(const Moment& now) override;
    base::Instant next() const override;
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

private:
    struct Sent {
        std::string what;  // for the log
        std::string resource;
        std::string evicted;  // the uid of a pod
        std::string allocation;
    };

    void apply(const std::string& resource, const link::FeedEvent& event);
    void apply_owned(const std::string& resource, const link::FeedEvent& event);
    void take_answer(const Sent& sent, const Result<link::Reply>& reply);
    void take_eviction(const std::string& uid, const Result<link::Reply>& reply);
    bool written_is_seen() const;
    bool due() const;
    void cycle();
    void remember_published();
    void keep_consumers();
    void mark_granted(share::Scene& scene);
    void publish(const share::Answer& answer);
    void evict(const share::Scene& scene, const std::vector<share::Victim>& victims);
    void open_gates(const share::Scene& scene, const share::Answer& answer);
    void tell_trouble(const share::Answer& answer);
    void send(model::Write write, Sent sent);

    link::Session<Sent> session_;
    link::Recorder recorder_;
    const ArbitratorOptions options_;
    std::shared_ptr<ShareDesk> desk_;
    ShareMetrics metrics_;
    std::optional<SharesScene> gathered_;  // from the first turn on
    share::Reclaiming reclaiming_;
    std::map<std::string, model::Meta> namespaces_, consumers_;
    std::map<std::string, StoredAllocation> allocations_;
    std::map<std::string, uint64_t> awaited_;      // by resource, the revision that must have come
    std::map<std::string, base::Time> published_;  // Allocations, when they were last exact
    std::map<std::string, model::Event> evicted_;  // under way, by uid
    std::set<std::string> ungated_;                // uids
    std::map<std::string, std::string> told_;      // broken Consumers, what was told of them
    Moment now_;                                   // of this turn
    base::Instant last_{};                         // cycle
    uint64_t cycles_ = 0;
    bool dirty_ = true;    // something came since the last cycle
    bool active_ = false;  // in the last turn
    bool stopping_ = false;
};

}  // namespace berth::run
