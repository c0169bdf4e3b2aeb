#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::model {

// Labels or annotations of an object: sorted by key, each key once.
class Labels {
public:
    using Entry = std::pair<std::string, std::string>;

    Labels() = default;
    // Of two entries with one key the later counts.
    Labels(std::initializer_list<Entry> entries) : Labels(std::vector<Entry>(entries)) {}
    explicit Labels(std::vector<Entry> entries);

    // The value, or nullptr when the key is absent.
    const std::string* find(std::string_view key) const;
    // The value, or "" when the key is absent.
    std::string_view get(std::string_view key) const;
    bool has(std::string_view key) const { return find(key) != nullptr; }
    void set(std::string_view key, std::string_view value);
    bool erase(std::string_view key);

    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }
    bool empty() const { return entries_.empty(); }
    size_t size() const { return entries_.size(); }

    // a=b,c=d
    std::string text() const;

    auto operator<=>(const Labels&) const = default;
    template <class H>
    friend H AbslHashValue(H state, const Labels& labels) {
        return H::combine(std::move(state), labels.entries_);
    }

private:
    std::vector<Entry> entries_;
};

}  // namespace berth::model

namespace berth {
using model::Labels;
}  // namespace berth
