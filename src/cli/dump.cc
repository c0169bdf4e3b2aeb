#include "cli/dump.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/yaml.h"

namespace berth::cli {
namespace {

void flatten(Json document, std::vector<Json>& out) {
    Json* items = base::find(document, {"items"});
    if (!items || !items->is_array() || !base::find_string(document, {"kind"}).ends_with("List")) {
        if (document.is_object()) out.push_back(std::move(document));
        return;
    }
    for (auto& item : items->get_array()) flatten(std::move(item), out);
}

}  // namespace

Result<std::vector<Json>> read_objects(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    std::vector<Json> objects;
    if (first != std::string_view::npos && text[first] == '{') {
        flatten(TRY(base::parse_json(text)), objects);
        return objects;
    }
    for (auto& document : TRY(base::parse_yaml(text))) flatten(std::move(document), objects);
    return objects;
}

Result<std::vector<Json>> read_object_file(const std::string& path) {
    std::string text;
    if (path == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else {
        std::ifstream in(path, std::ios::binary);
        if (!in) return base::bad_request(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
        text.assign(std::istreambuf_iterator<char>(in), {});
    }
    auto objects = read_objects(text);
    if (!objects) return base::bad_request(fmt::format("{}: {}", path, objects.error().message));
    return objects;
}

}  // namespace berth::cli
