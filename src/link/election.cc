#include "link/election.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "model/times.h"

namespace berth::link {
namespace {

int64_t integer_at(const Json& object, std::initializer_list<std::string_view> path) {
    const Json* found = base::find(object, path);
    return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

}  // namespace

Result<LeaseRecord> read_lease(std::string_view text) {
    const Json object = TRY(base::parse_json(text));
    if (base::find_string(object, {"metadata", "resourceVersion"}).empty()) {
        return base::internal("this is not a Lease: it has no metadata.resourceVersion");
    }
    LeaseRecord out;
    out.holder = base::find_string(object, {"spec", "holderIdentity"});
    out.duration = std::chrono::seconds(integer_at(object, {"spec", "leaseDurationSeconds"}));
    out.acquired = base::find_string(object, {"spec", "acquireTime"});
    out.renewed = base::find_string(object, {"spec", "renewTime"});
    out.transitions = integer_at(object, {"spec", "leaseTransitions"});
    out.object = text;
    return out;
}

std::string lease_text(const std::string& ns, const std::string& name, const LeaseRecord& record) {
    Json object = JsonObject{};
    if (auto before = base::parse_json(record.object)) object = std::move(*before);
    JsonObject& top = base::object_at(object, {});
    top["apiVersion"] = "coordination.k8s.io/v1";
    top["kind"] = "Lease";
    JsonObject& meta = base::object_at(object, {"metadata"});
    meta["name"] = name;
    meta["namespace"] = ns;
    JsonObject& spec = base::object_at(object, {"spec"});
    spec["holderIdentity"] = record.holder;
    spec["leaseDurationSeconds"] = std::chrono::duration_cast<std::chrono::seconds>(record.duration).count();
    spec["acquireTime"] = record.acquired;
    spec["renewTime"] = record.renewed;
    spec["leaseTransitions"] = record.transitions;
    return base::to_text(object);
}

Status ElectionTimes::check() const {
    if (lease < std::chrono::seconds(1)) return base::bad_request("the lease duration must be at least 1s");
    if (deadline >= lease) return base::bad_request("the lease duration must be longer than the renew deadline");
    if (retry <= base::Duration::zero()) return base::bad_request("the retry period must be longer than 0s");
    // A try may be up to a fifth late.
    if (deadline * 5 <= retry * 6) {
        return base::bad_request("the renew deadline must be longer than 1.2 times the retry period");
    }
    return {};
}

// Whole seconds in the object: rounded up, so that nobody comes too early.
LeaseRecord Election::mine(base::Time wall) const {
    const std::string now = model::micro_time_text(wall);
    LeaseRecord out = known_.value_or(LeaseRecord{});
    if (out.holder != identity_) {
        out.acquired = now;
        if (known_) ++out.transitions;
    }
    out.holder = identity_;
    out.duration = std::chrono::ceil<std::chrono::seconds>(times_.lease);
    out.renewed = now;
    return out;
}

// When the lease as we know it may be ours.
base::Instant Election::free_at() const {
    if (known_->holder.empty() || known_->holder == identity_) return {};
    return changed_at_ + (known_->duration > base::Duration::zero() ? known_->duration : times_.lease);
}

std::optional<Election::Move> Election::move(base::Instant now, base::Time wall) {
    if (open_ || taken_ || now < wake_) return std::nullopt;
    open_ = true;
    sent_at_ = now;
    if (stale_) return Move{Move::Kind::Read};
    if (absent_) return Move{Move::Kind::Create, mine(wall)};
    return Move{Move::Kind::Replace, mine(wall)};
}

void Election::close(base::Instant wake) {
    open_ = false;
    wake_ = wake;
}

void Election::found(std::optional<LeaseRecord> record, base::Instant now) {
    absent_ = !record;
    // Whoever deletes our lease ends our turn no sooner than its deadline: we make it again.
    if (record && known_ != record) changed_at_ = now;
    known_ = std::move(record);
    if (leads_ && known_ && known_->holder != identity_) {
        taken_ = true;
        return close(now);
    }
    stale_ = known_ && now < free_at();
    const auto late = base::Duration(random_.between(0, times_.retry.count() / 5));
    close(stale_ ? std::min(now + times_.retry + late, free_at()) : now);
}

void Election::written(LeaseRecord record) {
    known_ = std::move(record);
    absent_ = false;
    stale_ = false;
    leads_ = true;
    renewed_at_ = sent_at_;
    close(sent_at_ + times_.retry);
}

void Election::failed(base::Instant now) {
    stale_ = true;
    close(now + base::Duration(random_.between(times_.retry.count() / 4, times_.retry.count())));
}

std::optional<LeaseRecord> Election::resignation(base::Time wall) const {
    if (!leads_ || taken_ || !known_) return std::nullopt;
    LeaseRecord out = *known_;
    out.holder.clear();
    out.duration = std::chrono::seconds(1);
    out.acquired = out.renewed = model::micro_time_text(wall);
    return out;
}

}  // namespace berth::link
