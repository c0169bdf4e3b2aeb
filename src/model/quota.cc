#include "model/quota.h"

#include <fmt/format.h>

#include "model/reader.h"
#include "model/resource_names.h"

namespace berth::model {
namespace {

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kLimits = "limits.";

bool counts_cpu(ResourceId id) {
    return id == kCpu || resource_name(id) == "limits.cpu";
}

bool is_bytes(std::string_view name) {
    return name == "limits.memory" || name == "limits.ephemeral-storage" || is_storage(name);
}

}  // namespace

Result<ResourceId> quota_resource(std::string_view key) {
    if (key.empty()) return base::bad_request("a key is empty");
    if (key.starts_with(kRequests) && key != kStorageKey) key.remove_prefix(kRequests.size());
    return intern_asked_resource(key);
}

bool is_count(std::string_view name) {
    if (name == "pods" || name.starts_with("count/") || name == "persistentvolumeclaims") return true;
    if (name.ends_with(".storageclass.storage.k8s.io/persistentvolumeclaims")) return true;
    for (const std::string_view object : {"services", "services.loadbalancers", "services.nodeports", "configmaps",
                                          "secrets", "resourcequotas", "replicationcontrollers"}) {
        if (name == object) return true;
    }
    return false;
}

bool is_storage(std::string_view name) {
    return name == kStorageKey || name.ends_with(kClassStorageSuffix);
}

bool is_limit(std::string_view name) {
    return name.starts_with(kLimits);
}

int64_t quota_amount(ResourceId id, const Quantity& quantity) {
    return counts_cpu(id) ? quantity.milli() : amount_of(id, quantity);
}

std::string quota_text(ResourceId id, int64_t amount) {
    if (counts_cpu(id)) return quantity_text(kCpu, amount);
    return quantity_text(is_bytes(resource_name(id)) ? kMemory : id, amount);
}

Resources read_quota_amounts(const Reader& list) {
    Resources out;
    size_t named = 0;
    list.entries([&](std::string_view key, const Reader& value) {
        if (++named > kMostNamed) return;
        const auto id = quota_resource(key);
        const auto quantity = Quantity::parse(value.text_or_number());
        if (!id) return value.wrong(id.error().message);
        if (!quantity) return value.wrong(quantity.error().message);
        if (quantity->is_negative()) return value.wrong("must be greater than or equal to 0");
        out.set(*id, quota_amount(*id, *quantity));
    });
    if (named > kMostNamed) list.wrong(fmt::format("names {} resources, at most {} may be", named, kMostNamed));
    return out;
}

Result<ResourceQuota> read_resource_quota(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    ResourceQuota out;
    out.meta = read_meta(root);
    if (out.meta.ns.empty()) out.meta.ns = "default";
    const Reader spec = root["spec"];
    out.hard = read_quota_amounts(spec["hard"]);
    const Reader selector = spec["scopeSelector"];
    const Reader expressions = selector["matchExpressions"];
    expressions.each([&](const Reader&) { out.scoped = true; });
    const Reader scopes = spec["scopes"];
    scopes.each([&](const Reader&) { out.scoped = true; });
    if (!trouble.empty()) return base::bad_request("ResourceQuota \"" + out.meta.full_name() + "\": " + trouble);
    return out;
}

}  // namespace berth::model
