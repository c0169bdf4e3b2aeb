#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/http.h"
#include "api/pki.h"
#include "app/address.h"
#include "base/clock.h"
#include "base/string_map.h"
#include "ledger/ledger.h"
#include "link/server.h"
#include "link/traffic.h"
#include "run/bind_rules.h"

namespace berth::app {

struct WebhookOptions {
    Address address;  // where we listen, and where the API server reaches us
    std::vector<std::string> trusted;
    base::Duration certificate_life = std::chrono::hours(30 * 24);
};

// The judge of a stock API server, which checks no capacity: a validating webhook on bindings. A ledger of stored
// objects, and of the bindings that were just let through, answers; nodes that hold nothing are not its business. It
// makes its own certificate, renews it, and writes the configuration that points at it. Destroying it stops it; the
// configuration stays, so that nodes with holds are closed until the next one answers.
class WebhookRun {
public:
    WebhookRun(std::unique_ptr<link::Server> server, WebhookOptions options, const base::Clock& clock);
    ~WebhookRun();
    WebhookRun(const WebhookRun&) = delete;
    WebhookRun& operator=(const WebhookRun&) = delete;

    bool synced() const { return traffic_.synced(); }
    std::shared_ptr<const api::HttpCounters> counters() const { return counters_; }

private:
    struct Sent {
        std::string pod;  // the uid of one that is read back; empty: our configuration was written
    };
    struct Question {
        std::string body;
        api::Responder responder;
        base::Instant since;
    };
    struct Assumed {
        base::Instant until;  // then the stored pod is asked
        model::Pod pod;
        bool reading = false;
    };

    void run();
    void close();
    void apply(const std::string& kind, const link::FeedEvent& event);
    void apply_pod(model::Pod pod);
    void read_stale();
    void take_stored(const std::string& uid, const Result<link::Reply>& reply);
    void registered(const Result<link::Reply>& reply);
    void recount_held();
    void answer_questions();
    bool try_answer(Question& question);
    Status judge(const model::Pod& pod) const;

    void keep_certificate();
    bool listen(const api::ServingCertificate& certificate);
    void keep_registered();

    link::Traffic<Sent> traffic_;
    const WebhookOptions options_;
    const base::Clock& clock_;
    const run::BindRules rules_;
    ledger::Ledger ledger_;
    base::StringMap<model::Pod> waiting_;  // pods without a node, by namespace/name
    base::StringMap<Assumed> assumed_;     // let through and not yet seen bound, by uid
    std::set<std::string> held_;           // nodes with live reservations
    bool held_changed_ = true;

    std::optional<api::ServingCertificate> current_, next_;
    base::Instant issued_{};
    std::string previous_ca_;
    const std::shared_ptr<api::HttpCounters> counters_ = std::make_shared<api::HttpCounters>();
    std::unique_ptr<api::HttpServer> http_;
    base::Instant registered_{};
    std::string sent_, confirmed_;
    bool sent_with_next_ = false, next_is_known_ = false;

    std::mutex mutex_;  // guards asked_
    std::vector<Question> asked_;
    std::vector<Question> open_;
    std::thread thread_;
};

}  // namespace berth::app
