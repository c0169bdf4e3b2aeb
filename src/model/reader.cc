#include "model/reader.h"

#include <fmt/format.h>

namespace berth::model {

Reader Reader::operator[](std::string_view key) const& {
    simdjson::dom::object members;
    if (!as_object(members)) return Reader(std::nullopt, *this, key);
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
    return simdjson::minify(*view_);
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
