#include "model/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::model {
namespace {

constexpr size_t kMaxLabel = 63;
constexpr size_t kMaxSubdomain = 253;
constexpr size_t kMaxPortName = 15;

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_lower_alnum(char c) {
    return is_lower(c) || is_digit(c);
}
bool is_alnum(char c) {
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

// [a-z0-9]([-a-z0-9]*[a-z0-9])?
bool is_dns_word(std::string_view word) {
    return !word.empty() && is_lower_alnum(word.front()) && is_lower_alnum(word.back()) &&
           std::all_of(word.begin(), word.end(), [](char c) { return c == '-' || is_lower_alnum(c); });
}

// Such words joined by dots.
bool is_dns_path(std::string_view name) {
    while (true) {
        const size_t dot = name.find('.');
        if (!is_dns_word(name.substr(0, dot))) return false;
        if (dot == std::string_view::npos) return true;
        name.remove_prefix(dot + 1);
    }
}

// ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]
bool is_label_word(std::string_view word) {
    return !word.empty() && is_alnum(word.front()) && is_alnum(word.back()) &&
           std::all_of(word.begin(), word.end(),
                       [](char c) { return c == '-' || c == '_' || c == '.' || is_alnum(c); });
}

std::string too_long(size_t limit) {
    return fmt::format("must be no more than {} characters", limit);
}

// Kubernetes' regular expressions are part of its sentences; the functions above are what we match by.
constexpr std::string_view kLabelForm = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kSubdomainForm = R"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)";
constexpr std::string_view kServiceForm = "[a-z]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kKeyForm = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kValueForm = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

constexpr std::string_view kKeyRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

std::string key_fault() {
    return form_fault(kKeyRule, kKeyForm, {"MyName", "my.name", "123-abc"});
}

}  // namespace

std::string form_fault(std::string_view rule, std::string_view form, std::initializer_list<std::string_view> examples) {
    std::string out = fmt::format("{} (e.g. ", rule);
    for (const auto example : examples) {
        fmt::format_to(std::back_inserter(out), "{}'{}', ", example == *examples.begin() ? "" : " or ", example);
    }
    return fmt::format("{}regex used for validation is '{}')", out, form);
}

Fault dns1123_label_fault(std::string_view name) {
    if (name.size() > kMaxLabel) return too_long(kMaxLabel);
    if (is_dns_word(name)) return std::nullopt;
    if (is_dns_path(name)) return "must not contain dots";
    return form_fault(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character",
        kLabelForm, {"my-name", "123-abc"});
}

Fault dns1123_subdomain_fault(std::string_view name) {
    if (name.size() > kMaxSubdomain) return too_long(kMaxSubdomain);
    if (is_dns_path(name)) return std::nullopt;
    return form_fault(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character",
        kSubdomainForm, {"example.com"});
}

Fault dns1035_label_fault(std::string_view name) {
    if (name.size() > kMaxLabel) return too_long(kMaxLabel);
    if (is_dns_word(name) && is_lower(name.front())) return std::nullopt;
    return form_fault(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character",
        kServiceForm, {"my-name", "abc-123"});
}

Fault qualified_name_fault(std::string_view name) {
    const size_t slash = name.find('/');
    if (slash != std::string_view::npos) {
        const auto prefix = name.substr(0, slash);
        name.remove_prefix(slash + 1);
        if (name.find('/') != std::string_view::npos) {
            return fmt::format(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                key_fault());
        }
        if (prefix.empty()) return "prefix part must be non-empty";
        if (const auto fault = dns1123_subdomain_fault(prefix)) return "prefix part " + *fault;
    }
    if (name.empty()) return "name part must be non-empty";
    if (name.size() > kMaxLabel) return "name part " + too_long(kMaxLabel);
    if (!is_label_word(name)) return "name part " + key_fault();
    return std::nullopt;
}

Fault label_value_fault(std::string_view value) {
    if (value.size() > kMaxLabel) return too_long(kMaxLabel);
    if (value.empty() || is_label_word(value)) return std::nullopt;
    return form_fault(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character",
        kValueForm, {"MyValue", "my_value", "12345"});
}

Fault annotation_key_fault(std::string_view key) {
    std::string lower(key);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return qualified_name_fault(lower);
}

Fault path_segment_fault(std::string_view name) {
    if (name == "." || name == "..") return fmt::format("may not be '{}'", name);
    for (const char c : {'/', '%'}) {
        if (name.find(c) != std::string_view::npos) return fmt::format("may not contain '{}'", c);
    }
    return std::nullopt;
}

Fault port_name_fault(std::string_view name) {
    if (name.size() > kMaxPortName) return too_long(kMaxPortName);
    if (name.empty() || !std::all_of(name.begin(), name.end(), [](char c) { return c == '-' || is_lower_alnum(c); }))
        return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
    if (std::none_of(name.begin(), name.end(), is_lower)) return "must contain at least one letter (a-z)";
    if (name.find("--") != std::string_view::npos) return "must not contain consecutive hyphens";
    if (name.front() == '-' || name.back() == '-') return "must not begin or end with a hyphen";
    return std::nullopt;
}

}  // namespace berth::model
