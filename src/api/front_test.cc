#include "api/front.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/test_front.h"

namespace berth::api {
namespace {

TEST(Front, CreatesReadsAndDeletes) {
    TestFront t;
    auto made = t.ask("POST", kPods, pod_body("web"));
    ASSERT_EQ(made.code, 201) << made.raw.body;
    EXPECT_EQ(made.text({"status", "phase"}), "Pending");
    EXPECT_EQ(made.text({"spec", "serviceAccountName"}), "default");
    EXPECT_EQ(made.text({"metadata", "creationTimestamp"}), "2026-11-15T22:00:00Z");
    EXPECT_EQ(t.ask("POST", kPods, pod_body("web")).text({"message"}), "pods \"web\" already exists");
    EXPECT_EQ(t.ask("GET", kPods + "/web").text({"metadata", "uid"}), made.text({"metadata", "uid"}));
    auto gone = t.ask("DELETE", kPods + "/web");
    EXPECT_EQ(gone.code, 200);
    EXPECT_EQ(gone.text({"status"}), "Success");
    EXPECT_EQ(t.ask("GET", kPods + "/web").text({"message"}), "pods \"web\" not found");
}

TEST(Front, WhatEndedStaysEndedAndTheNodeStays) {
    TestFront t;
    t.ask("POST", kPods, pod_body("web"));
    const auto phase = [&](const std::string& name) {
        return t.ask("PATCH", kPods + "/web/status", R"({"status":{"phase":")" + name + R"("}})", kMerge).code;
    };
    EXPECT_EQ(phase("Running"), 200);
    EXPECT_EQ(phase("Succeeded"), 200);
    EXPECT_EQ(phase("Succeeded"), 200);
    for (const auto* other : {"Running", "Pending", "Failed", ""}) EXPECT_EQ(phase(other), 422) << other;
    const std::string path = kPods + "/web/ephemeralcontainers";
    const std::string debug = R"("ephemeralContainers":[{"name":"d","image":"i"}])";
    EXPECT_EQ(t.ask("PATCH", path, "{\"spec\":{" + debug + "}}", kStrategic).code, 200);
    for (const auto* more : {R"(,"nodeName":"n1")", R"(,"containers":[{"name":"c","image":"j"}])"}) {
        EXPECT_EQ(t.ask("PATCH", path, "{\"spec\":{" + debug + more + "}}", kStrategic).code, 422) << more;
    }
}

TEST(Front, ANodeHasAmountsThatCanBeCounted) {
    TestFront t;
    const auto node = [](const std::string& name, const std::string& cpu) {
        return R"({"metadata":{"name":")" + name + R"("},"status":{"allocatable":{"cpu":")" + cpu + R"("}}})";
    };
    const auto refused = t.ask("POST", "/api/v1/nodes", node("n1", "-1"));
    EXPECT_EQ(refused.code, 422);
    EXPECT_EQ(
        refused.text({"message"}),
        "Node \"n1\" is invalid: status.allocatable[cpu]: Invalid value: \"-1\": must be greater than or equal to 0");
    EXPECT_EQ(t.ask("POST", "/api/v1/nodes", node("n1", "1e30")).code, 422);
    EXPECT_EQ(t.ask("POST", "/api/v1/nodes", node("n1", "9223372036854776")).code, 422) << "in thousandths";
    EXPECT_EQ(t.ask("POST", "/api/v1/nodes", node("n1", "9223372036854775")).code, 201);
    EXPECT_EQ(t.ask("PATCH", "/api/v1/nodes/n1/status", node("n1", "-1"), kMerge).code, 422);
}

TEST(Front, EveryAnswerCarriesAnAuditId) {
    TestFront t;
    const auto answer = t.ask("GET", kPods);
    ASSERT_FALSE(answer.raw.headers.empty());
    EXPECT_EQ(answer.raw.headers.back().first, "Audit-Id");
}

TEST(Front, AnUpdateThatChangesNothingKeepsItsVersion) {
    TestFront t;
    const auto made = t.ask("POST", kMaps, map_body("m", "1"));
    auto same = t.ask("PUT", kMaps + "/m", made.raw.body);
    EXPECT_EQ(same.text({"metadata", "resourceVersion"}), made.text({"metadata", "resourceVersion"}));
    auto other = t.ask("PUT", kMaps + "/m", map_body("m", "2"));
    EXPECT_NE(other.text({"metadata", "resourceVersion"}), made.text({"metadata", "resourceVersion"}));
    auto stale = t.ask("PUT", kMaps + "/m", made.raw.body);
    EXPECT_EQ(stale.code, 409);
    EXPECT_EQ(stale.text({"reason"}), "Conflict");
}

TEST(Front, PatchesOfThreeKinds) {
    TestFront t;
    t.ask("POST", kMaps, map_body("m", "1"));
    EXPECT_EQ(t.ask("PATCH", kMaps + "/m", R"({"data":{"a":"x"}})", kMerge).text({"data", "a"}), "x");
    EXPECT_EQ(t.ask("PATCH", kMaps + "/m", R"([{"op":"replace","path":"/data/a","value":"y"}])", kJsonPatch)
                  .text({"data", "a"}),
              "y");
    EXPECT_EQ(t.ask("PATCH", kMaps + "/m", R"({"data":{"a":null}})", kStrategic).text({"data", "k"}), "1");
    EXPECT_EQ(t.ask("PATCH", kMaps + "/m", "{}", {{"content-type", "application/apply-patch+yaml"}}).code, 415);
}

TEST(Front, ListsByPagesThatStayInOneMoment) {
    TestFront t;
    for (const auto* name : {"a", "b", "c", "d", "e"}) t.ask("POST", kMaps, map_body(name, "1"));
    auto first = t.ask("GET", kMaps + "?limit=2");
    EXPECT_EQ(first.json.at("items").as_array().size(), 2U);
    EXPECT_EQ(first.json.at("metadata").at("remainingItemCount").as_int64(), 3);
    t.ask("DELETE", kMaps + "/c");
    auto second = t.ask("GET", kMaps + "?limit=5&continue=" + first.text({"metadata", "continue"}));
    EXPECT_EQ(second.json.at("items").as_array().size(), 3U);
    EXPECT_EQ(second.text({"metadata", "continue"}), "");
    EXPECT_EQ(t.ask("GET", kMaps + "?continue=nonsense").code, 400);
}

TEST(Front, SelectorsChoose) {
    TestFront t;
    t.ask("POST", kPods, pod_body("a"));
    t.ask("POST", kPods, pod_body("b"));
    EXPECT_EQ(t.ask("GET", kPods + "?labelSelector=app%3Da").json.at("items").as_array().size(), 1U);
    EXPECT_EQ(t.ask("GET", kPods + "?fieldSelector=metadata.name%3Db").json.at("items").as_array().size(), 1U);
    EXPECT_EQ(t.ask("GET", "/api/v1/pods?fieldSelector=status.phase!%3DPending").json.at("items").as_array().size(),
              0U);
    const std::vector<std::pair<std::string, size_t>> fields{
        {"status.phase%3DPending", 2},      {"spec.hostNetwork%3Dfalse", 2}, {"spec.hostNetwork%3Dtrue", 0},
        {"spec.restartPolicy%3DAlways", 2}, {"spec.nodeName%3D", 2},         {"spec.nodeName%3Dn1", 0},
    };
    for (const auto& [selector, count] : fields) {
        EXPECT_EQ(t.ask("GET", kPods + "?fieldSelector=" + selector).json.at("items").as_array().size(), count)
            << selector;
    }
    EXPECT_EQ(t.ask("GET", kPods + "?fieldSelector=spec.foo%3Db").text({"message"}),
              "field label not supported: spec.foo");
    EXPECT_EQ(t.ask("GET", kPods + "?labelSelector=((").code, 400);
}

TEST(Front, FinalizersHoldAnObjectUntilTheyAreGone) {
    TestFront t;
    t.ask("POST", kMaps, R"({"metadata":{"name":"m","finalizers":["example.com/hold"]}})");
    auto pending = t.ask("DELETE", kMaps + "/m");
    EXPECT_FALSE(pending.text({"metadata", "deletionTimestamp"}).empty());
    auto more =
        t.ask("PATCH", kMaps + "/m", R"({"metadata":{"finalizers":["example.com/hold","example.com/new"]}})", kMerge);
    EXPECT_EQ(more.code, 422);
    EXPECT_EQ(t.ask("PATCH", kMaps + "/m", R"({"metadata":{"finalizers":null}})", kMerge).code, 200);
    EXPECT_EQ(t.ask("GET", kMaps + "/m").code, 404);
}

TEST(Front, ABoundPodGoesAfterItsGracePeriod) {
    TestFront t;
    t.ask("POST", "/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
    t.ask("POST", kPods, pod_body("web"));
    const std::string binding =
        R"({"metadata":{"name":"web","annotations":{"x/y":"z"}},"target":{"kind":"Node","name":"n1"}})";
    EXPECT_EQ(t.ask("POST", kPods + "/web/binding", binding).code, 201);
    auto bound = t.ask("GET", kPods + "/web");
    EXPECT_EQ(bound.text({"spec", "nodeName"}), "n1");
    EXPECT_EQ(bound.text({"metadata", "annotations", "x/y"}), "z");
    EXPECT_EQ(t.ask("POST", kPods + "/web/binding", binding).text({"message"}),
              "Operation cannot be fulfilled on pods/binding \"web\": pod web is already assigned to node \"n1\"");
    auto going = t.ask("DELETE", kPods + "/web", R"({"gracePeriodSeconds":5})");
    EXPECT_EQ(going.text({"metadata", "deletionTimestamp"}), "2026-11-15T22:00:05Z");
    EXPECT_EQ(t.ask("DELETE", kPods + "/web", R"({"gracePeriodSeconds":0})").code, 200);
    EXPECT_EQ(t.ask("GET", kPods + "/web").code, 404);
}

TEST(Front, AJobKnowsItsPodsByLabels) {
    TestFront t;
    const std::string jobs = "/apis/batch/v1/namespaces/default/jobs";
    const auto made = t.ask(
        "POST", jobs,
        R"({"metadata":{"name":"night"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})");
    ASSERT_EQ(made.code, 201) << made.raw.body;
    EXPECT_EQ(made.text({"spec", "template", "metadata", "labels", "job-name"}), "night");
    EXPECT_EQ(made.text({"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"}),
              made.text({"metadata", "uid"}));
}

// A log that holds its acknowledgements back while `held`.
class SlowLog final : public store::Log {
public:
    explicit SlowLog(const bool& held) : held_(held), log_(store::memory_log()) {}
    Extent extent() const override { return log_->extent(); }
    Status replay(const Replay& replay) override { return log_->replay(replay); }
    void start(Sink& sink) override { log_->start(sink); }
    void append(store::EntryPtr entry) override { log_->append(std::move(entry)); }
    void kick() override {
        if (!held_) log_->kick();
    }
    void close() override { log_->close(); }

private:
    const bool& held_;
    std::unique_ptr<store::Log> log_;
};

TEST(Front, AFloodOfWritesIsHeldBackAndLeasesPass) {
    bool held = false;
    TestFront t(std::make_unique<SlowLog>(held));
    held = true;
    std::vector<std::shared_ptr<FakeExchange>> waiting;
    for (size_t i = 0; i < kMostWrites / 2; ++i) {
        waiting.push_back(t.send("POST", kMaps, map_body("m" + std::to_string(i), "v")));
        ASSERT_FALSE(waiting.back()->answered);
    }
    const auto refused = t.ask("POST", kMaps, map_body("one-too-many", "v"));
    EXPECT_EQ(refused.code, 429);
    EXPECT_EQ(refused.json.at("details").at("retryAfterSeconds").as_int64(), 1);
    EXPECT_EQ(t.ask("GET", kPods).code, 200);
    const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    waiting.push_back(t.send("POST", leases, R"({"metadata":{"name":"leader"},"spec":{"holderIdentity":"a"}})"));
    EXPECT_FALSE(waiting.back()->answered);
    t.peer = {"berth-scheduler", {std::string(kSchedulers)}};
    waiting.push_back(t.send("POST", "/api/v1/namespaces/default/events",
                             R"({"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}})"));
    EXPECT_FALSE(waiting.back()->answered);
    held = false;
    t.peer = {"admin", {std::string(kMasters)}};
    EXPECT_EQ(t.ask("POST", kMaps, map_body("now-there-is-room", "v")).code, 429);
    t.ask("POST", leases, R"({"metadata":{"name":"other"},"spec":{"holderIdentity":"a"}})");
    for (const auto& exchange : waiting) {
        ASSERT_TRUE(exchange->answered);
        EXPECT_EQ(exchange->answered->status, 201);
    }
    EXPECT_EQ(t.ask("POST", kMaps, map_body("at-last", "v")).code, 201);
    EXPECT_EQ(t.front.writes_in_flight(), 0u);
}

TEST(Front, ADisruptionBudgetRefusesTheEviction) {
    TestFront t;
    t.ask("POST", "/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
    t.ask("POST", kPods, pod_body("web"));
    t.ask("POST", kPods + "/web/binding", R"({"target":{"name":"n1"}})");
    t.ask("PATCH", kPods + "/web/status",
          R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})", kMerge);
    const std::string budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    t.ask("POST", budgets,
          R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}}}})");
    EXPECT_EQ(t.ask("POST", kPods + "/web/eviction", "{}").code, 429);
    const auto allow = [&](int n) {
        return t.ask(
            "PATCH", budgets + "/b/status",
            R"({"status":{"observedGeneration":1,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1,"disruptionsAllowed":)" +
                std::to_string(n) + "}}",
            kMerge);
    };
    EXPECT_EQ(allow(0).code, 200);
    auto refused = t.ask("POST", kPods + "/web/eviction", "{}");
    EXPECT_EQ(refused.code, 429);
    EXPECT_EQ(refused.json.at("details").at("causes").at(0).at("message").as_string(),
              "The disruption budget b needs 1 healthy pods and has 1 currently");
    allow(1);
    EXPECT_EQ(t.ask("POST", kPods + "/web/eviction", "{}").code, 201);
    auto spent = t.ask("GET", budgets + "/b");
    EXPECT_EQ(spent.json.at("status").at("disruptionsAllowed").as_int64(), 0);
    EXPECT_TRUE(spent.json.at("status").at("disruptedPods").as_object().contains("web"));
}

