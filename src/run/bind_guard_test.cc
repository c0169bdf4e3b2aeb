#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/guarded_store.h"
#include "sched/plugins/registry.h"

namespace berth::run {
namespace {

constexpr const char* kLink =
    R"({"scheduling.koordinator.sh/reservation-allocated":"{\"name\":\"r\",\"uid\":\"r-uid\"}"})";

class BindGuardTest : public GuardedStoreTest {
protected:
    BindGuardTest() : GuardedStoreTest(R"({"cpu":"4","memory":"8Gi","pods":"10"})") {}

    static std::string pod(const std::string& name, int cpu, const std::string& node,
                           const std::string& annotations = "{}", int port = 0) {
        return fmt::format(
            R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid","labels":{{"app":"{0}"}},"annotations":{3}}},)"
            R"("spec":{{"nodeName":"{2}","containers":[{{"name":"a","ports":[{{"containerPort":80,"hostPort":{4}}}],)"
            R"("resources":{{"requests":{{"cpu":"{1}"}}}}}}]}}}})",
            name, cpu, node, annotations, port);
    }
    Status create(const std::string& name, int cpu, const std::string& node = "", int port = 0) {
        return put(store::Op::Create, {"pods", "default", name}, name + "-uid", pod(name, cpu, node, "{}", port));
    }
    Status bind(const std::string& name, int cpu, const std::string& annotations = "{}", int port = 0) {
        return put(store::Op::Update, {"pods", "default", name}, "", pod(name, cpu, "n1", annotations, port));
    }
    static std::string with_claim(const std::string& name, const std::string& claim, const std::string& node,
                                  const std::string& annotations = "{}") {
        return fmt::format(
            R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid","labels":{{"app":"{0}"}},"annotations":{3}}},)"
            R"("spec":{{"nodeName":"{2}","volumes":[{{"name":"v","persistentVolumeClaim":{{"claimName":"{1}"}}}}],)"
            R"("containers":[{{"name":"a"}}]}}}})",
            name, claim, node, annotations);
    }
    Status create_with(const std::string& claim, const std::string& name) {
        return put(store::Op::Create, {"pods", "default", name}, name + "-uid", with_claim(name, claim, ""));
    }
    Status bind_with(const std::string& claim, const std::string& name, const std::string& annotations = "{}",
                     const std::string& node = "n1") {
        return put(store::Op::Update, {"pods", "default", name}, "", with_claim(name, claim, node, annotations));
    }
    // A claim with a volume of its own.
    void add_claim(const std::string& name, const std::string& mode) {
        ASSERT_TRUE(put(
            store::Op::Create, {"persistentvolumes", "", "pv-" + name}, "pv-" + name,
            fmt::format(
                R"({{"metadata":{{"name":"pv-{0}","uid":"pv-{0}"}},"spec":{{"csi":{{"driver":"d","volumeHandle":"{0}"}}}}}})",
                name)));
        ASSERT_TRUE(
            put(store::Op::Create, {"persistentvolumeclaims", "default", name}, name + "-uid",
                fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid",)"
                            R"("annotations":{{"pv.kubernetes.io/bind-completed":"yes"}}}},)"
                            R"("spec":{{"volumeName":"pv-{0}","accessModes":["{1}"]}},"status":{{"phase":"Bound"}}}})",
                            name, mode)));
    }
    Status limit_volumes(store::Op op, int limit) {
        return put(
            op, {"storage.k8s.io/csinodes", "", "n1"}, op == store::Op::Create ? "csi-uid" : "",
            fmt::format(
                R"({{"metadata":{{"name":"n1","uid":"csi-uid"}},"spec":{{"drivers":[{{"name":"d","allocatable":{{"count":{}}}}}]}}}})",
                limit));
    }
    Status reserve_claim(store::Op op, const std::string& phase, const std::string& claim) {
        return put(
            op, {"scheduling.koordinator.sh/reservations", "", "r"}, "r-uid",
            fmt::format(
                R"({{"metadata":{{"name":"r","uid":"r-uid"}},"spec":{{"allocateOnce":false,"owners":[{{"labelSelector":)"
                R"({{"matchLabels":{{"app":"web"}}}}}}],"template":{{"metadata":{{"namespace":"default"}},"spec":{{)"
                R"("volumes":[{{"name":"v","persistentVolumeClaim":{{"claimName":"{1}"}}}}],"containers":[{{"name":"a"}}]}}}}}},)"
                R"("status":{{"phase":"{0}","nodeName":"n1"}}}})",
                phase, claim));
    }
    Status reserve(store::Op op, const std::string& phase, int cpu = 3, const std::string& name = "r",
                   const std::string& policy = "") {
        return put(
            op, {"scheduling.koordinator.sh/reservations", "", name}, name + "-uid",
            fmt::format(
                R"({{"metadata":{{"name":"{2}","uid":"{2}-uid"}},"spec":{{"owners":[{{"labelSelector":{{"matchLabels":)"
                R"({{"app":"web"}}}}}}],"allocatePolicy":"{3}","template":{{"spec":{{"containers":[{{"name":"a","resources":{{"requests":)"
                R"({{"cpu":"{1}"}}}}}}]}}}}}},"status":{{"phase":"{0}","nodeName":"n1","allocatable":{{"cpu":"{1}"}}}}}})",
                phase, cpu, name, policy));
    }
};

