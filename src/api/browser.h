#pragma once

#include <string>
#include <vector>

#include "api/http.h"

namespace berth::api {

// A browser adds its owner's certificate to what any page asks. So a request must be meant for us: its Host is an
// address, or one of our names (a foreign name that was made to point at us is not), and its Origin, if it has one, is
// ourselves. Only health may be asked by any name.
Status check_browser(const Request& request, const std::vector<std::string>& our_names);

}  // namespace berth::api
