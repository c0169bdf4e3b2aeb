#include "model/kinds/openapi.h"
#include "model/kinds/path.h"
#include "model/kinds/wire.h"

// Gnostic's OpenAPIv2 messages, as far as our documents use them. The numbers are those of its protocol.
namespace berth::model {
namespace {

using wire::Writer;

void put_text(Writer& out, int number, const Json& from, std::string_view path) {
    const auto value = string_at(from, path);
    if (!value.empty()) out.bytes(number, value);
}

void flag(Writer& out, int number, const Json& from, std::string_view path) {
    if (bool_at(from, path)) out.varint(number, 1);
}

void texts(Writer& out, int number, const Json& from, std::string_view path) {
    for (const auto& item : list_at(from, path)) out.bytes(number, string_at(item, ""));
}

// NamedX{name = 1, value = 2}
std::string named(std::string_view name, std::string_view value) {
    Writer out;
    out.bytes(1, name);
    out.bytes(2, value);
    return out.take();
}

// Members x-...: NamedAny with the value as YAML, of which JSON is a part.
void extensions(Writer& out, int number, const Json& from) {
    for (const auto& member : from.get_object()) {
        if (!member.key().starts_with("x-")) continue;
        Writer any;
        any.bytes(2, base::to_text(member.value()));
        out.bytes(number, named(member.key(), any.out()));
    }
}

std::string schema(const Json& from) {
    Writer out;
    const auto& members = from.get_object();
    if (const Json* ref = members.if_contains("$ref")) out.bytes(1, string_at(*ref, ""));
    put_text(out, 2, from, ".format");
    put_text(out, 4, from, ".description");
    texts(out, 19, from, ".required");
    if (const Json* additional = members.if_contains("additionalProperties")) {
        Writer item;
        item.bytes(1, schema(*additional));
        out.bytes(21, item.out());
    }
    if (members.contains("type")) {
        Writer type;
        put_text(type, 1, from, ".type");
        out.bytes(22, type.out());
    }
    if (const Json* items = members.if_contains("items")) {
        Writer item;
        item.bytes(1, schema(*items));
        out.bytes(23, item.out());
    }
    if (const Json* properties = members.if_contains("properties")) {
        Writer list;
        for (const auto& p : properties->get_object()) list.bytes(1, named(p.key(), schema(p.value())));
        out.bytes(25, list.out());
    }
    extensions(out, 31, from);
    return out.take();
}

// ParametersItem{parameter = 1: Parameter{body = 1 | other = 2: {query = 3 | path = 4}}}
std::string parameter(const Json& from) {
    Writer item;
    Writer either;
    const auto in = string_at(from, ".in");
    if (in == "body") {
        Writer body;
        put_text(body, 2, from, ".name");
        put_text(body, 3, from, ".in");
        flag(body, 4, from, ".required");
        body.bytes(5, schema(from.at("schema")));
        either.bytes(1, body.out());
    } else {
        const bool query = in == "query";
        Writer inner;
        flag(inner, 1, from, ".required");
        put_text(inner, 2, from, ".in");
        put_text(inner, 4, from, ".name");
        put_text(inner, query ? 6 : 5, from, ".type");
        flag(inner, query ? 20 : 19, from, ".uniqueItems");
        Writer other;
        other.bytes(query ? 3 : 4, inner.out());
        either.bytes(2, other.out());
    }
    item.bytes(1, either.out());
    return item.take();
}

// ResponseValue{response = 1: Response{description = 1, schema = 2: SchemaItem{schema = 1}}}
std::string response(const Json& from) {
    Writer inner;
    put_text(inner, 1, from, ".description");
    if (const Json* body = from.get_object().if_contains("schema")) {
        Writer item;
        item.bytes(1, schema(*body));
        inner.bytes(2, item.out());
    }
    Writer out;
    out.bytes(1, inner.out());
    return out.take();
}

std::string operation(const Json& from) {
    Writer out;
    put_text(out, 5, from, ".operationId");
    texts(out, 7, from, ".consumes");
    for (const auto& p : list_at(from, ".parameters")) out.bytes(8, parameter(p));
    Writer responses;
    for (const auto& r : members_at(from, ".responses")) responses.bytes(1, named(r.key(), response(r.value())));
    out.bytes(9, responses.out());
    extensions(out, 13, from);
    return out.take();
}

std::string path_item(const Json& from) {
    constexpr std::pair<std::string_view, int> kVerbs[] = {
        {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};
    Writer out;
    for (const auto& [verb, number] : kVerbs) {
        if (const Json* op = from.get_object().if_contains(verb)) out.bytes(number, operation(*op));
    }
    for (const auto& p : list_at(from, ".parameters")) out.bytes(9, parameter(p));
    return out.take();
}

}  // namespace

std::string openapi_v2_protobuf(const Json& document) {
    Writer out;
    put_text(out, 1, document, ".swagger");
    Writer info;
    put_text(info, 1, document, ".info.title");
    put_text(info, 2, document, ".info.version");
    out.bytes(2, info.out());
    Writer paths;
    for (const auto& p : members_at(document, ".paths")) paths.bytes(2, named(p.key(), path_item(p.value())));
    out.bytes(8, paths.out());
    Writer definitions;
    for (const auto& d : members_at(document, ".definitions")) definitions.bytes(1, named(d.key(), schema(d.value())));
    out.bytes(9, definitions.out());
    return out.take();
}

}  // namespace berth::model
