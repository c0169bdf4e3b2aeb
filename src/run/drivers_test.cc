// What the drivers tell of the objects that a server has: events, plans in order, metrics.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/json.h"
#include "base/yaml.h"
#include "control/migration.h"
#include "control/reservations.h"
#include "model/times.h"
#include "run/controllers_driver.h"
#include "run/scheduler_driver.h"
#include "run/scripted_server.h"

namespace berth::run {
namespace {

// A server with these objects and a node n1 of 4 cpu; the test answers.
std::shared_ptr<Script> silent_script_of(std::string_view yaml) {
    static const std::map<std::string_view, std::string> kPlurals{
        {"Pod", "pods"}, {"PriorityClass", "priorityclasses"}, {"Reservation", "reservations"}};
    auto script = std::make_shared<Script>();
    const auto documents = base::parse_yaml(yaml);
    EXPECT_TRUE(documents);
    script->has("nodes", R"({"kind":"Node","metadata":{"name":"n1","uid":"u"},
        "status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"}}})");
    for (const auto& document : *documents) {
        script->has(kPlurals.at(base::find_string(document, {"kind"})), base::to_text(document));
    }
    return script;
}

// Everything sent to it succeeds and changes nothing: the answers carry a revision that no feed ever tells, so whoever
// wrote waits to see it.
std::shared_ptr<Script> script_of(std::string_view yaml) {
    auto script = silent_script_of(yaml);
    script->answer_all({200, "{}", 1'000'000});
    return script;
}

// "REASON NAME: MESSAGE" for an event and "METHOD PATH" for all else.
std::string line_of(const link::Request& request) {
    const auto body = base::parse_json(request.body);
    if (request.method != "POST" || !body || base::find_string(*body, {"kind"}) != "Event") {
        return request.method + " " + request.path;
    }
    return fmt::format("{} {}: {}", base::find_string(*body, {"reason"}),
                       base::find_string(*body, {"involvedObject", "name"}), base::find_string(*body, {"message"}));
}

// Turns the driver until there is a line that begins so; its position.
size_t line_at(Driver& driver, Script& script, std::string_view beginning) {
    base::ManualClock clock(*model::parse_time("2026-01-01T00:00:00Z"));
    std::optional<size_t> found;
    EXPECT_TRUE(turn_until(driver, clock, [&] {
        found = script.find([&](const link::Request& request) { return line_of(request).starts_with(beginning); });
        return found.has_value();
    })) << beginning;
    return found.value_or(0);
}

SchedulerDriver scheduler_of(Script& script, base::Metrics& metrics) {
    return SchedulerDriver({script.server(), [] {}, metrics, base::system_clock()},
                           {{"berth", sched::default_profile()}}, {});
}

TEST(ControllersDriver, TellsWhatIsWrongAndShowsWhatIsHeld) {
    const auto script = script_of(R"(
kind: Pod
metadata: {name: by-others, namespace: default, uid: p1}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}
---
kind: Pod
metadata:
  {name: marked, namespace: default, uid: p2,
   annotations: {scheduling.koordinator.sh/reservation-allocated: '{"name":"held","uid":"r1"}'}}
spec: {containers: [{name: c}]}
---
kind: Pod
metadata:
  {name: garbled, namespace: default, uid: p3,
   annotations: {scheduling.koordinator.sh/reservation-allocated: '{'}}
spec: {nodeName: n1, containers: [{name: c}]}
---
kind: Reservation
metadata: {name: broken, uid: r2}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {tolerations: [{key: a, operator: Near}], containers: [{name: c}]}}
---
kind: Reservation
metadata: {name: held, uid: r1}
spec:
  ttl: "0"
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1500m"}}}]}}
status:
  phase: Available
  nodeName: n1
  allocatable: {cpu: 1500m}
  conditions: [{type: Ready, status: "True", reason: Available}]
)");
    base::Metrics metrics;
    ControllersDriver driver({script->server(), [] {}, metrics, "berth-reservations"},
                             control::reservation_reconcilers(std::chrono::hours(24)));
    line_at(driver, *script, "NodeTooFull held: node n1 holds {cpu: \"1500m\"} more than it has");
    line_at(driver, *script,
            "AnnotationIgnored marked: annotation \"scheduling.koordinator.sh/reservation-allocated\" means nothing");
    line_at(
        driver, *script,
        "AnnotationUnreadable garbled: annotation \"scheduling.koordinator.sh/reservation-allocated\": invalid JSON");
    line_at(driver, *script,
            "Unreadable broken: Reservation \"broken\": spec.template.spec.tolerations[0].operator: must be one of");
    const std::string shown = metrics.text();
    for (const auto* line :
         {"scheduler_reservation_status_phase{name=\"held\",phase=\"Available\"} 1\n",
          "scheduler_reservation_resource{name=\"held\",resource=\"cpu\",type=\"allocatable\",unit=\"core\"} 1.5\n"}) {
        EXPECT_NE(shown.find(line), std::string::npos) << shown;
    }
}

