#include <fmt/format.h>

#include "api/pods.h"
#include "api/read.h"
#include "api/wire.h"
#include "model/kinds/path.h"

namespace berth::api {
namespace {

std::vector<std::string> container_names(const Json& pod) {
    std::vector<std::string> out;
    for (const auto* list : {".spec.containers", ".spec.initContainers"}) {
        for (const auto& container : model::list_at(pod, list)) out.emplace_back(model::string_at(container, ".name"));
    }
    return out;
}

Result<std::string> chosen_container(const Call& call, const Json& pod) {
    const auto names = container_names(pod);
    if (!call.options.container.empty()) {
        for (const auto& name : names) {
            if (name == call.options.container) return name;
        }
        return base::bad_request(
            fmt::format("container {} is not valid for pod {}", call.options.container, call.name));
    }
    if (model::list_at(pod, ".spec.containers").size() == 1) return names.front();
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : " ") + name;
    return base::bad_request(
        fmt::format("a container name must be specified for pod {}, choose one of: [{}]", call.name, list));
}

// Simulated containers write nothing themselves; their log is what their status says happened.
Result<std::string> log_text(const Call& call, const Json& pod) {
    const std::string container = TRY(chosen_container(call, pod));
    const auto node = model::string_at(pod, ".spec.nodeName");
    if (node.empty()) return base::bad_request(fmt::format("pod {} does not have a host assigned", call.name));
    for (const auto* list : {".status.containerStatuses", ".status.initContainerStatuses"}) {
        for (const auto& status : model::list_at(pod, list)) {
            if (model::string_at(status, ".name") != container) continue;
            if (base::find(status, {"state", "waiting"}) != nullptr) break;
            std::string out;
            for (const auto* state : {"running", "terminated"}) {
                const auto started = base::find_string(status, {"state", state, "startedAt"});
                if (!started.empty()) out += fmt::format("{} container {} started on {}\n", started, container, node);
            }
            const auto finished = base::find_string(status, {"state", "terminated", "finishedAt"});
            if (!finished.empty()) out += fmt::format("{} container {} ended\n", finished, container);
            return out;
        }
    }
    return base::bad_request(
        fmt::format("container \"{}\" in pod \"{}\" is waiting to start: ContainerCreating", container, call.name));
}

}  // namespace

void read_log(ApiContext& context, const Call& call, const Done& done) {
    auto record = read_record(context, call);
    if (!record) return done(std::move(record).error());
    auto pod = stored_object(**record);
    if (!pod) return done(std::move(pod).error());
    auto text = log_text(call, *pod);
    if (!text) return done(std::move(text).error());
    Served out;
    out.text = text->empty() ? "\n" : std::move(*text);
    done(std::move(out));
}

}  // namespace berth::api
