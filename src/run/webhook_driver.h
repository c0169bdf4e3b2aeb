#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/string_map.h"
#include "ledger/intake.h"
#include "link/session.h"
#include "run/bind_rules.h"
#include "run/webhook_keeper.h"

namespace berth::run {

struct WebhookOptions {
    std::string host = {};  // where the API server reaches us
    uint16_t port = 0;
    std::string path = "/bindings";
    std::vector<std::string> trusted = {};
    base::Duration certificate_life = std::chrono::hours(30 * 24);
    BindRules rules = BindRules();
};

// The judge of a stock API server, which checks no capacity: a validating webhook on bindings, and on resizes of pods.
// A ledger of stored objects, and of what was just let through, answers. Its business are nodes that hold something
// (reservations, or devices that have names), and bindings that say which cores or devices the pod has.
// It renews its certificate, and writes the configuration that points at it. That stays after our end, so that nodes
// with holds are closed until the next one answers.
class WebhookDriver final : public WebhookJudge {
public:
    WebhookDriver(Doors doors, WebhookOptions options);

    void ask(const std::string& body, Answer answer) override;

    void turn(const Moment& now) override;
    base::Instant next() const override;
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

private:
    struct Sent {
        std::string pod;  // the uid of one that is read back; empty: our configuration was written
    };
    struct Binding {
        std::string ns, pod, node;
        model::Labels annotations;
    };
    struct Resize {
        model::Pod before, after;
    };
    struct Question {
        std::string uid;
        bool dry = false;
        std::variant<Binding, Resize> what;
        Answer answer;
        std::optional<base::Instant> since = {};  // it was first looked at
    };
    struct Assumed {
        base::Instant until;  // then the stored pod is asked
        model::Pod pod;
        uint64_t from = 0;  // news of this revision, or older ones, know nothing of it
        bool reading = false;
    };

    void close();
    void apply(const ledger::Kind& kind, const link::FeedEvent& event);
    void apply_pod(const model::Pod& pod);
    void read_stale();
    void take_stored(const std::string& uid, const Result<link::Reply>& reply);
    void recount_held();
    static Result<Question> read(const std::string& body);
    void answer_questions();
    bool try_answer(Question& question);
    std::optional<Status> judge(const Binding& binding, bool dry);
    std::optional<Status> judge(const Resize& resize, bool dry);
    Status judge_bind(const model::Pod& pod) const;
    void assume(const model::Pod& pod, uint64_t from);

    void keep_registered();

    Doors doors_;
    link::Session<Sent> session_;
    const WebhookOptions options_;
    ledger::Ledger ledger_;
    base::StringMap<model::Pod> waiting_;  // pods without a node, by namespace/name
    base::StringMap<Assumed> assumed_;     // let through and not yet seen bound, by uid
    std::set<std::string> held_;           // nodes with live reservations or with a Device
    bool held_changed_ = true;

    WebhookKeeper keeper_;

    std::mutex mutex_;  // guards asked_
    std::vector<Question> asked_;
    std::vector<Question> open_;
    Moment now_;  // of this turn
    bool stopping_ = false;
};

}  // namespace berth::run
