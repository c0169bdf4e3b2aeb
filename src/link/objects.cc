#include "link/objects.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/json.h"
#include "base/json_view.h"
#include "link/spans.h"

namespace berth::link {
namespace {

std::string_view text_at(JsonView object, std::string_view key) {
    std::string_view out;
    if (object.at_key(key).get(out) != simdjson::SUCCESS) return {};
    return out;
}

uint64_t number(std::string_view text) {
    uint64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
}

std::string_view value_of(const std::vector<Member>& all, std::string_view key) {
    for (const auto& [name, value] : all) {
        if (name == key) return value;
    }
    return {};
}

// Each thread keeps one: its buffers are large.
base::JsonParser& parser() {
    thread_local base::JsonParser parser;
    return parser;
}

// Of a string its text, of anything else nothing.
std::string text_of(std::string_view value) {
    if (!value.starts_with('"')) return {};
    if (value.find('\\') == std::string_view::npos) return std::string(value.substr(1, value.size() - 2));
    const auto view = parser().parse(value);
    std::string_view out;
    if (!view || view->get(out) != simdjson::SUCCESS) return {};
    return std::string(out);
}

// Reads four names of metadata, which stand before its larger parts: whether the rest can be read is for others to find
// out.
Result<Listed> listed(std::string_view object) {
    const auto meta = from_member(object, "metadata");
    if (!meta || !meta->starts_with('{')) return base::internal("an object has no metadata");
    Listed out;
    std::string ns;
    const std::array<std::pair<std::string_view, std::string*>, 4> wanted{
        {{"name", &out.name}, {"namespace", &ns}, {"uid", &out.uid}, {"resourceVersion", &out.version}}};
    size_t missing = wanted.size();
    take_members(*meta, [&](std::string_view key, std::string_view value) {
        for (const auto& [name, text] : wanted) {
            if (key != name) continue;
            *text = text_of(value);
            --missing;
        }
        return missing > 0;
    });
    if (!ns.empty()) out.name = fmt::format("{}/{}", ns, out.name);
    out.revision = number(out.version);
    return out;
}

Result<Listed> named(std::string_view object) {
    Listed out = TRY(listed(object));
    if (out.name.empty() || out.name.ends_with('/')) return base::internal("an object has no name");
    return out;
}

}  // namespace

Result<Page> read_page(std::string_view body) {
    const auto parts = members(body);
    if (!parts) return base::internal("the list is broken off");
    const JsonView meta = TRY(parser().parse(value_of(*parts, "metadata")));
    Page page;
    page.version = text_at(meta, "resourceVersion");
    page.more = text_at(meta, "continue");
    if (page.version.empty()) return base::internal("this is not a list: it has no metadata.resourceVersion");
    const auto items = value_of(*parts, "items");
    if (items.empty() || items == "null") return page;
    const auto texts = elements(items);
    if (!texts) return base::internal("the list's items are broken off");
    page.items.reserve(texts->size());
    for (const auto text : *texts) {
        auto item = named(text);
        if (!item) {
            page.unreadable.push_back(item.error().message);
            continue;
        }
        page.items.push_back(std::move(*item));
        page.items.back().text = text;
    }
    return page;
}

Result<WatchLine> read_watch_line(std::string_view line) {
    const auto parts = members(line);
    if (!parts) return base::internal("a watch event is broken off");
    const auto type = value_of(*parts, "type");
    const auto object = value_of(*parts, "object");
    WatchLine out;
    if (type == "\"ERROR\"") {
        const JsonView status = TRY(parser().parse(object));
        out.type = WatchLine::Type::Error;
        int64_t code = 0;
        if (status.at_key("code").get(code) == simdjson::SUCCESS) out.code = static_cast<int>(code);
        out.trouble = text_at(status, "message");
        return out;
    }
    if (type == "\"BOOKMARK\"") {
        out.type = WatchLine::Type::Bookmark;
    } else if (type == "\"DELETED\"") {
        out.type = WatchLine::Type::Gone;
    } else if (type != "\"ADDED\"" && type != "\"MODIFIED\"") {
        return base::internal(fmt::format("a watch event has the type {}", type));
    }
    auto about = out.type == WatchLine::Type::Bookmark ? listed(object) : named(object);
    if (!about) {
        out.type = WatchLine::Type::Unreadable;
        out.trouble = about.error().message;
        return out;
    }
    out.object = std::move(*about);
    out.object.text = object;
    return out;
}

uint64_t revision_in(std::string_view body) {
    const auto object = listed(body);
    return object ? object->revision : 0;
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