TEST_F(BindGuardTest, ABindThatDoesNotFitIsRefusedWhoeverAsks) {
    ASSERT_TRUE(create("a", 3));
    ASSERT_TRUE(create("b", 2));
    ASSERT_TRUE(bind("a", 3));
    const auto refused = bind("b", 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, Reason::Conflict);
    EXPECT_EQ(refused.error().message, "node \"n1\" has no room for it: Insufficient cpu");
    ASSERT_TRUE(put(store::Op::Delete, {"pods", "default", "a"}, "", ""));
    EXPECT_TRUE(bind("b", 2));
}

TEST_F(BindGuardTest, OneThatHasEndedGoesNowhere) {
    const auto ended = [](std::string_view node) {
        return fmt::format(
            R"({{"metadata":{{"name":"a","namespace":"default","uid":"a-uid"}},"spec":{{"nodeName":"{}",)"
            R"("containers":[{{"name":"a"}}]}},"status":{{"phase":"Failed"}}}})",
            node);
    };
    const store::Key key{"pods", "default", "a"};
    ASSERT_TRUE(create("a", 1));
    ASSERT_TRUE(put(store::Op::Update, key, "", ended("")));
    const auto refused = put(store::Op::Update, key, "", ended("n1"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "pod \"default/a\" has ended, and goes nowhere");
}

TEST_F(BindGuardTest, APodThatIsCreatedWithItsNodeNeedsRoomThere) {
    ASSERT_TRUE(create("there", 3, "n1"));
    const auto refused = create("late", 2, "n1");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, Reason::Conflict);
    EXPECT_EQ(refused.error().causes,
              (std::vector<base::Cause>{
                  {"OutOfcpu", "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
                   "spec.nodeName"}}));
    ASSERT_TRUE(create("waits", 2));
    EXPECT_FALSE(bind("waits", 2)) << "the one that is there counts";
    EXPECT_TRUE(create("small", 1, "n1"));
    const auto nowhere = create("early", 1, "n9");
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().causes.at(0).reason, "NodeNotFound");
}

TEST_F(BindGuardTest, APortThatIsTakenIsTheKubeletsReasonToo) {
    ASSERT_TRUE(create("a", 1, "n1", 8080));
    const auto refused = create("b", 1, "n1", 8080);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().causes.at(0).reason, "NodePorts");
}

// Kubelets leave what no node of theirs has to others.
TEST_F(BindGuardTest, AResourceOfTheClusterIsNotTheNodes) {
    const auto with = [](const std::string& name, const std::string& resource) {
        return fmt::format(
            R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"nodeName":"n1","containers":)"
            R"([{{"name":"a","resources":{{"requests":{{"{1}":"1"}}}}}}]}}}})",
            name, resource);
    };
    EXPECT_TRUE(put(store::Op::Create, {"pods", "default", "a"}, "a-uid", with("a", "example.com/license")));
    EXPECT_FALSE(put(store::Op::Create, {"pods", "default", "b"}, "b-uid", with("b", "hugepages-2Mi")));
}

