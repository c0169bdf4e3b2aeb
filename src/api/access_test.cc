// Who may what, as whom, and from where.
#include <gtest/gtest.h>

#include "api/test_front.h"

namespace berth::api {
namespace {

TEST(Access, OnlyTheSchedulerSaysWhatWasAllocated) {
    TestFront t;
    const std::string marked =
        R"({"metadata":{"name":"p","annotations":{"scheduling.koordinator.sh/reservation-allocated":"{}"}},"spec":{"containers":[{"name":"c","image":"i"}]}})";
    EXPECT_EQ(t.ask("POST", kPods, marked).code, 403);
    t.peer = {"berth-scheduler", {"berth:schedulers"}};
    EXPECT_EQ(t.ask("POST", kPods, marked).code, 403);  // may not create pods at all
    t.peer = {"system:controller:berth", {"berth:controllers"}};
    EXPECT_EQ(t.ask("POST", kPods, marked).code, 403) << "nor may a controller for whoever wrote its template";
    EXPECT_EQ(
        t.ask("POST", kPods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})").code,
        201);
    t.peer = {"admin", {"system:masters"}};
    const auto bound = t.ask(
        "POST", kPods + "/p/binding",
        R"({"metadata":{"name":"p","annotations":{"scheduling.koordinator.sh/reservation-allocated":"{}"}},"target":{"name":"n1"}})");
    EXPECT_EQ(bound.code, 403) << bound.text({"message"});
}

TEST(Access, OnlyTheSchedulerMakesRoomsForPreemption) {
    TestFront t;
    const std::string all = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
    const auto made = [](const std::string& name, const std::string& purpose) {
        return R"({"metadata":{"name":")" + name + R"(","labels":{"berth.dev/made-for":")" + purpose +
               R"("}},"spec":{"owners":[{"object":{"uid":"u"}}],"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
    };
    EXPECT_EQ(t.ask("POST", all, made("moved", "migration")).code, 201) << "as `berth migrate` does";
    const auto forged = t.ask("POST", all, made("forged", "preemption"));
    EXPECT_EQ(forged.code, 403);
    EXPECT_NE(forged.text({"message"}).find("only the scheduler may set or change the label"), std::string::npos);
    const std::string relabel = R"({"metadata":{"labels":{"berth.dev/made-for":"preemption"}}})";
    EXPECT_EQ(t.ask("PATCH", all + "/moved", relabel, kMerge).code, 403);
    t.peer = {"berth-scheduler", {"berth:schedulers"}};
    EXPECT_EQ(t.ask("POST", all, made("room", "preemption")).code, 201);
    t.peer = {"admin", {"system:masters"}};
    EXPECT_EQ(t.ask("PATCH", all + "/room", R"({"metadata":{"labels":{"berth.dev/made-for":null}}})", kMerge).code,
              403);
    EXPECT_EQ(t.ask("PATCH", all + "/room", R"({"metadata":{"labels":{"team":"a"}}})", kMerge).code, 200);
}

TEST(Access, OthersMayOnlyWhatTheirGroupMay) {
    TestFront t;
    t.peer = {"berth-scheduler", {"berth:schedulers"}};
    EXPECT_EQ(t.ask("GET", "/api/v1/nodes").code, 200);
    EXPECT_EQ(
        t.ask("POST", "/api/v1/namespaces", R"({"metadata":{"name":"x"}})").text({"message"}),
        "namespaces is forbidden: User \"berth-scheduler\" cannot create resource \"namespaces\" in API group \"\" at "
        "the cluster scope");
    t.peer = {"somebody", {}};
    EXPECT_EQ(t.ask("GET", kPods).code, 403);
    EXPECT_EQ(t.ask("GET", "/api").code, 200);
}

