#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace berth::ledger {

// A short text that never changes, in 8 bytes beside its characters: there is one for each of a million pods.
class Text {
public:
    Text() = default;
    explicit Text(std::string_view text)
        : bytes_(std::make_unique_for_overwrite<char[]>(sizeof(uint32_t) + text.size())) {
        const auto size = static_cast<uint32_t>(text.size());
        std::memcpy(bytes_.get(), &size, sizeof(size));
        std::memcpy(bytes_.get() + sizeof(size), text.data(), text.size());
    }

    std::string_view view() const {
        if (!bytes_) return {};
        uint32_t size = 0;
        std::memcpy(&size, bytes_.get(), sizeof(size));
        return {bytes_.get() + sizeof(size), size};
    }
    bool is_set() const { return bytes_ != nullptr; }
    operator std::string_view() const { return view(); }  // NOLINT: a Text is read wherever a view is

private:
    std::unique_ptr<char[]> bytes_;
};

}  // namespace berth::ledger