TEST(Front, StatusIsWrittenThroughItsSubresourceOnly) {
    TestFront t;
    auto made = t.ask("POST", kPods, pod_body("web"));
    t.ask("PATCH", kPods + "/web", R"({"status":{"phase":"Running"}})", kMerge);
    EXPECT_EQ(t.ask("GET", kPods + "/web").text({"status", "phase"}), "Pending");
    auto status =
        t.ask("PATCH", kPods + "/web/status", R"({"spec":{"nodeName":"x"},"status":{"phase":"Running"}})", kMerge);
    EXPECT_EQ(status.text({"status", "phase"}), "Running");
    EXPECT_EQ(status.text({"spec", "nodeName"}), "");
    EXPECT_EQ(status.json.at("metadata").at("generation").as_int64(), 1);
}

// Objects of another cluster name each other by uid, and are as old as they are.
TEST(Front, WhatIsBroughtFromElsewhereStaysItself) {
    TestFront t;
    const std::string other =
        R"({"metadata":{"name":"p","uid":"u-1","creationTimestamp":"2020-01-01T00:00:00Z"},"spec":{"containers":[{"name":"c","image":"i"}]}})";
    t.peer = {"berth:up", {"system:masters", "berth:importers"}};
    const auto brought = t.ask("POST", kPods, other);
    EXPECT_EQ(brought.text({"metadata", "uid"}), "u-1");
    EXPECT_EQ(brought.text({"metadata", "creationTimestamp"}), "2020-01-01T00:00:00Z");
    t.ask("DELETE", kPods + "/p");
    t.peer = {"admin", {"system:masters"}};
    EXPECT_NE(t.ask("POST", kPods, other).text({"metadata", "uid"}), "u-1");
}

