#include "run/requests.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::run {
namespace {

// What is no longer there must go: a merge patch would keep the owners that the object had.
TEST(CarryOut, AStatusIsReplacedWhole) {
    model::ReservationStatus status;
    status.phase = model::ReservationPhase::Available;
    status.node = "n1";
    const auto request = status_request("r", "u-1", 7, status);
    EXPECT_EQ(request.method, "PATCH");
    EXPECT_EQ(request.path, "/apis/scheduling.koordinator.sh/v1alpha1/reservations/r/status");
    EXPECT_EQ(request.content_type, "application/json-patch+json");
    EXPECT_EQ(*base::parse_json(request.body), *base::parse_json(R"([
        {"op":"add","path":"/metadata/uid","value":"u-1"},
        {"op":"add","path":"/metadata/resourceVersion","value":"7"},
        {"op":"add","path":"/status","value":{"phase":"Available","nodeName":"n1"}}])"));
}

TEST(CarryOut, AnUnknownRevisionIsNoPrecondition) {
    EXPECT_EQ(status_request("r", "u-1", 0, {}).body.find("resourceVersion"), std::string::npos);
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
