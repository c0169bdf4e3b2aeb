#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "base/metrics.h"
#include "link/api_client.h"
#include "link/backoff.h"
#include "link/fence.h"
#include "link/wire.h"

namespace berth::link {

struct RemoteOptions {
    size_t in_flight = 64;  // requests at once; watches come on top
    base::Duration timeout = std::chrono::seconds(30);
    // How long a request that has not reached the server is tried again.
    base::Duration patience = std::chrono::seconds(30);
    uint64_t seed = 0;
    std::shared_ptr<const Fence> fence = {};  // nothing is written outside it
    base::Metrics* metrics = nullptr;         // counts requests under client-go's names; must outlive the server
};

class Follower;

// Any Kubernetes API server, over a wire. Feeds must be gone before it.
class RemoteServer final : public ApiClient {
public:
    RemoteServer(std::unique_ptr<Wire> wire, RemoteOptions options);
    // What was not answered is answered with an Error.
    ~RemoteServer() override;
    RemoteServer(const RemoteServer&) = delete;
    RemoteServer& operator=(const RemoteServer&) = delete;

    void send(Request request, ReplyTo reply) override;
    std::unique_ptr<Feed> follow(const Resource& resource, std::function<void()> notify) override;

private:
    struct Job {
        Request request;
        ReplyTo reply;
        base::Instant since;
        Backoff backoff;
        base::Instant sent = {};  // the last try
        int refusals = 0;         // 429, 503 and reads that failed, so far
        bool renewed = false;     // the credentials were read again for it
        base::TimerId timer = {};
    };
    using Jobs = std::map<uint64_t, Job>;
    class RemoteFeed;

    void pump();
    void try_once(uint64_t id);
    void on_result(uint64_t id, WireResult result);
    void on_trouble(Jobs::iterator job, const WireTrouble& trouble);
    void on_answer(Jobs::iterator job, WireAnswer answer);
    bool put_off(Jobs::iterator job, const WireAnswer& answer);
    void try_later(Jobs::iterator job, base::Duration wait);
    // The numbers of one kind of request, looked up once.
    struct Counted {
        base::Counter* requests;
        base::Histogram* seconds;
    };
    const Counted& counted(const std::string& method, int code);
    void count(const Job& job, const WireResult& result);
    void finish(Jobs::iterator job, Result<Reply> reply);
    size_t allowed(Urgency urgency) const;

    const std::unique_ptr<Wire> wire_;
    const RemoteOptions options_;
    std::mutex inbox_mutex_;
    std::deque<std::pair<Request, ReplyTo>> inbox_;  // any thread; the rest belongs to the loop
    bool pump_posted_ = false;
    base::Random random_;
    std::deque<Job> waiting_[2];  // by urgency
    Jobs under_way_;
    uint64_t last_id_ = 0;
    std::map<std::pair<std::string, int>, Counted> counted_;  // by method and code; 0: no answer
    std::map<uint64_t, std::shared_ptr<Follower>> followers_;
    uint64_t last_feed_ = 0;  // under inbox_mutex_
};

}  // namespace berth::link
