#include "api/reviews.h"

#include "api/authz.h"
#include "api/decode.h"
#include "model/kinds/path.h"

namespace berth::api {
namespace {

JsonArray words(const std::vector<std::string>& list) {
    JsonArray out;
    for (const auto& word : list) out.emplace_back(word);
    return out;
}

Json user_info(const Identity& who) {
    Json out = JsonObject{{"username", who.user}, {"groups", words(who.groups)}};
    if (!who.uid.empty()) out.as_object()["uid"] = who.uid;
    for (const auto& [key, values] : who.extra) base::object_at(out, {"extra"})[key] = words(values);
    return out;
}

Json access(const ApiContext& context, const Identity& who, const Json& spec) {
    Attributes what;
    if (const Json* path = base::find(spec, {"nonResourceAttributes"})) {
        what.verb = model::string_at(*path, ".verb");
        what.path = model::string_at(*path, ".path");
    } else {
        const Json* resource = base::find(spec, {"resourceAttributes"});
        const Json none = JsonObject{};
        const Json& asked = resource != nullptr ? *resource : none;
        what = {model::string_at(asked, ".verb"),      model::string_at(asked, ".group"),
                model::string_at(asked, ".resource"),  model::string_at(asked, ".subresource"),
                model::string_at(asked, ".namespace"), model::string_at(asked, ".name")};
        what.field_selector = model::string_at(asked, ".fieldSelector.rawSelector");
    }
    return JsonObject{{"allowed", allowed(who, what, context.store)}};
}

Json rules(const Identity& who) {
    JsonArray resources, paths;
    for (const auto& row : rules_of(who)) {
        JsonObject rule{{"verbs", words(row.verbs)}};
        if (!row.paths.empty()) {
            rule["nonResourceURLs"] = words(row.paths);
            paths.emplace_back(std::move(rule));
            continue;
        }
        rule["apiGroups"] = words(row.groups);
        rule["resources"] = words(row.resources);
        resources.emplace_back(std::move(rule));
    }
    return JsonObject{{"resourceRules", std::move(resources)},
                      {"nonResourceRules", std::move(paths)},
                      {"incomplete", !node_of(who).empty()}};
}

Json token_status(const ApiContext& context, const Json& spec) {
    const auto who = context.identify_token(model::string_at(spec, ".token"));
    if (!who) return JsonObject{{"authenticated", false}, {"error", "the token is not known"}};
    return JsonObject{{"authenticated", true}, {"user", user_info(*who)}};
}

Identity subject_in(const Json& spec) {
    Identity out{std::string(model::string_at(spec, ".user")), {}};
    for (const auto& group : model::list_at(spec, ".groups")) {
        if (group.is_string()) out.groups.emplace_back(group.as_string());
    }
    return out;
}

Json status_of(const ApiContext& context, const Call& call, const Json& spec) {
    const std::string& kind = call.kind->kind;
    if (kind == "SelfSubjectReview") return JsonObject{{"userInfo", user_info(call.who)}};
    if (kind == "SelfSubjectRulesReview") return rules(call.who);
    if (kind == "TokenReview") return token_status(context, spec);
    if (kind == "SelfSubjectAccessReview") return access(context, call.who, spec);
    return access(context, subject_in(spec), spec);
}

}  // namespace

bool is_review(const Call& call) {
    return (call.kind->group == "authorization.k8s.io" || call.kind->group == "authentication.k8s.io") &&
           call.kind->kind.ends_with("Review");
}

void answer_review(ApiContext& context, const Call& call, const Done& done) {
    auto decoded = decode_object(call, *call.kind);
    if (!decoded) return done(std::move(decoded).error());
    Json& object = decoded->object;
    const Json* spec = base::find(object, {"spec"});
    Json status = status_of(context, call, spec != nullptr ? *spec : Json(JsonObject{}));
    base::object_at(object, {"metadata"})["creationTimestamp"] = nullptr;
    object.as_object()["status"] = std::move(status);
    Served out;
    out.code = 201;
    out.text = base::to_text(object) + "\n";
    done(std::move(out));
}

}  // namespace berth::api
