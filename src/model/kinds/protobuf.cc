#include "model/kinds/protobuf.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <bit>
#include <chrono>

#include "base/base64.h"
#include "model/kinds/wire.h"
#include "model/times.h"

namespace berth::model {
namespace {

using base::bad_request;
using wire::Item;

Error malformed(std::string_view what) {
    return bad_request(fmt::format("the protobuf body is malformed: {}", what));
}

Status decode_message(std::string_view bytes, const Type& type, JsonObject& out, int depth);

// The fields of a small fixed message, e.g. Quantity{string = 1}: the last item of each number up to 3.
struct Small {
    Item items[4];
    bool has[4] = {};
};

Result<Small> small(std::string_view bytes) {
    Small found;
    for (wire::Reader in(bytes); !in.at_end();) {
        const auto item = in.next();
        if (!item) return malformed("a message is cut short");
        if (item->number > 3) continue;
        found.items[item->number] = *item;
        found.has[item->number] = true;
    }
    return found;
}

Result<Json> decode_string(std::string_view bytes) {
    if (!simdjson::validate_utf8(bytes.data(), bytes.size())) return malformed("a string is not UTF-8");
    return Json(bytes);
}

Result<Json> decode_time(std::string_view bytes, bool micro) {
    if (bytes.empty()) return Json();  // the zero time
    const auto m = TRY(small(bytes));
    const auto seconds = std::chrono::seconds(static_cast<int64_t>(m.items[1].integer));
    constexpr auto kLast = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::nanoseconds::max());
    if (seconds > kLast || seconds < -kLast) return malformed("a time lies outside of what can be stored");
    const auto nanos = micro ? static_cast<int64_t>(m.items[2].integer % 1'000'000'000) : 0;
    const base::Time time{std::chrono::nanoseconds(seconds).count() + nanos};
    return Json(micro ? micro_time_text(time) : time_text(time));
}

Result<Json> decode_raw_json(std::string_view bytes) {
    const auto m = TRY(small(bytes));
    if (m.items[1].bytes.empty()) return Json();
    return base::parse_json(m.items[1].bytes);
}

Result<Json> decode_int_or_string(std::string_view bytes) {
    const auto m = TRY(small(bytes));
    if (m.items[1].integer == 1) return decode_string(m.items[3].bytes);
    return Json(static_cast<int64_t>(static_cast<int32_t>(m.items[2].integer)));
}

Result<Json> decode_strings(std::string_view bytes, int number) {
    JsonArray list;
    for (wire::Reader in(bytes); !in.at_end();) {
        const auto item = in.next();
        if (!item) return malformed("a message is cut short");
        if (item->number == number) list.push_back(TRY(decode_string(item->bytes)));
    }
    return Json(std::move(list));
}

Result<Json> decode_object(std::string_view bytes, const Type& type, int depth) {
    JsonObject object;
    TRY(decode_message(bytes, type, object, depth));
    return Json(std::move(object));
}

// The unions of a JSON schema: {allows = 1, schema = 2}, {schema = 1, schemas = 2}, {schema = 1, names = 2}.
Result<Json> decode_schema_union(std::string_view bytes, const Field& f, int depth) {
    const auto m = TRY(small(bytes));
    const int schema = f.form == Form::SchemaOrBool ? 2 : 1;
    if (m.has[schema]) return decode_object(m.items[schema].bytes, *f.type, depth);
    if (f.form == Form::SchemaOrBool) return Json(m.items[1].integer != 0);
    if (f.form == Form::SchemaOrStrings) return decode_strings(bytes, 2);
    JsonArray schemas;
    for (wire::Reader in(bytes); !in.at_end();) {
        const auto item = in.next();
        if (item->number == 2) schemas.push_back(TRY(decode_object(item->bytes, *f.type, depth)));
    }
    return Json(std::move(schemas));
}

Result<Json> decode_bytes(std::string_view bytes, const Field& f, int depth) {
    switch (f.form) {
        case Form::Struct:
            return decode_object(bytes, *f.type, depth);
        case Form::String:
            return decode_string(bytes);
        case Form::Bytes:
            return Json(base::to_base64(bytes));
        case Form::Time:
        case Form::MicroTime:
            return decode_time(bytes, f.form == Form::MicroTime);
        case Form::Quantity: {
            const auto m = TRY(small(bytes));
            return m.has[1] ? decode_string(m.items[1].bytes) : Json("0");
        }
        case Form::Duration: {
            const auto m = TRY(small(bytes));
            return Json(duration_text(base::Duration(static_cast<int64_t>(m.items[1].integer))));
        }
        case Form::IntOrString:
            return decode_int_or_string(bytes);
        case Form::RawExtension:
        case Form::FieldsV1:
        case Form::Any:
            return decode_raw_json(bytes);
        case Form::Strings:
            return decode_strings(bytes, 1);
        case Form::SchemaOrBool:
        case Form::SchemaOrArray:
        case Form::SchemaOrStrings:
            return decode_schema_union(bytes, f, depth);
        default:
            return malformed(fmt::format("{} is not a number", f.name));
    }
}

Result<Json> decode_scalar(const Item& item, const Field& f) {
    switch (f.form) {
        case Form::Bool:
            return Json(item.integer != 0);
        case Form::Int32:
            return Json(static_cast<int64_t>(static_cast<int32_t>(item.integer)));
        case Form::Int64:
            return Json(static_cast<int64_t>(item.integer));
        case Form::Double:
            if (item.kind == wire::Kind::Fixed64) return Json(std::bit_cast<double>(item.integer));
            [[fallthrough]];
        default:
            return malformed(fmt::format("{} has the wrong wire type", f.name));
    }
}

bool is_varint(Form form) {
    return form == Form::Bool || form == Form::Int32 || form == Form::Int64;
}

Status decode_map_entry(std::string_view bytes, const Field& f, JsonObject& out, int depth) {
    const auto m = TRY(small(bytes));
    const Json key = TRY(decode_string(m.items[1].bytes));
    Json value;
    if (is_varint(f.form) || f.form == Form::Double) {
        value = TRY(decode_scalar(m.items[2], f));
    } else {
        value = TRY(decode_bytes(m.items[2].bytes, f, depth));
    }
    out[key.get_string()] = std::move(value);
    return {};
}

Status decode_packed(std::string_view bytes, const Field& f, JsonArray& out) {
    for (wire::Reader in(bytes); !in.at_end();) {
        const auto value = in.varint();
        if (!value) return malformed("a packed list is cut short");
        out.push_back(TRY(decode_scalar(Item{f.number, wire::Kind::Varint, *value, {}}, f)));
    }
    return {};
}

Status decode_list_item(const Item& item, const Field& f, JsonArray& out, int depth) {
    if (item.kind != wire::Kind::Bytes) {
        out.push_back(TRY(decode_scalar(item, f)));
        return {};
    }
    if (is_varint(f.form)) return decode_packed(item.bytes, f, out);
    out.push_back(TRY(decode_bytes(item.bytes, f, depth)));
    return {};
}

Status decode_item(const Item& item, const Field& f, JsonObject& out, int depth) {
    if (f.inlined) return decode_message(item.bytes, *f.type, out, depth);
    if (f.holder != Holder::One) {
        Json& held = out[f.name];
        if (held.is_null()) held = f.holder == Holder::List ? Json(JsonArray()) : Json(JsonObject());
        if (f.holder == Holder::List) return decode_list_item(item, f, held.get_array(), depth);
        return decode_map_entry(item.bytes, f, held.get_object(), depth);
    }
    Json value = item.kind == wire::Kind::Bytes ? TRY(decode_bytes(item.bytes, f, depth)) : TRY(decode_scalar(item, f));
    if (!value.is_null()) out[f.name] = std::move(value);
    return {};
}

Status decode_message(std::string_view bytes, const Type& type, JsonObject& out, int depth) {
    if (depth >= base::kMaxJsonDepth) return malformed("it is nested too deep");
    for (wire::Reader in(bytes); !in.at_end();) {
        const auto item = in.next();
        if (!item) return malformed(fmt::format("a {} is cut short", type.name));
        const Field* f = type.by_number(item->number);
        if (f != nullptr) TRY(decode_item(*item, *f, out, depth + 1));
    }
    return {};
}

}  // namespace

Result<Json> decode_protobuf(std::string_view body, const Kinds& kinds) {
    if (!body.starts_with(kProtobufMagic)) return malformed("it does not start with k8s\\0");
    const auto unknown = TRY(small(body.substr(kProtobufMagic.size())));
    const auto meta = TRY(small(unknown.items[1].bytes));
    const std::string_view api_version = meta.items[1].bytes;
    const std::string_view kind = meta.items[2].bytes;
    if (!unknown.items[3].bytes.empty()) return malformed("its content is encoded");
    const Type* type = kinds.body_type(api_version, kind);
    if (type == nullptr) {
        return bad_request(fmt::format("no kind \"{}\" is registered for version \"{}\"",
                                       TRY(decode_string(kind)).get_string().c_str(),
                                       TRY(decode_string(api_version)).get_string().c_str()));
    }
    JsonObject object;
    object["kind"] = kind;
    object["apiVersion"] = api_version;
    TRY(decode_message(unknown.items[2].bytes, *type, object, 0));
    return Json(std::move(object));
}

}  // namespace berth::model
