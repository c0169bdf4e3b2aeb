// The judge of the embedded server looks at cores: whoever binds, no core has two holders.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "run/guarded_store.h"

namespace berth::run {
namespace {

class BindGuardCoresTest : public GuardedStoreTest {
protected:
    BindGuardCoresTest() : GuardedStoreTest(R"({"cpu":"16","memory":"8Gi","pods":"10"})") {
        JsonArray detail;
        for (int id = 0; id < 8; ++id) {
            detail.push_back(JsonObject{{"id", id}, {"core", id % 4}, {"node", id % 4 / 2}, {"socket", 0}});
        }
        const JsonObject notes{
            {"node.koordinator.sh/cpu-topology", base::to_text(JsonObject{{"detail", std::move(detail)}})},
            {"node.koordinator.sh/reservation", R"({"reservedCPUs":"7"})"}};
        EXPECT_TRUE(put(
            store::Op::Create, {"topology.node.k8s.io/noderesourcetopologies", "", "n1"},
            base::to_text(JsonObject{{"metadata", JsonObject{{"name", "n1"}, {"uid", "t1"}, {"annotations", notes}}},
                                     {"topologyPolicies", JsonArray{"None"}}})));
    }

    static Json pod(const std::string& name, int cpu, const std::string& node, const JsonObject& notes,
                    const std::string& app = "web") {
        const JsonObject requests{{"cpu", std::to_string(cpu)}};
        const JsonObject container{{"name", "a"}, {"resources", JsonObject{{"requests", requests}}}};
        return JsonObject{{"metadata", JsonObject{{"name", name},
                                                  {"namespace", "default"},
                                                  {"uid", name},
                                                  {"labels", JsonObject{{"app", app}}},
                                                  {"annotations", notes}}},
                          {"spec", JsonObject{{"nodeName", node}, {"containers", JsonArray{container}}}}};
    }
    static std::string record(const std::string& cpus) { return R"({"cpuset":")" + cpus + "\"}"; }
    static constexpr const char* kRecord = "scheduling.koordinator.sh/resource-status";
    static constexpr const char* kLink = "scheduling.koordinator.sh/reservation-allocated";

    Status bind(const std::string& name, int cpu, const JsonObject& notes) {
        const store::Key key{"pods", "default", name};
        if (store_->head(key) == nullptr) {
            EXPECT_TRUE(put(store::Op::Create, key, base::to_text(pod(name, cpu, "", {}))));
        }
        return put(store::Op::Update, key, base::to_text(pod(name, cpu, "n1", notes)));
    }
    std::string refused(const std::string& name, int cpu, const std::string& cpus) {
        const auto answer = bind(name, cpu, {{kRecord, record(cpus)}});
        return answer ? "" : answer.error().message;
    }
    Status reserve(store::Op op, const std::string& phase, const std::string& cpus, const char* name = "r") {
        Json object =
            base::parse_json(
                fmt::format(
                    R"({{"metadata":{{"name":"{0}","uid":"{0}"}},"spec":{{"allocateOnce":false,"ttl":"0",)"
                    R"("owners":[{{"labelSelector":{{"matchLabels":{{"app":"web"}}}}}}],"template":{{"spec":{{"containers":[)"
                    R"({{"name":"a","resources":{{"requests":{{"cpu":"2"}}}}}}]}}}}}},"status":{{"phase":"{1}"}}}})",
                    name, phase))
                .value();
        if (phase != "Pending") {
            auto& status = object.as_object()["status"].as_object();
            status["nodeName"] = "n1";
            status["allocatable"] = JsonObject{{"cpu", "2"}};
            status["resourceStatus"] = JsonObject{{"cpuset", cpus}};
        }
        return put(op, {"scheduling.koordinator.sh/reservations", "", name}, base::to_text(object));
    }
};

TEST_F(BindGuardCoresTest, NoCoreIsGivenTwice) {
    EXPECT_EQ(refused("a", 2, "0,4"), "");
    EXPECT_EQ(refused("b", 2, "4-5"), "node \"n1\" cannot give the cores \"4-5\": CPU 4 is another's");
    EXPECT_EQ(refused("b", 2, "6-7"), "node \"n1\" cannot give the cores \"6-7\": CPU 7 is reserved");
    EXPECT_EQ(refused("b", 2, "6,8"), "node \"n1\" cannot give the cores \"6,8\": CPU 8 is not there");
    EXPECT_EQ(refused("b", 2, "1-3"), "node \"n1\" cannot give the cores \"1-3\": 3 CPUs are named for 2000m cpu");
    EXPECT_NE(refused("b", 2, "1-").find("resource-status"), std::string::npos);
    EXPECT_EQ(refused("b", 2, "1,5"), "");
    EXPECT_EQ(model::cpu_list_text(guard_.ledger().cores().at(0)->free.ids()), "2-3,6");
}

TEST_F(BindGuardCoresTest, WhatABoundPodHasDoesNotChange) {
    ASSERT_EQ(refused("a", 2, "0,4"), "");
    const auto other = bind("a", 2, {{kRecord, record("1,5")}});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().message, "pod \"default/a\" is bound, and which cores and devices it has does not change");
    EXPECT_TRUE(bind("a", 2, {{kRecord, record("0,4")}, {"note", "x"}}));
}