// `kubectl --as`: whoever asks to be served as somebody else is, or is refused; never served as himself.
TEST(Access, ARequestIsServedAsWhomItNames) {
    TestFront t;
    const auto code = [&](const Pairs& headers) { return t.send("GET", kPods, "", headers)->answered->status; };
    EXPECT_EQ(code({}), 200);
    EXPECT_EQ(code({{"impersonate-user", "bob"}}), 403);
    EXPECT_EQ(code({{"impersonate-user", "bob"}, {"impersonate-group", "system:masters"}}), 200);
    EXPECT_EQ(code({{"impersonate-user", "system:anonymous"}}), 401);
    EXPECT_EQ(code({{"impersonate-group", "system:masters"}}), 400);
    EXPECT_EQ(code({{"impersonate-uid", "u-1"}}), 400);
    EXPECT_EQ(code({{"impersonate-extra-scopes", "view"}}), 400);
    EXPECT_EQ(code({{"impersonate-user", "bob"}, {"impersonate-user", "eve"}}), 400);
    EXPECT_EQ(code({{"impersonate-user", "bob"}, {"impersonate-what", "x"}}), 400);
    EXPECT_EQ(code({{"impersonate-user", "bob"}, {"impersonate-extra-", "x"}}), 400);
    t.peer = {"berth-scheduler", {"berth:schedulers"}};
    EXPECT_EQ(code({}), 200);
    EXPECT_EQ(code({{"impersonate-user", "bob"}, {"impersonate-group", "system:masters"}}), 403);
}

TEST(Access, WhoIsImpersonatedHasTheUidAndTheExtrasThatWereAskedFor) {
    TestFront t;
    const auto me = t.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}",
                          {{"impersonate-user", "bob"},
                           {"impersonate-uid", "u-1"},
                           {"impersonate-extra-scopes", "view"},
                           {"impersonate-extra-scopes", "edit"},
                           {"impersonate-extra-acme.com%2fproject", "p"}});
    EXPECT_EQ(me.text({"status", "userInfo", "username"}), "bob");
    EXPECT_EQ(me.text({"status", "userInfo", "uid"}), "u-1");
    EXPECT_EQ(base::to_text(me.json.at("status").at("userInfo").at("extra")),
              R"({"acme.com/project":["p"],"scopes":["view","edit"]})");
}

// A page of somebody else in the browser of an administrator, which shows his certificate without asking him.
TEST(Access, BrowsersBringNobodyElsesWishes) {
    TestFront t;
    t.front.set_hosts({"localhost", "berth-1"});
    const auto create = [&](const Pairs& headers) { return t.ask("POST", kPods, pod_body("x"), headers).code; };
    for (const auto* type : {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b",
                             "text/plain; charset=application/json"}) {
        EXPECT_EQ(create({{"content-type", type}}), 415) << type;
    }
    for (const auto* origin : {"https://evil.example", "null", "https://localhost:6444", "localhost:6443"}) {
        EXPECT_EQ(create({{"host", "localhost:6443"}, {"origin", origin}}), 403) << origin;
        Request head;
        head.path = kPods;
        head.headers = {{"host", "localhost:6443"}, {"origin", origin}};
        EXPECT_TRUE(t.front.screen(head).refusal) << origin;
    }
    for (const auto* host : {"evil.example", "evil.example:6443", "localhost.evil.example", "127.0.0.1.evil.example"}) {
        EXPECT_EQ(create({{"host", host}}), 403) << host;
    }
    EXPECT_EQ(t.ask("GET", "/livez", "", {{"host", "balancer.example"}}).code, 200) << "of health anybody may ask";
    EXPECT_EQ(create({{"host", "localhost:6443"}, {"origin", "https://localhost:6443"}}), 201);
    EXPECT_EQ(t.ask("GET", kPods, "", {{"host", "BERTH-1:6443"}}).code, 200);
    EXPECT_EQ(t.ask("GET", kPods, "", {{"host", "[::1]:6443"}}).code, 200);
    EXPECT_EQ(t.ask("GET", kPods, "", {{"host", "10.1.2.3"}}).code, 200);
}

TEST(Access, ReviewsAnswerWhoAndWhether) {
    TestFront t;
    EXPECT_EQ(t.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}")
                  .text({"status", "userInfo", "username"}),
              "admin");
    auto may = t.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                     R"({"spec":{"resourceAttributes":{"verb":"create","resource":"pods","namespace":"default"}}})");
    EXPECT_TRUE(may.json.at("status").at("allowed").as_bool());
    t.peer = {"somebody", {}};
    may = t.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                R"({"spec":{"resourceAttributes":{"verb":"create","resource":"pods","namespace":"default"}}})");
    EXPECT_FALSE(may.json.at("status").at("allowed").as_bool());
}

}  // namespace
}  // namespace berth::api
