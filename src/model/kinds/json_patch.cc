#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "model/kinds/patch.h"

namespace berth::model {
namespace {

using base::bad_request;
using base::invalid;
using Path = std::vector<std::string>;

std::optional<Path> parse_pointer(std::string_view text) {
    Path path;
    if (text.empty()) return path;
    if (text.front() != '/') return std::nullopt;
    path.emplace_back();
    for (size_t i = 1; i < text.size(); ++i) {
        if (text[i] == '/') {
            path.emplace_back();
        } else if (text[i] != '~') {
            path.back() += text[i];
        } else if (i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1')) {
            path.back() += text[++i] == '0' ? '~' : '/';
        } else {
            return std::nullopt;
        }
    }
    return path;
}

// The index a step names in a list of that size; negative ones count from the end, as the API server's library does.
std::optional<size_t> list_index(std::string_view step, size_t size) {
    int64_t index = 0;
    const auto [end, ec] = std::from_chars(step.data(), step.data() + step.size(), index);
    if (ec != std::errc() || end != step.data() + step.size()) return std::nullopt;
    if (index < 0) index += static_cast<int64_t>(size);
    if (index < 0 || index > static_cast<int64_t>(size)) return std::nullopt;
    return static_cast<size_t>(index);
}

Json* child(Json& here, const std::string& step) {
    if (auto* object = here.if_object()) return object->if_contains(step);
    if (auto* list = here.if_array()) {
        const auto index = list_index(step, list->size());
        if (index && *index < list->size()) return &(*list)[*index];
    }
    return nullptr;
}

// How deep a value nests; a scalar 0, an object of scalars 1. Counts the values it looks at.
size_t levels(const Json& value, size_t& passed) {
    ++passed;
    size_t below = 0;
    if (const auto* object = value.if_object()) {
        for (const auto& member : *object) below = std::max(below, levels(member.value(), passed));
    } else if (const auto* list = value.if_array()) {
        for (const auto& item : *list) below = std::max(below, levels(item, passed));
    } else {
        return 0;
    }
    return below + 1;
}

Json* walk(Json& document, const Path& path, size_t steps) {
    Json* here = &document;
    for (size_t i = 0; i < steps && here != nullptr; ++i) here = child(*here, path[i]);
    return here;
}

class Patcher {
public:
    explicit Patcher(Json& document) : document_(document) {}

    Status apply(const JsonObject& operation) {
        const auto op = text_of(operation, "op");
        const auto pointer = text_of(operation, "path");
        if (!op || !pointer) return bad_request("a JSON patch operation needs \"op\" and \"path\"");
        text_ = *pointer;
        const auto path = parse_pointer(*pointer);
        if (!path) return bad_request(fmt::format("JSON patch path \"{}\" is not a JSON pointer", *pointer));
        path_ = *path;
        if (*op == "remove") return remove(path_);
        if (*op == "move" || *op == "copy") return transfer(operation, *op == "move");
        const Json* value = operation.if_contains("value");
        if (value == nullptr) {
            if (*op != "add" && *op != "replace" && *op != "test")
                return bad_request(fmt::format("unknown JSON patch operation \"{}\"", *op));
            if (*op != "test") return bad_request(fmt::format("JSON patch {} of \"{}\" has no value", *op, text_));
        }
        if (*op == "add" || *op == "replace") {
            TRY(check_depth(*value));
            return *op == "add" ? add(*value) : replace(*value);
        }
        if (*op == "test") return test(value == nullptr ? Json() : *value);
        return bad_request(fmt::format("unknown JSON patch operation \"{}\"", *op));
    }

private:
    static std::optional<std::string> text_of(const JsonObject& operation, std::string_view key) {
        const Json* value = operation.if_contains(key);
        if (value == nullptr || !value->is_string()) return std::nullopt;
        return std::string(value->get_string());
    }

    Error missing(std::string_view what) const {
        return invalid(fmt::format("the JSON patch cannot {} \"{}\": no such path in the object", what, text_));
    }

