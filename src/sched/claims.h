#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sched/ask.h"
#include "sched/strikes.h"

// What an ask's claims need: found once, before the rows are looked at.
namespace berth::sched {

using Claim = std::shared_ptr<const model::PersistentVolumeClaim>;

struct AskedClaims {
    std::vector<Claim> bound;
    std::vector<Claim> delayed;        // unbound, and a volume may be chosen together with the node
    std::vector<Claim> once_pod;       // ReadWriteOncePod, through persistentVolumeClaim volumes
    std::vector<std::string> volumes;  // PersistentVolumes of bound persistentVolumeClaim volumes
};

// The refusal that the volume plugins give before any node is looked at, in their order, if any.
std::optional<Refusal> claims_refusal(const Ask& ask, const View& ledger);

// Claims that are unknown are left out: claims_refusal() has refused such an ask.
AskedClaims claims_of(const Ask& ask, const View& ledger);

// Reservations that the ask matches hold nothing against it, on any row.
bool is_matched(const Ask& ask, const ledger::Volumes::User& user);

}  // namespace berth::sched
