#include "api/meta.h"

#include <fmt/format.h>

#include "api/wire.h"
#include "base/mentions.h"
#include "model/names.h"

namespace berth::api {
namespace {

using model::Causes;
using model::Where;

constexpr size_t kMaxAnnotations = 256u << 10;
constexpr size_t kMaxGenerated = 58;  // leaves five characters of a 63 character name

constexpr size_t kShortName = 52;  // a CronJob's: a Job of its name has eleven more

model::Fault name_fault(const model::Kind& kind, std::string_view name) {
    switch (kind.name_form) {
        case model::NameForm::PathSegment:
            return model::path_segment_fault(name);
        case model::NameForm::Label:
            return model::dns1123_label_fault(name);
        case model::NameForm::ServiceLabel:
            return model::dns1035_label_fault(name);
        case model::NameForm::ShortSubdomain:
            if (name.size() > kShortName) return fmt::format("must be no more than {} characters", kShortName);
            break;
        case model::NameForm::Subdomain:
            break;
    }
    return model::dns1123_subdomain_fault(name);
}

// What a name is to begin with may end with a dash.
model::Fault prefix_fault(const model::Kind& kind, std::string_view prefix) {
    const bool path = kind.name_form == model::NameForm::PathSegment;
    if (!path && prefix.size() > 1 && prefix.ends_with('-')) prefix.remove_suffix(1);
    return path ? model::path_segment_fault(prefix) : name_fault(kind, prefix);
}

void check_label_map(const Json* labels, const Where& at, Causes& causes) {
    if (labels == nullptr || !labels->is_object()) return;
    for (const auto& [key, value] : labels->as_object()) {
        if (auto fault = model::label_key_fault(key)) causes.invalid(at, Json(key), *fault);
        if (!value.is_string()) continue;
        if (auto fault = model::label_value_fault(value.as_string())) causes.invalid(at, value, *fault);
    }
}

void check_annotation_map(const Json* annotations, const Where& at, Causes& causes) {
    if (annotations == nullptr || !annotations->is_object()) return;
    size_t total = 0;
    for (const auto& [key, value] : annotations->as_object()) {
        if (auto fault = model::annotation_key_fault(key)) causes.invalid(at, Json(key), *fault);
        total += key.size() + (value.is_string() ? value.as_string().size() : 0);
    }
    if (total > kMaxAnnotations) causes.too_long(at, fmt::format("must have at most {} bytes", kMaxAnnotations));
}

void check_finalizers(const Json* finalizers, const Where& at, Causes& causes) {
    if (finalizers == nullptr || !finalizers->is_array()) return;
    for (const auto& finalizer : finalizers->as_array()) {
        if (!finalizer.is_string()) continue;
        if (auto fault = model::qualified_name_fault(finalizer.as_string())) causes.invalid(at, finalizer, *fault);
    }
}

void check_owners(const Json* owners, const Where& at, Causes& causes) {
    if (owners == nullptr || !owners->is_array()) return;
    int controllers = 0;
    for (size_t i = 0; i < owners->as_array().size(); ++i) {
        const Json& owner = owners->as_array()[i];
        const Where item = at.item(i);
        for (const auto* field : {"apiVersion", "kind", "name", "uid"}) {
            if (base::find_string(owner, {field}).empty()) {
                causes.invalid(item.member(field), Json(""), "must not be empty");
            }
        }
        const Json* controller = base::find(owner, {"controller"});
        if (controller != nullptr && controller->is_bool() && controller->as_bool()) ++controllers;
    }
    if (controllers > 1) {
        causes.invalid(at, Json(""), "Only one reference can have Controller set to true");
    }
}

}  // namespace

std::string_view meta_text(const Json& object, std::string_view field) {
    return base::find_string(object, {"metadata", field});
}

JsonObject& meta_of(Json& object) {
    return base::object_at(object, {"metadata"});
}

bool is_deleting(const Json& object) {
    return !meta_text(object, "deletionTimestamp").empty();
}

Status match_url(const Call& call, Json& object) {
    JsonObject& meta = meta_of(object);
    const auto ns = meta_text(object, "namespace");
    if (call.kind->namespaced) {
        if (!ns.empty() && ns != call.ns) {
            return base::bad_request(
                fmt::format("the namespace of the provided object does not match the namespace sent on the request ({} "
                            "and {})",
                            ns, call.ns));
        }
        meta["namespace"] = call.ns;
    } else {
        meta.erase("namespace");
    }
    if (call.name.empty()) return {};
    const auto name = meta_text(object, "name");
    if (name.empty())
        meta["name"] = call.name;
    else if (name != call.name) {
        return base::bad_request(
            fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, call.name));
    }
    return {};
}

Status stamp_new(ApiContext& context, const Call& call, Json& object) {
    JsonObject& meta = meta_of(object);
    if (!meta_text(object, "resourceVersion").empty()) {
        return base::bad_request("resourceVersion should not be set on objects to be created");
    }
    for (const auto* field : {"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion",
                              "managedFields", "selfLink"}) {
        meta.erase(field);
    }
    if (meta_text(object, "name").empty() && !meta_text(object, "generateName").empty()) {
        meta["name"] = std::string(meta_text(object, "generateName").substr(0, kMaxGenerated)) + context.ids.suffix();
    }
    // What is brought from elsewhere stays itself: others name it by its uid, and its age decides when it ends.
    const bool brought = call.who.in(kImporters);
    if (!brought || meta_text(object, "uid").empty()) meta["uid"] = context.ids.uid();
    if (!brought || meta_text(object, "creationTimestamp").empty()) meta["creationTimestamp"] = context.now_text();
    if (call.kind->generation) meta["generation"] = 1;
    return {};
}

void check_name(const model::Kind& kind, const Json& object, Causes& causes) {
    const Where root;
    const Where metadata = root.member("metadata");
    const auto name = meta_text(object, "name");
    const auto prefix = meta_text(object, "generateName");
    if (!prefix.empty()) {
        if (auto fault = prefix_fault(kind, prefix))
            causes.invalid(metadata.member("generateName"), Json(prefix), *fault);
    }
    if (name.empty()) {
        causes.required(metadata.member("name"), "name or generateName is required");
    } else if (auto fault = name_fault(kind, name)) {
        causes.invalid(metadata.member("name"), Json(name), *fault);
    }
}

void check_metadata(const Json& object, Causes& causes) {
    const Where root;
    const Where metadata = root.member("metadata");
    const auto check = [&](std::string_view field, auto rule) {
        rule(base::find(object, {"metadata", field}), metadata.member(field), causes);
    };
    check("labels", check_label_map);
    check("annotations", check_annotation_map);
    check("finalizers", check_finalizers);
    check("ownerReferences", check_owners);
}

Status check_namespace(ApiContext& context, const Call& call, std::string_view name) {
    if (call.ns.empty()) return {};
    const auto record = context.store.head({"namespaces", "", call.ns});
    if (record == nullptr) return not_found_error("namespaces", call.ns);
    // Most namespaces are not being deleted, and then their bytes do not have the word.
    if (!base::mentions(*record->bytes, "\"deletionTimestamp\"")) return {};
    if (!is_deleting(TRY(stored_object(*record)))) return {};
    Error error = forbidden(fmt::format(
        "{} \"{}\" is forbidden: unable to create new content in namespace {} because it is being terminated",
        call.resource(), name, call.ns));
    error.causes.push_back(
        {"NamespaceTerminating", fmt::format("namespace {} is being terminated", call.ns), "metadata.namespace"});
    return error;
}

}  // namespace berth::api
