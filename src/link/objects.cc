#include "link/objects.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json.h"
#include "base/json_view.h"

namespace berth::link {
namespace {

std::string_view text_at(JsonView object, const char* pointer) {
    std::string_view out;
    if (object.at_pointer(pointer).get(out) != simdjson::SUCCESS) return {};
    return out;
}

uint64_t number(std::string_view text) {
    uint64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
}

Listed listed(JsonView object) {
    Listed out;
    const auto ns = text_at(object, "/metadata/namespace");
    const auto name = text_at(object, "/metadata/name");
    out.name = ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name);
    out.uid = text_at(object, "/metadata/uid");
    out.revision = number(text_at(object, "/metadata/resourceVersion"));
    return out;
}

}  // namespace

Result<Page> read_page(std::string_view body) {
    base::JsonParser parser;
    const JsonView root = TRY(parser.parse(body));
    Page page;
    page.version = text_at(root, "/metadata/resourceVersion");
    page.more = text_at(root, "/metadata/continue");
    simdjson::dom::array items;
    const auto found = root.at_key("items");
    if (page.version.empty()) return base::internal("this is not a list: it has no metadata.resourceVersion");
    // A list of none may be written as null.
    if (found.error() != simdjson::SUCCESS || found.is_null() || found.get(items) != simdjson::SUCCESS) return page;
    page.items.reserve(items.size());
    for (const JsonView item : items) {
        page.items.push_back(listed(item));
        page.items.back().text = simdjson::minify(item);
    }
    return page;
}

Result<WatchLine> read_watch_line(std::string_view line) {
    base::JsonParser parser;
    const JsonView root = TRY(parser.parse(line));
    JsonView object;
    if (root.at_key("object").get(object) != simdjson::SUCCESS) return base::internal("a watch event has no object");
    const auto type = text_at(root, "/type");
    WatchLine out;
    if (type == "ERROR") {
        out.type = WatchLine::Type::Error;
        int64_t code = 0;
        if (object.at_key("code").get(code) == simdjson::SUCCESS) out.code = static_cast<int>(code);
        out.trouble = text_at(object, "/message");
        return out;
    }
    out.version = text_at(object, "/metadata/resourceVersion");
    out.object = listed(object);
    if (type == "BOOKMARK") {
        out.type = WatchLine::Type::Bookmark;
        return out;
    }
    if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") {
        return base::internal(fmt::format("a watch event has the type \"{}\"", type));
    }
    out.type = type == "DELETED" ? WatchLine::Type::Gone : WatchLine::Type::Put;
    out.object.text = simdjson::minify(object);
    return out;
}

uint64_t revision_in(std::string_view body) {
    base::JsonParser parser;
    const auto root = parser.parse(body);
    return root ? number(text_at(*root, "/metadata/resourceVersion")) : 0;
}

std::string last_words(std::string_view name, std::string_view uid) {
    JsonObject meta;
    const auto slash = name.find('/');
    if (slash != std::string_view::npos) meta["namespace"] = name.substr(0, slash);
    meta["name"] = slash == std::string_view::npos ? name : name.substr(slash + 1);
    meta["uid"] = uid;
    return base::to_text(Json(JsonObject{{"metadata", std::move(meta)}}));
}

}  // namespace berth::link
