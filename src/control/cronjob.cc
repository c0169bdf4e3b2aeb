// Jobs at their times.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "control/pods.h"
#include "control/reconciler.h"
#include "model/cron.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr const char* kCronJobs = "batch/cronjobs";
constexpr const char* kJobsOfCron = "batch/jobs";
// Of more missed times than that only the last is looked for.
constexpr int kMostMissed = 100;
constexpr int64_t kLongestDeadline = 1'000'000'000;  // seconds
// The last time about which people were told that no job came of it: they are told once.
constexpr const char* kTold = "berth.dev/last-told-schedule-time";

std::optional<base::Time> status_time(const Object& object, std::initializer_list<std::string_view> path) {
    const auto time = model::parse_time(base::find_string(object.document(), path));
    return time ? std::optional(*time) : std::nullopt;
}

// One CronJob and its jobs, at one time.
class Timetable {
public:
    Timetable(const Object& cron, const Objects& objects, base::Time now) : cron_(cron), objects_(objects), now_(now) {
        for (const auto& job : objects.controlled_by(kJobsOfCron, cron.meta.uid)) {
            if (is_deleting(*job)) continue;
            const auto end = end_of_job(*job);
            (end.empty() ? active_ : end == "Complete" ? succeeded_ : failed_).push_back(job);
        }
    }

