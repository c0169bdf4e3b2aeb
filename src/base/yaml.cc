#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/yaml_scalar.h"

namespace berth::base {
namespace {

enum class Kind : uint8_t { Scalar, Sequence, Mapping, Alias };

using Index = uint32_t;
constexpr Index kNone = UINT32_MAX;

// One node of a document. Children hang together as a list; those of a mapping are key, value, key, value, ...
struct Node {
    std::string text;  // of a scalar
    Index first = kNone;
    Index next = kNone;
    Index target = kNone;  // of an alias
    uint32_t line = 0;     // from 1
    Kind kind = Kind::Scalar;
    YamlTag tag = YamlTag::None;
    bool plain = false;  // neither quoted nor tagged
    bool open = false;   // being converted
};

Error at_line(size_t line, std::string_view what) {
    return bad_request(fmt::format("invalid YAML: line {}: {}", line, what));
}

class Event {
public:
    Event() = default;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event() { yaml_event_delete(&event_); }
    yaml_event_t& operator*() { return event_; }
    yaml_event_t* operator->() { return &event_; }

private:
    yaml_event_t event_{};
};

class EventReader {
public:
    explicit EventReader(std::string_view text) : text_(text) {
        CHECK(yaml_parser_initialize(&parser_));
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    }
    EventReader(const EventReader&) = delete;
    EventReader& operator=(const EventReader&) = delete;
    ~EventReader() { yaml_parser_delete(&parser_); }

    Status next(Event& event) {
        if (yaml_parser_parse(&parser_, &*event)) return {};
        const std::string_view problem = parser_.problem ? parser_.problem : "out of memory";
        if (parser_.error != YAML_READER_ERROR) return at_line(parser_.problem_mark.line + 1, problem);
        const auto before = text_.substr(0, parser_.problem_offset);
        return at_line(static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1, problem);
    }

private:
    std::string_view text_;
    yaml_parser_t parser_{};
};

// Reads events into the nodes of one document.
class Composer {
public:
    explicit Composer(EventReader& events) : events_(events) {}

    // The root, once the document has ended.
    Result<Index> compose() {
        while (true) {
            Event event;
            if (auto read = events_.next(event); !read) return read.error();
            if (event->type == YAML_DOCUMENT_END_EVENT) return root_;
            if (auto taken = take(*event); !taken) return taken.error();
        }
    }
    std::vector<Node>& nodes() { return nodes_; }

private:
    struct Open {
        Index node;
        Index last;  // child
    };

    Status take(const yaml_event_t& event) {
        const auto line = static_cast<uint32_t>(event.start_mark.line + 1);
        switch (event.type) {
            case YAML_SCALAR_EVENT:
                return scalar(event, line);
            case YAML_ALIAS_EVENT:
                return alias(text_of(event.data.alias.anchor), line);
            case YAML_SEQUENCE_START_EVENT:
                return enter(Kind::Sequence, event.data.sequence_start.anchor, line);
            case YAML_MAPPING_START_EVENT:
                return enter(Kind::Mapping, event.data.mapping_start.anchor, line);
            case YAML_SEQUENCE_END_EVENT:
            case YAML_MAPPING_END_EVENT:
                open_.pop_back();
                return {};
            default:
                return at_line(line, "unexpected end of the document");
        }
    }

    static std::string text_of(const unsigned char* text) { return reinterpret_cast<const char*>(text); }

    Status scalar(const yaml_event_t& event, uint32_t line) {
        const auto& data = event.data.scalar;
        Node node;
        node.text.assign(reinterpret_cast<const char*>(data.value), data.length);
        node.line = line;
        node.plain = data.plain_implicit && !data.tag;
        node.tag = yaml_tag(reinterpret_cast<const char*>(data.tag));
        if (node.tag == YamlTag::None && !node.plain) node.tag = YamlTag::String;
        remember(data.anchor, add(std::move(node)));
        return {};
    }

    Status alias(const std::string& anchor, uint32_t line) {
        const auto known = anchors_.find(anchor);
        if (known == anchors_.end()) return at_line(line, fmt::format("unknown anchor \"{}\"", anchor));
        Node node;
        node.kind = Kind::Alias;
        node.target = known->second;
        node.line = line;
        add(std::move(node));
        return {};
    }

    Status enter(Kind kind, const unsigned char* anchor, uint32_t line) {
        if (open_.size() >= static_cast<size_t>(kMaxJsonDepth))
            return at_line(line, fmt::format("more than {} levels", kMaxJsonDepth));
        Node node;
        node.kind = kind;
        node.line = line;
        const Index index = add(std::move(node));
        remember(anchor, index);
        open_.push_back({index, kNone});
        return {};
    }

    Index add(Node node) {
        const auto index = static_cast<Index>(nodes_.size());
        nodes_.push_back(std::move(node));
        if (open_.empty()) {
            root_ = index;
            return index;
        }
        auto& [parent, last] = open_.back();
        (last == kNone ? nodes_[parent].first : nodes_[last].next) = index;
        last = index;
        return index;
    }

    void remember(const unsigned char* anchor, Index index) {
        if (anchor) anchors_[text_of(anchor)] = index;
    }

