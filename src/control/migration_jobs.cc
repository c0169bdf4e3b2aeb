#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "control/migration.h"
#include "control/pods.h"
#include "model/kinds/path.h"
#include "model/reservation.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr base::Duration kUsualTtl = std::chrono::minutes(5);
constexpr base::Duration kKeptAfter = std::chrono::minutes(5);
constexpr base::Duration kAskAgain = std::chrono::seconds(10);  // for an eviction that a budget refused

std::string_view text(const Object& object, std::string_view path) {
    return model::string_at(object.document(), path);
}
bool is_final(const Object& job) {
    const auto phase = text(job, ".status.phase");
    return phase == "Succeeded" || phase == "Failed";
}
bool is_running(const Object& job) {
    return text(job, ".status.phase") == "Running";
}

ObjectPtr pod_of(const Object& job, const Objects& objects) {
    return objects.find("pods", std::string(text(job, ".spec.podRef.namespace")),
                        std::string(text(job, ".spec.podRef.name")));
}

// The one that the job was made for, not a later one of its name.
std::string_view wanted_uid(const Object& job) {
    const auto* seen = job.meta.annotations.find(kMovedPod);
    return seen ? std::string_view(*seen) : text(job, ".spec.podRef.uid");
}

bool has_passed(const Object& job) {
    return job.meta.annotations.get(kPassedArbitration) == "true" && job.meta.annotations.has(kMovedPod);
}

std::string workload_of(const Object& pod) {
    const auto* controller = pod.meta.controller();
    return controller ? controller->uid : pod.meta.uid;
}

// It was let through so lately that its workload rests.
bool is_recent(const Object& job, base::Time now, base::Duration window) {
    const auto* at = job.meta.annotations.find(kMovedAt);
    const auto since = at ? model::parse_time(*at) : Result<base::Time>(base::Time());
    return at && since && now < *since + window;
}

// How many of a workload's pods others than this one cannot do without: moved, not ready, or on their way out.
int64_t lacking(const Object& pod, const std::vector<ObjectPtr>& all, const std::set<std::string>& moved) {
    return std::count_if(all.begin(), all.end(), [&](const ObjectPtr& each) {
        return each->meta.uid != pod.meta.uid && !is_terminal(*each) &&
               (is_deleting(*each) || !is_ready(*each) || moved.contains(each->meta.uid));
    });
}

// Who may begin: among those that wait, those before this one count as if they had begun.
bool may_begin(const Object& job, const Object& pod, const Objects& objects, const MigrationLimits& limits,
               base::Time now) {
    const auto rank = [](const Object& its_job, const Object& its_pod) {
        return std::tuple(model::int_at(its_pod.document(), ".spec.priority"), its_job.meta.created, its_job.meta.name);
    };
    const std::string workload = workload_of(pod);
    int64_t all = 0, on_node = 0, of_namespace = 0, of_workload = 0, ended_lately = 0;
    std::set<std::string> moved;
    for (const auto& other : objects.list(kMigrationJobs)) {
        if (other->meta.name == job.meta.name) continue;
        const bool passed = has_passed(*other), ended = is_final(*other);
        if (ended) {
            ended_lately +=
                is_recent(*other, now, limits.window) && other->meta.annotations.get(kMovedWorkload) == workload;
            continue;
        }
        const auto its = pod_of(*other, objects);
        const bool paused = model::bool_at(other->document(), ".spec.paused");
        if (!passed && (!its || paused || rank(job, pod) < rank(*other, *its))) continue;
        ++all;
        of_namespace += text(*other, ".spec.podRef.namespace") == pod.meta.ns;
        on_node += its && its->node == pod.node;
        of_workload += passed ? other->meta.annotations.get(kMovedWorkload) == workload : workload_of(*its) == workload;
        moved.insert(passed ? std::string(other->meta.annotations.get(kMovedPod)) : its->meta.uid);
    }
    const auto pods = objects.controlled_by("pods", workload);
    const auto count = static_cast<int64_t>(pods.size());
    const auto below = [](int64_t number, std::optional<int64_t> most) { return !most || number < *most; };
    const int64_t most = moves_per_workload(count, limits);
    return below(all, limits.globally) && below(of_namespace, limits.per_namespace) &&
           below(on_node, limits.per_node) && of_workload < most &&
           of_workload + ended_lately < (limits.in_window.is_said() ? limits.in_window.of(count) : most) &&
           (!limits.unavailable.is_said() || lacking(pod, pods, moved) < limits.unavailable.of(count));
}

