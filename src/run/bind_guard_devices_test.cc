// The judge of the embedded server looks at devices: whoever binds, no part of one has two holders.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "run/guarded_store.h"

namespace berth::run {
namespace {

class BindGuardDevicesTest : public GuardedStoreTest {
protected:
    BindGuardDevicesTest() : GuardedStoreTest(R"({"cpu":"16","memory":"8Gi","pods":"10"})") {
        EXPECT_TRUE(put_device(2));
    }

    Status put_device(int gpus) {
        JsonArray devices;
        for (int minor = 0; minor < gpus; ++minor) {
            devices.push_back(JsonObject{{"type", "gpu"},
                                         {"minor", minor},
                                         {"health", true},
                                         {"resources", JsonObject{{"koordinator.sh/gpu-core", "100"},
                                                                  {"koordinator.sh/gpu-memory-ratio", "100"},
                                                                  {"koordinator.sh/gpu-memory", "1000"}}}});
        }
        return put(store::Op::Create, {"scheduling.koordinator.sh/devices", "", "n1"},
                   base::to_text(JsonObject{{"metadata", JsonObject{{"name", "n1"}, {"uid", "d1"}}},
                                            {"spec", JsonObject{{"devices", devices}}}}));
    }
    static Json pod(const std::string& name, int percent, const std::string& node, const JsonObject& notes) {
        JsonObject requests{{"cpu", "1"}};
        if (percent > 0) requests["koordinator.sh/gpu"] = std::to_string(percent);
        const JsonObject container{{"name", "a"}, {"resources", JsonObject{{"requests", requests}}}};
        return JsonObject{{"metadata", JsonObject{{"name", name},
                                                  {"namespace", "default"},
                                                  {"uid", name},
                                                  {"labels", JsonObject{{"app", "web"}}},
                                                  {"annotations", notes}}},
                          {"spec", JsonObject{{"nodeName", node}, {"containers", JsonArray{container}}}}};
    }
    static constexpr const char* kRecord = "scheduling.koordinator.sh/device-allocated";
    static constexpr const char* kLink = "scheduling.koordinator.sh/reservation-allocated";

    // Of one GPU so many percents.
    static JsonObject record_of(int minor, int percent) {
        return {{"gpu", JsonArray{JsonObject{
                            {"minor", minor},
                            {"resources", JsonObject{{"koordinator.sh/gpu-core", std::to_string(percent)},
                                                     {"koordinator.sh/gpu-memory-ratio", std::to_string(percent)},
                                                     {"koordinator.sh/gpu-memory", std::to_string(percent * 10)}}}}}}};
    }
    static JsonObject notes_of(int minor, int percent) {
        return {{kRecord, base::to_text(Json(record_of(minor, percent)))}};
    }
    std::string refused(const std::string& name, int percent, const JsonObject& notes) {
        const store::Key key{"pods", "default", name};
        if (store_->head(key) == nullptr) {
            EXPECT_TRUE(put(store::Op::Create, key, base::to_text(pod(name, percent, "", {}))));
        }
        const auto answer = put(store::Op::Update, key, base::to_text(pod(name, percent, "n1", notes)));
        return answer ? "" : answer.error().message;
    }
    Status reserve(store::Op op, const std::string& phase, int minor) {
        Json object =
            base::parse_json(R"({"metadata":{"name":"r","uid":"r"},"spec":{"allocateOnce":false,"ttl":"0",)"
                             R"("owners":[{"labelSelector":{"matchLabels":{"app":"web"}}}],"template":{"spec":{)"
                             R"("containers":[{"name":"a","resources":{"requests":{"koordinator.sh/gpu":"100"}}}]}}}})")
                .value();
        JsonObject status{{"phase", phase}};
        if (phase != "Pending") {
            status["nodeName"] = "n1";
            status["allocatable"] = JsonObject{{"koordinator.sh/gpu", "100"}};
            if (minor >= 0) status["deviceAllocated"] = record_of(minor, 100);
        }
        object.as_object()["status"] = status;
        return put(op, {"scheduling.koordinator.sh/reservations", "", "r"}, base::to_text(object));
    }
};

TEST_F(BindGuardDevicesTest, NoPartIsGivenTwice) {
    EXPECT_EQ(refused("a", 60, notes_of(0, 60)), "");
    EXPECT_EQ(refused("b", 50, notes_of(0, 50)),
              "node \"n1\" cannot give the devices: gpu 0 has too little left for it");
    EXPECT_EQ(refused("b", 50, notes_of(2, 50)), "node \"n1\" cannot give the devices: there is no gpu 2");
    EXPECT_EQ(refused("b", 50, notes_of(1, 40)),
              "node \"n1\" cannot give the devices: the record of gpu 1 is not what the pod asks for");
    EXPECT_EQ(refused("b", 50, {}), "node \"n1\" cannot give the devices: its record names 0 of 1 gpu devices");
    EXPECT_NE(refused("b", 50, {{kRecord, "{"}}).find("device-allocated"), std::string::npos);
    EXPECT_EQ(refused("c", 0, notes_of(1, 10)), "node \"n1\" cannot give the devices: it asks for no gpu device");
    EXPECT_EQ(refused("b", 50, notes_of(1, 50)), "");
    EXPECT_EQ(refused("c", 0, {}), "");
}

TEST_F(BindGuardDevicesTest, AReservationsDevicesAreForItsOwners) {
    ASSERT_TRUE(reserve(store::Op::Create, "Pending", -1));
    EXPECT_FALSE(reserve(store::Op::Update, "Available", -1)) << "it says which";
    ASSERT_TRUE(reserve(store::Op::Update, "Available", 0));
    EXPECT_FALSE(reserve(store::Op::Update, "Available", 1)) << "it cannot hold others";
    EXPECT_NE(refused("stranger", 10, notes_of(0, 10)), "");
    JsonObject notes = notes_of(0, 60);
    notes[kLink] = R"({"name":"r","uid":"r"})";
    EXPECT_EQ(refused("owner", 60, notes), "");
    notes = notes_of(0, 50);
    notes[kLink] = R"({"name":"r","uid":"r"})";
    EXPECT_NE(refused("second", 50, notes), "");
}

TEST_F(BindGuardDevicesTest, WhatABoundPodHasDoesNotChange) {
    ASSERT_EQ(refused("a", 60, notes_of(0, 60)), "");
    EXPECT_NE(refused("a", 60, notes_of(1, 60)), "");
    EXPECT_EQ(refused("a", 60, notes_of(0, 60)), "");
}

}  // namespace
}  // namespace berth::run