TEST_F(BindGuardTest, APodGrowsOnlyIntoRoomThatIsThere) {
    ASSERT_TRUE(create("a", 1, "n1"));
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", 2));
    ASSERT_TRUE(reserve(store::Op::Update, "Available", 2));
    const auto refused = bind("a", 3);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "node \"n1\" has no room for it: Insufficient cpu");
    EXPECT_TRUE(bind("a", 2));
    EXPECT_FALSE(bind("a", 3));
    EXPECT_TRUE(bind("a", 1));
    const auto moved = put(store::Op::Update, {"pods", "default", "a"}, "", pod("a", 1, "n2"));
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().message, "pod a is already assigned to node \"n1\"");
}

TEST_F(BindGuardTest, ANodeThatIsAwayLetsNobodyGrow) {
    ASSERT_TRUE(create("a", 1, "n1"));
    ASSERT_TRUE(put(store::Op::Delete, {"nodes", "", "n1"}, "", ""));
    EXPECT_FALSE(bind("a", 3));
    EXPECT_TRUE(bind("a", 1, R"({"some":"note"})"));
}

TEST_F(BindGuardTest, AnOwnerLeavesItsReservationOnlyForRoomThatIsThere) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", 3));
    ASSERT_TRUE(reserve(store::Op::Update, "Available", 3));
    ASSERT_TRUE(create("web", 3));
    ASSERT_TRUE(bind("web", 3, kLink));
    std::string other = pod("web", 3, "n1", kLink);
    other.replace(other.find(R"("app":"web")"), 11, R"("app":"db")");
    EXPECT_FALSE(put(store::Op::Update, {"pods", "default", "web"}, "", other)) << "another label";
    EXPECT_FALSE(bind("web", 3)) << "without its link";
    EXPECT_FALSE(bind("web", 3, R"({"scheduling.koordinator.sh/reservation-allocated":"{\"uid\":\"s-uid\"}"})"))
        << "another";
    EXPECT_FALSE(bind("web", 5, kLink)) << "more than reservation and node have";
    EXPECT_TRUE(bind("web", 4, kLink));
    EXPECT_TRUE(bind("web", 1, kLink));
    EXPECT_TRUE(bind("web", 1)) << "the node has one left";
}

TEST_F(BindGuardTest, WhatHoldsRoomCanBeRead) {
    ASSERT_TRUE(create("a", 1));
    std::string torn = pod("a", 4, "n1");
    torn.replace(torn.find(R"("cpu":"4")"), 9, R"("cpu":"-4")");
    const auto refused = put(store::Op::Update, {"pods", "default", "a"}, "", torn);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, Reason::Invalid);
    EXPECT_FALSE(put(store::Op::Update, {"nodes", "", "n1"}, "",
                     R"({"metadata":{"name":"n1","uid":"n1"},"status":{"allocatable":{"cpu":"-1"}}})"));
}

// Pending, then Available or Waiting, then final; a place and an amount are for good.
TEST_F(BindGuardTest, AReservationGoesOneWay) {
    const auto status = [&](const std::string& phase, const std::string& node, const std::string& cpu) {
        return put(
            store::Op::Update, {"scheduling.koordinator.sh/reservations", "", "r"}, "r-uid",
            fmt::format(
                R"({{"metadata":{{"name":"r","uid":"r-uid"}},"spec":{{"owners":[{{"labelSelector":{{"matchLabels":)"
                R"({{"app":"web"}}}}}}],"template":{{"spec":{{"containers":[{{"name":"a","resources":{{"requests":)"
                R"({{"cpu":"2"}}}}}}]}}}}}},"status":{{"phase":"{}","nodeName":"{}","allocatable":{{"cpu":"{}"}}}}}})",
                phase, node, cpu));
    };
    ASSERT_TRUE(put(store::Op::Create, {"nodes", "", "n2"}, "n2-uid",
                    R"({"metadata":{"name":"n2","uid":"n2-uid"},"status":{"allocatable":{"cpu":"4","pods":"10"}}})"));
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", 2));
    EXPECT_FALSE(status("Available", "n9", "2")) << "no such node";
    EXPECT_FALSE(status("Available", "n1", "5")) << "it holds what its status says";
    EXPECT_FALSE(status("Available", "n1", "-2"));
    ASSERT_TRUE(status("Available", "n1", "2"));
    EXPECT_FALSE(status("Available", "n2", "2")) << "it stays";
    EXPECT_FALSE(status("Available", "n1", "3"));
    EXPECT_FALSE(status("Available", "n1", "-2"));
    EXPECT_FALSE(status("Waiting", "n1", "2"));
    EXPECT_FALSE(status("Pending", "n1", "2"));
    ASSERT_TRUE(status("Failed", "n1", "2"));
    EXPECT_FALSE(status("Available", "n1", "2"));
    EXPECT_FALSE(status("Pending", "", "2"));
    EXPECT_FALSE(status("Succeeded", "n1", "2"));
}