    Status check_depth(const Json& value) const {
        size_t passed = 0;
        if (path_.size() + levels(value, passed) <= base::kMaxJsonDepth) return {};
        return invalid(fmt::format("the JSON patch would nest deeper than {} levels", base::kMaxJsonDepth));
    }

    Status pass(size_t values) {
        passed_ += values;
        if (passed_ <= kMaxPatchPassed) return {};
        return Error{Reason::RequestEntityTooLarge,
                     fmt::format("the JSON patch moves or passes by more than {} values", kMaxPatchPassed)};
    }

    Status add(Json value) {
        if (path_.empty()) {
            document_ = std::move(value);
            return {};
        }
        Json* parent = walk(document_, path_, path_.size() - 1);
        if (parent == nullptr) return missing("add");
        if (auto* object = parent->if_object()) {
            (*object)[path_.back()] = std::move(value);
            return {};
        }
        auto* list = parent->if_array();
        if (list == nullptr) return missing("add");
        const auto index = path_.back() == "-" ? list->size() : list_index(path_.back(), list->size());
        if (!index) return missing("add");
        TRY(pass(list->size() - *index));
        list->insert(list->begin() + *index, std::move(value));
        return {};
    }

    Status remove(const Path& path) {
        if (path.empty()) return missing("remove");
        Json* parent = walk(document_, path, path.size() - 1);
        if (parent == nullptr) return missing("remove");
        if (auto* object = parent->if_object()) {
            if (object->erase(path.back()) == 0) return missing("remove");
            return {};
        }
        auto* list = parent->if_array();
        const auto index = list == nullptr ? std::nullopt : list_index(path.back(), list->size());
        if (!index || *index >= list->size()) return missing("remove");
        TRY(pass(list->size() - *index));
        list->erase(list->begin() + *index);
        return {};
    }

    Status replace(const Json& value) {
        Json* target = walk(document_, path_, path_.size());
        if (target == nullptr) return missing("replace");
        *target = value;
        return {};
    }

    Status test(const Json& wanted) {
        const Json* found = walk(document_, path_, path_.size());
        if (found == nullptr ? wanted.is_null() : *found == wanted) return {};
        return invalid(fmt::format("the JSON patch's test of \"{}\" failed", text_));
    }

    Status transfer(const JsonObject& operation, bool move) {
        const auto from = text_of(operation, "from");
        const auto source = from ? parse_pointer(*from) : std::nullopt;
        if (!source) return bad_request("a JSON patch move or copy needs \"from\", a JSON pointer");
        Json* found = walk(document_, *source, source->size());
        if (found == nullptr) return missing(move ? "move to" : "copy to");
        if (move) {
            // A place that is no deeper cannot make the document deeper.
            if (path_.size() > source->size()) {
                size_t inside = 0;
                levels(*found, inside);
                TRY(pass(inside));
                TRY(check_depth(*found));
            }
            Json value = std::move(*found);
            TRY(remove(*source));
            return add(std::move(value));
        }
        copied_ += base::to_text(*found).size();
        if (copied_ > kMaxPatchCopyBytes) {
            return Error{Reason::RequestEntityTooLarge,
                         fmt::format("the JSON patch copies more than {} bytes", kMaxPatchCopyBytes)};
        }
        TRY(check_depth(*found));
        return add(*found);
    }

    Json& document_;
    Path path_;
    std::string text_;
    size_t copied_ = 0;
    size_t passed_ = 0;
};

}  // namespace

Status apply_json_patch(Json& document, const Json& patch) {
    const auto* operations = patch.if_array();
    if (operations == nullptr) return bad_request("a JSON patch is a list of operations");
    if (operations->size() > kMaxPatchOperations) {
        return Error{Reason::RequestEntityTooLarge,
                     fmt::format("The allowed maximum operations in a JSON patch is {}, got {}", kMaxPatchOperations,
                                 operations->size())};
    }
    Patcher patcher(document);
    for (const auto& operation : *operations) {
        const auto* object = operation.if_object();
        if (object == nullptr) return bad_request("a JSON patch operation is an object");
        const Status done = patcher.apply(*object);
        if (!done.ok()) return done;
    }
    return {};
}

}  // namespace berth::model
