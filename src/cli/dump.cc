#include "cli/dump.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "base/yaml.h"

namespace berth::cli {
namespace {

constexpr size_t kMostShown = 64;

// The items of a PodList need not say that they are Pods.
void name_kind(Json& item, const Json& list) {
    const std::string_view kind = base::find_string(list, {"kind"});
    if (!item.is_object() || kind == "List" || base::find(item, {"kind"})) return;
    item.as_object()["kind"] = kind.substr(0, kind.size() - std::string_view("List").size());
    if (const Json* version = base::find(list, {"apiVersion"})) item.as_object()["apiVersion"] = *version;
}

Status flatten(Json document, std::vector<Json>& out) {
    if (document.is_null()) return {};
    if (document.is_array()) {
        for (auto& item : document.get_array()) TRY(flatten(std::move(item), out));
        return {};
    }
    if (!document.is_object()) {
        return base::bad_request(fmt::format("{} is not an object", base::to_text(document).substr(0, kMostShown)));
    }
    Json* items = base::find(document, {"items"});
    const bool wrong = items && !items->is_array() && !items->is_null();
    if (wrong && base::find_string(document, {"kind"}).ends_with("List")) {
        return base::bad_request(fmt::format("items: {} is not a list", base::to_text(*items).substr(0, kMostShown)));
    }
    if (!items || !items->is_array() || !base::find_string(document, {"kind"}).ends_with("List")) {
        out.push_back(std::move(document));
        return {};
    }
    for (auto& item : items->get_array()) {
        name_kind(item, document);
        TRY(flatten(std::move(item), out));
    }
    return {};
}

}  // namespace

Result<std::vector<Json>> read_objects(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    std::vector<Json> objects;
    if (first != std::string_view::npos && text[first] == '{') {
        auto values = base::parse_json_values(text);
        // YAML may begin like JSON: {kind: Pod}.
        if (!values) {
            if (auto documents = base::parse_yaml(text)) values = std::move(documents);
        }
        if (!values) return values.error();
        for (auto& value : *values) TRY(flatten(std::move(value), objects));
        return objects;
    }
    for (auto& document : TRY(base::parse_yaml(text))) TRY(flatten(std::move(document), objects));
    return objects;
}

Result<std::vector<Json>> read_object_file(const std::string& path) {
    std::string text;
    if (path == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else {
        if (std::error_code none; std::filesystem::is_directory(path, none))
            return base::bad_request(fmt::format("cannot read {}: it is a folder", path));
        std::ifstream in(path, std::ios::binary);
        if (!in) return base::bad_request(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
        text.assign(std::istreambuf_iterator<char>(in), {});
    }
    auto objects = read_objects(text);
    if (!objects) return base::bad_request(fmt::format("{}: {}", path, objects.error().message));
    return objects;
}

Status load_files(const std::vector<std::string>& files, const std::function<Result<bool>(const Json&)>& put) {
    std::set<std::string> unknown;
    for (const auto& file : files) {
        const auto objects = TRY(read_object_file(file));
        if (objects.empty()) return base::bad_request(fmt::format("{}: there is nothing in it", file));
        for (const auto& object : objects) {
            const auto known = put(object);
            if (!known) return base::bad_request(fmt::format("{}: {}", file, known.error().message));
            if (!*known) unknown.emplace(base::find_string(object, {"kind"}));
        }
    }
    for (const auto& kind : unknown) {
        const std::string what = kind.empty() ? "without a kind" : fmt::format("of kind \"{}\"", kind);
        fmt::print(stderr, "berth: warning: objects {} are ignored\n", what);
    }
    return {};
}

}  // namespace berth::cli
