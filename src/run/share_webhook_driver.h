#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/consumer.h"
#include "model/quota.h"
#include "run/webhook_keeper.h"

namespace berth::run {

struct ShareWebhookOptions {
    std::string host = {};  // where the API server reaches us
    uint16_t port = 0;
    std::string path = "/shares";
    base::Duration certificate_life = std::chrono::hours(30 * 24);
    bool gates = false;                  // new pods get our gate
    std::set<std::string> ungated = {};  // but for those of these namespaces
};

// On a stock API server: Consumers are judged as the embedded server's admission judges them, and new pods are held by
// our gate, where that is asked for. Without an answer Consumers cannot be written; pods are made without the gate.
class ShareWebhookDriver final : public WebhookJudge {
public:
    ShareWebhookDriver(Doors doors, ShareWebhookOptions options);

    void ask(const std::string& body, Answer answer) override;

    void turn(const Moment& now) override;
    base::Instant next() const override;
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

private:
    struct Question {
        std::string uid;
        model::Consumer wanted;
        std::optional<model::Consumer> before;
        Answer answer;
    };
    struct Sent {};

    void close();
    void apply(const std::string& kind, const link::FeedEvent& event);
    std::string judge(const Question& question) const;
    std::vector<WebhookRegistration> registrations(const std::string& url, const std::string& ca) const;

    Doors doors_;
    link::Session<Sent> session_;
    const ShareWebhookOptions options_;
    std::set<std::string> namespaces_;
    std::map<std::string, model::Consumer> consumers_;
    std::map<std::string, model::ResourceQuota> quotas_;  // by full name
    std::map<std::string, Resources> nodes_;              // what is allocatable, by name
    WebhookKeeper keeper_;

    std::mutex mutex_;  // guards asked_
    std::vector<Question> asked_;
    Moment now_;  // of this turn
    bool stopping_ = false;
};

}  // namespace berth::run
