#include "run/pool_lease.h"

#include "base/log.h"
#include "model/times.h"

namespace berth::run {
namespace {

using Verb = model::Write::Verb;

constexpr base::Duration kEvery = std::chrono::seconds(10);
constexpr base::Duration kAfterRefusal = std::chrono::seconds(60);

}  // namespace

std::optional<model::Write> PoolLease::next(const Moment& now) {
    if (under_way_ || now.now < at_) return std::nullopt;
    under_way_ = true;
    if (step_ == Step::MakeNamespace)
        return model::Write{
            Verb::Create,
            "namespaces",
            "v1",
            "",
            "",
            "",
            JsonObject{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", JsonObject{{"name", kPoolLeases}}}}};
    JsonObject body{{"spec", JsonObject{{"holderIdentity", pool_},
                                        {"leaseDurationSeconds", 40},
                                        {"renewTime", model::micro_time_text(now.wall)}}}};
    if (step_ == Step::Renew)
        return model::Write{Verb::MergePatch, kLeases, "v1", kPoolLeases, pool_, "", std::move(body)};
    body["apiVersion"] = "coordination.k8s.io/v1";
    body["kind"] = "Lease";
    body["metadata"] = JsonObject{{"name", pool_}, {"namespace", kPoolLeases}};
    return model::Write{Verb::Create, kLeases, "v1", kPoolLeases, "", "", std::move(body)};
}

std::vector<std::string> PoolPulses::silent(base::Instant now) {
    std::vector<std::string> out;
    for (const auto& pool : due_.take(now)) {
        const auto last = last_.find(pool);
        if (last == last_.end()) continue;
        if (last->second + kPoolSilent > now) {
            due_.at(pool, last->second + kPoolSilent);
        } else {
            out.push_back(pool);
        }
    }
    return out;
}

void PoolLease::answered(int code, base::Instant now) {
    under_way_ = false;
    const bool done = code >= 200 && code < 300;
    const bool there = done || (code == 409 && step_ != Step::Renew);
    const Step before = step_;
    step_ = Step::Renew;
    at_ = now + kEvery;
    if (there) {
        // A namespace is for a lease, and one that somebody else has made is renewed.
        if (before == Step::MakeNamespace) step_ = Step::Make;
        if (before == Step::MakeNamespace || !done) at_ = now;
        return;
    }
    if (code == 404 && before != Step::MakeNamespace) {
        step_ = before == Step::Renew ? Step::Make : Step::MakeNamespace;
        at_ = now;
        return;
    }
    if (code == 0 || code == 409) return;
    at_ = now + kAfterRefusal;
    if (std::exchange(told_, true)) return;
    base::log_warning("The pool has no lease: nobody will notice when its poollet is gone",
                      {{"pool", pool_}, {"answer", std::to_string(code)}});
}

}  // namespace berth::run
