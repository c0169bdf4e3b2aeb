#include "run/writes.h"

#include "base/json.h"

namespace berth::run {
namespace {

using Verb = model::Write::Verb;

// "apps/replicasets", of it the object's name and subresource.
std::string path_of(const model::Write& write) {
    const auto slash = write.resource.find('/');
    const bool core = slash == std::string::npos;
    std::string path = core ? "/api/" : "/apis/";
    if (!core) path.append(write.resource, 0, slash + 1);
    path += write.version;
    if (!write.ns.empty()) path.append("/namespaces/").append(write.ns);
    path += '/';
    path.append(write.resource, core ? 0 : slash + 1);
    if (!write.name.empty()) path.append("/").append(write.name);
    if (!write.subresource.empty()) path.append("/").append(write.subresource);
    return path;
}

// A patch or an object that names another uid or version than the stored one is refused.
void put_conditions(const model::Write& write, JsonObject& meta) {
    if (!write.uid.empty()) meta["uid"] = write.uid;
    if (write.revision != 0) meta["resourceVersion"] = std::to_string(write.revision);
}

bool is_conditional(const model::Write& write) {
    return !write.uid.empty() || write.revision != 0;
}

std::string in_object(model::Write& write) {
    if (!is_conditional(write)) return write.text.empty() ? base::to_text(write.body) : std::move(write.text);
    if (write.text.empty()) {
        put_conditions(write, base::object_at(write.body, {"metadata"}));
        return base::to_text(write.body);
    }
    std::string out = R"({"metadata":{"uid":)";
    base::append_quoted(write.uid, out);
    if (write.revision != 0) out += R"(,"resourceVersion":")" + std::to_string(write.revision) + "\"";
    return out.append("},").append(write.text, 1);
}

std::string in_steps(model::Write& write) {
    JsonObject meta;
    put_conditions(write, meta);
    JsonArray steps;
    for (const auto& [key, value] : meta) {
        steps.push_back(JsonObject{{"op", "add"}, {"path", "/metadata/" + std::string(key)}, {"value", value}});
    }
    for (auto& step : write.body.as_array()) steps.push_back(std::move(step));
    return base::to_text(Json(std::move(steps)));
}

std::string in_options(model::Write& write) {
    if (is_conditional(write)) put_conditions(write, base::object_at(write.body, {"preconditions"}));
    return base::to_text(write.body);
}

}  // namespace

link::Request request_for(model::Write write) {
    std::string path = path_of(write);
    switch (write.verb) {
        case Verb::Create:
            return {"POST", std::move(path), write.text.empty() ? base::to_text(write.body) : std::move(write.text)};
        case Verb::Replace:
            return {"PUT", std::move(path), in_object(write)};
        case Verb::MergePatch:
            return {"PATCH", std::move(path), in_object(write), "application/merge-patch+json"};
        case Verb::StrategicPatch:
            return {"PATCH", std::move(path), in_object(write), "application/strategic-merge-patch+json"};
        case Verb::JsonPatch:
            return {"PATCH", std::move(path), in_steps(write), "application/json-patch+json"};
        case Verb::Delete:
            return {"DELETE", std::move(path), in_options(write)};
    }
    return {};
}

void tell(link::Recorder& recorder, const model::Event& event, base::Time now) {
    const link::Subject subject{event.api_version, event.kind, event.ns, event.name, event.uid};
    if (event.warning) {
        recorder.warning(subject, event.reason, event.message, now);
    } else {
        recorder.normal(subject, event.reason, event.message, now);
    }
}

}  // namespace berth::run
