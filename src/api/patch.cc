#include "api/patch.h"

#include <fmt/format.h>

#include "api/decode.h"
#include "model/kinds/patch.h"

namespace berth::api {

const JsonObject* Patch::touched(const model::Kind& kind) const {
    return form == Form::Json || !kind.stored_kind.empty() ? nullptr : &document.get_object();
}

Status Patch::apply(Json& object, const model::Kind& kind) const {
    switch (form) {
        case Form::Json:
            return model::apply_json_patch(object, document);
        case Form::Merge:
            return model::apply_merge_patch(object, document);
        case Form::Strategic:
            // Custom resources have no merge keys; kubectl looks for exactly this refusal.
            if (kind.type == nullptr) {
                return unsupported_media(
                    "the body of the request was in an unknown format - accepted media types include: "
                    "application/json-patch+json, application/merge-patch+json");
            }
            return model::apply_strategic_patch(object, document, *kind.type);
    }
    return {};
}

Result<Patch> parse_patch(const Body& body) {
    const auto media = parse_media_types(body.content_type);
    const std::string type = media.empty() ? "" : media.front().type;
    auto form = Patch::Form::Merge;
    if (type == "application/json-patch+json")
        form = Patch::Form::Json;
    else if (type == "application/merge-patch+json")
        form = Patch::Form::Merge;
    else if (type == "application/strategic-merge-patch+json")
        form = Patch::Form::Strategic;
    else if (type == "application/apply-patch+yaml" || type == "application/apply-patch+cbor") {
        return unsupported_media(
            "server-side apply is not served yet; use kubectl apply without --server-side, or one of: "
            "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json");
    } else {
        return unsupported_media(fmt::format(
            "the body of the request was in an unknown format (\"{}\") - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json",
            body.content_type));
    }
    auto document = base::parse_json(body.bytes);
    if (!document) return base::bad_request(fmt::format("error decoding patch: {}", document.error().message));
    const bool fits = form == Patch::Form::Json ? document->is_array() : document->is_object();
    if (!fits)
        return base::bad_request(
            "error decoding patch: a JSON patch is a list of operations, the other forms are an object");
    return Patch{form, std::move(*document)};
}

}  // namespace berth::api
