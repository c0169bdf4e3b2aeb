#include <fmt/format.h>

#include <set>

#include "api/admission.h"
#include "api/decode.h"
#include "api/meta.h"
#include "api/patch.h"
#include "api/versions.h"
#include "api/wire.h"
#include "api/write.h"
#include "model/kinds/convert.h"

namespace berth::api {
namespace {

constexpr size_t kMaxObject = 3u << 19;  // 1.5 MiB

void carry(const JsonObject& from, JsonObject& to, std::string_view field) {
    if (const Json* value = from.if_contains(field))
        to[field] = *value;
    else
        to.erase(field);
}

Status check_new_finalizers(const Call& call, const Json& before, const Json& after) {
    if (!is_deleting(before)) return {};
    const Json* now = base::find(after, {"metadata", "finalizers"});
    if (now == nullptr || !now->is_array()) return {};
    const Json* old = base::find(before, {"metadata", "finalizers"});
    std::set<std::string> known;
    if (old != nullptr && old->is_array()) {
        for (const auto& finalizer : old->as_array()) known.insert(base::to_text(finalizer));
    }
    for (const auto& finalizer : now->as_array()) {
        if (known.contains(base::to_text(finalizer))) continue;
        return invalid_object(
            call.kind->group, call.kind->kind, call.name,
            {forbidden_value("metadata.finalizers", fmt::format("no new finalizers can be added if the object is being "
                                                                "deleted, found new finalizers []string{{{}}}",
                                                                base::to_text(finalizer)))});
    }
    return {};
}

// Everything but metadata and status.
bool same_spec(const Json& before, const Json& after) {
    const auto differs = [](const JsonObject& a, const JsonObject& b) {
        for (const auto& [key, value] : a) {
            if (key == "metadata" || key == "status" || key == "apiVersion" || key == "kind") continue;
            const Json* other = b.if_contains(key);
            if (other == nullptr || *other != value) return true;
        }
        return false;
    };
    return !differs(before.as_object(), after.as_object()) && !differs(after.as_object(), before.as_object());
}

// The client's preconditions: the version and the uid in the body.
Status check_preconditions(const Call& call, const store::Record& head, const Json& wanted) {
    const auto version = meta_text(wanted, "resourceVersion");
    if (!version.empty()) {
        auto asked = parse_version(version);
        if (!asked) {
            return invalid_object(call.kind->group, call.kind->kind, call.name,
                                  {invalid_value("metadata.resourceVersion", version, "not a decimal number")});
        }
        if (*asked != 0 && *asked != head.revision) return modified_error(call.resource(), call.name);
    }
    const auto uid = meta_text(wanted, "uid");
    if (!uid.empty() && uid != head.uid) {
        return base::conflict(
            fmt::format("Operation cannot be fulfilled on {} \"{}\": Precondition failed: UID in "
                        "precondition: {}, UID in object meta: {}",
                        call.resource(), call.name, uid, head.uid));
    }
    return {};
}

// namespaces/finalize: only the list of what still holds the namespace.
Json with_finalizers(const Json& before, const Json& wanted) {
    Json out = before;
    const Json* finalizers = base::find(wanted, {"spec", "finalizers"});
    base::object_at(out, {"spec"})["finalizers"] = finalizers != nullptr ? *finalizers : Json(JsonArray{});
    return out;
}

Json through_subresource(const Call& call, const Json& before, Json wanted) {
    if (call.subresource == "status") return with_status(call, before, std::move(wanted));
    if (call.subresource == "finalize") return with_finalizers(before, wanted);
    return wanted;
}

Result<Draft> replace(ApiContext& context, const Call& call, const store::RecordPtr& head, const PartlyRead& now,
                      Json wanted, std::vector<std::string> warnings) {
    const Json& before = now.object;
    if (auto fits = check_preconditions(call, *head, wanted); !fits) return fits.error();
    Json after = through_subresource(call, before, std::move(wanted));
    if (auto complete = complete_update(call, before, after); !complete) return complete.error();
    Admission entry{context, call, &before, after, warnings};
    if (auto admitted = admit(entry); !admitted) return admitted.error();
    Draft out = draft_update(head, before, std::move(after), now.unread);
    out.warnings = std::move(warnings);
    const auto& bytes = out.txn.writes[0].bytes;
    if (bytes != nullptr && bytes->size() > kMaxObject) {
        return Error{Reason::RequestEntityTooLarge, "the object is larger than 1.5 MiB"};
    }
    return out;
}

// A change of the status leaves the spec as it is, and nobody who admits one of these kinds looks at it.
bool leaves_spec_alone(const Call& call, const Patch& change) {
    if (call.subresource != "status" || !call.kind->stored_kind.empty()) return false;
    if (change.form == Patch::Form::Json) return false;
    for (const auto& [key, value] : change.document.get_object()) {
        if (key != "apiVersion" && key != "kind" && key != "metadata" && key != "status") return false;
    }
    return call.kind->kind == "Pod" || call.kind->kind == "Reservation";
}

Result<Draft> patch(ApiContext& context, const Call& call, const store::RecordPtr& head, const Patch& change) {
    if (head == nullptr) return not_found_error(call.resource(), call.name);
    const PartlyRead before =
        leaves_spec_alone(call, change) ? TRY(stored_ends(*head)) : PartlyRead{TRY(stored_object(*head)), {}};
    Json stored = before.object;
    base::object_at(stored, {"metadata"})["resourceVersion"] = std::to_string(head->revision);
    Json object = model::from_stored(*call.kind, std::move(stored));
    if (auto changed = change.apply(object, *call.kind); !changed) return changed.error();
    Decoded decoded = TRY(check_object(call, *call.kind, std::move(object), change.touched(*call.kind)));
    if (auto matched = match_url(call, decoded.object); !matched) return matched.error();
    return replace(context, call, head, before, std::move(decoded.object), std::move(decoded.warnings));
}

}  // namespace

Json with_status(const Call& call, const Json& before, Json after) {
    Json out = before;
    if (Json* status = after.as_object().if_contains("status"))
        out.as_object()["status"] = std::move(*status);
    else
        out.as_object().erase("status");
    // A custom resource's metadata is not touched through its status; that of the built-in kinds is.
    if (call.kind->group.find('.') == std::string::npos || call.kind->group.ends_with(".k8s.io")) {
        for (const auto* field : {"labels", "annotations"}) carry(meta_of(after), meta_of(out), field);
    }
    return out;
}

Status complete_update(const Call& call, const Json& before, Json& after) {
    const JsonObject& old = before.at("metadata").as_object();
    JsonObject& meta = meta_of(after);
    for (const auto* field : {"name", "namespace", "uid", "generateName", "creationTimestamp", "deletionTimestamp",
                              "deletionGracePeriodSeconds", "generation"}) {
        carry(old, meta, field);
    }
    for (const auto* field : {"resourceVersion", "managedFields", "selfLink"}) meta.erase(field);
    if (call.kind->has_status() && call.subresource != "status") {
        carry(before.as_object(), after.as_object(), "status");
    }
    if (auto fine = check_new_finalizers(call, before, after); !fine) return fine;
    if (call.kind->generation && call.subresource != "status" && !same_spec(before, after)) {
        const Json* generation = old.if_contains("generation");
        meta["generation"] = (generation != nullptr && generation->is_int64() ? generation->as_int64() : 0) + 1;
    }
    return {};
}

void update_object(ApiContext& context, CallPtr call, Done done) {
    write(
        context, call,
        [&context, call](const store::RecordPtr& head) -> Result<Draft> {
            Decoded sent = TRY(decode_object(*call, *call->kind));
            TRY(match_url(*call, sent.object));
            if (head == nullptr) return not_found_error(call->resource(), call->name);
            const PartlyRead before = PartlyRead{TRY(stored_object(*head)), {}};
            return replace(context, *call, head, before, std::move(sent.object), std::move(sent.warnings));
        },
        std::move(done));
}

void patch_object(ApiContext& context, CallPtr call, Done done) {
    write(
        context, call,
        [&context, call](const store::RecordPtr& head) -> Result<Draft> {
            return patch(context, *call, head, TRY(parse_patch(call->body)));
        },
        std::move(done));
}

}  // namespace berth::api
