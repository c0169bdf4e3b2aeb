#include "link/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "link/follower.h"
#include "link/objects.h"

namespace berth::link {
namespace {

constexpr base::Duration kFirstWait = std::chrono::milliseconds(100);
constexpr base::Duration kLongestWait = std::chrono::seconds(5);
// A server that is too busy says when to come back; it has done nothing, so coming back is safe.
constexpr int kMostRefusals = 5;
constexpr base::Duration kLongestRefusal = std::chrono::seconds(10);
constexpr int kMostReads = 3;
constexpr std::array<double, 12> kBounds{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};  // client-go's
// Events for people: more than this waiting are dropped.
constexpr size_t kMostLow = 10'000;

Error unknown(const std::string& what) {
    return {Reason::Timeout, what};
}

}  // namespace

class RemoteServer::RemoteFeed final : public Feed {
public:
    RemoteFeed(RemoteServer& server, uint64_t id, std::shared_ptr<Mailbox> mailbox)
        : server_(server), id_(id), mailbox_(std::move(mailbox)) {}
    ~RemoteFeed() override {
        mailbox_->close();
        server_.wire_->loop().post([&server = server_, id = id_] { server.followers_.erase(id); });
    }
    std::vector<FeedEvent> poll(size_t most) override { return mailbox_->poll(most); }

private:
    RemoteServer& server_;
    const uint64_t id_;
    std::shared_ptr<Mailbox> mailbox_;
};

RemoteServer::RemoteServer(std::unique_ptr<Wire> wire, RemoteOptions options)
    : wire_(std::move(wire)), options_(options), random_(options.seed) {}

RemoteServer::~RemoteServer() {
    wire_->stop();
    followers_.clear();
    const Error over = unknown("the connection was closed before the answer came");
    for (auto& [id, job] : under_way_) {
        wire_->loop().cancel(job.timer);
        job.reply(over);
    }
    for (auto& queue : waiting_) {
        for (auto& job : queue) job.reply(over);
    }
    for (auto& [request, reply] : inbox_) reply(over);
}

std::unique_ptr<Feed> RemoteServer::follow(const Resource& resource, std::function<void()> notify) {
    uint64_t id = 0;
    {
        const std::lock_guard lock(inbox_mutex_);
        id = ++last_feed_;
    }
    const auto drained = [this, id] {
        wire_->loop().post([this, id] {
            if (const auto found = followers_.find(id); found != followers_.end()) found->second->resume();
        });
    };
    auto mailbox = std::make_shared<Mailbox>(std::move(notify), drained);
    wire_->loop().post([this, id, resource, mailbox] {
        const auto follower = std::make_shared<Follower>(*wire_, resource, mailbox, random_.next());
        followers_.emplace(id, follower);
        follower->list();
    });
    return std::make_unique<RemoteFeed>(*this, id, std::move(mailbox));
}

void RemoteServer::send(Request request, ReplyTo reply) {
    {
        const std::lock_guard lock(inbox_mutex_);
        inbox_.emplace_back(std::move(request), std::move(reply));
        if (std::exchange(pump_posted_, true)) return;
    }
    wire_->loop().post([this] { pump(); });
}

// Events get a quarter at most.
size_t RemoteServer::allowed(Urgency urgency) const {
    return urgency == Urgency::Normal ? options_.in_flight : std::max<size_t>(1, options_.in_flight / 4);
}

void RemoteServer::pump() {
    decltype(inbox_) came;
    {
        const std::lock_guard lock(inbox_mutex_);
        came.swap(inbox_);
        pump_posted_ = false;
    }
    const auto now = wire_->loop().clock().now();
    for (auto& [request, reply] : came) {
        const Urgency urgency = request.urgency;
        auto& queue = waiting_[static_cast<size_t>(urgency)];
        if (urgency == Urgency::Low && queue.size() >= kMostLow) {
            reply(unknown("too many events wait to be written"));
            continue;
        }
        queue.push_back({std::move(request), std::move(reply), now, Backoff(kFirstWait, kLongestWait, random_.next())});
    }
    for (const Urgency urgency : {Urgency::Normal, Urgency::Low}) {
        auto& queue = waiting_[static_cast<size_t>(urgency)];
        while (!queue.empty() && under_way_.size() < allowed(urgency)) {
            const uint64_t id = ++last_id_;
            const auto job = under_way_.emplace(id, std::move(queue.front())).first;
            queue.pop_front();
            job->second.since = now;
            try_once(id);
        }
    }
}

void RemoteServer::try_once(uint64_t id) {
    const auto found = under_way_.find(id);
    if (found == under_way_.end()) return;
    found->second.sent = wire_->loop().clock().now();
    const Request& request = found->second.request;
    const bool fenced = options_.fence && !options_.fence->open(wire_->loop().clock().now());
    if (fenced && request.method != "GET") {
        return wire_->loop().post([this, id] { on_result(id, WireTrouble{"this process no longer leads", true}); });
    }
    wire_->call({request.method, request.path, request.body, request.content_type}, options_.timeout,
                [this, id](WireResult result) { on_result(id, std::move(result)); });
}

void RemoteServer::on_result(uint64_t id, WireResult result) {
    const auto job = under_way_.find(id);
    if (job == under_way_.end()) return;
    if (options_.metrics != nullptr) count(job->second, result);
    if (const auto* trouble = std::get_if<WireTrouble>(&result)) return on_trouble(job, *trouble);
    auto& answer = std::get<WireAnswer>(result);
    if (answer.code != 401 || std::exchange(job->second.renewed, true)) return on_answer(job, std::move(answer));
    wire_->refresh([this, id, answer = std::move(answer)](bool changed) {
        const auto refused = under_way_.find(id);
        if (refused != under_way_.end()) changed ? try_once(id) : on_answer(refused, answer);
    });
}

void RemoteServer::on_answer(Jobs::iterator job, WireAnswer answer) {
    if (put_off(job, answer)) return;
    Reply reply{answer.code, std::move(answer.body), 0};
    // Nobody asks which revision an event for people has.
    if (reply.ok() && job->second.request.urgency == Urgency::Normal) reply.revision = revision_in(reply.body);
    finish(job, std::move(reply));
}

const RemoteServer::Counted& RemoteServer::counted(const std::string& method, int code) {
    const auto [found, fresh] = counted_.try_emplace({method, code});
    if (fresh) {
        found->second = {
            &options_.metrics->counter("rest_client_requests_total",
                                       "Requests to the API server, watches and lists apart.",
                                       {{"code", code == 0 ? "<error>" : std::to_string(code)}, {"method", method}}),
            &options_.metrics->histogram("rest_client_request_duration_seconds",
                                         "From sending a request to its answer.", {{"verb", method}}, kBounds)};
    }
    return found->second;
}

void RemoteServer::count(const Job& job, const WireResult& result) {
    const auto* answer = std::get_if<WireAnswer>(&result);
    const Counted& numbers = counted(job.request.method, answer != nullptr ? answer->code : 0);
    numbers.requests->add();
    numbers.seconds->observe(std::chrono::duration<double>(wire_->loop().clock().now() - job.sent).count());
}

// What never reached the server may be sent again, and so may a read.
void RemoteServer::on_trouble(Jobs::iterator job, const WireTrouble& trouble) {
    const auto waited = wire_->loop().clock().now() - job->second.since;
    const bool read = job->second.request.method == "GET" && job->second.refusals++ < kMostReads;
    if ((!trouble.sent || read) && waited < options_.patience) return try_later(job, job->second.backoff.next());
    finish(job, unknown(trouble.what));
}

bool RemoteServer::put_off(Jobs::iterator job, const WireAnswer& answer) {
    Job& of = job->second;
    const bool busy = (answer.code == 429 || answer.code == 503) && answer.retry_after;
    if (!busy || of.refusals++ >= kMostRefusals) return false;
    try_later(job, std::min(kLongestRefusal, *answer.retry_after + of.backoff.next()));
    return true;
}

void RemoteServer::try_later(Jobs::iterator job, base::Duration wait) {
    job->second.timer = wire_->loop().run_after(wait, [this, id = job->first] { try_once(id); });
}

void RemoteServer::finish(Jobs::iterator job, Result<Reply> reply) {
    const ReplyTo to = std::move(job->second.reply);
    under_way_.erase(job);
    to(std::move(reply));
    pump();
}

}  // namespace berth::link
