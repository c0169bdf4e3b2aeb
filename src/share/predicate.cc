#include <fmt/format.h>

#include <map>

#include "share/answer.h"

// Who may start: for every key that a pod uses, used + in flight + pod <= deserved, and <= hard.
namespace berth::share {
namespace {

std::string refusal(const Account& account, const Resources& in_flight, int64_t pods, const ScenePod& pod) {
    std::string why;
    const auto check = [&](ResourceId id, int64_t asked, const char* what, int64_t limit) {
        const int64_t taken = base::saturating_add(account.used.get(id), in_flight.get(id));
        if (!why.empty() || base::saturating_add(taken, asked) <= limit) return;
        why =
            fmt::format("{}: {} used or granted and {} asked for are more than {} {}", model::resource_name(id),
                        model::quota_text(id, taken), model::quota_text(id, asked), what, model::quota_text(id, limit));
    };
    pod.size.for_each([&](ResourceId id, int64_t asked) {
        if (asked <= 0) return;
        check(id, asked, "the deserved", account.share.deserved.get(id));
        if (account.hard.has(id)) check(id, asked, "hard", account.hard.get(id));
    });
    for (const auto* name : {"pods", "count/pods"}) {
        const ResourceId id = *model::intern_resource(name);
        if (why.empty() && account.hard.has(id) && pods + 1 > account.hard.get(id))
            why = fmt::format("{}: {} there or granted and 1 asked for are more than hard {}", name, pods,
                              account.hard.get(id));
    }
    return why;
}

}  // namespace

std::vector<Admission> admit(const Scene& scene, const std::vector<Account>& accounts) {
    std::map<std::string_view, std::pair<Resources, int64_t>> granted;  // in flight, by consumer
    std::vector<Admission> out;
    for (uint32_t i = 0; i < scene.pods.size(); ++i) {
        const ScenePod& pod = scene.pods[i];
        if (pod.placed) continue;
        const Account& account = *account_named(accounts, pod.ns);
        auto& [in_flight, pods] = granted[account.name];
        Admission& admission = out.emplace_back();
        admission.pod = i;
        if (pod.gated) {
            admission.why = "it is held by a scheduling gate";
        } else if (!account.infinite) {
            admission.why = refusal(account, in_flight, account.pods + pods, pod);
        }
        admission.admitted = admission.why.empty();
        if (!admission.admitted) continue;
        in_flight.add(pod.size);
        ++pods;
    }
    return out;
}

}  // namespace berth::share
