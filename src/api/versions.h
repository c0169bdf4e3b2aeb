#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/call.h"
#include "store/store.h"

// Resource versions and continue tokens, as clients send them.
namespace berth::api {

// "" is 0. 400 for anything but decimal digits of a 64-bit number.
Result<store::Revision> parse_version(std::string_view text);
// 504 with the cause ResourceVersionTooLarge: the client asks again a little later.
Error version_too_large(store::Revision asked, store::Revision current);

// Where a list goes on: behind `after`, in the snapshot `revision`.
struct Continuation {
    store::Revision revision = 0;
    store::Key after;  // ns and name
};
std::string continue_token(const Continuation& continuation);
Result<Continuation> parse_continue_token(std::string_view token);

// How a list reads the store.
struct ListPlan {
    std::optional<store::Revision> at = {};  // a snapshot; unset: now
    std::optional<store::Key> after = {};
    size_t limit = 0;
    bool resumed = false;  // a page of a list begun before
};
Result<ListPlan> plan_list(const CallOptions& options, store::Revision current);

}  // namespace berth::api