TEST_F(BindGuardTest, AReservationWaitsUntilThereIsRoom) {
    ASSERT_TRUE(create("a", 3, "n1"));
    ASSERT_TRUE(reserve(store::Op::Create, "Pending"));
    ASSERT_TRUE(reserve(store::Op::Update, "Waiting"));
    EXPECT_FALSE(reserve(store::Op::Update, "Available"));
    ASSERT_TRUE(put(store::Op::Delete, {"pods", "default", "a"}, "", ""));
    EXPECT_TRUE(reserve(store::Op::Update, "Available"));
}

TEST_F(BindGuardTest, AReservationPartsWithItsOwnersOnlyIfThereIsRoomForBoth) {
    const auto owned_by = [&](const std::string& app) {
        return put(
            store::Op::Update, {"scheduling.koordinator.sh/reservations", "", "r"}, "r-uid",
            fmt::format(
                R"({{"metadata":{{"name":"r","uid":"r-uid"}},"spec":{{"allocateOnce":false,"owners":[{{"labelSelector":)"
                R"({{"matchLabels":{{"app":"{}"}}}}}}],"template":{{"spec":{{"containers":[{{"name":"a","resources":)"
                R"({{"requests":{{"cpu":"3"}}}}}}]}}}}}},"status":{{"phase":"Available","nodeName":"n1","allocatable":{{"cpu":"3"}}}}}})",
                app));
    };
    ASSERT_TRUE(reserve(store::Op::Create, "Pending"));
    ASSERT_TRUE(owned_by("web"));
    ASSERT_TRUE(create("web", 2));
    ASSERT_TRUE(bind("web", 2, kLink));
    EXPECT_FALSE(owned_by("db")) << "2 and 3 are more than 4";
    ASSERT_TRUE(bind("web", 1, kLink));
    EXPECT_TRUE(owned_by("db"));
}

TEST_F(BindGuardTest, WhatAProfileIgnoresIsNotLookedAtForItsPods) {
    sched::Profile ignoring;
    ignoring.filters = {sched::plugins::fit_filter({{*model::intern_resource("example.com/gpu")}, {}})};
    store_->set_guard(nullptr);
    BindGuard guard(*store_, BindRules({{"extended", ignoring}}));
    store_->set_guard(&guard);
    const auto with_gpu = [](const std::string& name, const std::string& scheduler, int cpu, const std::string& node) {
        return fmt::format(
            R"({{"metadata":{{"name":"{0}","namespace":"default","uid":"{0}-uid"}},"spec":{{"nodeName":"{3}",)"
            R"("schedulerName":"{1}","containers":[{{"name":"a","resources":{{"requests":{{"cpu":"{2}","example.com/gpu":"1"}}}}}}]}}}})",
            name, scheduler, cpu, node);
    };
    const auto place = [&](const std::string& name, const std::string& scheduler, int cpu) {
        EXPECT_TRUE(
            put(store::Op::Create, {"pods", "default", name}, name + "-uid", with_gpu(name, scheduler, cpu, "")));
        return put(store::Op::Update, {"pods", "default", name}, "", with_gpu(name, scheduler, cpu, "n1"));
    };
    EXPECT_TRUE(place("a", "extended", 1));
    EXPECT_FALSE(place("b", "default-scheduler", 1));
    EXPECT_FALSE(place("c", "extended", 4)) << "cpu counts all the same";
    store_->set_guard(&guard_);
}

