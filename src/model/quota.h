#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/meta.h"
#include "model/resources.h"

// Amounts as a ResourceQuota names them.
namespace berth::model {

class Reader;

inline constexpr std::string_view kStorageKey = "requests.storage";
inline constexpr std::string_view kClassStorageSuffix = ".storageclass.storage.k8s.io/requests.storage";

// The resource behind a key: cpu and requests.cpu are one, requests.nvidia.com/gpu is nvidia.com/gpu. limits.cpu,
// requests.storage, a class's storage and counts (pods, count/deployments.apps) are resources of their own.
Result<ResourceId> quota_resource(std::string_view key);
// Objects rather than amounts of something.
bool is_count(std::string_view name);
bool is_storage(std::string_view name);
bool is_limit(std::string_view name);

// As amount_of and quantity_text of resources.h, and limits.cpu is counted as cpu.
int64_t quota_amount(ResourceId id, const Quantity& quantity);
std::string quota_text(ResourceId id, int64_t amount);

// A map of keys to quantities; what cannot be read, or is below 0, is remembered as trouble.
Resources read_quota_amounts(const Reader& list);

struct ResourceQuota {
    Meta meta;
    Resources hard;
    bool scoped = false;  // it counts some pods only
};

Result<ResourceQuota> read_resource_quota(JsonView object);

}  // namespace berth::model
