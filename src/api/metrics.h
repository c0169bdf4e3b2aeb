#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"

namespace berth::api {

// The numbers of the server.
class Metrics : public base::Metrics {
public:
    void count_request(std::string_view verb, std::string_view resource, int code, base::Duration took);
};

}  // namespace berth::api