TEST_F(BindGuardTest, APortHasOneHolder) {
    ASSERT_TRUE(create("a", 1, "", 8080));
    ASSERT_TRUE(create("b", 1, "", 8080));
    ASSERT_TRUE(bind("a", 1, "{}", 8080));
    EXPECT_FALSE(bind("b", 1, "{}", 8080));
}

TEST_F(BindGuardTest, ReservedRoomIsForItsOwnersAlone) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending"));
    ASSERT_TRUE(reserve(store::Op::Update, "Available"));
    ASSERT_TRUE(create("other", 2));
    EXPECT_FALSE(bind("other", 2));
    ASSERT_TRUE(create("web", 3));
    EXPECT_FALSE(bind("other", 2, kLink)) << "a link to somebody else's reservation";
    EXPECT_TRUE(bind("web", 3, kLink));
}

TEST_F(BindGuardTest, OnlyTheReservationsThatThePodNamesPayForIt) {
    for (const auto* name : {"r", "s"}) {
        ASSERT_TRUE(reserve(store::Op::Create, "Pending", 1, name));
        ASSERT_TRUE(reserve(store::Op::Update, "Available", 1, name));
    }
    ASSERT_TRUE(create("other", 2));
    ASSERT_TRUE(bind("other", 2));
    ASSERT_TRUE(create("web", 2));
    const auto refused = bind("web", 2, kLink);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "reservation \"r\" and node \"n1\" have too little left for it: cpu");
    const auto twice = bind("web", 2,
                            R"({"scheduling.koordinator.sh/reservation-allocated":"{\"uid\":\"r-uid\"}",)"
                            R"("berth.dev/reservation-draws":"[{\"uid\":\"r-uid\"}]"})");
    ASSERT_FALSE(twice);
    EXPECT_NE(twice.error().message.find("twice"), std::string::npos) << twice.error().message;
    const auto foreign = bind("web", 2,
                              R"({"scheduling.koordinator.sh/reservation-allocated":"{\"uid\":\"r-uid\"}",)"
                              R"("berth.dev/reservation-draws":"[{\"name\":\"z\",\"uid\":\"z-uid\"}]"})");
    ASSERT_FALSE(foreign);
    EXPECT_NE(foreign.error().message.find("\"z\""), std::string::npos) << foreign.error().message;
    const auto headless = bind("web", 2, R"({"berth.dev/reservation-draws":"[{\"uid\":\"s-uid\"}]"})");
    ASSERT_FALSE(headless);
    EXPECT_NE(headless.error().message.find("without"), std::string::npos) << headless.error().message;
}

TEST_F(BindGuardTest, AFurtherReservationGivesWhatItHasAndIsADefaultOne) {
    for (const auto* name : {"r", "s"}) {
        ASSERT_TRUE(reserve(store::Op::Create, "Pending", 1, name));
        ASSERT_TRUE(reserve(store::Op::Update, "Available", 1, name));
    }
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", 2, "t", "Restricted"));
    ASSERT_TRUE(reserve(store::Op::Update, "Available", 2, "t", "Restricted"));
    ASSERT_TRUE(create("web", 2));
    const auto draw = [&](const std::string& from, int cpu) {
        return bind("web", 2,
                    fmt::format(R"({{"scheduling.koordinator.sh/reservation-allocated":"{{\"uid\":\"r-uid\"}}",)"
                                R"("berth.dev/reservation-draws":"[{{\"name\":\"{0}\",\"uid\":\"{0}-uid\",)"
                                R"(\"resources\":{{\"cpu\":\"{1}\"}}}}]"}})",
                                from, cpu));
    };
    const auto greedy = draw("s", 2);
    ASSERT_FALSE(greedy);
    EXPECT_EQ(greedy.error().message, "reservation \"s\" has too little cpu left for it");
    const auto restricted = draw("t", 1);
    ASSERT_FALSE(restricted);
    EXPECT_EQ(restricted.error().message, "reservation \"t\" is not drawn from beside others");
    EXPECT_TRUE(draw("s", 1));
}

TEST_F(BindGuardTest, ARestrictedReservationGivesNoMoreThanItHas) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", 2, "r", "Restricted"));
    ASSERT_TRUE(reserve(store::Op::Update, "Available", 2, "r", "Restricted"));
    ASSERT_TRUE(create("web", 3));
    const auto refused = bind("web", 3, kLink);
    ASSERT_FALSE(refused) << "the node has the rest, but it is not to be asked";
    EXPECT_EQ(refused.error().message, "reservation \"r\" is Restricted and has too little cpu left for it");
    ASSERT_TRUE(put(store::Op::Delete, {"pods", "default", "web"}, "", ""));
    ASSERT_TRUE(create("web", 2));
    EXPECT_TRUE(bind("web", 2, kLink));
}

TEST_F(BindGuardTest, AReservationTakesOnlyRoomThatIsThere) {
    ASSERT_TRUE(create("a", 3));
    ASSERT_TRUE(bind("a", 3));
    ASSERT_TRUE(reserve(store::Op::Create, "Pending"));
    EXPECT_FALSE(reserve(store::Op::Update, "Available"));
    EXPECT_TRUE(reserve(store::Op::Update, "Waiting"));
}

TEST_F(BindGuardTest, AReservedPortIsForItsOwnersWhateverTheyDrawFrom) {
    const auto reserve_port = [&](store::Op op, const std::string& phase) {
        return put(
            op, {"scheduling.koordinator.sh/reservations", "", "r"}, "r-uid",
            fmt::format(
                R"({{"metadata":{{"name":"r","uid":"r-uid"}},"spec":{{"owners":[{{"labelSelector":{{"matchLabels":)"
                R"({{"app":"web"}}}}}}],"template":{{"spec":{{"containers":[{{"name":"a","ports":[{{"containerPort":80,)"
                R"("hostPort":8080}}]}}]}}}}}},"status":{{"phase":"{}","nodeName":"n1"}}}})",
                phase));
    };
    ASSERT_TRUE(reserve_port(store::Op::Create, "Pending"));
    ASSERT_TRUE(reserve_port(store::Op::Update, "Available"));
    for (const auto* name : {"other", "web"}) ASSERT_TRUE(create(name, 1, "", 8080));
    EXPECT_FALSE(bind("other", 1, "{}", 8080));
    EXPECT_TRUE(bind("web", 1, "{}", 8080));
}

TEST_F(BindGuardTest, AClaimForOnePodHasOneHolder) {
    add_claim("one", "ReadWriteOncePod");
    add_claim("shared", "ReadWriteOnce");
    for (const auto* name : {"a", "b"}) ASSERT_TRUE(create_with("one", name));
    ASSERT_TRUE(bind_with("one", "a"));
    const auto refused = bind_with("one", "b");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, Reason::Conflict);
    EXPECT_NE(refused.error().message.find("ReadWriteOncePod"), std::string::npos) << refused.error().message;
    ASSERT_TRUE(put(store::Op::Delete, {"pods", "default", "a"}, "", ""));
    EXPECT_TRUE(bind_with("one", "b"));
    for (const auto* name : {"c", "d"}) {
        ASSERT_TRUE(create_with("shared", name));
        EXPECT_TRUE(bind_with("shared", name));
    }
}

TEST_F(BindGuardTest, AReservedClaimIsForItsOwnersWhereverTheyGo) {
    ASSERT_TRUE(put(store::Op::Create, {"nodes", "", "n2"}, "n2-uid",
                    R"({"metadata":{"name":"n2","uid":"n2-uid"},"status":{"allocatable":{"pods":"10"}}})"));
    add_claim("one", "ReadWriteOncePod");
    ASSERT_TRUE(reserve_claim(store::Op::Create, "Pending", "one"));
    ASSERT_TRUE(reserve_claim(store::Op::Update, "Available", "one"));
    for (const auto* name : {"other", "web"}) ASSERT_TRUE(create_with("one", name));
    EXPECT_FALSE(bind_with("one", "other"));
    EXPECT_FALSE(bind_with("one", "other", kLink)) << "a link to somebody else's reservation";
    EXPECT_TRUE(bind_with("one", "web", "{}", "n2"));
}

TEST_F(BindGuardTest, AReservationGetsNoClaimThatAPodHas) {
    add_claim("one", "ReadWriteOncePod");
    ASSERT_TRUE(create_with("one", "web"));
    ASSERT_TRUE(bind_with("one", "web"));
    ASSERT_TRUE(reserve_claim(store::Op::Create, "Pending", "one"));
    EXPECT_FALSE(reserve_claim(store::Op::Update, "Available", "one"));
    EXPECT_FALSE(reserve_claim(store::Op::Update, "Waiting", "one"));
}

TEST_F(BindGuardTest, ANodeAttachesNoMoreVolumesThanItCan) {
    ASSERT_TRUE(limit_volumes(store::Op::Create, 1));
    for (const auto* name : {"a", "b"}) {
        add_claim(name, "ReadWriteOnce");
        ASSERT_TRUE(create_with(name, name));
    }
    ASSERT_TRUE(bind_with("a", "a"));
    const auto refused = bind_with("b", "b");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "node \"n1\" has no room for it: node(s) exceed max volume count");
    ASSERT_TRUE(create_with("a", "c"));
    EXPECT_TRUE(bind_with("a", "c")) << "attached already";
    ASSERT_TRUE(limit_volumes(store::Op::Update, 2));
    EXPECT_TRUE(bind_with("b", "b"));
}

