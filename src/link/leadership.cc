#include "link/leadership.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/random.h"
#include "base/thread.h"
#include "link/connect.h"

namespace berth::link {

std::string new_identity() {
    char host[256] = {};
    if (::gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') host[0] = '-';
    return fmt::format("{}_{:016x}", host, base::seed_from_system());
}

Leadership::Leadership(std::unique_ptr<ApiClient> server, LeadershipOptions options, const base::Clock& clock,
                       std::function<void()> lost)
    : server_(std::move(server)),
      options_(std::move(options)),
      clock_(clock),
      lost_(std::move(lost)),
      collection_(fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", options_.ns)),
      election_(options_.identity, options_.times, base::seed_from_system()) {
    thread_ = base::named_thread("lease", [this] { run(); });
}

Leadership::~Leadership() {
    stop_ = true;
    wake_.notify();
    thread_.join();
    resign();
}

void Leadership::run() {
    while (!(stop_ && !under_way_)) {
        take_answer();
        const auto now = clock_.now();
        const bool lost = election_.lost(now);
        fence_->move(lost ? base::Instant{} : election_.fence());
        if (lost && !std::exchange(over_, true)) lost_();
        if (!stop_ && !over_) {
            if (const auto move = election_.move(now, clock_.wall())) carry_out(*move);
        }
        auto until = under_way_ || over_ ? now + options_.times.retry : election_.next_wake();
        if (election_.leads(now)) until = std::min(until, election_.fence());
        wake_.wait(std::max(base::Duration::zero(), until - clock_.now()));
    }
    take_answer();
}

void Leadership::carry_out(const Election::Move& move) {
    const std::string path = collection_ + "/" + options_.name;
    Request request{"GET", path};
    if (move.kind != Election::Move::Kind::Read) {
        const bool create = move.kind == Election::Move::Kind::Create;
        request = {create ? "POST" : "PUT", create ? collection_ : path,
                   lease_text(options_.ns, options_.name, move.record)};
    }
    asked_ = move.kind;
    under_way_ = true;
    server_->send(std::move(request), [this](Result<Reply> reply) {
        // Under the lock: whoever takes the answer may destroy us.
        const std::lock_guard lock(mutex_);
        answer_ = std::move(reply);
        wake_.notify();
    });
}

void Leadership::take_answer() {
    std::optional<Result<Reply>> answer;
    {
        const std::lock_guard lock(mutex_);
        answer.swap(answer_);
    }
    if (!answer) return;
    under_way_ = false;
    const auto now = clock_.now();
    const bool read = asked_ == Election::Move::Kind::Read;
    const auto failed = [&](const std::string& why) {
        base::log_warning("The lease could not be kept", {{"lease", options_.name}, {"error", why}});
        election_.failed(now);
    };
    if (!*answer) return failed(answer->error().message);
    const Reply& reply = **answer;
    if (read && reply.code == 404) return election_.found(std::nullopt, now);
    if (!read && (reply.code == 409 || reply.code == 404)) return election_.failed(now);
    if (!reply.ok()) return failed(fmt::format("{}: {}", reply.code, reply.body.substr(0, 500)));
    auto record = read_lease(reply.body);
    if (!record) return failed(record.error().message);
    if (read) return election_.found(std::move(*record), now);
    election_.written(std::move(*record));
}

void Leadership::resign() {
    const auto record = election_.resignation(clock_.wall());
    if (!record) return;
    fence_->move({});
    const auto reply =
        ask(*server_, {"PUT", collection_ + "/" + options_.name, lease_text(options_.ns, options_.name, *record)});
    if (!reply || !reply->ok()) base::log_warning("The lease could not be given back", {{"lease", options_.name}});
}

}  // namespace berth::link