TEST(Front, ABrokenReservationIsRefusedWithItsFieldsPath) {
    TestFront t;
    const std::string path = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
    const auto body = [](std::string_view owners, std::string_view more, std::string_view in_template = "") {
        return fmt::format(R"({{"metadata":{{"name":"bad"}},"spec":{{"owners":[{}],"template":{{"spec":{{"containers":[
            {{"name":"c","image":"i"}}]{}}}}}{}}}}})",
                           owners, in_template, more);
    };
    const std::string owner = R"({"labelSelector":{"matchLabels":{"app":"web"}}})";
    const struct {
        std::string body, field;
    } cases[] = {
        {body(owner, R"(,"ttl":"abc")"), "spec.ttl"},
        {body(owner, R"(,"ttl":"-5s")"), "spec.ttl"},
        {body(owner, R"(,"expires":"nope")"), "spec.expires"},
        {body(owner, R"(,"taints":[{"key":"a","effect":"Never"}])"), "spec.taints[0].effect"},
        {body("{}", ""), "spec.owners[0]"},
        {body("", ""), "spec.owners"},
        {body(R"({"object":{"kind":"Pod"}})", ""), "spec.owners[0].object"},
        {body(R"({"labelSelector":{}})", ""), "spec.owners[0].labelSelector"},
        {fmt::format(R"({{"metadata":{{"name":"bad"}},"spec":{{"owners":[{}],"template":{{}}}}}})", owner),
         "spec.template.spec.containers"},
        {fmt::format(R"({{"metadata":{{"name":"bad"}},"spec":{{"owners":[{}]}}}})", owner), "spec.template"},
        {body(owner, "", R"(,"tolerations":[{"key":"a","operator":"Near"}])"),
         "spec.template.spec.tolerations[0].operator"},
    };
    for (const auto& c : cases) {
        const auto refused = t.ask("POST", path, c.body);
        EXPECT_EQ(refused.code, 422) << refused.raw.body;
        const Json* details = base::find(refused.json, {"details"});
        ASSERT_NE(details, nullptr) << refused.raw.body;
        EXPECT_EQ(base::find_string(*details, {"name"}), "bad");
        EXPECT_EQ(base::find_string(details->at("causes").as_array().at(0), {"field"}), c.field) << refused.raw.body;
    }
    const auto both = t.ask("POST", path, body(owner, R"(,"ttl":"1h","expires":"2027-01-01T00:00:00Z")"));
    EXPECT_EQ(both.code, 201) << both.raw.body;
    EXPECT_EQ(std::count_if(both.raw.headers.begin(), both.raw.headers.end(),
                            [](const auto& header) { return header.first == "Warning"; }),
              1);
    const auto broken = t.ask("PATCH", path + "/bad", R"({"spec":{"ttl":"abc"}})", kMerge);
    EXPECT_EQ(broken.code, 422) << "a change is checked as well";
}

