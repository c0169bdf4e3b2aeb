#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

// NoSchedule, PreferNoSchedule, NoExecute, as objects write them.
struct Taint {
    std::string key;
    std::string value;
    std::string effect;
    bool operator==(const Taint&) const = default;
};

// Operators: Equal (also when empty) and Exists. Lt and Gt are behind a gate that is off by default in v1.35: they
// tolerate nothing.
struct Toleration {
    std::string key;
    std::string op;
    std::string value;
    std::string effect;
    std::optional<int64_t> toleration_seconds;
    bool operator==(const Toleration&) const = default;
};

// An empty effect tolerates every effect; an empty key with Exists tolerates every taint.
bool tolerates(const Toleration& toleration, const Taint& taint);
bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

}  // namespace berth::model

namespace berth {
using model::Taint;
using model::Toleration;
}  // namespace berth
