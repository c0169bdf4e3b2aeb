#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/kinds/path.h"
#include "model/kinds/printers.h"
#include "model/kinds/table.h"
#include "model/times.h"

namespace berth::model {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return out;
}

Json ready_of_replicas(const Cell& c) {
    return Json(fmt::format("{}/{}", int_at(c.object, ".status.readyReplicas"), int_at(c.object, ".spec.replicas")));
}

Json job_status(const Cell& c) {
    const auto is = [&](std::string_view type) {
        for (const auto& condition : list_at(c.object, ".status.conditions")) {
            if (string_at(condition, ".type") == type) return string_at(condition, ".status") == "True";
        }
        return false;
    };
    for (const auto* type : {"Complete", "Failed"}) {
        if (is(type)) return type;
    }
    if (at_path(c.object, ".metadata.deletionTimestamp") != nullptr) return "Terminating";
    for (const auto* type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
        if (is(type)) return type;
    }
    return "Running";
}

Json job_completions(const Cell& c) {
    const int64_t done = int_at(c.object, ".status.succeeded");
    if (at_path(c.object, ".spec.completions") != nullptr)
        return Json(fmt::format("{}/{}", done, int_at(c.object, ".spec.completions")));
    const int64_t parallelism = int_at(c.object, ".spec.parallelism");
    return Json(parallelism > 1 ? fmt::format("{}/1 of {}", done, parallelism) : fmt::format("{}/1", done));
}

Json job_duration(const Cell& c) {
    const auto start = parse_time(string_at(c.object, ".status.startTime"));
    if (!start.ok()) return "";
    const auto end = parse_time(string_at(c.object, ".status.completionTime"));
    return Json(human_duration((end.ok() ? *end : c.now) - *start));
}

// The owner that controls the object: "statefulset.apps/web".
Json controller(const Cell& c) {
    for (const auto& owner : list_at(c.object, ".metadata.ownerReferences")) {
        if (!bool_at(owner, ".controller")) continue;
        std::string_view api = string_at(owner, ".apiVersion");
        const size_t slash = api.find('/');
        const std::string group = slash == std::string_view::npos ? "" : "." + std::string(api.substr(0, slash));
        return Json(
            fmt::format("{}/{}", lower(std::string(string_at(owner, ".kind")) + group), string_at(owner, ".name")));
    }
    return "<none>";
}

Json scale_target(const Cell& c) {
    return Json(fmt::format("{}/{}", string_at(c.object, ".spec.scaleTargetRef.kind"),
                            string_at(c.object, ".spec.scaleTargetRef.name")));
}

// ---- a HorizontalPodAutoscaler's metrics -------------------------------------------------------------------------

std::string amount(const Json& where, std::string_view path, std::string_view otherwise) {
    const auto text = string_at(where, path);
    return std::string(text.empty() ? otherwise : text);
}

std::string percent(const Json& where, std::string_view path, std::string_view otherwise) {
    if (at_path(where, path) == nullptr) return std::string(otherwise);
    return fmt::format("{}%", int_at(where, path));
}

// One metric, "current/target". source is the member that holds it in both spec and status.
std::string metric(const Json& spec, const Json& status, std::string_view type, std::string_view source) {
    static const Json none;
    const Json* wanted = at_path(spec, source);
    const Json* found = at_path(status, source);
    if (wanted == nullptr) wanted = &none;
    const bool known = found != nullptr;
    if (!known) found = &none;
    const bool average = at_path(*wanted, ".target.averageValue") != nullptr;
    const std::string_view unset = known ? "0" : "<unknown>";
    if (type == "Pods")
        return amount(*found, ".current.averageValue", unset) + "/" + amount(*wanted, ".target.averageValue", "0");
    if (type == "Resource" || type == "ContainerResource") {
        const std::string name = std::string(string_at(*wanted, ".name")) + ": ";
        if (average)
            return name + amount(*found, ".current.averageValue", unset) + "/" +
                   std::string(string_at(*wanted, ".target.averageValue"));
        return name + percent(*found, ".current.averageUtilization", "<unknown>") + "/" +
               percent(*wanted, ".target.averageUtilization", "<auto>");
    }
    if (average)
        return amount(*found, ".current.averageValue", "<unknown>") + "/" +
               std::string(string_at(*wanted, ".target.averageValue")) + " (avg)";
    return amount(*found, ".current.value", unset) + "/" + amount(*wanted, ".target.value", "0");
}