TEST(Front, ARefusedCreateTellsTheNameOfItsBody) {
    TestFront t;
    const auto refused = t.ask("POST", kPods, pod_body("a", R"(,"restartPolicy":"Sometimes")"));
    EXPECT_EQ(refused.code, 422);
    EXPECT_EQ(refused.text({"details", "name"}), "a");
    EXPECT_EQ(refused.text({"details", "kind"}), "Pod");
}

TEST(Front, PrioritiesComeFromTheirClass) {
    TestFront t;
    t.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
          R"({"metadata":{"name":"high"},"value":1000,"preemptionPolicy":"Never"})");
    auto made = t.ask("POST", kPods, pod_body("a", R"(,"priorityClassName":"high")"));
    EXPECT_EQ(made.json.at("spec").at("priority").as_int64(), 1000);
    EXPECT_EQ(made.text({"spec", "preemptionPolicy"}), "Never");
    EXPECT_EQ(t.ask("POST", kPods, pod_body("b", R"(,"priorityClassName":"none")")).text({"message"}),
              "pods \"b\" is forbidden: no PriorityClass with name none was found");
    const auto reservation = [&](const std::string& in_template) {
        return t.ask(
            "POST", "/apis/scheduling.koordinator.sh/v1alpha1/reservations",
            R"({"metadata":{"generateName":"r-"},"spec":{"owners":[{"object":{"name":"a"}}],"template":{"spec":{)" +
                in_template + R"("containers":[{"name":"c"}]}}}})");
    };
    const auto priority = [](const Answer& answer) {
        return answer.json.at("spec").at("template").at("spec").at("priority").as_int64();
    };
    EXPECT_EQ(priority(reservation(R"("priorityClassName":"high",)")), 1000);
    EXPECT_EQ(priority(reservation(R"("priorityClassName":"high","priority":7,)")), 7);
    EXPECT_EQ(reservation(R"("priorityClassName":"none",)").code, 403);
}

