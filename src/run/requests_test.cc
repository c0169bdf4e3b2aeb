#include "run/requests.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "model/reservation.h"
#include "run/writes.h"

namespace berth::run {
namespace {

// What is no longer there must go: a merge patch would keep the owners that the object had.
TEST(CarryOut, AStatusIsReplacedWhole) {
    model::ReservationStatus status;
    status.phase = model::ReservationPhase::Available;
    status.node = "n1";
    const auto request = request_for(model::reservation_status_write("r", "u-1", 7, status));
    EXPECT_EQ(request.method, "PATCH");
    EXPECT_EQ(request.path, "/apis/scheduling.koordinator.sh/v1alpha1/reservations/r/status");
    EXPECT_EQ(request.content_type, "application/json-patch+json");
    EXPECT_EQ(*base::parse_json(request.body), *base::parse_json(R"([
        {"op":"add","path":"/metadata/uid","value":"u-1"},
        {"op":"add","path":"/metadata/resourceVersion","value":"7"},
        {"op":"add","path":"/status","value":{"phase":"Available","nodeName":"n1"}}])"));
}

TEST(CarryOut, AnUnknownRevisionIsNoPrecondition) {
    const auto request = request_for(model::reservation_status_write("r", "u-1", 0, {}));
    EXPECT_EQ(request.body.find("resourceVersion"), std::string::npos);
}

// Each verb has its own place for what a write depends on.
TEST(Writes, SayWhatTheyDependOn) {
    model::Meta meta;
    meta.ns = "default";
    meta.name = "p";
    meta.uid = "u-1";
    meta.revision = 7;
    const auto patch = request_for(if_unchanged(patch_status("pods", meta, {{"phase", "Running"}}), meta));
    EXPECT_EQ(patch.path, "/api/v1/namespaces/default/pods/p/status");
    EXPECT_EQ(patch.content_type, "application/merge-patch+json");
    const Json wanted =
        *base::parse_json(R"({"metadata":{"uid":"u-1","resourceVersion":"7"},"status":{"phase":"Running"}})");
    EXPECT_EQ(*base::parse_json(patch.body), wanted);
    auto as_text = if_unchanged(patch_object("pods", meta, nullptr), meta);
    as_text.text = R"({"status":{"phase":"Running"}})";
    EXPECT_EQ(*base::parse_json(request_for(as_text).body), wanted);
    const auto gone = request_for(if_unchanged(delete_object("apps/replicasets", meta), meta));
    EXPECT_EQ(gone.path, "/apis/apps/v1/namespaces/default/replicasets/p");
    EXPECT_EQ(*base::parse_json(gone.body), *base::parse_json(R"({"kind":"DeleteOptions","apiVersion":"v1",
        "propagationPolicy":"Background","preconditions":{"uid":"u-1","resourceVersion":"7"}})"));
    const auto anybody = request_for(model::create_object("pods", "default", JsonObject{{"kind", "Pod"}}));
    EXPECT_EQ(anybody.body, R"({"kind":"Pod"})") << "what is new depends on nothing";
}

// There is one of that name: the feed tells of it. Only where there can be none a nomination must do.
TEST(CarryOut, ARoomThatIsThereAlreadyIsNotRefused) {
    const auto came_of = [](int code) {
        link::Reply reply;
        reply.code = code;
        return outcome_of(sched::HoldRoom{}, reply);
    };
    EXPECT_EQ(came_of(201), sched::Outcome::Done);
    EXPECT_EQ(came_of(409), sched::Outcome::Done);
    EXPECT_EQ(came_of(429), sched::Outcome::Unknown);
    EXPECT_EQ(came_of(404), sched::Outcome::Refused);
    EXPECT_EQ(came_of(403), sched::Outcome::Refused);
    EXPECT_EQ(came_of(500), sched::Outcome::Unknown);
}

}  // namespace
}  // namespace berth::run