// ADR 17: what was decided about an old revision fails, and is decided anew; people hear of what was written.
TEST(ControllersDriver, ALateWriteIsDecidedAnewAndToldWhenItWasWritten) {
    const auto script = silent_script_of(R"(
kind: Pod
metadata: {name: by-others, namespace: default, uid: p1}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}
---
kind: Reservation
metadata: {name: held, uid: r1}
spec:
  ttl: "0"
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
status:
  phase: Available
  nodeName: n1
  allocatable: {cpu: "1"}
  conditions: [{type: Ready, status: "True", reason: Available}]
)");
    base::Metrics metrics;
    ControllersDriver driver({script->server(), [] {}, metrics, "berth-reservations"},
                             control::reservation_reconcilers(std::chrono::hours(24)));
    base::ManualClock clock(*model::parse_time("2026-01-01T00:00:00Z"));
    const std::string path = "/apis/scheduling.koordinator.sh/v1alpha1/reservations/held/status";
    const auto sent = [&](size_t count) {
        EXPECT_TRUE(turn_until(driver, clock, [&] { return script->requests() == count; })) << count;
    };
    sent(1);
    const auto first = script->take("PATCH", path, {409, "{}", 0});
    EXPECT_NE(first.body.find(R"("path":"/metadata/uid","value":"r1")"), std::string::npos) << first.body;
    EXPECT_NE(first.body.find(R"("path":"/metadata/resourceVersion","value":"1")"), std::string::npos) << first.body;
    sent(2);
    script->take("PATCH", path, {200, "{}", 2});
    sent(3);
    const auto told =
        script->find([](const auto& request) { return line_of(request).starts_with("NodeTooFull held"); });
    EXPECT_EQ(told, 2u) << "after the write that was done, not after the one that was refused";
}

// Five pods may go; two evictions a second are sent, whoever wants them.
TEST(ControllersDriver, EvictsAtItsPace) {
    const auto script = std::make_shared<Script>();
    for (int i = 0; i < 5; ++i) {
        script->has("pods", fmt::format(R"({{"kind":"Pod","metadata":{{"namespace":"ns","name":"p{0}","uid":"u{0}",)"
                                        R"("ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r",)"
                                        R"("uid":"r{0}","controller":true}}]}},"spec":{{"nodeName":"n{0}",)"
                                        R"("containers":[{{"name":"c"}}]}},"status":{{"phase":"Running"}}}})",
                                        i));
        script->has(
            "podmigrationjobs",
            fmt::format(R"({{"kind":"PodMigrationJob","metadata":{{"name":"j{0}","uid":"j{0}","annotations":)"
                        R"({{"descheduler.koordinator.sh/passed-arbitration":"true","berth.dev/moved-pod":)"
                        R"("u{0}"}},"creationTimestamp":"2026-01-01T00:00:00Z"}},"spec":{{"mode":"EvictDirectly",)"
                        R"("podRef":{{"namespace":"ns","name":"p{0}"}}}},"status":{{"phase":"Running"}}}})",
                        i));
    }
    script->answer_all({200, "{}", 1'000'000});
    base::Metrics metrics;
    ControllersDriver::Reconcilers reconcilers;
    reconcilers.push_back(control::migration_reconciler());
    ControllersDriver driver({script->server(), [] {}, metrics, "berth"}, std::move(reconcilers), {2'000, 1});
    base::ManualClock clock(*model::parse_time("2026-01-01T00:00:01Z"));
    const auto evictions = [&] {
        size_t count = 0;
        script->find([&](const auto& request) {
            count += request.path.ends_with("/eviction");
            return false;
        });
        return count;
    };
    std::vector<size_t> seen;
    for (int tenth = 0; tenth < 21; ++tenth) {
        for (int i = 0; i < 3; ++i) driver.turn(moment(clock));
        seen.push_back(evictions());
        if (seen.back() < 5) {
            EXPECT_LE(driver.next(), clock.now() + std::chrono::milliseconds(500));
        }
        clock.advance(std::chrono::milliseconds(100));
    }
    EXPECT_EQ(seen, (std::vector<size_t>{1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5}));
}

// Koordinator decodes the list as a whole: one such object stopped all of it.
TEST(SchedulerDriver, ABrokenReservationStopsNobody) {
    const auto script = script_of(R"(
kind: Pod
metadata: {name: web, namespace: default, uid: p1, labels: {app: web}}
spec: {schedulerName: berth, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}
---
kind: Reservation
metadata: {name: broken, uid: r1}
spec:
  ttl: abc
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "4"}}}]}}
---
kind: Reservation
metadata: {name: good, uid: r2}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "4"}}}]}}
status:
  phase: Available
  nodeName: n1
  allocatable: {cpu: "4"}
)");
    base::Metrics metrics;
    SchedulerDriver driver = scheduler_of(*script, metrics);
    line_at(driver, *script, "POST /api/v1/namespaces/default/pods/web/binding");
    std::string binding;
    script->find([&](const link::Request& request) {
        if (!request.path.ends_with("/binding")) return false;
        binding = request.body;
        return true;
    });
    EXPECT_NE(binding.find("good"), std::string::npos) << "it draws from the one that can be read: " << binding;
}

// No API server resolves the class of a template; until its class is there a reservation must not be taken for the
// most important one.
TEST(SchedulerDriver, ResolvesThePriorityClassOfATemplate) {
    const auto script = script_of(R"(
kind: Pod
metadata: {name: ordinary, namespace: default, uid: p1}
spec: {priority: 0, schedulerName: berth, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
---
kind: PriorityClass
metadata: {name: background, uid: c}
value: -5
---
kind: Reservation
metadata: {name: low, uid: r1}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template:
    spec:
      {schedulerName: berth, priorityClassName: background, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
---
kind: Reservation
metadata: {name: unknown, uid: r2}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template:
    spec:
      {schedulerName: berth, priorityClassName: nobody, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
)");
    base::Metrics metrics;
    SchedulerDriver driver = scheduler_of(*script, metrics);
    line_at(driver, *script, "FailedScheduling unknown: no PriorityClass with name nobody was found");
    const size_t placed =
        line_at(driver, *script, "PATCH /apis/scheduling.koordinator.sh/v1alpha1/reservations/low/status");
    EXPECT_LT(line_at(driver, *script, "POST /api/v1/namespaces/default/pods/ordinary/binding"), placed);
}

}  // namespace
}  // namespace berth::run