TEST(Front, NamespacesAreClosedBeforeTheyGo) {
    TestFront t;
    EXPECT_EQ(t.ask("POST", "/api/v1/namespaces/none/pods", pod_body("a")).text({"message"}),
              "namespaces \"none\" not found");
    t.ask("POST", "/api/v1/namespaces", R"({"metadata":{"name":"x"}})");
    EXPECT_EQ(t.ask("DELETE", "/api/v1/namespaces/x").text({"status", "phase"}), "Terminating");
    auto late = t.ask("POST", "/api/v1/namespaces/x/pods", pod_body("a"));
    EXPECT_EQ(late.code, 403);
    EXPECT_EQ(
        t.ask("PUT", "/api/v1/namespaces/x/finalize", R"({"metadata":{"name":"x"},"spec":{"finalizers":[]}})").code,
        200);
    EXPECT_EQ(t.ask("GET", "/api/v1/namespaces/x").code, 404);
}

TEST(Front, ADryRunLeavesNothing) {
    TestFront t;
    EXPECT_EQ(t.ask("POST", kMaps + "?dryRun=All", map_body("m", "1")).code, 201);
    EXPECT_EQ(t.ask("GET", kMaps + "/m").code, 404);
    t.ask("POST", kMaps, map_body("m", "1"));
    EXPECT_EQ(t.ask("DELETE", kMaps + "/m?dryRun=All").code, 200);
    EXPECT_EQ(t.ask("GET", kMaps + "/m").code, 200);
}

