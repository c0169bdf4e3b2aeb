#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_view.h"

namespace berth::model {

// Walks a JSON document while it is decoded into a typed value. A missing or null field reads as its default; the first
// field of a wrong type is remembered in `trouble` as "path: what is wrong", and decoding goes on.
// A Reader refers to its parent, so each level is a named variable: `const Reader spec = root["spec"];`.
class Reader {
public:
    Reader(JsonView root, std::string& trouble) : view_(root), trouble_(&trouble) {}

    bool present() const { return view_.has_value(); }
    const std::optional<JsonView>& view() const { return view_; }
    Reader operator[](std::string_view key) const&;
    Reader operator[](std::string_view key) const&& = delete;

    bool is_number() const { return view_ && view_->is_number(); }
    std::string_view text() const;
    // A text, or a number nearly as it was written: 0.5, 1e+09.
    std::string text_or_number() const;
    int64_t integer(int64_t otherwise = 0) const;
    bool flag(bool otherwise = false) const;

    // Calls f(item) for each element of an array.
    template <class F>
    void each(F f) const {
        simdjson::dom::array items;
        if (!as_array(items)) return;
        size_t index = 0;
        for (const JsonView item : items) f(Reader(item, *this, index++));
    }
    // Calls f(key, value) for each member of an object.
    template <class F>
    void entries(F f) const {
        simdjson::dom::object members;
        if (!as_object(members)) return;
        for (const auto member : members) f(member.key, Reader(member.value, *this, member.key));
    }

    // Remembers that this field is wrong, unless an earlier one already was.
    void wrong(std::string_view what) const;
    std::string path() const;

private:
    Reader(std::optional<JsonView> view, const Reader& parent, std::string_view key)
        : view_(view), parent_(&parent), key_(key), trouble_(parent.trouble_) {}
    Reader(JsonView view, const Reader& parent, size_t index)
        : view_(view), parent_(&parent), index_(index), trouble_(parent.trouble_) {}
    bool as_array(simdjson::dom::array& out) const;
    bool as_object(simdjson::dom::object& out) const;

    std::optional<JsonView> view_;
    const Reader* parent_ = nullptr;
    std::string_view key_;
    size_t index_ = 0;
    std::string* trouble_;
    mutable uint32_t asked_ = 0;
    mutable uint64_t names_ = 0;  // a bit for each member, from the third question on
};

}  // namespace berth::model
