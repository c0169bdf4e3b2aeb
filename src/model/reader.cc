#include "model/reader.h"

#include <fmt/format.h>

namespace berth::model {
namespace {

// Names of different length or ends have mostly different bits.
uint64_t bit_of(std::string_view name) {
    if (name.empty()) return 1;
    const auto front = static_cast<unsigned char>(name.front());
    const auto back = static_cast<unsigned char>(name.back());
    return uint64_t(1) << ((name.size() * 7 + front * 5U + back * 11U) % 64);
}

}  // namespace

// Most of what is asked for is not there. Who is asked often remembers its members' names, and need not look for those.
Reader Reader::operator[](std::string_view key) const& {
    simdjson::dom::object members;
    if (!as_object(members)) return Reader(std::nullopt, *this, key);
    if (asked_++ == 2) {
        for (const auto member : members) names_ |= bit_of(member.key);
    }
    if (asked_ > 2 && (names_ & bit_of(key)) == 0) return Reader(std::nullopt, *this, key);
    JsonView found;
    if (members.at_key(key).get(found) || found.is_null()) return Reader(std::nullopt, *this, key);
    return Reader(found, *this, key);
}

bool Reader::as_object(simdjson::dom::object& out) const {
    if (!view_ || view_->is_null()) return false;
    if (view_->get(out) == simdjson::SUCCESS) return true;
    wrong("must be an object");
    return false;
}

bool Reader::as_array(simdjson::dom::array& out) const {
    if (!view_ || view_->is_null()) return false;
    if (view_->get(out) == simdjson::SUCCESS) return true;
    wrong("must be a list");
    return false;
}

std::string_view Reader::text() const {
    std::string_view text;
    if (!view_ || view_->is_null()) return text;
    if (view_->get(text) != simdjson::SUCCESS) wrong("must be a string");
    return text;
}

std::string Reader::text_or_number() const {
    if (!is_number()) return std::string(text());
    int64_t whole = 0;
    uint64_t large = 0;
    double fraction = 0;
    if (view_->get(whole) == simdjson::SUCCESS) return fmt::format("{}", whole);
    if (view_->get(large) == simdjson::SUCCESS) return fmt::format("{}", large);
    if (view_->get(fraction) != simdjson::SUCCESS) wrong("must be a number");
    return fmt::format("{}", fraction);
}

int64_t Reader::integer(int64_t otherwise) const {
    if (!view_ || view_->is_null()) return otherwise;
    int64_t number = otherwise;
    if (view_->get(number) != simdjson::SUCCESS) wrong("must be an integer");
    return number;
}

bool Reader::flag(bool otherwise) const {
    if (!view_ || view_->is_null()) return otherwise;
    bool flag = otherwise;
    if (view_->get(flag) != simdjson::SUCCESS) wrong("must be true or false");
    return flag;
}

std::string Reader::path() const {
    if (!parent_) return "";
    const std::string above = parent_->path();
    if (key_.data() == nullptr) return fmt::format("{}[{}]", above, index_);
    return above.empty() ? std::string(key_) : fmt::format("{}.{}", above, key_);
}

void Reader::wrong(std::string_view what) const {
    if (!trouble_->empty()) return;
    const std::string where = path();
    *trouble_ = where.empty() ? std::string(what) : fmt::format("{}: {}", where, what);
}

}  // namespace berth::model
