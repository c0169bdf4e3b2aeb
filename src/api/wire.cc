#include "api/wire.h"

#include <charconv>

#include "model/kinds/convert.h"

namespace berth::api {
namespace {

constexpr std::string_view kMetadata = "\"metadata\":{";

// Where the metadata's members begin. apiVersion and kind stand before it and hold no quotes, so the first hit is it.
size_t metadata_begin(std::string_view bytes) {
    const size_t at = bytes.find(kMetadata);
    CHECK(at != std::string_view::npos);
    return at + kMetadata.size();
}

// The end of the object whose members begin at `at`: the position behind its closing brace.
size_t object_end(std::string_view text, size_t at) {
    int depth = 1;
    for (bool quoted = false; at < text.size(); ++at) {
        const char c = text[at];
        if (quoted) {
            if (c == '\\')
                ++at;
            else if (c == '"')
                quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{') {
            ++depth;
        } else if (c == '}' && --depth == 0) {
            return at + 1;
        }
    }
    return text.size();
}

// The position behind the JSON string that begins at `at`.
size_t string_end(std::string_view text, size_t at) {
    for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\') ++at;
    }
    return at + 1;
}

// The position behind the value that begins at `at`, in compact JSON.
size_t value_end(std::string_view text, size_t at) {
    if (text[at] == '"') return string_end(text, at);
    if (text[at] == '{') return object_end(text, at + 1);
    for (int depth = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '"') {
            at = string_end(text, at) - 1;
        } else if (c == '[' || c == '{') {
            ++depth;
        } else if (c == ']' || c == '}') {
            if (--depth < 0) return at;
            if (depth == 0) return at + 1;
        } else if (c == ',' && depth == 0) {
            return at;
        }
    }
    return at;
}

// ,"name":value where it stands; never the first member, which is apiVersion. Empty when there is none.
std::string_view member_of(std::string_view bytes, std::string_view name) {
    for (size_t at = 1; at < bytes.size() && bytes[at] != '}';) {
        const size_t comma = bytes[at] == ',' ? at++ : at;
        const size_t colon = string_end(bytes, at);
        const size_t end = value_end(bytes, colon + 1);
        if (bytes.substr(at + 1, colon - at - 2) == name) return bytes.substr(comma, end - comma);
        at = end;
    }
    return {};
}

void append_version(store::Revision revision, std::string& out) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), revision).ptr;
    out += "\"resourceVersion\":\"";
    out.append(digits, end);
    out += "\",";
}

}  // namespace

store::Bytes stored_bytes(const Json& object, std::string_view unread) {
    const auto& members = object.as_object();
    std::string out;
    out.reserve(4096);
    out += "{\"apiVersion\":";
    base::append_text(members.at("apiVersion"), out);
    out += ",\"kind\":";
    base::append_text(members.at("kind"), out);
    out += ",\"metadata\":{";
    const size_t empty = out.size();
    for (const auto& [key, value] : members.at("metadata").as_object()) {
        if (key == "resourceVersion" || key == "managedFields" || key == "selfLink") continue;
        if (out.size() != empty) out += ',';
        base::append_quoted(key, out);
        out += ':';
        base::append_text(value, out);
    }
    out += '}';
    out += unread;
    for (const auto& [key, value] : members) {
        if (key == "apiVersion" || key == "kind" || key == "metadata") continue;
        out += ',';
        base::append_quoted(key, out);
        out += ':';
        base::append_text(value, out);
    }
    out += '}';
    return std::make_shared<const std::string>(out);
}

Result<Json> stored_object(const store::Record& record) {
    return base::parse_json(*record.bytes);
}

Result<PartlyRead> stored_without(const store::Record& record, std::string_view member) {
    const std::string_view bytes = *record.bytes;
    PartlyRead out;
    out.unread = member_of(bytes, member);
    if (out.unread.empty()) {
        out.object = TRY(base::parse_json(bytes));
        return out;
    }
    const auto at = static_cast<size_t>(out.unread.data() - bytes.data());
    std::string rest;
    rest.reserve(bytes.size() - out.unread.size());
    rest.append(bytes.substr(0, at)).append(bytes.substr(at + out.unread.size()));
    out.object = TRY(base::parse_json(rest));
    return out;
}

Result<Json> full_object(const store::Record& record) {
    Json object = TRY(base::parse_json(*record.bytes));
    base::object_at(object, {"metadata"})["resourceVersion"] = std::to_string(record.revision);
    return object;
}

void append_object(const store::Record& record, std::string& out) {
    const std::string_view bytes = *record.bytes;
    const size_t at = metadata_begin(bytes);
    out.append(bytes.substr(0, at));
    append_version(record.revision, out);
    out.append(bytes.substr(at));
}

void append_view(const model::Kind& kind, const store::Record& record, std::string& out) {
    if (kind.stored_kind.empty()) return append_object(record, out);
    auto object = full_object(record);
    if (!object) return append_object(record, out);
    base::append_text(model::from_stored(kind, std::move(*object)), out);
}

void append_metadata(const store::Record& record, std::string& out) {
    const std::string_view bytes = *record.bytes;
    const size_t at = metadata_begin(bytes);
    out += '{';
    append_version(record.revision, out);
    out.append(bytes.substr(at, object_end(bytes, at) - at));
}

void append_partial(const store::Record& record, std::string_view meta_version, std::string& out) {
    out += "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/";
    out += meta_version;
    out += "\",\"metadata\":";
    append_metadata(record, out);
    out += '}';
}

}  // namespace berth::api