TEST_F(BindGuardTest, AReservationGetsNoPlaceForAVolumeThatIsTaken) {
    ASSERT_TRUE(limit_volumes(store::Op::Create, 1));
    for (const auto* name : {"a", "b"}) add_claim(name, "ReadWriteOnce");
    ASSERT_TRUE(create_with("a", "other"));
    ASSERT_TRUE(bind_with("a", "other"));
    ASSERT_TRUE(reserve_claim(store::Op::Create, "Pending", "b"));
    EXPECT_FALSE(reserve_claim(store::Op::Update, "Available", "b"));
    EXPECT_FALSE(reserve_claim(store::Op::Update, "Waiting", "b"));
    ASSERT_TRUE(limit_volumes(store::Op::Update, 2));
    EXPECT_TRUE(reserve_claim(store::Op::Update, "Available", "b"));
}

TEST_F(BindGuardTest, AReservedPlaceForAVolumeIsForThoseThatDrawFromIt) {
    ASSERT_TRUE(limit_volumes(store::Op::Create, 1));
    for (const auto* name : {"reserved", "b"}) add_claim(name, "ReadWriteOnce");
    ASSERT_TRUE(reserve_claim(store::Op::Create, "Pending", "reserved"));
    ASSERT_TRUE(reserve_claim(store::Op::Update, "Available", "reserved"));
    ASSERT_TRUE(create_with("b", "web"));
    EXPECT_FALSE(bind_with("b", "web")) << "it says that it draws from nothing";
    EXPECT_TRUE(bind_with("b", "web", kLink));
}