TEST(Front, UnknownFieldsAreErrorsWarningsOrNothing) {
    TestFront t;
    const std::string body = R"({"metadata":{"name":"m"},"foo":1})";
    EXPECT_EQ(t.ask("POST", kMaps + "?fieldValidation=Strict", body).text({"message"}),
              "strict decoding error: unknown field \"foo\"");
    const auto warned = t.ask("POST", kMaps + "?fieldValidation=Warn", body);
    EXPECT_EQ(warned.code, 201);
    EXPECT_EQ(warned.raw.headers.front(),
              (std::pair<std::string, std::string>{"Warning", "299 - \"unknown field \\\"foo\\\"\""}));
}

TEST(Front, ScaleIsAViewOfReplicas) {
    TestFront t;
    const std::string sets = "/apis/apps/v1/namespaces/default/deployments";
    t.ask(
        "POST", sets,
        R"({"metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
    auto scale = t.ask("GET", sets + "/d/scale");
    EXPECT_EQ(scale.json.at("spec").at("replicas").as_int64(), 2);
    EXPECT_EQ(scale.text({"status", "selector"}), "a=b");
    EXPECT_EQ(t.ask("PATCH", sets + "/d/scale", R"({"spec":{"replicas":5}})", kMerge).code, 200);
    EXPECT_EQ(t.ask("GET", sets + "/d").json.at("spec").at("replicas").as_int64(), 5);
    EXPECT_EQ(t.ask("GET", sets + "/d").json.at("metadata").at("generation").as_int64(), 2);
}

TEST(Front, EventsHaveTwoViewsAndAnHour) {
    TestFront t;
    t.ask(
        "POST", "/apis/events.k8s.io/v1/namespaces/default/events",
        R"({"metadata":{"name":"e"},"eventTime":"2026-11-15T22:00:00.000000Z","note":"hello","reason":"R","type":"Normal","action":"A","reportingController":"x","reportingInstance":"y","regarding":{"kind":"Pod","name":"p","namespace":"default"}})");
    auto core = t.ask("GET", "/api/v1/namespaces/default/events/e");
    EXPECT_EQ(core.text({"message"}), "hello");
    EXPECT_EQ(core.text({"involvedObject", "name"}), "p");
    EXPECT_EQ(t.ask("GET", "/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dp")
                  .json.at("items")
                  .as_array()
                  .size(),
              1U);
    t.clock.advance(std::chrono::hours(2));
    expire_events(t.context);
    EXPECT_EQ(t.ask("GET", "/api/v1/namespaces/default/events/e").code, 404);
}

TEST(Front, OfTooManyEventsTheOldestGo) {
    TestFront t;
    const auto bytes =
        std::make_shared<const std::string>(R"({"metadata":{"creationTimestamp":"2026-11-15T22:00:00Z"}})");
    const auto key = [](size_t number) { return store::Key{"events", "default", fmt::format("e{}", number)}; };
    for (size_t i = 0; i < kMostEvents + 30; ++i) {
        ASSERT_TRUE(t.context.store.commit({{{.op = store::Op::Create, .key = key(i), .bytes = bytes, .uid = "u"}}}));
    }
    expire_events(t.context);
    EXPECT_EQ(t.context.store.count("events"), kMostEvents);
    EXPECT_EQ(t.context.store.get(key(29)), nullptr);
    EXPECT_NE(t.context.store.get(key(30)), nullptr);
}

TEST(Front, CollectionsAreDeletedBySelector) {
    TestFront t;
    t.ask("POST", kPods, pod_body("a"));
    t.ask("POST", kPods, pod_body("b"));
    EXPECT_EQ(t.ask("DELETE", kPods + "?labelSelector=app%3Da").json.at("items").as_array().size(), 1U);
    EXPECT_EQ(t.ask("GET", kPods).json.at("items").as_array().size(), 1U);
}

TEST(Front, MalformedRequestsAreRefusedWithASentence) {
    TestFront t;
    EXPECT_EQ(t.ask("POST", kPods, "{").code, 400);
    EXPECT_EQ(t.ask("POST", kPods, "[]").code, 400);
    EXPECT_EQ(
        t.ask("POST", kPods, R"({"metadata":{"name":"A_b"},"spec":{"containers":[{"name":"c","image":"i"}]}})").code,
        422);
    EXPECT_EQ(t.ask("POST", kPods, R"({"metadata":{"name":"x"},"spec":{}})").code, 422);
    EXPECT_EQ(t.ask("POST", kPods, R"({"metadata":{"name":"x"},"spec":{"containers":"no"}})").code, 400);
    EXPECT_EQ(t.ask("GET", kPods + "?resourceVersion=abc").code, 400);
    EXPECT_EQ(t.ask("GET", kPods + "?limit=-1").code, 400);
    EXPECT_EQ(t.ask("GET", kPods + "?resourceVersion=99999999").code, 504);
    EXPECT_EQ(t.ask("PUT", kPods, "{}").code, 405);
    EXPECT_EQ(t.ask("GET", "/api/v1/nothing").code, 404);
    EXPECT_EQ(t.ask("POST", kPods, pod_body("x"), {{"content-type", "text/html"}}).code, 415);
    EXPECT_EQ(t.ask("GET", kPods, "", {{"accept", "text/html"}}).code, 406);
}

}  // namespace
}  // namespace berth::api
