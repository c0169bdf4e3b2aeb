#include <fmt/format.h>

#include "base/clipped.h"
#include "model/kinds/validate_rules.h"

namespace berth::model {
namespace {

std::string shown(std::string_view what, const Json& value) {
    return fmt::format("{}: {}", what, base::clipped(base::to_text(value)));
}

}  // namespace

bool Causes::room() {
    if (causes_.size() < kMost) return true;
    ++untold_;
    return false;
}

std::vector<base::Cause> Causes::take() {
    if (untold_ > 0) causes_.push_back({"", fmt::format("too many errors, {} more are not listed", untold_), ""});
    return std::move(causes_);
}

void Causes::add(const Where& at, const char* reason, std::string message, std::string_view words) {
    if (!words.empty()) message += ": " + std::string(words);
    causes_.push_back({reason, std::move(message), at.text()});
}

void Causes::required(const Where& at, std::string_view words) {
    if (room()) add(at, "FieldValueRequired", "Required value", words);
}

void Causes::invalid(const Where& at, const Json& value, std::string_view words) {
    if (room()) add(at, "FieldValueInvalid", shown("Invalid value", value), words);
}

void Causes::unsupported(const Where& at, const Json& value, const std::vector<std::string>& supported) {
    if (!room()) return;
    std::string words = "supported values: ";
    for (size_t i = 0; i < supported.size(); ++i) words += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", supported[i]);
    add(at, "FieldValueNotSupported", shown("Unsupported value", value), words);
}

void Causes::duplicate(const Where& at, const Json& value) {
    if (room()) add(at, "FieldValueDuplicate", shown("Duplicate value", value), {});
}

void Causes::not_found(const Where& at, const Json& value) {
    if (room()) add(at, "FieldValueNotFound", shown("Not found", value), {});
}

void Causes::forbidden(const Where& at, std::string_view words) {
    if (room()) add(at, "FieldValueForbidden", "Forbidden", words);
}

void Causes::too_long(const Where& at, std::string_view words) {
    if (room()) add(at, "FieldValueTooLong", "Too long", words);
}

}  // namespace berth::model
