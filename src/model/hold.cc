#include "model/hold.h"

#include <array>
#include <charconv>

#include "base/json.h"

namespace berth::model {
namespace {

constexpr std::array<std::string_view, 7> kStates{"Pending", "Accepted", "Rejected", "NoReply",
                                                  "Bound",   "Released", "Lost"};
constexpr std::array<std::string_view, 8> kReasons{"",      "Fenced",    "Unsatisfiable", "Insufficient",
                                                   "Error", "Contended", "Retry",         "BestEffort"};

template <class Names>
size_t index_in(const Names& names, std::string_view name) {
    for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] == name) return i;
    }
    return 0;
}

}  // namespace

std::string_view name_of(HoldState state) {
    return kStates[static_cast<size_t>(state)];
}

std::string_view name_of(HoldReason reason) {
    return kReasons[static_cast<size_t>(reason)];
}

HoldState hold_state(std::string_view name) {
    return static_cast<HoldState>(index_in(kStates, name));
}

HoldReason hold_reason(std::string_view name) {
    return static_cast<HoldReason>(index_in(kReasons, name));
}

uint64_t attempt_of(const Labels& labels) {
    const std::string_view text = labels.get(kAttemptLabel);
    uint64_t out = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && out > 0 ? out : 1;
}

std::string text_of(const Amounts& amounts) {
    JsonObject out;
    for (const auto& [name, amount] : amounts) out[name] = amount.text();
    return base::to_text(Json(std::move(out)));
}

}  // namespace berth::model
