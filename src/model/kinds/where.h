#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth::model {

// Where in a document we are; a chain on the stack, spelled out only when somebody must be told.
struct Where {
    enum class Kind : uint8_t { Root, Member, Key, Index };

    const Where* parent = nullptr;
    Kind kind = Kind::Root;
    std::string_view name = {};
    size_t index = 0;

    Where member(std::string_view key) const { return {this, Kind::Member, key, 0}; }
    Where key(std::string_view key_of_map) const { return {this, Kind::Key, key_of_map, 0}; }
    Where item(size_t at) const { return {this, Kind::Index, {}, at}; }

    // spec.containers[0].resources.limits[cpu]
    std::string text() const {
        if (parent == nullptr) return "";
        std::string before = parent->text();
        if (kind == Kind::Index) return before + "[" + std::to_string(index) + "]";
        if (kind == Kind::Key) return before + "[" + std::string(name) + "]";
        return before.empty() ? std::string(name) : before + "." + std::string(name);
    }

    // spec.containers.resources.limits.cpu: as Go's decoder names it.
    std::string plain_text() const {
        if (parent == nullptr) return "";
        std::string before = parent->plain_text();
        if (kind == Kind::Index) return before;
        return before.empty() ? std::string(name) : before + "." + std::string(name);
    }
};

}  // namespace berth::model
