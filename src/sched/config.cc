#include "sched/config.h"

#include <fmt/format.h>

#include "model/reader.h"
#include "model/times.h"
#include "sched/profile_args.h"
#include "sched/profiles.h"

namespace berth::sched {
namespace {

using model::Reader;

constexpr std::string_view kVersion = "kubescheduler.config.k8s.io/v1";

std::optional<base::Duration> read_duration(const Reader& field) {
    if (!field.present()) return std::nullopt;
    const auto read = model::parse_duration(field.text());
    if (!read) {
        field.wrong(read.error().message);
        return std::nullopt;
    }
    if (*read <= base::Duration::zero()) field.wrong(fmt::format("must be above 0, but is {}", field.text()));
    return *read;
}

std::optional<std::string> read_text(const Reader& field) {
    return field.present() ? std::optional<std::string>(field.text()) : std::nullopt;
}

void read_leader_election(const Reader& from, Configuration::LeaderElection& out) {
    only_known(from, {"leaderElect", "leaseDuration", "renewDeadline", "retryPeriod", "resourceLock", "resourceName",
                      "resourceNamespace"});
    const Reader elect = from["leaderElect"];
    if (elect.present()) out.elect = elect.flag();
    out.lease = read_duration(from["leaseDuration"]);
    out.renew = read_duration(from["renewDeadline"]);
    out.retry = read_duration(from["retryPeriod"]);
    out.name = read_text(from["resourceName"]);
    out.ns = read_text(from["resourceNamespace"]);
    const Reader lock = from["resourceLock"];
    if (lock.present() && lock.text() != "leases") lock.wrong("must be \"leases\"");
    const Reader lease = from["leaseDuration"];
    if (out.lease.value_or(std::chrono::seconds(15)) <= out.renew.value_or(std::chrono::seconds(10))) {
        lease.wrong("must be longer than renewDeadline");
    }
}

// One unnamed profile is the default scheduler; several must be told apart.
void read_profiles(const Reader& list, const std::vector<model::ResourceId>& ignored, const std::string& default_name,
                   Scheduler::Profiles& out) {
    size_t count = 0;
    list.each([&](const Reader&) { ++count; });
    list.each([&](const Reader& item) {
        only_known(item, {"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"});
        const Reader name = item["schedulerName"];
        const std::string text = read_text(name).value_or(count == 1 ? "default-scheduler" : "");
        if (text.empty()) name.wrong("is required");
        if (!out.emplace(text, read_profile(item, ignored)).second)
            name.wrong(fmt::format("\"{}\" is there twice", text));
    });
    if (count == 0) out.emplace(default_name, read_profile(list, ignored));
}

void read_backoff(const Reader& root, SchedulerOptions& out) {
    const Reader first = root["podInitialBackoffSeconds"];
    const Reader longest = root["podMaxBackoffSeconds"];
    const int64_t first_seconds = first.integer(1);
    const int64_t longest_seconds = longest.integer(10);
    if (first_seconds <= 0 || first_seconds > 86400) first.wrong("must be between 1 and 86400");
    if (longest_seconds < first_seconds || longest_seconds > 86400) {
        longest.wrong("must not be below podInitialBackoffSeconds, nor above 86400");
    }
    out.first_backoff = std::chrono::seconds(first_seconds);
    out.longest_backoff = std::chrono::seconds(longest_seconds);
}

}  // namespace

Result<Configuration> read_configuration(JsonView document, const std::string& default_name) {
    std::string trouble;
    const Reader root(document, trouble);
    Configuration out;
    only_known(root, {"apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "enableProfiling",
                      "enableContentionProfiling", "percentageOfNodesToScore", "podInitialBackoffSeconds",
                      "podMaxBackoffSeconds", "profiles", "extenders", "delayCacheUntilActive"});
    const Reader version = root["apiVersion"];
    const Reader kind = root["kind"];
    if (version.text() != kVersion)
        version.wrong(fmt::format("must be \"{}\", but is \"{}\"", kVersion, version.text()));
    if (kind.text() != "KubeSchedulerConfiguration") kind.wrong("must be \"KubeSchedulerConfiguration\"");
    read_leader_election(root["leaderElection"], out.leader_election);
    const Reader client = root["clientConnection"];
    only_known(client, {"kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"});
    out.kubeconfig = read_text(client["kubeconfig"]);
    read_backoff(root, out.options);
    std::vector<model::ResourceId> ignored;
    out.options.extenders = read_extenders(root["extenders"], ignored);
    read_profiles(root["profiles"], ignored, default_name, out.profiles);
    if (!trouble.empty()) return base::bad_request(trouble);
    return out;
}

}  // namespace berth::sched
