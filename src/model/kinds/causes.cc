#include <fmt/format.h>

#include "model/kinds/validate_rules.h"

namespace berth::model {

void Causes::add(const Where& at, const char* reason, std::string message, std::string_view words) {
    if (!words.empty()) message += ": " + std::string(words);
    causes_.push_back({reason, std::move(message), at.text()});
}

void Causes::required(const Where& at, std::string_view words) {
    add(at, "FieldValueRequired", "Required value", words);
}

void Causes::invalid(const Where& at, const Json& value, std::string_view words) {
    add(at, "FieldValueInvalid", "Invalid value: " + base::to_text(value), words);
}

void Causes::unsupported(const Where& at, const Json& value, const std::vector<std::string>& supported) {
    std::string words = "supported values: ";
    for (size_t i = 0; i < supported.size(); ++i) words += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", supported[i]);
    add(at, "FieldValueNotSupported", "Unsupported value: " + base::to_text(value), words);
}

void Causes::duplicate(const Where& at, const Json& value) {
    add(at, "FieldValueDuplicate", "Duplicate value: " + base::to_text(value), {});
}

void Causes::not_found(const Where& at, const Json& value) {
    add(at, "FieldValueNotFound", "Not found: " + base::to_text(value), {});
}

void Causes::forbidden(const Where& at, std::string_view words) {
    add(at, "FieldValueForbidden", "Forbidden", words);
}

}  // namespace berth::model
