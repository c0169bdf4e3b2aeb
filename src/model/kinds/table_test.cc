#include "model/kinds/table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "model/kinds/defaults.h"
#include "model/kinds/fields.h"
#include "model/times.h"

namespace berth::model {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Table, AgesAreShort) {
    const std::pair<base::Duration, std::string_view> cases[] = {{seconds(-5), "<invalid>"},
                                                                 {seconds(-1), "0s"},
                                                                 {seconds(0), "0s"},
                                                                 {seconds(119), "119s"},
                                                                 {seconds(120), "2m"},
                                                                 {seconds(121), "2m1s"},
                                                                 {minutes(10), "10m"},
                                                                 {minutes(179), "179m"},
                                                                 {hours(3), "3h"},
                                                                 {minutes(7 * 60 + 59), "7h59m"},
                                                                 {hours(8), "8h"},
                                                                 {hours(47), "47h"},
                                                                 {hours(48), "2d"},
                                                                 {hours(49), "2d1h"},
                                                                 {hours(24 * 8), "8d"},
                                                                 {hours(24 * 729), "729d"},
                                                                 {hours(24 * 730), "2y"},
                                                                 {hours(24 * 731), "2y1d"},
                                                                 {hours(24 * 365 * 8), "8y"},
                                                                 {hours(24 * 365 * 8 + 48), "8y"}};
    for (const auto& [age, text] : cases) EXPECT_EQ(human_duration(age), text);
}

// Each line: an object with its defaults and the row that kube-apiserver prints for it (tests/oracles/kubernetes).
TEST(Table, RowsAgreeWithKubernetes) {
    std::ifstream in("src/model/kinds/testdata/kubernetes.jsonl");
    std::set<std::string> seen;
    for (std::string line; std::getline(in, line);) {
        const Json c = base::parse_json(line).value();
        Json object = c.at("in");
        const Kind* kind = kinds().of(base::find_string(object, {"apiVersion"}), base::find_string(object, {"kind"}));
        const Json* cells = c.get_object().if_contains("cells");
        if (kind == nullptr || cells == nullptr || kind->columns.back().name == "Created At") continue;
        ASSERT_TRUE(check_fields(object, *kind->type).ok());
        apply_defaults(object, *kind);
        JsonArray names;
        for (const auto& column : kind->columns) names.emplace_back(column.name);
        EXPECT_EQ(Json(names), c.at("columns")) << kind->kind;
        const auto now = parse_time(base::find_string(c, {"now"})).value();
        EXPECT_EQ(table_row(*kind, object, now).at("cells"), *cells) << kind->kind << " " << base::to_text(object);
        seen.insert(kind->api_version() + kind->kind);
    }
    EXPECT_GE(seen.size(), 35U);
}

TEST(Table, EveryPrinterOfTheTableExists) {
    for (const auto& kind : kinds().all()) {
        const auto row = table_row(*kind, JsonObject(), {});
        EXPECT_EQ(row.at("cells").get_array().size(), table_columns(*kind).size());
    }
}

std::string status_of(std::string_view pod) {
    const auto row =
        table_row(*kinds().of("v1", "Pod"), base::parse_json(pod).value(), parse_time("2024-01-01T01:00:00Z").value());
    const auto& cells = row.at("cells").get_array();
    std::string text;
    for (size_t i = 1; i < 5; ++i) text += (i > 1 ? " " : "") + std::string(cells[i].get_string());
    return text;
}

TEST(Table, WhatAPodIsDoing) {
    EXPECT_EQ(status_of(R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Pending"}})"),
              "0/1 Pending 0 <unknown>");
    EXPECT_EQ(
        status_of(R"({"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"},"spec":{"containers":[{"name":"a"}]},
        "status":{"phase":"Running","containerStatuses":[{"name":"a","ready":true,"restartCount":2,"state":{"running":{}},
        "lastState":{"terminated":{"finishedAt":"2024-01-01T00:58:00Z"}}}]}})"),
        "1/1 Running 2 (2m ago) 60m");
    EXPECT_EQ(status_of(R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Running",
        "containerStatuses":[{"name":"a","restartCount":5,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})"),
              "0/1 CrashLoopBackOff 5 <unknown>");
    EXPECT_EQ(
        status_of(R"({"metadata":{"deletionTimestamp":"2024-01-01T00:00:00Z"},"spec":{"containers":[{"name":"a"}]},
        "status":{"phase":"Running"}})"),
        "0/1 Terminating 0 <unknown>");
    EXPECT_EQ(status_of(R"({"spec":{"initContainers":[{"name":"i"},{"name":"j"}],"containers":[{"name":"a"}]},
        "status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}},
        {"name":"j","state":{"running":{}}}]}})"),
              "0/1 Init:1/2 0 <unknown>");
    EXPECT_EQ(
        status_of(R"({"spec":{"initContainers":[{"name":"s","restartPolicy":"Always"}],"containers":[{"name":"a"}]},
        "status":{"phase":"Running","initContainerStatuses":[{"name":"s","started":true,"ready":true,"state":{"running":{}}}],
        "containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}}]}})"),
        "2/2 Running 0 <unknown>");
    EXPECT_EQ(status_of(R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Pending",
        "conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]}})"),
              "0/1 SchedulingGated 0 <unknown>");
    EXPECT_EQ(status_of(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]},"status":{"phase":"Running",
        "containerStatuses":[{"name":"a","state":{"terminated":{"exitCode":0,"reason":"Completed"}}},
        {"name":"b","ready":true,"state":{"running":{}}}]}})"),
              "1/2 NotReady 0 <unknown>");
}

TEST(Table, AReservation) {
    const Json r = base::parse_json(R"({"metadata":{"name":"r","creationTimestamp":"2024-01-01T00:00:00Z"},
        "spec":{"ttl":"24h","owners":[{"labelSelector":{"matchLabels":{"app":"web"}}}]},
        "status":{"phase":"Available","nodeName":"n1","allocatable":{"cpu":"4"},
        "currentOwners":[{"name":"web-1"},{"name":"web-2"}]}})")
                       .value();
    const auto row = table_row(*kinds().of("scheduling.koordinator.sh/v1alpha1", "Reservation"), r,
                               parse_time("2024-01-01T00:00:30Z").value());
    EXPECT_EQ(base::to_text(row.at("cells")), R"(["r","Available","30s","n1","24h",null,"web-1,web-2","cpu=4",null])");
}

}  // namespace
}  // namespace berth::model
