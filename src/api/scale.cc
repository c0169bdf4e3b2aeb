#include "api/scale.h"

#include <fmt/format.h>

#include "api/decode.h"
#include "api/meta.h"
#include "api/patch.h"
#include "api/read.h"
#include "api/wire.h"
#include "model/kinds/path.h"
#include "model/selector.h"

namespace berth::api {
namespace {

std::string selector_text(const Json* selector) {
    if (selector == nullptr) return {};
    if (selector->is_string()) return std::string(selector->as_string());
    std::string out;
    const bool nested =
        base::find(*selector, {"matchLabels"}) != nullptr || base::find(*selector, {"matchExpressions"}) != nullptr;
    for (const auto& [key, value] : model::members_at(*selector, nested ? ".matchLabels" : "")) {
        if (value.is_string())
            out += fmt::format("{}{}={}", out.empty() ? "" : ",", std::string_view(key),
                               std::string_view(value.as_string()));
    }
    return out;
}

Result<Json> scale_of(const Call& call, const store::Record& record) {
    const Json object = TRY(stored_object(record));
    const auto& paths = call.kind->scale;
    JsonObject meta{{"name", record.key.name}};
    if (!record.key.ns.empty()) meta["namespace"] = record.key.ns;
    meta["uid"] = record.uid;
    meta["resourceVersion"] = std::to_string(record.revision);
    meta["creationTimestamp"] = meta_text(object, "creationTimestamp");
    JsonObject status{{"replicas", model::int_at(object, paths.current)}};
    if (auto text = selector_text(model::at_path(object, paths.selector)); !text.empty()) status["selector"] = text;
    return Json(JsonObject{{"kind", "Scale"},
                           {"apiVersion", "autoscaling/v1"},
                           {"metadata", std::move(meta)},
                           {"spec", JsonObject{{"replicas", model::int_at(object, paths.replicas)}}},
                           {"status", std::move(status)}});
}

void set_at(Json& object, std::string_view path, int64_t value) {
    Json* at = &object;
    while (!path.empty()) {
        if (path.front() == '.') path.remove_prefix(1);
        const auto dot = path.find('.');
        if (!at->is_object()) *at = JsonObject{};
        at = &at->as_object()[path.substr(0, dot)];
        path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot);
    }
    *at = value;
}

// The object as it becomes when its scale becomes `wanted`.
Result<Draft> compose_scale(const Call& call, const store::RecordPtr& head, const Json& wanted) {
    if (const auto version = meta_text(wanted, "resourceVersion");
        !version.empty() && version != std::to_string(head->revision)) {
        return modified_error(call.resource(), call.name);
    }
    const Json* replicas = base::find(wanted, {"spec", "replicas"});
    const int64_t count = replicas != nullptr ? model::to_int(*replicas) : 0;
    if (count < 0) {
        return invalid_object(
            "autoscaling", "Scale", call.name,
            {invalid_value("spec.replicas", std::to_string(count), "must be greater than or equal to 0")});
    }
    const Json before = TRY(stored_object(*head));
    Json after = before;
    set_at(after, call.kind->scale.replicas, count);
    if (auto complete = complete_update(call, before, after); !complete) return complete.error();
    return draft_update(head, before, std::move(after));
}

Result<Draft> compose(const Call& call, const store::RecordPtr& head, const Patch* patch, const Json* body) {
    if (head == nullptr) return not_found_error(call.resource(), call.name);
    if (patch == nullptr) return compose_scale(call, head, *body);
    Json scale = TRY(scale_of(call, *head));
    const model::Kind* kind = call.table->find("autoscaling", "v1", "scales");
    if (auto applied = patch->apply(scale, kind != nullptr ? *kind : model::Kind{}); !applied) return applied.error();
    return compose_scale(call, head, scale);
}

}  // namespace

void perform_scale(ApiContext& context, CallPtr call, Done done) {
    if (call->verb == Verb::Get) {
        auto record = read_record(context, *call);
        if (!record) return done(std::move(record).error());
        auto scale = scale_of(*call, **record);
        if (!scale) return done(std::move(scale).error());
        Served out;
        out.text = base::to_text(*scale) + "\n";
        return done(std::move(out));
    }
    std::shared_ptr<const Patch> patch;
    std::shared_ptr<const Json> body;
    if (call->verb == Verb::Patch) {
        auto parsed = parse_patch(call->body);
        if (!parsed) return done(std::move(parsed).error());
        patch = std::make_shared<const Patch>(std::move(*parsed));
    } else {
        auto parsed = decode_document(*call, call->body);
        if (!parsed) return done(std::move(parsed).error());
        body = std::make_shared<const Json>(std::move(*parsed));
    }
    write(
        context, call,
        [call, patch, body](const store::RecordPtr& head) { return compose(*call, head, patch.get(), body.get()); },
        [call, done = std::move(done)](Result<Served> result) {
            if (!result) return done(std::move(result));
            auto scale = scale_of(*call, *result->record);
            if (!scale) return done(std::move(scale).error());
            result->text = base::to_text(*scale) + "\n";
            done(std::move(result));
        });
}

}  // namespace berth::api
