#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "link/api_client.h"

namespace berth::cli {

class Interrupt;

// Follows a resource until `enough` says so of one of its objects; false: not within that many seconds, or not before
// the interrupt. `gone`: the object is what it last was, and no longer there. `enough_listed` is asked when everything
// that is there was told.
bool until(link::ApiClient& server, const link::Resource& resource, int seconds,
           const std::function<bool(const Json& object, bool gone)>& enough,
           const std::function<bool()>& enough_listed = {}, Interrupt* interrupt = nullptr);

// The message of a condition of this type; empty: it has none.
std::string condition_message(const Json& object, std::string_view type);

// For a query: "a=b" -> "a%3Db".
std::string percent_encoded(std::string_view text);

}  // namespace berth::cli
