#include "control/action.h"

namespace berth::control {

Action delete_object(std::string resource, const std::string& ns, const std::string& name, const std::string& uid) {
    Action action{Action::Verb::Delete, std::move(resource), "v1", ns, name, "", nullptr};
    action.body = JsonObject{{"kind", "DeleteOptions"},
                             {"apiVersion", "v1"},
                             {"propagationPolicy", "Background"},
                             {"preconditions", JsonObject{{"uid", uid}}}};
    return action;
}

Action patch_status(std::string resource, const std::string& ns, const std::string& name, const std::string& uid,
                    JsonObject status) {
    Action action{Action::Verb::MergePatch, std::move(resource), "v1", ns, name, "status", nullptr};
    action.body = JsonObject{{"metadata", JsonObject{{"uid", uid}}}, {"status", std::move(status)}};
    return action;
}

}  // namespace berth::control