class Job {
public:
    Job(const Object& job, const Objects& objects, const MigrationLimits& limits, base::Time now)
        : job_(job), objects_(objects), limits_(limits), now_(now) {
        status_ = Json(model::members_at(job.document(), ".status"));
        const auto ttl = model::parse_duration(text(job, ".spec.ttl"));
        ttl_ = ttl && *ttl > base::Duration::zero() ? *ttl : kUsualTtl;
    }

    Reconciled step() {
        const auto end = job_.meta.created + ttl_;
        if (is_final(job_)) return scavenge(end);
        if (model::bool_at(job_.document(), ".spec.paused")) return {};
        if (now_ >= end) return fail("Timeout", fmt::format("not done within {}", model::duration_text(ttl_)));
        out_.again = end;
        const auto pod = pod_of(job_, objects_);
        const bool there = pod && (wanted_uid(job_).empty() || wanted_uid(job_) == pod->meta.uid);
        if (!is_running(job_)) return begin(there ? pod : nullptr);
        directly_ = text(job_, ".spec.mode") == "EvictDirectly";
        if (!directly_) return through_reservation(there ? pod : nullptr);
        if (there && !is_terminal(*pod)) return evict(*pod);
        return succeed();
    }

private:
    Reconciled scavenge(base::Time end) {
        Reconciled out;
        if (now_ >= end + kKeptAfter) {
            out.writes.push_back(delete_object(kMigrationJobs, job_.meta));
        } else {
            out.again = end + kKeptAfter;
        }
        return out;
    }

