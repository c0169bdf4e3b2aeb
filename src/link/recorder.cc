#include "link/recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "model/times.h"

namespace berth::link {
namespace {

constexpr size_t kMostKnown = 4096;
constexpr size_t kLongestMessage = 1024;
constexpr double kBurst = 25;
constexpr double kSecondsPerToken = 300;

std::string events_path(const std::string& ns) {
    return fmt::format("/api/v1/namespaces/{}/events", ns);
}

}  // namespace

bool Recorder::within_budget(const Subject& subject, base::Time now) {
    if (budgets_.size() > kMostKnown) budgets_.clear();
    const auto [found, fresh] = budgets_.try_emplace(subject.uid, Budget{kBurst, now});
    Budget& budget = found->second;
    const double seconds = static_cast<double>((now - budget.filled).count()) / 1e9;
    budget.tokens = std::min(kBurst, budget.tokens + std::max(0.0, seconds) / kSecondsPerToken);
    budget.filled = now;
    if (budget.tokens < 1) return false;
    budget.tokens -= 1;
    return true;
}

void Recorder::tell(const Subject& subject, std::string_view type, std::string_view reason, std::string_view message,
                    base::Time now) {
    if (!within_budget(subject, now)) return;
    const std::string when = model::time_text(now);
    const std::string key = fmt::format("{}|{}|{}", subject.uid, reason, message);
    if (const auto found = known_.find(key); found != known_.end()) {
        Known& known = found->second;
        ages_.splice(ages_.begin(), ages_, known.age);
        const Json patch(JsonObject{{"count", ++known.count}, {"lastTimestamp", when}});
        return server_.send({"PATCH", events_path(known.ns) + "/" + known.event_name, base::to_text(patch),
                             "application/merge-patch+json", Urgency::Low},
                            [](Result<Reply>) {});
    }
    const std::string ns = subject.ns.empty() ? "default" : subject.ns;
    const std::string name = fmt::format("{}.{:x}{:04x}", subject.name, now.nanos, serial_++ & 0xffff);
    std::string event = fmt::format(
        R"({{"kind":"Event","apiVersion":"v1","count":1,"type":"{}","eventTime":null,"firstTimestamp":"{}","lastTimestamp":"{}")",
        type, when, when);
    const auto member = [&](std::string_view before, std::string_view value) {
        event += before;
        base::append_quoted(value, event);
    };
    member(R"(,"metadata":{"name":)", name);
    member(R"(,"namespace":)", ns);
    member(R"(},"involvedObject":{"kind":)", subject.kind);
    member(R"(,"namespace":)", subject.ns);
    member(R"(,"name":)", subject.name);
    member(R"(,"uid":)", subject.uid);
    member(R"(,"apiVersion":)", subject.api_version);
    member(R"(},"reason":)", reason);
    member(R"(,"message":)", message.substr(0, kLongestMessage));
    member(R"(,"reportingInstance":"","reportingComponent":)", component_);
    member(R"(,"source":{"component":)", component_);
    event += "}}";
    ages_.push_front(key);
    known_.emplace(key, Known{name, ns, 1, ages_.begin()});
    if (known_.size() > kMostKnown) {
        known_.erase(ages_.back());
        ages_.pop_back();
    }
    server_.send({.method = "POST", .path = events_path(ns), .body = std::move(event), .urgency = Urgency::Low},
                 [](Result<Reply>) {});
}

}  // namespace berth::link