TEST_F(BindGuardCoresTest, AReservationsCoresAreForItsOwners) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", ""));
    EXPECT_FALSE(reserve(store::Op::Update, "Available", "6-7")) << "7 is reserved";
    ASSERT_TRUE(reserve(store::Op::Update, "Available", "0,4"));
    EXPECT_FALSE(reserve(store::Op::Update, "Available", "1,5")) << "it cannot hold others";
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", "", "s"));
    EXPECT_FALSE(reserve(store::Op::Update, "Available", "4-5", "s")) << "4 is reserved already";
    EXPECT_EQ(refused("stranger", 1, "4"), "node \"n1\" cannot give the cores \"4\": CPU 4 is another's");
    EXPECT_TRUE(bind("web", 2, {{kRecord, record("0,4")}, {kLink, R"({"name":"r","uid":"r"})"}}));
    EXPECT_EQ(refused("late", 1, "4"), "node \"n1\" cannot give the cores \"4\": CPU 4 is another's");
}

TEST_F(BindGuardCoresTest, APodWithCoresAsksForAsMuch) {
    ASSERT_EQ(refused("a", 2, "0,4"), "");
    EXPECT_EQ(refused("a", 3, "0,4"), "node \"n1\" cannot give the cores \"0,4\": 2 CPUs are named for 3000m cpu");
    EXPECT_TRUE(put(store::Op::Update, {"pods", "default", "a"},
                    base::to_text(pod("a", 2, "n1", {{kRecord, record("0,4")}}, "other"))))
        << "nobody pays for it";
}

// Its cores would be those of the reservation, too.
TEST_F(BindGuardCoresTest, AnOwnerWithItsReservationsCoresStaysOne) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", ""));
    ASSERT_TRUE(reserve(store::Op::Update, "Available", "0,4"));
    const JsonObject notes{{kRecord, record("0,4")}, {kLink, R"({"name":"r","uid":"r"})"}};
    ASSERT_TRUE(bind("web", 2, notes));
    EXPECT_FALSE(
        put(store::Op::Update, {"pods", "default", "web"}, base::to_text(pod("web", 2, "n1", notes, "other"))));
    auto object = base::parse_json(*store_->head({"scheduling.koordinator.sh/reservations", "", "r"})->bytes).value();
    object.at("spec").at("owners") = base::parse_json(R"([{"labelSelector":{"matchLabels":{"app":"other"}}}])").value();
    const auto disowned =
        put(store::Op::Update, {"scheduling.koordinator.sh/reservations", "", "r"}, base::to_text(object));
    ASSERT_FALSE(disowned);
    EXPECT_NE(disowned.error().message.find("pods that have cores of it would no longer be its owners"),
              std::string::npos);
    EXPECT_EQ(guard_.ledger().core_fault(0), "");
}

// 16 cpu on 8 CPUs: a core of one's own is 2 of these. 4 cores and 8 cpu leave 4, which are not there.
TEST_F(BindGuardCoresTest, CoresCountTwiceWhereCpuIsAmplified) {
    ASSERT_TRUE(put(store::Op::Update, {"nodes", "", "n1"},
                    R"({"metadata":{"name":"n1","uid":"n1","annotations":
                        {"node.koordinator.sh/resource-amplification-ratio":"{\"cpu\":2}"}},
                        "status":{"allocatable":{"cpu":"16","memory":"8Gi","pods":"10"}}})"));
    ASSERT_EQ(refused("a", 4, "0-3"), "");
    ASSERT_TRUE(bind("plain", 8, {}));
    const auto beyond = bind("beyond", 1, {});
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().message, "node \"n1\" has no room for it: Insufficient amplified cpu");
    EXPECT_FALSE(bind("plain", 9, {})) << "nor by growing";
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", ""));
    EXPECT_FALSE(reserve(store::Op::Update, "Available", "4-5"));
    EXPECT_TRUE(bind("nothing", 0, {}));
}

TEST_F(BindGuardCoresTest, NobodyIsGivenCoresWhereARecordCannotBeRead) {
    ASSERT_TRUE(put(store::Op::Create, {"pods", "default", "odd"}, base::to_text(pod("odd", 1, "", {}))));
    store_->set_guard(nullptr);
    ASSERT_TRUE(
        put(store::Op::Update, {"pods", "default", "odd"}, base::to_text(pod("odd", 1, "n1", {{kRecord, "no JSON"}}))));
    BindGuard fresh(*store_);
    store_->set_guard(&fresh);
    EXPECT_NE(refused("a", 1, "0").find("pod default/odd"), std::string::npos);
    EXPECT_TRUE(bind("plain", 1, {})) << "who wants no cores is not harmed";
    store_->set_guard(&guard_);
}

}  // namespace
}  // namespace berth::run