    Reconciled begin(const ObjectPtr& pod) {
        if (!pod) return fail("MissingPod", "its pod is not there");
        const auto made = migration_of(pod->document(), {ttl_.count() / 1'000'000'000, false, {}});
        // A pod that nobody makes again, and one that comes back to its node, may still be evicted.
        const bool directly = text(job_, ".spec.mode") == "EvictDirectly";
        const auto* controller = pod->meta.controller();
        const bool stays = !controller || controller->kind == "DaemonSet";
        if (!made && !(directly && stays && is_active(*pod))) return fail("ForbiddenMigratePod", made.error().message);
        if (!has_passed(job_)) return arbitrate(*pod);
        said()["phase"] = "Running";
        return write();
    }

    // What it is about is kept on the job: its pod will be gone, and another may have its name.
    Reconciled arbitrate(const Object& pod) {
        if (!may_begin(job_, pod, objects_, limits_, now_)) {
            if (limits_.window > base::Duration::zero() || limits_.unavailable.is_said())
                out_.again = std::min(*out_.again, now_ + kAskAgain);
            return std::move(out_);
        }
        const JsonObject notes{{kPassedArbitration, "true"},
                               {kMovedPod, pod.meta.uid},
                               {kMovedWorkload, workload_of(pod)},
                               {kMovedAt, model::time_text(now_)}};
        out_.writes.push_back(if_unchanged(
            patch_object(kMigrationJobs, job_.meta, JsonObject{{"metadata", JsonObject{{"annotations", notes}}}}),
            job_.meta));
        return std::move(out_);
    }

    std::string reservation_name() const {
        const auto named = text(job_, ".spec.reservationOptions.reservationRef.name");
        return named.empty() ? job_.meta.uid : std::string(named);
    }

    Reconciled through_reservation(const ObjectPtr& pod) {
        const auto held = objects_.find(model::kReservationResource, "", reservation_name());
        if (!held) return reserve(pod);
        const auto phase = text(*held, ".status.phase");
        const auto node = text(*held, ".status.nodeName");
        condition("ReservationCreated", "True", "Created");
        if (phase == "Failed") return fail("ReservationExpired", "its reservation has ended");
        if (phase != "Available" && phase != "Succeeded") return wait_for_room(*held);
        condition("ReservationScheduled", "True", "Scheduled");
        said()["nodeName"] = node;
        if (pod && node == pod->node)
            return fail("ForbiddenMigratePod", "the room that was found is on the pod's own node");
        if (pod && !is_terminal(*pod)) {
            // A Job makes the replacement while the pod is still on its way out.
            const bool taken = phase == "Succeeded" && !is_deleting(*pod) && !has_condition("Eviction");
            if (taken) return fail("ReservationTaken", "another pod took the room");
            return evict(*pod);
        }
        condition("Eviction", "True", "EvictComplete");
        const auto& owners = model::list_at(held->document(), ".status.currentOwners");
        if (owners.empty() && phase != "Succeeded") {
            condition("PodBoundReservation", "False", "WaitForPodBindReservation");
            return write();
        }
        condition("PodBoundReservation", "True", "ReservationBound");
        return owners.empty() ? succeed() : await_ready(owners.front());
    }

    // One that has gone again counts as ready: nobody waits for it.
    Reconciled await_ready(const Json& owner) {
        const std::string ns(model::string_at(owner, ".namespace")), name(model::string_at(owner, ".name"));
        said()["podRef"] = JsonObject{{"apiVersion", "v1"},
                                      {"kind", "Pod"},
                                      {"namespace", ns},
                                      {"name", name},
                                      {"uid", model::string_at(owner, ".uid")}};
        const auto made = objects_.find("pods", ns, name);
        const bool waits = made && !is_terminal(*made) && !is_ready(*made);
        condition("BoundPodReady", waits ? "False" : "True", waits ? "WaitForBoundPodReady" : "BoundPodReady");
        return waits ? write() : succeed();
    }

    // Who cannot be placed now will not wait for others: the pod runs where it is.
    Reconciled wait_for_room(const Object& held) {
        for (const auto& each : model::list_at(held.document(), ".status.conditions")) {
            if (model::string_at(each, ".type") == "Scheduled" && model::string_at(each, ".status") == "False" &&
                model::string_at(each, ".reason") == "Unschedulable")
                return fail("Unschedulable", model::string_at(each, ".message"));
        }
        condition("ReservationScheduled", "False", "Pending");
        return write();
    }

    Reconciled reserve(const ObjectPtr& pod) {
        // It was there before: somebody took it away, or the job ended another way.
        if (has_condition("ReservationCreated")) return fail("ReservationDeleted", "its reservation is gone");
        if (!pod) return fail("MissingPod", "its pod went before there was room");
        const std::string to(job_.meta.annotations.get(kMovesTo));
        auto made = migration_of(pod->document(), {ttl_.count() / 1'000'000'000, false, to});
        if (!made) return fail("ForbiddenMigratePod", made.error().message);
        overlay(*made);
        base::object_at(*made, {"metadata"})["name"] = reservation_name();
        out_.writes.push_back(model::create_object(model::kReservationResource, "", std::move(*made)));
        return std::move(out_);
    }

    // The job's own template goes over what is made of the pod.
    void overlay(Json& reservation) const {
        for (const auto& label :
             model::members_at(job_.document(), ".spec.reservationOptions.template.metadata.labels"))
            base::object_at(reservation, {"metadata", "labels"})[label.key()] = label.value();
        for (const auto& field : model::members_at(job_.document(), ".spec.reservationOptions.template.spec")) {
            if (field.key() != "template") base::object_at(reservation, {"spec"})[field.key()] = field.value();
        }
    }

    Reconciled evict(const Object& pod) {
        condition("Eviction", "False", "Evicting");
        put_status(false);
        if (is_deleting(pod)) return std::move(out_);
        Json body = eviction_of(pod.document());
        for (const auto& field : model::members_at(job_.document(), ".spec.deleteOptions")) {
            if (field.key() != "preconditions") base::object_at(body, {"deleteOptions"})[field.key()] = field.value();
        }
        Write eviction = model::create_object("pods", pod.meta.ns, std::move(body));
        eviction.name = pod.meta.name;
        eviction.subresource = "eviction";
        out_.writes.push_back(std::move(eviction));
        out_.again = std::min(*out_.again, now_ + kAskAgain);
        return std::move(out_);
    }

    Reconciled fail(std::string_view reason, std::string_view message) {
        said()["phase"] = "Failed";
        said()["status"] = "Failed";
        said()["reason"] = reason;
        said()["message"] = message;
        const bool own = text(job_, ".spec.reservationOptions.reservationRef.name").empty();
        if (const auto held = objects_.find(model::kReservationResource, "", reservation_name());
            own && held && text(*held, ".status.phase") != "Succeeded")
            out_.writes.push_back(delete_object(model::kReservationResource, held->meta));
        return write(true);
    }
    Reconciled succeed() {
        condition("Eviction", "True", "EvictComplete");
        said()["phase"] = "Succeeded";
        said()["status"] = "Complete";
        return write();
    }

    JsonObject& said() { return status_.as_object(); }

    Reconciled write(bool warning = false) {
        put_status(warning);
        return std::move(out_);
    }
    void put_status(bool warning) {
        if (said() == model::members_at(job_.document(), ".status")) return;
        Write status = if_unchanged(patch_status(kMigrationJobs, job_.meta, said()), job_.meta);
        const auto phase = base::find_string(status_, {"phase"});
        if (phase == "Failed" || phase == "Succeeded") {
            status.event = model::Event{"scheduling.koordinator.sh/v1alpha1",
                                        "PodMigrationJob",
                                        "",
                                        job_.meta.name,
                                        job_.meta.uid,
                                        warning,
                                        warning ? "MigrationFailed" : "MigrationSucceeded",
                                        std::string(base::find_string(status_, {"message"}))};
        }
        out_.writes.push_back(std::move(status));
    }

    bool has_condition(std::string_view type) const {
        const auto& all = model::list_at(status_, ".conditions");
        return std::any_of(all.begin(), all.end(),
                           [&](const Json& each) { return model::string_at(each, ".type") == type; });
    }
    void condition(const char* type, const char* value, const char* reason) {
        Json& list = said()["conditions"];
        if (!list.is_array()) list = JsonArray();
        for (auto& each : list.get_array()) {
            if (model::string_at(each, ".type") != type) continue;
            if (model::string_at(each, ".status") == value && model::string_at(each, ".reason") == reason) return;
            each = JsonObject{
                {"type", type}, {"status", value}, {"reason", reason}, {"lastTransitionTime", model::time_text(now_)}};
            return;
        }
        list.get_array().push_back(JsonObject{
            {"type", type}, {"status", value}, {"reason", reason}, {"lastTransitionTime", model::time_text(now_)}});
    }

    const Object& job_;
    const Objects& objects_;
    const MigrationLimits& limits_;
    const base::Time now_;
    base::Duration ttl_;
    bool directly_ = false;
    Json status_;
    Reconciled out_;
};

class MigrationReconciler final : public Reconciler {
public:
    explicit MigrationReconciler(MigrationLimits limits) : limits_(limits) {}
    std::string_view name() const override { return "migration"; }
    std::string resource() const override { return kMigrationJobs; }
    std::vector<std::string> watches() const override { return {kMigrationJobs, "pods", model::kReservationResource}; }
    // Where one ends, another may begin.
    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        std::vector<Key> out;
        const bool job = resource == kMigrationJobs;
        if (job) out.push_back({"", object.meta.name});
        for (const auto& other : objects.list(kMigrationJobs)) {
            if (is_final(*other)) continue;
            const auto names = [&](std::string_view its_name, std::string_view its_namespace) {
                return its_name == object.meta.name && its_namespace == object.meta.ns;
            };
            const bool its_pod = resource == "pods" &&
                                 (names(text(*other, ".spec.podRef.name"), text(*other, ".spec.podRef.namespace")) ||
                                  names(text(*other, ".status.podRef.name"), text(*other, ".status.podRef.namespace")));
            const bool its_room = resource == model::kReservationResource &&
                                  (other->meta.uid == object.meta.name ||
                                   text(*other, ".spec.reservationOptions.reservationRef.name") == object.meta.name);
            if (its_pod || its_room || (job && !is_running(*other))) out.push_back({"", other->meta.name});
        }
        return out;
    }
    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto job = objects.find(kMigrationJobs, "", target.name);
        return job && !is_deleting(*job) ? Job(*job, objects, limits_, now).step() : Reconciled();
    }

private:
    const MigrationLimits limits_;
};

}  // namespace

int64_t MigrationLimits::Portion::of(int64_t pods) const {
    return std::max<int64_t>(1, count ? *count : pods * percent.value_or(0) / 100);
}

int64_t moves_per_workload(int64_t pods, const MigrationLimits& limits) {
    if (limits.per_workload.is_said()) return limits.per_workload.of(pods);
    return pods > 10 ? pods / 10 : pods >= 4 ? 2 : 1;
}

Write move_job(const Object& pod, const MoveOrder& order) {
    const JsonObject ref{{"apiVersion", "v1"},
                         {"kind", "Pod"},
                         {"namespace", pod.meta.ns},
                         {"name", pod.meta.name},
                         {"uid", pod.meta.uid}};
    JsonObject meta{{"name", order.name}, {"labels", JsonObject{{order.label, order.node}}}};
    if (!order.to.empty()) meta["annotations"] = JsonObject{{kMovesTo, order.to}};
    const Json job(JsonObject{{"apiVersion", "scheduling.koordinator.sh/v1alpha1"},
                              {"kind", "PodMigrationJob"},
                              {"metadata", std::move(meta)},
                              {"spec", JsonObject{{"podRef", ref}, {"ttl", order.ttl}, {"mode", order.mode}}}});
    Write write = model::create_object(kMigrationJobs, "", job);
    write.event =
        model::Event{"v1", "Pod", pod.meta.ns, pod.meta.name, pod.meta.uid, true, order.reason, order.message};
    return write;
}

std::unique_ptr<Reconciler> migration_reconciler(MigrationLimits limits) {
    return std::make_unique<MigrationReconciler>(limits);
}

}  // namespace berth::control
