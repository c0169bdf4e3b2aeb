#include "cli/key_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/near_word.h"
#include "model/quantity.h"

namespace berth::cli {
namespace {

// As Kubernetes names what every node has; anything else has a domain in front.
const std::vector<std::string> kPlainResources{"cpu", "memory", "ephemeral-storage", "pods"};

Status check_resource(const std::string& name, std::string_view flag) {
    const auto& plain = kPlainResources;
    if (name.find('/') != std::string::npos || name.starts_with("hugepages-")) return {};
    if (std::find(plain.begin(), plain.end(), name) != plain.end()) return {};
    const std::string meant = near_word(name, plain);
    return base::bad_request(fmt::format("{}: there is no resource \"{}\"{}", flag, name,
                                         meant.empty() ? "; resources of your own have a domain, as in example.com/gpu"
                                                       : fmt::format(": did you mean {}?", meant)));
}

}  // namespace

Result<JsonObject> key_values(const std::vector<std::string>& words, std::string_view flag) {
    JsonObject out;
    for (const auto& text : words) {
        const auto equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            return base::bad_request(fmt::format("{}: \"{}\" is not key=value", flag, text));
        }
        out[text.substr(0, equals)] = text.substr(equals + 1);
    }
    return out;
}

Result<JsonObject> amounts_given(const std::vector<std::string>& words, std::string_view flag) {
    JsonObject out = TRY(key_values(words, flag));
    for (const auto& [key, value] : out) {
        const std::string name(key);
        const std::string_view amount(value.as_string());
        TRY(check_resource(name, flag));
        const auto read = model::Quantity::parse(amount);
        if (!read) return base::bad_request(fmt::format("{} {}: {}", flag, name, read.error().message));
        if (*read <= model::Quantity()) {
            return base::bad_request(fmt::format("{} {}: {} would hold nothing", flag, name, amount));
        }
    }
    return out;
}

}  // namespace berth::cli
