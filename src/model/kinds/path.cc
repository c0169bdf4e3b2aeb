#include "model/kinds/path.h"

#include <charconv>

namespace berth::model {
namespace {

// Cuts the next step off the path: a key, or an index in brackets.
struct Step {
    std::string_view key;
    size_t index = 0;
    bool is_index = false;
};

Step next_step(std::string_view& path) {
    Step step;
    if (path.front() == '[') {
        const size_t close = path.find(']');
        step.is_index = true;
        std::from_chars(path.data() + 1, path.data() + close, step.index);
        path.remove_prefix(close == std::string_view::npos ? path.size() : close + 1);
        return step;
    }
    if (path.front() == '.') path.remove_prefix(1);
    const size_t end = path.find_first_of(".[");
    step.key = path.substr(0, end);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end);
    return step;
}

}  // namespace

const Json* at_path(const Json& document, std::string_view path) {
    const Json* here = &document;
    if (path == ".") return here;
    while (!path.empty()) {
        const Step step = next_step(path);
        if (step.is_index) {
            const auto* list = here->if_array();
            if (list == nullptr || step.index >= list->size()) return nullptr;
            here = &(*list)[step.index];
        } else {
            const auto* object = here->if_object();
            if (object == nullptr) return nullptr;
            here = object->if_contains(step.key);
            if (here == nullptr) return nullptr;
        }
    }
    return here;
}

std::string_view string_at(const Json& document, std::string_view path) {
    const Json* found = at_path(document, path);
    if (found == nullptr || !found->is_string()) return {};
    return {found->get_string().data(), found->get_string().size()};
}

int64_t to_int(const Json& value) {
    if (value.is_int64()) return value.get_int64();
    if (value.is_uint64()) return static_cast<int64_t>(value.get_uint64());
    return 0;
}

int64_t int_at(const Json& document, std::string_view path) {
    const Json* found = at_path(document, path);
    return found == nullptr ? 0 : to_int(*found);
}

bool bool_at(const Json& document, std::string_view path) {
    const Json* found = at_path(document, path);
    return found != nullptr && found->is_bool() && found->get_bool();
}

const JsonArray& list_at(const Json& document, std::string_view path) {
    static const JsonArray empty;
    const Json* found = at_path(document, path);
    return found != nullptr && found->is_array() ? found->get_array() : empty;
}

const JsonObject& members_at(const Json& document, std::string_view path) {
    static const JsonObject empty;
    const Json* found = at_path(document, path);
    return found != nullptr && found->is_object() ? found->get_object() : empty;
}

}  // namespace berth::model
