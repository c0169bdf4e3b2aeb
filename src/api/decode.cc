#include "api/decode.h"

#include <fmt/format.h>

#include "base/yaml.h"
#include "model/kinds/convert.h"
#include "model/kinds/defaults.h"
#include "model/kinds/fields.h"
#include "model/kinds/protobuf.h"

namespace berth::api {
namespace {

enum class Wire : uint8_t { Json, Yaml, Protobuf };

Result<Wire> wire_of(const Body& body) {
    const auto media = parse_media_types(body.content_type);
    const std::string type = media.empty() ? "" : media.front().type;
    if (type.empty() || type == "application/json" || type == "*/*") return Wire::Json;
    if (type == "application/yaml" || type == "application/x-yaml" || type == "text/yaml") return Wire::Yaml;
    if (type == "application/vnd.kubernetes.protobuf") return Wire::Protobuf;
    return unsupported_media(fmt::format(
        "the body of the request was in an unknown format (\"{}\") - accepted media types include: application/json, "
        "application/yaml, application/vnd.kubernetes.protobuf",
        body.content_type));
}

Result<Json> parse_yaml_document(const std::string& text) {
    auto parsed = base::parse_yaml(text);
    if (!parsed) return base::bad_request(fmt::format("yaml parse error: {}", parsed.error().message));
    if (parsed->size() != 1) return base::bad_request("the request body must be one YAML document");
    return std::move(parsed->front());
}

}  // namespace

Result<Json> decode_document(const Call& call, const Body& body) {
    const Wire wire = TRY(wire_of(body));
    if (wire == Wire::Protobuf) return model::decode_protobuf(body.bytes, *call.table);
    if (wire == Wire::Yaml) return parse_yaml_document(body.bytes);
    auto parsed = base::parse_json(body.bytes);
    if (!parsed)
        return base::bad_request(
            fmt::format("couldn't get version/kind; json parse error: {}", parsed.error().message));
    return parsed;
}

namespace {

// apiVersion and kind are those of the URL, or are taken from it.
Status match_kind(const model::Kind& kind, Json& object) {
    if (!object.is_object()) return base::bad_request("the request body is not an object");
    const auto match = [&](const char* field, const std::string& expected) -> Status {
        const Json* found = object.as_object().if_contains(field);
        const bool text = found != nullptr && found->is_string();
        if (found == nullptr || found->is_null() || (text && found->get_string().empty())) {
            object.as_object()[field] = expected;
        } else if (!text || found->get_string() != expected) {
            return base::bad_request(fmt::format("the {} in the data ({}) does not match the expected {} ({})", field,
                                                 base::to_text(*found), field, expected));
        }
        return {};
    };
    if (auto matched = match("apiVersion", kind.api_version()); !matched) return matched;
    return match("kind", kind.kind);
}

}  // namespace

Result<Decoded> check_object(const Call& call, const model::Kind& kind, Json object, const JsonObject* only) {
    if (auto matched = match_kind(kind, object); !matched) return matched.error();
    Decoded out{std::move(object)};
    if (kind.type != nullptr) {
        auto complaints = TRY(model::check_fields(out.object, *kind.type, only));
        if (!complaints.empty() && call.options.validation == FieldValidation::Strict) {
            return model::strict_error(complaints);
        }
        if (call.options.validation == FieldValidation::Warn) out.warnings = std::move(complaints);
        model::apply_defaults(out.object, kind, only);
    }
    out.object = model::to_stored(kind, std::move(out.object));
    return out;
}

Result<Decoded> decode_object(const Call& call, const model::Kind& kind) {
    return check_object(call, kind, TRY(decode_document(call, call.body)));
}

Status read_delete_options(const Json& document, CallOptions& options) {
    if (!document.is_object()) return base::bad_request("the request body is not a DeleteOptions object");
    if (const Json* grace = base::find(document, {"gracePeriodSeconds"})) {
        if (grace->is_int64())
            options.grace_seconds = grace->as_int64();
        else if (!grace->is_null())
            return base::bad_request("gracePeriodSeconds is not a whole number");
    }
    if (const auto policy = base::find_string(document, {"propagationPolicy"}); !policy.empty())
        options.propagation = policy;
    if (const Json* orphan = base::find(document, {"orphanDependents"}); orphan != nullptr && orphan->is_bool()) {
        options.orphan = orphan->as_bool();
    }
    options.if_uid = std::string(base::find_string(document, {"preconditions", "uid"}));
    options.if_version = std::string(base::find_string(document, {"preconditions", "resourceVersion"}));
    const Json* dry_run = base::find(document, {"dryRun"});
    if (dry_run != nullptr && dry_run->is_array() && !dry_run->as_array().empty()) options.dry_run = true;
    return {};
}

}  // namespace berth::api
