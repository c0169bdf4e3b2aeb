#include "app/fields.h"

#include <fmt/format.h>

#include "model/times.h"

namespace berth::app {

std::string Fields::path_to(std::string_view name) const {
    if (name.empty()) return path_;
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void Fields::wrong(std::string_view name, std::string_view what) {
    if (trouble_.empty()) trouble_ = fmt::format("{}: {}", path_to(name), what);
}

const Json* Fields::take(std::string_view name) {
    known_.insert(std::string(name));
    if (object_ == nullptr) return nullptr;
    const Json* found = object_->if_contains(name);
    return found == nullptr || found->is_null() ? nullptr : found;
}

std::optional<std::string> Fields::text(std::string_view name) {
    const Json* found = take(name);
    if (found == nullptr) return std::nullopt;
    if (found->is_string()) return std::string(found->get_string());
    wrong(name, "must be a string");
    return std::nullopt;
}

std::optional<int64_t> Fields::integer(std::string_view name) {
    const Json* found = take(name);
    if (found == nullptr) return std::nullopt;
    if (found->is_int64()) return found->get_int64();
    wrong(name, "must be an integer");
    return std::nullopt;
}

std::optional<bool> Fields::flag(std::string_view name) {
    const Json* found = take(name);
    if (found == nullptr) return std::nullopt;
    if (found->is_bool()) return found->get_bool();
    wrong(name, "must be true or false");
    return std::nullopt;
}

std::optional<base::Duration> Fields::duration(std::string_view name) {
    const auto given = text(name);
    if (!given) return std::nullopt;
    const auto read = model::parse_duration(*given);
    if (read) return *read;
    wrong(name, fmt::format("\"{}\" is no duration such as 15s", *given));
    return std::nullopt;
}

Fields Fields::object(std::string_view name) {
    static const Json nothing = JsonObject{};
    const Json* found = take(name);
    return Fields(found == nullptr ? nothing : *found, path_to(name));
}

std::vector<Fields> Fields::list(std::string_view name) {
    std::vector<Fields> out;
    const Json* found = take(name);
    if (found == nullptr) return out;
    if (!found->is_array()) {
        wrong(name, "must be a list");
        return out;
    }
    for (const Json& item : found->get_array())
        out.emplace_back(item, fmt::format("{}[{}]", path_to(name), out.size()));
    return out;
}

Status Fields::check() const {
    if (!trouble_.empty()) return base::bad_request(trouble_);
    if (object_ == nullptr) return {};
    for (const auto& field : *object_) {
        const std::string_view name(field.key().data(), field.key().size());
        if (!known_.contains(name))
            return base::bad_request(path_to(name) + ": there is no such field, or it is not supported");
    }
    return {};
}

}  // namespace berth::app