    EventReader& events_;
    std::vector<Node> nodes_;
    std::vector<Open> open_;
    std::map<std::string, Index> anchors_;
    Index root_ = kNone;
};

// Turns the nodes of a document into JSON, aliases into copies.
class Converter {
public:
    Converter(std::vector<Node>& nodes, size_t alias_values) : nodes_(nodes), alias_values_left_(alias_values) {}

    Result<Json> convert(Index index, int depth) {
        Node& node = nodes_[index];
        if (depth > kMaxJsonDepth) return at_line(node.line, fmt::format("more than {} levels", kMaxJsonDepth));
        if (aliases_ > 0 && alias_values_left_-- == 0)
            return at_line(node.line, "aliases expand to more than is accepted");
        if (node.open) return at_line(node.line, "an anchor contains itself");
        switch (node.kind) {
            case Kind::Scalar:
                return with_line(yaml_scalar(node.tag, node.text), node);
            case Kind::Alias:
                return expanded(node, depth);
            case Kind::Sequence:
                return inside(node, [&] { return sequence(node, depth); });
            case Kind::Mapping:
                return inside(node, [&] { return mapping(node, depth); });
        }
        return at_line(node.line, "unknown node");
    }

private:
    template <class T>
    static Result<T> with_line(Result<T> result, const Node& node) {
        if (result) return result;
        return at_line(node.line, result.error().message);
    }

    template <class F>
    Result<Json> inside(Node& node, F&& f) {
        node.open = true;
        auto result = f();
        node.open = false;
        return result;
    }

    Result<Json> expanded(const Node& alias, int depth) {
        ++aliases_;
        auto result = convert(alias.target, depth);
        --aliases_;
        return result;
    }

    Result<Json> sequence(const Node& node, int depth) {
        JsonArray array;
        for (Index child = node.first; child != kNone; child = nodes_[child].next)
            array.push_back(TRY(convert(child, depth + 1)));
        return Json(std::move(array));
    }

    Result<Json> mapping(const Node& node, int depth) {
        JsonObject object;
        std::vector<Index> merges;
        for (Index key = node.first; key != kNone; key = nodes_[nodes_[key].next].next) {
            const Index value = nodes_[key].next;
            if (nodes_[key].kind == Kind::Scalar && nodes_[key].plain && nodes_[key].text == "<<") {
                merges.push_back(value);
                continue;
            }
            const std::string name = TRY(key_text(key));
            if (object.contains(name))
                return at_line(nodes_[key].line, fmt::format("duplicate key \"{}\"", name.substr(0, 128)));
            object[name] = TRY(convert(value, depth + 1));
        }
        for (const Index merge : merges) {
            if (auto merged = merge_into(object, merge, depth); !merged) return merged.error();
        }
        return Json(std::move(object));
    }

    Result<std::string> key_text(Index index) {
        const Node& written = nodes_[index];
        const Node& node = written.kind == Kind::Alias ? nodes_[written.target] : written;
        if (node.kind != Kind::Scalar) return at_line(written.line, "a key must be a scalar");
        return with_line(yaml_key(node.tag, node.text), written);
    }

    // A mapping, or a list of mappings of which the earlier win.
    Status merge_into(JsonObject& object, Index index, int depth) {
        if (nodes_[index].kind != Kind::Sequence) return merge_one(object, index, depth);
        for (Index child = nodes_[index].first; child != kNone; child = nodes_[child].next) {
            if (auto merged = merge_one(object, child, depth); !merged) return merged.error();
        }
        return {};
    }

    Status merge_one(JsonObject& object, Index index, int depth) {
        const Node& node = nodes_[index];
        const Kind kind = node.kind == Kind::Alias ? nodes_[node.target].kind : node.kind;
        if (kind != Kind::Mapping) return at_line(node.line, "\"<<\" merges only mappings");
        Json merged = TRY(convert(index, depth));
        for (auto& [key, value] : merged.get_object()) object.emplace(key, std::move(value));
        return {};
    }

    std::vector<Node>& nodes_;
    size_t alias_values_left_;
    int aliases_ = 0;
};

// A text without YAML's own syntax; JSON's escapes of surrogate pairs are not YAML.
std::optional<Json> as_json(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) return std::nullopt;
    auto parsed = parse_json(text);
    if (!parsed) return std::nullopt;
    return *std::move(parsed);
}

bool has_content(const std::vector<Node>& nodes, Index root) {
    return root != kNone && !(nodes[root].plain && nodes[root].text.empty());
}

}  // namespace

Result<std::vector<Json>> parse_yaml(std::string_view text, const YamlLimits& limits) {
    if (text.size() > limits.bytes)
        return bad_request(fmt::format("YAML of {} bytes; at most {} are accepted", text.size(), limits.bytes));
    std::vector<Json> documents;
    if (auto json = as_json(text)) {
        documents.push_back(*std::move(json));
        return documents;
    }
    EventReader events(text);
    while (true) {
        Event event;
        if (auto read = events.next(event); !read) return read.error();
        if (event->type == YAML_STREAM_END_EVENT) return documents;
        if (event->type != YAML_DOCUMENT_START_EVENT) continue;
        Composer composer(events);
        const Index root = TRY(composer.compose());
        if (!has_content(composer.nodes(), root)) continue;
        documents.push_back(TRY(Converter(composer.nodes(), limits.alias_values).convert(root, 1)));
    }
}

}  // namespace berth::base
