#include "model/resources.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/saturating.h"
#include "model/resource_names.h"

namespace berth::model {
namespace {

// What is asked for by name: known from the beginning, whatever others say first.
constexpr std::array kOurs{
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "count/pods",
    "requests.storage",
    "kubernetes.io/batch-cpu",
    "kubernetes.io/batch-memory",
    "koordinator.sh/gpu",
    "koordinator.sh/gpu.shared",
    "koordinator.sh/gpu-core",
    "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/rdma",
    "koordinator.sh/fpga",
    "nvidia.com/gpu",
    "amd.com/gpu",
    "dcu.com/gpu",
};

// All names met so far. Names are only added: a slot is written before its id is handed out and never changes again, so
// reading a name takes no lock.
class Names {
public:
    Names() {
        for (const auto* name : {"cpu", "memory", "ephemeral-storage", "pods"}) CHECK(intern(name).ok());
        for (const auto* name : kOurs) CHECK(intern(name).ok());
    }

    std::optional<ResourceId> find(std::string_view name) const {
        const std::shared_lock lock(mutex_);
        const auto found = ids_.find(name);
        if (found == ids_.end()) return std::nullopt;
        return found->second;
    }

    Result<ResourceId> intern(std::string_view name, size_t most = kMaxResourceNames) {
        if (const auto known = find(name)) return *known;
        const std::unique_lock lock(mutex_);
        if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
        const size_t next = count_.load(std::memory_order_relaxed);
        if (next >= most) {
            return Error{Reason::TooManyRequests,
                         fmt::format("resource name \"{}\" is one too many: {} different names are known already",
                                     name.substr(0, 64), next)};
        }
        const ResourceId id{static_cast<uint16_t>(next)};
        auto& chunk = chunks_[next / kChunk];
        if (!chunk) chunk = std::make_unique<Chunk>();
        (*chunk)[next % kChunk] = name;
        ids_.emplace((*chunk)[next % kChunk], id);
        count_.store(next + 1, std::memory_order_release);
        return id;
    }

    std::string_view name(ResourceId id) const {
        CHECK(id.index < count_.load(std::memory_order_acquire));
        return (*chunks_[id.index / kChunk])[id.index % kChunk];
    }

private:
    static constexpr size_t kChunk = 1024;
    using Chunk = std::array<std::string, kChunk>;

    mutable std::shared_mutex mutex_;
    absl::flat_hash_map<std::string_view, ResourceId> ids_;
    std::array<std::unique_ptr<Chunk>, kMaxResourceNames / kChunk + 1> chunks_;
    std::atomic<size_t> count_ = 0;
};

Names& names() {
    static Names* const instance = new Names;  // outlives every static that might print a name
    return *instance;
}

int64_t larger(int64_t a, int64_t b) {
    return std::max(a, b);
}

constexpr auto kById = [](const Resources::Entry& entry, ResourceId id) { return entry.first < id; };

// Applies change(mine, theirs) to every resource of b; one that only b has starts from 0, or is taken over as it is.
template <class Change>
void merge(Resources::Entries& mine, const Resources::Entries& theirs, Change change, bool take_missing) {
    auto at = mine.begin();
    for (const auto& [id, amount] : theirs) {
        if (at == mine.end() || at->first != id) at = std::lower_bound(at, mine.end(), id, kById);
        if (at != mine.end() && at->first == id) {
            at->second = change(at->second, amount);
        } else {
            at = mine.insert(at, {id, take_missing ? amount : change(0, amount)});
        }
        ++at;
    }
}

}  // namespace

Result<ResourceId> intern_resource(std::string_view name) {
    return names().intern(name);
}

Result<ResourceId> intern_asked_resource(std::string_view name) {
    return names().intern(name, kMaxAskedNames);
}

std::string_view resource_name(ResourceId id) {
    return names().name(id);
}

bool is_hugepages(std::string_view name) {
    return name.starts_with("hugepages-");
}

int64_t amount_of(ResourceId id, const Quantity& quantity) {
    return id == kCpu ? quantity.milli() : quantity.value();
}

Quantity quantity_of(ResourceId id, int64_t amount) {
    if (id == kCpu) return Quantity::from_milli(amount);
    const bool bytes = id == kMemory || id == kEphemeralStorage || is_hugepages(resource_name(id));
    return Quantity::from_value(amount, bytes ? Quantity::Format::BinarySI : Quantity::Format::DecimalSI);
}

std::string quantity_text(ResourceId id, int64_t amount) {
    return quantity_of(id, amount).text();
}

Resources::Resources(std::initializer_list<Entry> entries) {
    for (const auto& [id, amount] : entries) set(id, amount);
}

void Resources::set(ResourceId id, int64_t amount) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), id, kById);
    if (at != entries_.end() && at->first == id) {
        at->second = amount;
    } else {
        entries_.insert(at, {id, amount});
    }
}

void Resources::erase(ResourceId id) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), id, kById);
    if (at != entries_.end() && at->first == id) entries_.erase(at);
}

void Resources::add(ResourceId id, int64_t amount) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), id, kById);
    if (at != entries_.end() && at->first == id) {
        at->second = base::saturating_add(at->second, amount);
    } else {
        entries_.insert(at, {id, amount});
    }
}

void Resources::add(const Resources& other) {
    if (entries_.empty()) {
        entries_ = other.entries_;
        return;
    }
    merge(entries_, other.entries_, [](int64_t a, int64_t b) { return base::saturating_add(a, b); }, false);
}

void Resources::subtract(const Resources& other) {
    merge(entries_, other.entries_, [](int64_t a, int64_t b) { return base::saturating_subtract(a, b); }, false);
}

void Resources::max(const Resources& other) {
    merge(entries_, other.entries_, larger, true);
}

std::string Resources::text() const {
    std::vector<std::pair<std::string_view, ResourceId>> sorted;
    for (const auto& [id, amount] : entries_) sorted.emplace_back(resource_name(id), id);
    std::sort(sorted.begin(), sorted.end());
    std::string out = "{";
    for (const auto& [name, id] : sorted) {
        if (out.size() > 1) out += ", ";
        out += fmt::format("{}: \"{}\"", name, quantity_text(id, get(id)));
    }
    return out + "}";
}

}  // namespace berth::model
