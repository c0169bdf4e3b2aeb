#include <algorithm>
#include <span>

#include "model/kinds/openapi_parts.h"

namespace berth::model {
namespace {

struct Parameter {
    std::string_view name, type;
};

constexpr Parameter kList[] = {{"allowWatchBookmarks", "boolean"},
                               {"continue", "string"},
                               {"fieldSelector", "string"},
                               {"labelSelector", "string"},
                               {"limit", "integer"},
                               {"resourceVersion", "string"},
                               {"resourceVersionMatch", "string"},
                               {"sendInitialEvents", "boolean"},
                               {"timeoutSeconds", "integer"},
                               {"watch", "boolean"}};
constexpr Parameter kWrite[] = {{"dryRun", "string"}, {"fieldManager", "string"}, {"fieldValidation", "string"}};
constexpr Parameter kPatch[] = {
    {"dryRun", "string"}, {"fieldManager", "string"}, {"fieldValidation", "string"}, {"force", "boolean"}};
constexpr Parameter kDelete[] = {{"dryRun", "string"},
                                 {"gracePeriodSeconds", "integer"},
                                 {"orphanDependents", "boolean"},
                                 {"propagationPolicy", "string"}};
constexpr std::string_view kPatchTypes[] = {"application/apply-patch+yaml", "application/json-patch+json",
                                            "application/merge-patch+json", "application/strategic-merge-patch+json"};

// "rbac.authorization.k8s.io" and "v1" -> "RbacAuthorizationV1"; core is "CoreV1".
std::string camel(std::string_view group, std::string_view version) {
    if (group.empty()) group = "core";
    if (group.ends_with(".k8s.io")) group.remove_suffix(7);
    std::string out;
    bool start = true;
    for (const char c : std::string(group) + "." + std::string(version)) {
        if (c == '.' || c == '-') {
            start = true;
            continue;
        }
        out += static_cast<char>(start && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
        start = false;
    }
    return out;
}

// Writes the operations of one kind into a document.
class PathWriter {
public:
    PathWriter(JsonObject& paths, const Kind& kind, const Schemas& schemas, Dialect dialect)
        : paths_(paths), kind_(kind), schemas_(schemas), dialect_(dialect) {}

    void write() {
        const std::string root =
            kind_.group.empty() ? "/api/" + kind_.version : "/apis/" + kind_.group + "/" + kind_.version;
        const std::string scoped = kind_.namespaced ? root + "/namespaces/{namespace}/" : root + "/";
        collection(scoped + kind_.plural);
        if (kind_.namespaced && kind_.allows("list")) {
            JsonObject& item = path(root + "/" + kind_.plural, false, false);
            item["get"] = operation("list", "ForAllNamespaces", list_name(), kList, {});
        }
        const std::string item = scoped + kind_.plural + "/{name}";
        one(item);
        for (const auto& s : kind_.subresources) subresource(item + "/" + s.name, s);
    }

private:
    std::string list_name() const {
        const std::string name = schema_name(kind_);
        return name.substr(0, name.rfind('.') + 1) + kind_.list_kind;
    }

    JsonObject path_parameter(std::string_view name) const {
        JsonObject p{{"name", name}, {"in", "path"}, {"required", true}};
        add_type(p, "string");
        return p;
    }

    void add_type(JsonObject& parameter, std::string_view type) const {
        if (dialect_ == Dialect::V2) {
            parameter["type"] = type;
            parameter["uniqueItems"] = true;
        } else {
            parameter["schema"] = JsonObject{{"type", type}, {"uniqueItems", true}};
        }
    }

    JsonObject& path(const std::string& at, bool in_namespace, bool named) {
        JsonArray parameters;
        if (named) parameters.push_back(path_parameter("name"));
        if (in_namespace) parameters.push_back(path_parameter("namespace"));
        JsonObject item;
        if (!parameters.empty()) item["parameters"] = std::move(parameters);
        return paths_.insert_or_assign(at, std::move(item)).first->value().get_object();
    }

    void collection(const std::string& at) {
        JsonObject& item = path(at, kind_.namespaced, false);
        const std::string own = schema_name(kind_);
        if (kind_.allows("list")) item["get"] = operation("list", "", list_name(), kList, {});
        if (kind_.allows("create")) item["post"] = operation("create", "", own, kWrite, own);
        if (kind_.allows("deletecollection"))
            item["delete"] = operation("deleteCollection", "", schema_name("meta.v1.Status"), kList, {});
    }

    void one(const std::string& at) {
        if (!kind_.allows("get") && !kind_.allows("update")) return;
        JsonObject& item = path(at, kind_.namespaced, true);
        const std::string own = schema_name(kind_);
        if (kind_.allows("get")) item["get"] = operation("read", "", own, {}, {});
        if (kind_.allows("update")) item["put"] = operation("replace", "", own, kWrite, own);
        if (kind_.allows("patch")) item["patch"] = operation("patch", "", own, kPatch, kPatchBody);
        if (kind_.allows("delete")) {
            item["delete"] =
                operation("delete", "", schema_name("meta.v1.Status"), kDelete, schema_name("meta.v1.DeleteOptions"));
        }
    }

    void subresource(const std::string& at, const Subresource& s) {
        const Type* type = s.kind == kind_.kind ? kind_.type.get() : kinds().body_type(api_of(s), s.kind);
        if (type == nullptr) return;
        JsonObject& item = path(at, kind_.namespaced, true);
        const std::string name = schema_name(type->name);
        const auto has = [&](const char* verb) {
            return std::find(s.verbs.begin(), s.verbs.end(), verb) != s.verbs.end();
        };
        std::string suffix = s.name;
        suffix[0] = static_cast<char>(suffix[0] - 'a' + 'A');
        if (has("get")) item["get"] = operation("read", suffix, name, {}, {}, &s);
        if (has("update")) item["put"] = operation("replace", suffix, name, kWrite, name, &s);
        if (has("patch")) item["patch"] = operation("patch", suffix, name, kPatch, kPatchBody, &s);
        if (has("create")) item["post"] = operation("create", suffix, name, kWrite, name, &s);
    }

    static std::string api_of(const Subresource& s) { return s.group.empty() ? s.version : s.group + "/" + s.version; }

    Json operation(const std::string& verb, const std::string& suffix, const std::string& answer,
                   std::span<const Parameter> query, const std::string& body, const Subresource* s = nullptr) const {
        const bool scoped = kind_.namespaced && suffix != "ForAllNamespaces";
        JsonObject op{
            {"operationId",
             verb + camel(kind_.group, kind_.version) + (scoped ? "Namespaced" : "") + kind_.kind + suffix},
            {"x-kubernetes-action", action_of(verb)},
            {"x-kubernetes-group-version-kind", JsonObject{{"group", s == nullptr ? kind_.group : s->group},
                                                           {"version", s == nullptr ? kind_.version : s->version},
                                                           {"kind", s == nullptr ? kind_.kind : s->kind}}}};
        JsonArray parameters;
        for (const auto& q : query) {
            JsonObject p{{"name", q.name}, {"in", "query"}};
            add_type(p, q.type);
            parameters.push_back(std::move(p));
        }
        if (!body.empty()) add_body(op, parameters, body);
        if (!parameters.empty()) op["parameters"] = std::move(parameters);
        JsonObject ok{{"description", "OK"}};
        if (dialect_ == Dialect::V2) {
            ok["schema"] = schemas_.reference(answer);
        } else {
            ok["content"] = JsonObject{{"application/json", JsonObject{{"schema", schemas_.reference(answer)}}}};
        }
        op["responses"] = JsonObject{{"200", std::move(ok)}, {"401", JsonObject{{"description", "Unauthorized"}}}};
        return op;
    }

    void add_body(JsonObject& op, JsonArray& parameters, const std::string& body) const {
        const bool patch = body == kPatchBody;
        const Json schema = patch ? Json(JsonObject{{"type", "object"}}) : schemas_.reference(body);
        JsonObject content;
        if (patch) {
            for (const auto type : kPatchTypes) content[type] = JsonObject{{"schema", schema}};
        } else {
            content["*/*"] = JsonObject{{"schema", schema}};
        }
        if (dialect_ == Dialect::V3) {
            op["requestBody"] = JsonObject{{"content", std::move(content)}, {"required", true}};
            return;
        }
        parameters.push_back(JsonObject{{"name", "body"}, {"in", "body"}, {"required", true}, {"schema", schema}});
        JsonArray types;
        for (const auto& type : content) types.emplace_back(type.key());
        op["consumes"] = std::move(types);
    }

    static std::string action_of(const std::string& verb) {
        if (verb == "read") return "get";
        if (verb == "create") return "post";
        if (verb == "replace") return "put";
        if (verb == "deleteCollection") return "deletecollection";
        return verb;
    }

    static constexpr const char* kPatchBody = "a patch";

    JsonObject& paths_;
    const Kind& kind_;
    const Schemas& schemas_;
    Dialect dialect_;
};

}  // namespace

void add_paths(JsonObject& paths, const Kind& kind, const Schemas& schemas, Dialect dialect) {
    PathWriter(paths, kind, schemas, dialect).write();
}

}  // namespace berth::model
