#include <fmt/format.h>

#include <algorithm>

#include "control/pods.h"
#include "control/reconciler.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr int64_t kMostAtOnce = 500;

struct Tally {
    std::vector<ObjectPtr> active;
    int64_t succeeded = 0;
    int64_t failed = 0;
    int64_t ready = 0;
};

Tally tally(const Object& job, const Objects& objects) {
    Tally out;
    for (const auto& pod : objects.controlled_by("pods", job.meta.uid)) {
        if (pod->phase == "Succeeded") {
            ++out.succeeded;
        } else if (pod->phase == "Failed") {
            ++out.failed;
        } else if (!is_deleting(*pod)) {
            out.active.push_back(pod);
            out.ready += is_ready(*pod);
        }
    }
    return out;
}

// NonIndexed jobs: parallelism, completions, backoffLimit, suspend, activeDeadlineSeconds, ttlSecondsAfterFinished.
class Jobs final : public Reconciler {
public:
    std::string_view name() const override { return "job"; }
    std::string resource() const override { return "batch/jobs"; }
    std::vector<std::string> watches() const override { return {"batch/jobs", "pods"}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == "batch/jobs") return {{object.meta.ns, object.meta.name}};
        const auto* controller = object.meta.controller();
        if (!controller || controller->kind != "Job") return {};
        return {{object.meta.ns, controller->name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto job = objects.find("batch/jobs", target.ns, target.name);
        if (!job || is_deleting(*job)) return {};
        if (!end_of_job(*job).empty()) return clean_up(*job, now);
        const Tally pods = tally(*job, objects);
        Reconciled outcome;
        const auto [end, why] = end_of(*job, pods, now, outcome);
        if (end.empty()) scale(*job, pods, outcome.writes);
        if (!end.empty()) {
            for (const auto& pod : pods.active) {
                outcome.writes.push_back(delete_object("pods", pod->meta));
            }
        }
        tell(*job, pods, end, why, now, outcome.writes);
        return outcome;
    }

private:
    static Reconciled clean_up(const Object& job, base::Time now) {
        const Json* ttl = base::find(job.document(), {"spec", "ttlSecondsAfterFinished"});
        const auto ended = model::parse_time(base::find_string(job.document(), {"status", "completionTime"}));
        if (!ttl || !ttl->is_int64() || !ended) return {};
        const base::Time due = *ended + std::chrono::seconds(ttl->get_int64());
        if (due > now) return {{}, due};
        return {{delete_object("batch/jobs", job.meta)}};
    }

    // The condition that ends the job now, and why; empty while it goes on.
    static std::pair<std::string, std::string> end_of(const Object& job, const Tally& pods, base::Time now,
                                                      Reconciled& outcome) {
        const Json* completions = base::find(job.document(), {"spec", "completions"});
        const bool enough = completions && completions->is_int64() ? pods.succeeded >= completions->get_int64()
                                                                   : pods.succeeded > 0 && pods.active.empty();
        if (enough) return {"Complete", "CompletionsReached"};
        if (pods.failed > integer_at(job.document(), {"spec", "backoffLimit"}, 6)) {
            return {"Failed", "BackoffLimitExceeded"};
        }
        const int64_t deadline = integer_at(job.document(), {"spec", "activeDeadlineSeconds"}, 0);
        const auto started = model::parse_time(base::find_string(job.document(), {"status", "startTime"}));
        if (deadline > 0 && started) {
            const base::Time due = *started + std::chrono::seconds(deadline);
            if (due <= now) return {"Failed", "DeadlineExceeded"};
            outcome.again = due;
        }
        return {};
    }

    static void scale(const Object& job, const Tally& pods, Writes& writes) {
        const Json* suspend = base::find(job.document(), {"spec", "suspend"});
        int64_t wanted = integer_at(job.document(), {"spec", "parallelism"}, 1);
        if (const Json* completions = base::find(job.document(), {"spec", "completions"});
            completions && completions->is_int64()) {
            wanted = std::min(wanted, completions->get_int64() - pods.succeeded);
        } else if (pods.succeeded > 0) {
            wanted = std::min<int64_t>(wanted, static_cast<int64_t>(pods.active.size()));
        }
        if (suspend && suspend->is_bool() && suspend->get_bool()) wanted = 0;
        const auto active = static_cast<int64_t>(pods.active.size());
        const Json* pod_template = base::find(job.document(), {"spec", "template"});
        if (active < wanted && pod_template) {
            const Json pod = pod_from_template(*pod_template, job, "Job", "batch/v1");
            for (int64_t i = 0; i < std::min(kMostAtOnce, wanted - active); ++i) {
                writes.push_back(model::create_object("pods", job.meta.ns, pod));
            }
        }
        if (active > wanted) {
            auto surplus = pods.active;
            sort_for_deletion(surplus);
            surplus.resize(static_cast<size_t>(active - wanted));
            for (const auto& pod : surplus) {
                writes.push_back(delete_object("pods", pod->meta));
            }
        }
    }

    static void tell(const Object& job, const Tally& pods, const std::string& end, const std::string& why,
                     base::Time now, Writes& writes) {
        const std::string when = model::time_text(now);
        JsonObject status{{"active", end.empty() ? static_cast<int64_t>(pods.active.size()) : 0},
                          {"succeeded", pods.succeeded},
                          {"failed", pods.failed},
                          {"ready", end.empty() ? pods.ready : 0}};
        const bool started = base::find(job.document(), {"status", "startTime"}) != nullptr;
        if (!started) status["startTime"] = when;
        if (!end.empty()) {
            if (end == "Complete") status["completionTime"] = when;
            status["conditions"] = JsonArray{
                JsonObject{{"type", end},
                           {"status", "True"},
                           {"lastProbeTime", when},
                           {"lastTransitionTime", when},
                           {"reason", why},
                           {"message", fmt::format("{} pods succeeded, {} failed", pods.succeeded, pods.failed)}}};
        }
        const bool same = started && end.empty() && std::all_of(status.begin(), status.end(), [&](const auto& field) {
                              return integer_at(job.document(), {"status", std::string_view(field.key())}, 0) ==
                                     field.value().as_int64();
                          });
        if (!same) writes.push_back(patch_status("batch/jobs", job.meta, std::move(status)));
    }
};

}  // namespace

std::unique_ptr<Reconciler> job_reconciler() {
    return std::make_unique<Jobs>();
}

}  // namespace berth::control
