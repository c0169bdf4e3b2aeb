#include "model/kinds/validate_names.h"

#include <algorithm>

#include "model/kinds/path.h"

namespace berth::model {
namespace {

bool is_figure(char c) {
    return c >= '0' && c <= '9';
}

bool is_word(char c) {
    return is_figure(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

}  // namespace

Fault env_name_fault(std::string_view name) {
    if (!name.empty() && !is_figure(name.front()) && std::all_of(name.begin(), name.end(), is_word))
        return std::nullopt;
    return form_fault(
        "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must "
        "not start with a digit",
        "[-._a-zA-Z][-._a-zA-Z0-9]*", {"my.env-name", "MY_ENV.NAME", "MyEnvName1"});
}

Fault config_key_fault(std::string_view key) {
    if (key.size() > 253) return "must be no more than 253 characters";
    if (key.empty() || !std::all_of(key.begin(), key.end(), is_word)) {
        return form_fault("a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                          "[-._a-zA-Z0-9]+", {"key.name", "KEY_NAME", "key-name"});
    }
    if (key == ".") return "must not be '.'";
    if (key == ".." || key.starts_with("..")) return "must not start with '..'";
    return std::nullopt;
}

Fault port_fault(const Json& value) {
    if (value.is_string()) return port_name_fault(string_at(value, ""));
    const int64_t port = to_int(value);
    if (port >= 1 && port <= 65535) return std::nullopt;
    return "must be between 1 and 65535, inclusive";
}

Fault share_fault(const Json& value) {
    if (!value.is_string()) {
        if (to_int(value) >= 0) return std::nullopt;
        return "must be greater than or equal to 0";
    }
    std::string_view text = string_at(value, "");
    const bool percent = text.size() > 1 && text.back() == '%';
    if (percent) text.remove_suffix(1);
    if (percent && std::all_of(text.begin(), text.end(), is_figure)) {
        const bool above = text.size() > 3 || (text.size() == 3 && text > "100");
        return above ? Fault("must not be greater than 100%") : std::nullopt;
    }
    return "must be a number or a percentage (e.g. '25%')";
}

}  // namespace berth::model
