#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clipped.h"

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
        std::string out;
        append(out, true);
        return base::clipped(std::move(out));
    }

    // spec.containers.resources.limits.cpu: as Go's decoder names it.
    std::string plain_text() const {
        std::string out;
        append(out, false);
        return base::clipped(std::move(out));
    }

private:
    // Of names that are longer than what is repeated only the beginning.
    void append(std::string& out, bool brackets) const {
        if (parent == nullptr) return;
        parent->append(out, brackets);
        if (out.size() > base::kMostRepeated || (kind == Kind::Index && !brackets)) return;
        const bool enclosed = kind != Kind::Member && brackets;
        if (!enclosed && !out.empty()) out += '.';
        if (enclosed) out += '[';
        if (kind == Kind::Index)
            out += std::to_string(index);
        else
            out += name.substr(0, base::kMostRepeated + 1);
        if (enclosed) out += ']';
    }
};

}  // namespace berth::model
