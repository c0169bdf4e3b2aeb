#include "model/labels.h"

#include <algorithm>

namespace berth::model {
namespace {

constexpr auto kByKey = [](const Labels::Entry& entry, std::string_view key) { return entry.first < key; };

}  // namespace

Labels::Labels(std::vector<Entry> entries) : entries_(std::move(entries)) {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.first < b.first; });
    size_t kept = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
        const bool same = kept > 0 && entries_[kept - 1].first == entries_[i].first;
        if (!same) ++kept;
        if (kept - 1 != i) entries_[kept - 1] = std::move(entries_[i]);
    }
    entries_.resize(kept);
}

const std::string* Labels::find(std::string_view key) const {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, kByKey);
    return at != entries_.end() && at->first == key ? &at->second : nullptr;
}

std::string_view Labels::get(std::string_view key) const {
    const auto* value = find(key);
    return value ? std::string_view(*value) : std::string_view();
}

void Labels::set(std::string_view key, std::string_view value) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, kByKey);
    if (at != entries_.end() && at->first == key) {
        at->second = value;
    } else {
        entries_.emplace(at, key, value);
    }
}

bool Labels::erase(std::string_view key) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, kByKey);
    if (at == entries_.end() || at->first != key) return false;
    entries_.erase(at);
    return true;
}

std::string Labels::text() const {
    std::string out;
    for (const auto& [key, value] : entries_) {
        if (!out.empty()) out += ',';
        out.append(key).append("=").append(value);
    }
    return out;
}

}  // namespace berth::model
