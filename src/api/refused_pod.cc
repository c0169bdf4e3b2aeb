#include <fmt/format.h>

#include <algorithm>

#include "api/meta.h"
#include "api/pods.h"
#include "api/wire.h"

namespace berth::api {

std::optional<base::Cause> refusal_of_node(const Call& call, const Error& error) {
    if (call.verb != Verb::Create || !call.subresource.empty() || call.key().kind != "pods") return std::nullopt;
    const auto found = std::find_if(error.causes.begin(), error.causes.end(),
                                    [](const base::Cause& cause) { return cause.field == "spec.nodeName"; });
    if (error.reason != Reason::Conflict || found == error.causes.end()) return std::nullopt;
    return *found;
}

void refuse_on_node(Json& pod, const base::Cause& why, const std::string& now) {
    JsonObject& status = base::object_at(pod, {"status"});
    status["phase"] = "Failed";
    status["reason"] = why.reason;
    status["message"] = "Pod was rejected: " + why.message;
    status["startTime"] = now;
}

store::Write event_of_refusal(ApiContext& context, const Json& pod, const base::Cause& why) {
    const std::string ns(meta_text(pod, "namespace")), pod_name(meta_text(pod, "name"));
    const std::string node(base::find_string(pod, {"spec", "nodeName"}));
    const std::string now = context.now_text();
    store::Write write;
    write.op = store::Op::Create;
    write.uid = context.ids.uid();
    write.key = {"events", ns, fmt::format("{}.{}", pod_name, write.uid)};
    write.bytes = stored_bytes(JsonObject{
        {"apiVersion", "v1"},
        {"kind", "Event"},
        {"metadata",
         JsonObject{{"name", write.key.name}, {"namespace", ns}, {"uid", write.uid}, {"creationTimestamp", now}}},
        {"involvedObject", JsonObject{{"apiVersion", "v1"},
                                      {"kind", "Pod"},
                                      {"namespace", ns},
                                      {"name", pod_name},
                                      {"uid", meta_text(pod, "uid")}}},
        {"type", "Warning"},
        {"reason", why.reason},
        {"message", why.message},
        {"source", JsonObject{{"component", "kubelet"}, {"host", node}}},
        {"firstTimestamp", now},
        {"lastTimestamp", now},
        {"count", 1},
        {"reportingComponent", "kubelet"},
        {"reportingInstance", node}});
    return write;
}

}  // namespace berth::api
