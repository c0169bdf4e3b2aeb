#include <fmt/format.h>

#include <array>
#include <map>

#include "base/saturating.h"
#include "share/admission.h"
#include "share/answer.h"

// Who may start: for every key that a pod uses, used + in flight + pod <= deserved, and <= hard.
namespace berth::share {

std::string refusal(const Standing& standing, const Resources& size) {
    std::string why;
    const auto check = [&](ResourceId id, int64_t asked, const char* what, int64_t limit) {
        const int64_t taken = base::saturating_add(standing.used.get(id), standing.in_flight.get(id));
        if (!why.empty() || base::saturating_add(taken, asked) <= limit) return;
        why =
            fmt::format("{}: {} used or granted and {} asked for are more than {} {}", model::resource_name(id),
                        model::quota_text(id, taken), model::quota_text(id, asked), what, model::quota_text(id, limit));
    };
    size.for_each([&](ResourceId id, int64_t asked) {
        if (asked <= 0) return;
        check(id, asked, "the deserved", standing.deserved.get(id));
        if (standing.hard.has(id)) check(id, asked, "hard", standing.hard.get(id));
    });
    if (standing.hard.empty()) return why;
    static const std::array kCounts{model::kPods, *model::intern_resource("count/pods")};
    for (const ResourceId id : kCounts) {
        if (why.empty() && standing.hard.has(id) && standing.pods + 1 > standing.hard.get(id))
            why = fmt::format("{}: {} there or granted and 1 asked for are more than hard {}", model::resource_name(id),
                              standing.pods, standing.hard.get(id));
    }
    return why;
}

std::vector<Admission> admit(const Scene& scene, const std::vector<Account>& accounts) {
    std::map<std::string_view, std::pair<Resources, int64_t>> granted;  // in flight, by consumer
    const auto grant = [&](const ScenePod& pod) {
        auto& [in_flight, pods] = granted[pod.ns];
        in_flight.add(pod.size);
        ++pods;
    };
    for (const auto& pod : scene.pods) {
        if (!pod.placed && pod.granted) grant(pod);
    }
    std::vector<Admission> out;
    for (uint32_t i = 0; i < scene.pods.size(); ++i) {
        const ScenePod& pod = scene.pods[i];
        if (pod.placed) continue;
        const Account& account = *account_named(accounts, pod.ns);
        Admission& admission = out.emplace_back();
        admission.pod = i;
        if (pod.gated) {
            admission.why = "it is held by a scheduling gate";
        } else if (!account.infinite && !pod.granted) {
            const auto& [in_flight, pods] = granted[pod.ns];
            admission.why =
                refusal({account.used, in_flight, account.share.deserved, account.hard, account.pods + pods}, pod.size);
        }
        admission.admitted = admission.why.empty();
        if (admission.admitted && !pod.granted) grant(pod);
    }
    return out;
}

}  // namespace berth::share