std::string targets(const Json& object) {
    constexpr std::pair<std::string_view, std::string_view> kSources[] = {{"External", ".external"},
                                                                          {"Pods", ".pods"},
                                                                          {"Object", ".object"},
                                                                          {"Resource", ".resource"},
                                                                          {"ContainerResource", ".containerResource"}};
    static const Json none;
    const auto& statuses = list_at(object, ".status.currentMetrics");
    std::vector<std::string> items;
    for (const auto& spec : list_at(object, ".spec.metrics")) {
        const auto type = string_at(spec, ".type");
        const auto* source =
            std::find_if(std::begin(kSources), std::end(kSources), [&](auto& s) { return s.first == type; });
        const Json& status = items.size() < statuses.size() ? statuses[items.size()] : none;
        items.push_back(source == std::end(kSources) ? "<unknown type>" : metric(spec, status, type, source->second));
    }
    if (items.size() <= 2) return joined(items, ", ");
    return fmt::format("{}, {} + {} more...", items[0], items[1], items.size() - 2);
}

Json autoscaler_targets(const Cell& c) {
    if (at_path(c.object, ".spec.targetCPUUtilizationPercentage") != nullptr) {
        return Json(fmt::format("cpu: {}/{}", percent(c.object, ".status.currentCPUUtilizationPercentage", "<unknown>"),
                                percent(c.object, ".spec.targetCPUUtilizationPercentage", "<auto>")));
    }
    const std::string text = targets(c.object);
    return Json(text.empty() ? "<none>" : text);
}

// ---- configuration -----------------------------------------------------------------------------------------------

Json config_data(const Cell& c) {
    return Json(
        static_cast<int64_t>(members_at(c.object, ".data").size() + members_at(c.object, ".binaryData").size()));
}

// "cpu: 1/2, pods: 3/10" of the requests, or of the names that begin with "limits."
Json quota(const Cell& c) {
    const auto& used = members_at(c.object, ".status.used");
    std::map<std::string, std::string> lines;
    for (const auto& hard : members_at(c.object, ".status.hard")) {
        const bool limit = hard.key().starts_with("limits.");
        if (limit != (c.argument == "limits")) continue;
        const Json* now = used.if_contains(hard.key());
        lines[hard.key()] = fmt::format("{}: {}/{}", std::string_view(hard.key()),
                                        now == nullptr ? "0" : string_at(*now, ""), string_at(hard.value(), ""));
    }
    std::vector<std::string> items;
    for (const auto& [name, line] : lines) items.push_back(line);
    return Json(joined(items, ", "));
}

// The pods that use it now.
Json reservation_owners(const Cell& c) {
    std::vector<std::string> items;
    for (const auto& owner : list_at(c.object, ".status.currentOwners")) items.emplace_back(string_at(owner, ".name"));
    return items.empty() ? Json() : Json(joined(items));
}

constexpr Printer kPrinters[] = {
    {"ready-of-replicas", ready_of_replicas},
    {"job-status", job_status},
    {"job-completions", job_completions},
    {"job-duration", job_duration},
    {"controller", controller},
    {"scale-target", scale_target},
    {"autoscaler-targets", autoscaler_targets},
    {"config-data", config_data},
    {"quota", quota},
    {"reservation-owners", reservation_owners},
};

}  // namespace

std::span<const Printer> workload_printers() {
    return kPrinters;
}

}  // namespace berth::model
