#include "control/templates.h"

#include <algorithm>
#include <array>
#include <vector>

namespace berth::control {
namespace {

// Values, not pointers, where Kubernetes keeps them: there an empty one is none. (An empty selector selects everything,
// and none selects nothing.)
constexpr std::array<std::string_view, 8> kEmptyIsNone{"metadata", "labels",       "annotations", "resources",
                                                       "limits",   "nodeSelector", "requests",    "strategy"};
constexpr std::array<std::string_view, 3> kOfControllers{"pod-template-hash", "controller-revision-hash",
                                                         "pod-template-generation"};

bool in(const auto& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

Json plain(const Json& value);

bool says_nothing(std::string_view key, const Json& value) {
    if (value.is_null() || (value.is_array() && value.get_array().empty())) return true;
    return value.is_object() && value.get_object().empty() && in(kEmptyIsNone, key);
}

Json plain(const JsonObject& object) {
    std::vector<std::string_view> keys;
    for (const auto& member : object) keys.push_back(member.key());
    std::sort(keys.begin(), keys.end());
    JsonObject out;
    for (const auto key : keys) {
        Json member = plain(object.at(key));
        if (!says_nothing(key, member) && !in(kOfControllers, key)) out[key] = std::move(member);
    }
    return out;
}

Json plain(const Json& value) {
    if (value.is_object()) return plain(value.get_object());
    if (!value.is_array()) return value;
    JsonArray out;
    for (const auto& item : value.get_array()) out.push_back(plain(item));
    return out;
}

}  // namespace

std::string template_text(const Json& pod_template) {
    return base::to_text(plain(pod_template));
}

std::string hash_text(std::string_view text) {
    static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
    uint64_t hash = 1469598103934665603ULL;  // FNV-1a
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    std::string out;
    for (int i = 0; i < 10; ++i, hash /= kLetters.size()) out.push_back(kLetters[hash % kLetters.size()]);
    return out;
}

}  // namespace berth::control
