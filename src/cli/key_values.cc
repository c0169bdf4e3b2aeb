#include "cli/key_values.h"

#include <fmt/format.h>

#include "model/quantity.h"

namespace berth::cli {

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
    for (const auto& [name, value] : out) {
        if (auto read = model::Quantity::parse(std::string_view(value.as_string())); !read) {
            return base::bad_request(fmt::format("{} {}: {}", flag, std::string_view(name), read.error().message));
        }
    }
    return out;
}

}  // namespace berth::cli
