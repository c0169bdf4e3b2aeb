#include "api/wire.h"

#include <algorithm>
#include <charconv>

#include "model/kinds/convert.h"

namespace berth::api {
namespace {

constexpr size_t kMostKept = 64u << 10;
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

// Where ,"status":{...} begins, if that is the last member; else the position of the closing brace. Quotes in a text
// are escaped, so a hit is a member; the one whose end is the object's end is the object's own.
size_t status_begin(std::string_view bytes) {
    constexpr std::string_view kStatus = ",\"status\":{";
    const size_t at = bytes.rfind(kStatus);
    const bool last = at != std::string_view::npos && object_end(bytes, at + kStatus.size()) + 1 == bytes.size();
    return last ? at : bytes.size() - 1;
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
    thread_local std::string out;  // its room is kept; the bytes get just what they need
    out.clear();
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
    auto bytes = std::make_shared<const std::string>(out);
    if (out.capacity() > kMostKept) out = {};
    return bytes;
}

Result<Json> stored_object(const store::Record& record) {
    return base::parse_json(*record.bytes);
}

Result<PartlyRead> stored_ends(const store::Record& record) {
    const std::string_view bytes = *record.bytes;
    const size_t begin = object_end(bytes, metadata_begin(bytes));
    const size_t end = std::max(begin, status_begin(bytes));
    std::string read;
    read.reserve(bytes.size() - (end - begin));
    read.append(bytes.substr(0, begin)).append(bytes.substr(end));
    return PartlyRead{TRY(base::parse_json(read)), bytes.substr(begin, end - begin)};
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
