#pragma once

#include <optional>
#include <string>

#include "model/meta.h"

namespace berth::model {

// The durable link pod -> reservation, written by the Binding itself.
struct Allocated {
    std::string name;
    std::string uid;
};

std::optional<Allocated> read_allocated(const Meta& pod);
std::string allocated_text(const Allocated& link);

}  // namespace berth::model
