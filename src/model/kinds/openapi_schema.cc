#include <algorithm>

#include "model/kinds/openapi_parts.h"

namespace berth::model {
namespace {

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";

Json gvk_mark(const Kind& kind, const std::string& name) {
    return JsonArray{Json(JsonObject{{"group", kind.group}, {"version", kind.version}, {"kind", name}})};
}

Json plain(std::string_view type, std::string_view format = {}) {
    JsonObject schema{{"type", type}};
    if (!format.empty()) schema["format"] = format;
    return schema;
}

void add_list_marks(JsonObject& schema, const Field& f) {
    if (f.list == ListType::Atomic) schema["x-kubernetes-list-type"] = "atomic";
    if (f.list == ListType::Set) schema["x-kubernetes-list-type"] = "set";
    if (f.list == ListType::Map) {
        schema["x-kubernetes-list-type"] = "map";
        JsonArray keys;
        for (const auto& key : f.map_keys) keys.emplace_back(key);
        schema["x-kubernetes-list-map-keys"] = std::move(keys);
    }
    if (f.map_atomic) schema["x-kubernetes-map-type"] = "atomic";
    if (!f.merge_key.empty()) schema["x-kubernetes-patch-merge-key"] = f.merge_key;
    std::string strategy = f.patch_merge ? "merge" : "";
    if (f.retain_keys) strategy += strategy.empty() ? "retainKeys" : ",retainKeys";
    if (!strategy.empty()) schema["x-kubernetes-patch-strategy"] = strategy;
}

// A value that may be written in two types.
Json one_of(Dialect dialect, std::string_view format, std::string_view other) {
    JsonObject schema;
    if (!format.empty()) schema["format"] = format;
    if (dialect == Dialect::V2) {
        schema["type"] = "string";
    } else {
        schema["oneOf"] = JsonArray{plain(other), plain("string")};
    }
    return schema;
}

std::string reversed(std::string_view dotted) {
    std::string out;
    while (!dotted.empty()) {
        const size_t dot = dotted.rfind('.');
        if (!out.empty()) out += '.';
        out += dotted.substr(dot == std::string_view::npos ? 0 : dot + 1);
        dotted = dot == std::string_view::npos ? std::string_view() : dotted.substr(0, dot);
    }
    return out;
}

}  // namespace

std::string schema_name(std::string_view type_name) {
    constexpr std::pair<std::string_view, std::string_view> kPackages[] = {
        {"meta.", "io.k8s.apimachinery.pkg.apis.meta."},
        {"apiextensions.", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions."},
        {"apiregistration.", "io.k8s.kube-aggregator.pkg.apis.apiregistration."},
        {"metrics.", "io.k8s.metrics.pkg.apis.metrics."},
        {"koordinator.", "sh.koordinator.scheduling."},
        {"arbitrator.", "io.k8s.incubator.kuabe-arbitrator."},
        {"topology.", "io.k8s.node.topology."},
        {"slo.", "sh.koordinator.slo."}};
    for (const auto& [ours, theirs] : kPackages) {
        if (type_name.starts_with(ours)) return std::string(theirs) + std::string(type_name.substr(ours.size()));
    }
    return "io.k8s.api." + std::string(type_name);
}

std::string schema_name(const Kind& kind) {
    if (kind.type != nullptr) return schema_name(kind.type->name);
    return reversed(kind.group) + "." + kind.version + "." + kind.kind;
}

Json Schemas::reference(std::string_view name) const {
    return JsonObject{
        {"$ref", (dialect_ == Dialect::V2 ? "#/definitions/" : "#/components/schemas/") + std::string(name)}};
}

Json Schemas::special(std::string_view name, Json schema) {
    if (done_.emplace(name).second) schemas_[name] = std::move(schema);
    return reference(name);
}

Json Schemas::of_value(const Field& f) {
    const std::string meta(kMeta);
    switch (f.form) {
        case Form::Struct:
            if (f.keep_unknown && dialect_ == Dialect::V2)
                return JsonObject{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
            add_type(*f.type);
            return reference(schema_name(f.type->name));
        case Form::String:
            return plain("string");
        case Form::Bool:
            return plain("boolean");
        case Form::Int32:
            return plain("integer", "int32");
        case Form::Int64:
            return plain("integer", "int64");
        case Form::Double:
            return plain("number", "double");
        case Form::Bytes:
            return plain("string", "byte");
        case Form::Strings:
            return JsonObject{{"type", "array"}, {"items", plain("string")}};
        case Form::Time:
            return special(meta + "Time", plain("string", "date-time"));
        case Form::MicroTime:
            return special(meta + "MicroTime", plain("string", "date-time"));
        case Form::Duration:
            return special(meta + "Duration", plain("string"));
        case Form::FieldsV1:
            return special(meta + "FieldsV1", plain("object"));
        case Form::Quantity:
            return special("io.k8s.apimachinery.pkg.api.resource.Quantity", one_of(dialect_, "", "number"));
        case Form::IntOrString:
            return special("io.k8s.apimachinery.pkg.util.intstr.IntOrString",
                           one_of(dialect_, "int-or-string", "integer"));
        case Form::RawExtension:
            return special("io.k8s.apimachinery.pkg.runtime.RawExtension", plain("object"));
        default:
            return special("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", JsonObject());
    }
}

Json Schemas::of_field(const Field& f, std::string_view description) {
    JsonObject schema;
    if (f.holder == Holder::List) {
        schema = {{"type", "array"}, {"items", of_value(f)}};
    } else if (f.holder == Holder::Map) {
        schema = {{"type", "object"}, {"additionalProperties", of_value(f)}};
    } else {
        schema = of_value(f).get_object();
    }
    // Beside $ref nothing else counts in OpenAPI 3, so a reference with words stands in allOf.
    if (dialect_ == Dialect::V3 && schema.contains("$ref") && !description.empty())
        schema = {{"allOf", JsonArray{Json(schema)}}};
    if (!description.empty()) schema["description"] = description;
    add_list_marks(schema, f);
    return schema;
}

Json Schemas::of_type(const Type& type) {
    JsonObject schema;
    const auto words = description_of(type.name);
    if (!words.empty()) schema["description"] = words;
    schema["type"] = "object";
    JsonObject properties;
    JsonArray required;
    for (const Field* f : type.json) {
        properties[f->name] = of_field(*f, description_of(type.name, f->name));
        if (f->required) required.emplace_back(f->name);
    }
    if (!required.empty()) schema["required"] = std::move(required);
    if (!properties.empty()) schema["properties"] = std::move(properties);
    if (type.atomic) schema["x-kubernetes-map-type"] = "atomic";
    return schema;
}

void Schemas::add_type(const Type& type) {
    const std::string name = schema_name(type.name);
    if (!done_.insert(name).second) return;
    schemas_[name] = of_type(type);
}

void Schemas::add_kind(const Kind& kind) {
    const std::string name = schema_name(kind);
    if (kind.type != nullptr) {
        add_type(*kind.type);
    } else {
        schemas_[name] = JsonObject{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
    }
    schemas_[name].get_object()["x-kubernetes-group-version-kind"] = gvk_mark(kind, kind.kind);
    if (!kind.allows("list")) return;
    const Type& list_meta = *types()->find("meta.v1.ListMeta");
    add_type(list_meta);
    const std::string list_name = name.substr(0, name.rfind('.') + 1) + kind.list_kind;
    JsonObject properties{{"apiVersion", plain("string")}, {"kind", plain("string")}};
    properties["metadata"] = reference(schema_name(list_meta.name));
    properties["items"] = JsonObject{{"type", "array"}, {"items", reference(name)}};
    schemas_[list_name] = JsonObject{{"type", "object"},
                                     {"required", JsonArray{Json("items")}},
                                     {"properties", std::move(properties)},
                                     {"x-kubernetes-group-version-kind", gvk_mark(kind, kind.list_kind)}};
}

}  // namespace berth::model
