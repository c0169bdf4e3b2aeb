#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ledger/text.h"

namespace berth::ledger {

// An object's uid: the 128 bits of a UUID as API servers write it (lower case, with dashes), or any other text.
class Uid {
public:
    Uid() = default;
    explicit Uid(std::string_view text);

    std::string text() const;
    size_t hash() const;
    static size_t hash(std::string_view text) { return Uid(text).hash(); }
    bool operator==(std::string_view text) const { return *this == Uid(text); }
    bool operator==(const Uid& other) const;

private:
    uint64_t high_ = 0;
    uint64_t low_ = 0;
    Text other_;  // set when the text is no UUID
};

}  // namespace berth::ledger
