#pragma once

#include <absl/container/inlined_vector.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "model/quantity.h"

namespace berth::model {

// The name of a resource as a number, the same everywhere in the process. Numbers depend on the order in which names
// were first met, so they are never stored, sent or used to break ties.
struct ResourceId {
    uint16_t index = 0;
    auto operator<=>(const ResourceId&) const = default;
};

inline constexpr ResourceId kCpu{0};
inline constexpr ResourceId kMemory{1};
inline constexpr ResourceId kEphemeralStorage{2};
inline constexpr ResourceId kPods{3};
inline constexpr size_t kMaxResourceNames = 60000;

// The id of a name, made at the first call; refused when kMaxResourceNames are known. Any thread.
Result<ResourceId> intern_resource(std::string_view name);
// The name lives as long as the process.
std::string_view resource_name(ResourceId id);

bool is_hugepages(std::string_view name);
// The amount of a quantity in the resource's unit: cpu in thousandths, everything else in whole units.
int64_t amount_of(ResourceId id, const Quantity& quantity);
// The reverse: cpu "1500m", memory, ephemeral-storage and hugepages "4Gi", everything else "3".
Quantity quantity_of(ResourceId id, int64_t amount);
std::string quantity_text(ResourceId id, int64_t amount);

// Amounts by resource, as the scheduler counts them. Sums stop at the ends of int64 and never wrap. A resource that is
// present with 0 differs from one that is absent.
class Resources {
public:
    using Entry = std::pair<ResourceId, int64_t>;
    using Entries = absl::InlinedVector<Entry, 4>;  // few name more

    Resources() = default;
    Resources(std::initializer_list<Entry> entries);

    int64_t get(ResourceId id, int64_t otherwise = 0) const {
        const Entry* found = find(id);
        return found ? found->second : otherwise;
    }
    bool has(ResourceId id) const { return find(id) != nullptr; }
    void set(ResourceId id, int64_t amount);
    void erase(ResourceId id);
    void clear() { entries_.clear(); }
    void add(ResourceId id, int64_t amount);

    void add(const Resources& other);
    // May leave negative amounts; resources of other that are absent here appear as negative ones.
    void subtract(const Resources& other);
    // The larger of both, per resource.
    void max(const Resources& other);

    // In the order of ids.
    template <class F>
    void for_each(F&& f) const {
        for (const auto& [id, amount] : entries_) f(id, amount);
    }
    bool empty() const { return entries_.empty(); }
    size_t size() const { return entries_.size(); }

    // {cpu: "2", memory: "4Gi"}, sorted by name.
    std::string text() const;

    bool operator==(const Resources&) const = default;
    template <class H>
    friend H AbslHashValue(H state, const Resources& resources) {
        for (const auto& [id, amount] : resources.entries_) state = H::combine(std::move(state), id.index, amount);
        return H::combine(std::move(state), resources.entries_.size());
    }

private:
    const Entry* find(ResourceId id) const {
        for (const Entry& entry : entries_) {
            if (entry.first == id) return &entry;
        }
        return nullptr;
    }

    Entries entries_;  // sorted by id, unique
};

}  // namespace berth::model

namespace berth {
using model::ResourceId;
using model::Resources;
}  // namespace berth