TEST_F(BindGuardTest, AfterARestartItKnowsClaimsAndLimits) {
    ASSERT_TRUE(limit_volumes(store::Op::Create, 1));
    add_claim("one", "ReadWriteOncePod");
    ASSERT_TRUE(create_with("one", "a"));
    ASSERT_TRUE(bind_with("one", "a"));
    const BindGuard again(*store_);
    const auto& volumes = again.ledger().volumes();
    ASSERT_NE(volumes.claims().find("default/one"), nullptr);
    ASSERT_NE(volumes.csi_nodes().find("n1"), nullptr);
    EXPECT_TRUE(volumes.claims().find("default/one")->modes.has(model::AccessMode::ReadWriteOncePod));
    EXPECT_EQ(volumes.users("default/one").size(), 1u);
    EXPECT_EQ(volumes.csi_nodes().find("n1")->drivers[0].limit, 1);
    ASSERT_TRUE(put(store::Op::Delete, {"storage.k8s.io/csinodes", "", "n1"}, "", ""));
    EXPECT_EQ(guard_.ledger().volumes().csi_nodes().find("n1"), nullptr);
}

TEST_F(BindGuardTest, AfterARestartItKnowsWhatIsStored) {
    ASSERT_TRUE(create("a", 3));
    ASSERT_TRUE(bind("a", 3));
    const BindGuard again(*store_);
    const auto row = again.ledger().row_of("n1");
    EXPECT_EQ(again.ledger().free(row, model::kCpu), 1000);
}

}  // namespace
}  // namespace berth::run