    Reconciled reconcile() {
        clean_up(succeeded_, "successfulJobsHistoryLimit", 3);
        clean_up(failed_, "failedJobsHistoryLimit", 1);
        last_ = status_time(cron_, {"status", "lastScheduleTime"});
        const Json* suspended = base::find(cron_.document(), {"spec", "suspend"});
        if (!suspended || !suspended->is_bool() || !suspended->get_bool()) start_due();
        tell();
        return std::move(out_);
    }

private:
    // The oldest go first.
    void clean_up(std::vector<ObjectPtr> jobs, std::string_view limit, int64_t otherwise) {
        const int64_t keep = integer_at(cron_.document(), {"spec", limit}, otherwise);
        std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
            return std::tuple(a->meta.created, a->meta.name) < std::tuple(b->meta.created, b->meta.name);
        });
        for (int64_t i = 0; i < static_cast<int64_t>(jobs.size()) - keep; ++i) {
            out_.writes.push_back(delete_object(kJobsOfCron, jobs[static_cast<size_t>(i)]->meta));
        }
    }

    // The zone's calendar; nullopt: nobody can say when it is due, which admission refuses.
    static std::optional<base::TimeZone> zone_of(const Object& cron) {
        const auto name = base::find_string(cron.document(), {"spec", "timeZone"});
        return name.empty() ? base::TimeZone() : base::TimeZone::find(name);
    }

    void start_due() {
        const auto schedule = model::CronSchedule::parse(base::find_string(cron_.document(), {"spec", "schedule"}));
        const auto zone = zone_of(cron_);
        if (!schedule || !zone) return;
        out_.again = schedule->next(now_, *zone);
        const int64_t seconds =
            std::min(kLongestDeadline, integer_at(cron_.document(), {"spec", "startingDeadlineSeconds"}, -1));
        const base::Time since = std::max(cron_.meta.created, last_.value_or(cron_.meta.created));
        const base::Time in_time =
            seconds < 0 ? since : std::max(since, now_ + -base::Duration(std::chrono::seconds(seconds)));
        if (const auto due = last_due(*schedule, *zone, in_time, now_)) {
            start(*due);
        } else if (const auto missed = last_due(*schedule, *zone, since, in_time)) {
            say_once(*missed, true, "MissSchedule",
                     fmt::format("Missed scheduled time to start a job: {}, and spec.startingDeadlineSeconds is {}",
                                 model::time_text(*missed), seconds));
        }
    }

    // The last of the times since then.
    static std::optional<base::Time> last_due(const model::CronSchedule& schedule, const base::TimeZone& zone,
                                              base::Time since, base::Time until) {
        std::optional<base::Time> found;
        auto next = schedule.next(since, zone);
        for (int missed = 0; next && *next <= until; ++missed) {
            found = next;
            next = schedule.next(*next, zone);
            // As far back as two of its times lie apart; where those before were nearer to each other, from there.
            if (missed == kMostMissed && next) {
                const base::Time nearer = until + -2 * (*next - *found);
                if (nearer > *next) next = schedule.next(nearer, zone);
                if (next && *next > until) next = schedule.next(*found, zone);
            }
        }
        return found;
    }

    void start(base::Time due) {
        const std::string name =
            fmt::format("{}-{}", cron_.meta.name, due.nanos / base::Duration(std::chrono::minutes(1)).count());
        if (objects_.find(kJobsOfCron, cron_.meta.ns, name)) return;
        const auto policy = base::find_string(cron_.document(), {"spec", "concurrencyPolicy"});
        if (policy == "Forbid" && !active_.empty()) {
            return say_once(due, false, "JobAlreadyActive",
                            fmt::format("Not starting a job for {}: {} is still running, and spec.concurrencyPolicy is "
                                        "Forbid",
                                        model::time_text(due), active_.front()->meta.name));
        }
        if (policy == "Replace") {
            for (const auto& job : std::exchange(active_, {})) {
                Write write = delete_object(kJobsOfCron, job->meta);
                write.event = event("SuccessfulDelete", fmt::format("Deleted job {}", job->meta.name));
                out_.writes.push_back(std::move(write));
            }
        }
        const Json* given = base::find(cron_.document(), {"spec", "jobTemplate"});
        if (!given) return;
        JsonObject meta{{"name", name},
                        {"namespace", cron_.meta.ns},
                        {"ownerReferences", JsonArray{controller_reference(cron_, "CronJob", "batch/v1")}}};
        for (const auto* field : {"labels", "annotations"}) {
            if (const Json* value = base::find(*given, {"metadata", field})) meta[field] = *value;
        }
        Json job(JsonObject{{"kind", "Job"}, {"apiVersion", "batch/v1"}, {"metadata", std::move(meta)}});
        base::object_at(job, {"metadata", "annotations"})["batch.kubernetes.io/cronjob-scheduled-timestamp"] =
            model::time_text(due);
        if (const Json* spec = base::find(*given, {"spec"})) job.as_object()["spec"] = *spec;
        Write write = model::create_object(kJobsOfCron, cron_.meta.ns, std::move(job));
        write.event = event("SuccessfulCreate", fmt::format("Created job {}", name));
        out_.writes.push_back(std::move(write));
        last_ = due;
    }

    void say_once(base::Time due, bool warning, std::string_view reason, std::string message) {
        const auto* told = cron_.meta.annotations.find(kTold);
        const auto until = told ? model::parse_time(*told) : Result<base::Time>(base::Time{});
        if (until && *until >= due) return;
        const JsonObject notes{{kTold, model::time_text(due)}};
        Write write = patch_object(kCronJobs, cron_.meta, JsonObject{{"metadata", JsonObject{{"annotations", notes}}}});
        write.event = event(reason, std::move(message));
        write.event->warning = warning;
        out_.writes.push_back(std::move(write));
    }

    model::Event event(std::string_view reason, std::string message) const {
        return {"batch/v1",     "CronJob", cron_.meta.ns,       cron_.meta.name,
                cron_.meta.uid, false,     std::string(reason), std::move(message)};
    }

    void tell() {
        JsonArray active;
        for (const auto& job : active_) {
            active.push_back(JsonObject{{"apiVersion", "batch/v1"},
                                        {"kind", "Job"},
                                        {"namespace", job->meta.ns},
                                        {"name", job->meta.name},
                                        {"uid", job->meta.uid}});
        }
        auto success = status_time(cron_, {"status", "lastSuccessfulTime"});
        for (const auto& job : succeeded_) {
            const auto ended = status_time(*job, {"status", "completionTime"});
            if (ended && (!success || *ended > *success)) success = ended;
        }
        JsonObject status{{"active", active.empty() ? Json(nullptr) : Json(std::move(active))}};
        if (last_) status["lastScheduleTime"] = model::time_text(*last_);
        if (success) status["lastSuccessfulTime"] = model::time_text(*success);
        if (!says(cron_, status)) out_.writes.push_back(patch_status(kCronJobs, cron_.meta, std::move(status)));
    }

    const Object& cron_;
    const Objects& objects_;
    base::Time now_;
    std::vector<ObjectPtr> active_, succeeded_, failed_;
    std::optional<base::Time> last_;
    Reconciled out_;
};

class CronJobs final : public Reconciler {
public:
    std::string_view name() const override { return "cronjob"; }
    std::string resource() const override { return kCronJobs; }
    std::vector<std::string> watches() const override { return {kCronJobs, kJobsOfCron}; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource == kCronJobs) return {{object.meta.ns, object.meta.name}};
        const auto* controller = object.meta.controller();
        if (!controller || controller->kind != "CronJob") return {};
        return {{object.meta.ns, controller->name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto cron = objects.find(kCronJobs, target.ns, target.name);
        if (!cron || is_deleting(*cron)) return {};
        return Timetable(*cron, objects, now).reconcile();
    }
};

}  // namespace

std::unique_ptr<Reconciler> cronjob_reconciler() {
    return std::make_unique<CronJobs>();
}

}  // namespace berth::control
