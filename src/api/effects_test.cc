#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/handlers.h"
#include "api/test_front.h"

// What is stored and not acted on is told to whoever wrote it.
namespace berth::api {
namespace {

const std::string kQuotas = "/api/v1/namespaces/default/resourcequotas";
const std::string kScalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const std::string kQuota = R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"1"}}})";
const std::string kScaler =
    R"({"metadata":{"name":"h"},"spec":{"maxReplicas":2,"scaleTargetRef":{"kind":"Deployment","name":"a"}}})";
const std::string kBusyPod =
    R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"b","command":["c"]}]}})";
const std::string kToldOfQuota =
    R"(299 - "resourcequotas: stored, not enforced by this server: nothing is counted and nothing is refused")";

std::vector<std::string> warnings(const Answer& answer) {
    std::vector<std::string> out;
    for (const auto& [name, value] : answer.raw.headers) {
        if (name == "Warning") out.push_back(value);
    }
    return out;
}

using Texts = std::vector<std::string>;

TEST(ToldEffects, WithEveryWriteOfAKindAndOnceForAMember) {
    TestFront t;
    t.context.here.simulated = true;
    EXPECT_EQ(warnings(t.ask("POST", kQuotas, kQuota)), Texts{kToldOfQuota});
    EXPECT_EQ(warnings(t.ask("PATCH", kQuotas + "/q", R"({"metadata":{"labels":{"a":"b"}}})", kMerge)),
              Texts{kToldOfQuota});
    EXPECT_EQ(warnings(t.ask("PATCH", kQuotas + "/q/status", R"({"status":{"used":{"pods":"0"}}})", kMerge)), Texts{});
    EXPECT_EQ(warnings(t.ask("GET", kQuotas + "/q")), Texts{});
    EXPECT_EQ(warnings(t.ask("DELETE", kQuotas + "/q")), Texts{});
    EXPECT_EQ(warnings(t.ask("POST", kScalers, kScaler)).size(), 1U);
    const Texts told{R"-(299 - "without effect here: command (nodes are simulated, nothing runs)")-"};
    EXPECT_EQ(warnings(t.ask("POST", kPods + "?dryRun=All", kBusyPod)), told);
    EXPECT_EQ(warnings(t.ask("POST", kPods, kBusyPod)), told);
    EXPECT_EQ(warnings(t.ask("PATCH", kPods + "/p", R"({"metadata":{"labels":{"a":"b"}}})", kMerge)), Texts{});
}

TEST(ToldEffects, WhoIsThereToActIsNotKnownAtAServerAlone) {
    TestFront t;
    EXPECT_EQ(warnings(t.ask("POST", kQuotas, kQuota)), Texts{kToldOfQuota});
    EXPECT_EQ(warnings(t.ask("POST", kScalers, kScaler)), Texts{});
    EXPECT_EQ(warnings(t.ask("POST", kPods, kBusyPod)), Texts{});
}

TEST(ToldEffects, AControllerThatWasLeftOutIsMissed) {
    TestFront t;
    t.context.here.simulated = true;
    t.context.here.absent = {"job"};
    const auto answer = t.ask("POST", "/apis/batch/v1/namespaces/default/jobs",
                              R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never",)"
                              R"("containers":[{"name":"a","image":"b"}]}}}})");
    EXPECT_EQ(warnings(answer), Texts{R"(299 - "jobs.batch: the controller job was left out")"});
}

TEST(ToldEffects, OurOwnPartsAreToldNothing) {
    TestFront t;
    t.context.here.simulated = true;
    std::optional<Served> served;
    t.front.call(make_call(t.context, {"system:apiserver", {std::string(kMasters)}}, Verb::Create,
                           {"", "v1", "resourcequotas"}, "default", "", {kQuota, ""}),
                 [&](Result<Served> result) {
                     ASSERT_TRUE(result);
                     served = std::move(*result);
                 });
    ASSERT_TRUE(served);
    EXPECT_TRUE(served->warnings.empty());
}

TEST(ToldEffects, PolicyIsRefusedIfSoAsked) {
    TestFront t;
    EXPECT_EQ(t.ask("POST", kQuotas, kQuota).code, 201);
    t.context.here.strict_policies = true;
    const auto refused = t.ask("PATCH", kQuotas + "/q", R"({"spec":{"hard":{"pods":"2"}}})", kMerge);
    EXPECT_EQ(refused.code, 403);
    EXPECT_EQ(refused.text({"message"}),
              "resourcequotas \"q\" is forbidden: --strict-policies refuses what would only be stored: resourcequotas: "
              "stored, not enforced by this server: nothing is counted and nothing is refused");
    EXPECT_EQ(t.ask("DELETE", kQuotas + "/q").code, 200);
    EXPECT_EQ(t.ask("POST", kScalers, kScaler).code, 201);
    const std::string secure = R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})";
    EXPECT_EQ(t.ask("PATCH", "/api/v1/namespaces/default", secure, kMerge).code, 403);
    t.context.here.strict_policies = false;
    EXPECT_EQ(t.ask("PATCH", "/api/v1/namespaces/default", secure, kMerge).code, 200);
    t.context.here.strict_policies = true;
    const std::string other = R"({"metadata":{"labels":{"a":"b"}}})";
    EXPECT_EQ(t.ask("PATCH", "/api/v1/namespaces/default", other, kMerge).code, 200) << "it was there before";
}

// However much is sent, what is told of it is a few sentences.
TEST(ToldEffects, AreBounded) {
    TestFront t;
    t.context.here.simulated = true;
    std::string containers;
    for (int i = 0; i < 2000; ++i) {
        containers += fmt::format(
            R"({}{{"name":"c{}","image":"b","command":["c"],"args":["d"],"env":[{{"name":"A"}}],"tty":true,"stdin":true}})",
            i == 0 ? "" : ",", i);
    }
    const auto told = warnings(
        t.ask("POST", kPods,
              R"({"metadata":{"name":"p"},"spec":{"hostPID":true,"hostname":"h","containers":[)" + containers + "]}}"));
    ASSERT_EQ(told.size(), 1U);
    EXPECT_LT(told[0].size(), 256U);
}

TEST(IntoAPod, NobodyGets) {
    TestFront t;
    EXPECT_EQ(t.ask("POST", kPods, kBusyPod).code, 201);
    for (const bool simulated : {false, true}) {
        t.context.here.simulated = simulated;
        const std::string why =
            simulated ? "nodes are simulated: nothing runs here" : "this server does not connect to nodes";
        for (const auto* part : {"exec?command=ls", "attach", "portforward", "proxy"}) {
            for (const auto* method : {"GET", "POST"}) {
                const auto answer = t.ask(method, kPods + "/p/" + part);
                EXPECT_EQ(answer.code, 405) << method << part;
                EXPECT_EQ(answer.text({"message"}), why);
                EXPECT_EQ(answer.text({"kind"}), "Status");
            }
        }
        const auto debug = t.ask("PATCH", kPods + "/p/ephemeralcontainers",
                                 R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i"}]}})",
                                 {{"content-type", "application/strategic-merge-patch+json"}});
        EXPECT_EQ(debug.code, simulated ? 405 : 200);
        EXPECT_EQ(t.ask("GET", kPods + "/p/ephemeralcontainers").code, 200);
    }
}

}  // namespace
}  // namespace berth::api
