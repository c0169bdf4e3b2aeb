#include "cli/reservations.h"

#include <gtest/gtest.h>

#include "cli/near_word.h"
#include "cli/reserve.h"
#include "model/times.h"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

const base::Time kNow = model::parse_time("2026-11-18T12:00:00Z").value();

model::Reservation held(base::Duration age, std::optional<base::Duration> ttl) {
    model::Reservation out;
    out.meta.name = "kept";
    out.meta.created = kNow + -age;
    out.ttl = ttl;
    out.phase = model::ReservationPhase::Available;
    out.node = "n1";
    model::PodSpec spec;
    spec.requests.set(model::kCpu, 4000);
    out.spec = std::make_shared<model::PodSpec>(spec);
    out.allocatable.set(model::kCpu, 4000);
    out.allocatable.set(model::kPods, 1);
    out.allocated.set(model::kCpu, 1500);
    out.owners.push_back({{}, {}, model::Selector::parse("app=web").value()});
    return out;
}

TEST(Reservations, ARowSaysWhatIsDrawnAndWhatIsIdle) {
    EXPECT_EQ(
        reservation_row(held(1h, 3h), kNow),
        (std::vector<std::string>{"kept", "Available", "n1", "cpu=4", "cpu=1500m", "cpu=2500m", "app=web", "in 2h0m"}));
    EXPECT_EQ(reservation_row(held(1h, 0h), kNow).back(), "never");
    EXPECT_EQ(reservation_row(held(0h, 42s), kNow).back(), "in 42s");
    EXPECT_EQ(reservation_row(held(2h, 1h), kNow).back(), "now");
    auto pending = held(0h, 1h);
    pending.phase = model::ReservationPhase::Pending;
    pending.node.clear();
    pending.allocatable = {};
    pending.allocated = {};
    EXPECT_EQ(reservation_row(pending, kNow)[3], "cpu=4") << "what it wants";
    EXPECT_EQ(reservation_row(pending, kNow)[5], "-");
}

TEST(Reservations, AreExtendedAndNothingElse) {
    const auto patch = [](const model::Reservation& reservation, const Extension& wanted) {
        const auto made = extension_of(reservation, wanted, kNow);
        return made ? base::to_text(*made) : made.error().message;
    };
    const auto kept = held(1h, 3h);  // it ends at 14:00
    EXPECT_EQ(patch(kept, {.by = 30min}), R"({"spec":{"ttl":null,"expires":"2026-11-18T14:30:00Z"}})");
    EXPECT_EQ(patch(kept, {.ttl = 4h}), R"({"spec":{"ttl":"4h0m0s","expires":null}})");
    EXPECT_EQ(patch(kept, {.ttl = 0h}), R"({"spec":{"ttl":"0s","expires":null}})");
    EXPECT_EQ(patch(kept, {.expires = kNow + 24h}), R"({"spec":{"ttl":null,"expires":"2026-11-19T12:00:00Z"}})");
    const std::string no_later = "reservation \"kept\" ends at 2026-11-18T14:00:00Z, and would end no later, at ";
    EXPECT_EQ(patch(kept, {.ttl = 2h}), no_later + "2026-11-18T13:00:00Z");
    EXPECT_EQ(patch(kept, {.expires = kNow}), no_later + "2026-11-18T12:00:00Z");
    EXPECT_EQ(patch(kept, {.by = 0h}), no_later + "2026-11-18T14:00:00Z");
    EXPECT_EQ(patch(held(1h, 0h), {.by = 1h}), "reservation \"kept\" never ends: there is nothing to extend");
    auto over = kept;
    over.phase = model::ReservationPhase::Failed;
    EXPECT_EQ(patch(over, {.by = 1h}), "reservation \"kept\" is Failed: it holds nothing any more, make a new one");
}

// Before any server is asked.
TEST(Reservations, WrongWordsAreWrongUsage) {
    EXPECT_EQ(reserve({"extend", "kept"}), 2) << "until when?";
    EXPECT_EQ(reserve({"extend", "kept", "--by", "1h", "--ttl", "2h"}), 2);
    EXPECT_EQ(reserve({"extend", "kept", "--by", "soon"}), 2);
    EXPECT_EQ(reserve({"extend", "kept", "--expires", "tomorrow"}), 2);
    EXPECT_EQ(reserve({"extend", "--by", "1h"}), 2) << "which?";
    EXPECT_EQ(reserve({"release"}), 2) << "which?";
    EXPECT_EQ(reserve({"release", "kept", "-l", "a=b"}), 2);
    EXPECT_EQ(reserve({"list", "kept", "-l", "a=b"}), 2);
}

TEST(Reservations, OfWhatDoesNotExistOrIsNothing) {
    ReserveFlags flags;
    flags.name = "r";
    flags.owner_labels = {"a=b"};
    const auto error = [&](const std::string& resource) {
        flags.resources = {resource};
        const auto made = reservations_for(flags, {});
        return made ? "none" : made.error().message;
    };
    EXPECT_EQ(error("cpus=4"), "--resource: there is no resource \"cpus\": did you mean cpu?");
    EXPECT_EQ(error("Memory=4Gi"), "--resource: there is no resource \"Memory\": did you mean memory?");
    EXPECT_EQ(error("fpga-slots=1"),
              "--resource: there is no resource \"fpga-slots\"; resources of your own have a domain, as in "
              "example.com/gpu");
    EXPECT_EQ(error("cpu=0"), "--resource cpu: 0 would hold nothing");
    EXPECT_EQ(error("cpu=-1"), "--resource cpu: -1 would hold nothing");
    EXPECT_EQ(error("hugepages-2Mi=64Mi"), "none");
    EXPECT_EQ(error("nvidia.com/gpu=1"), "none");
}

TEST(NearWord, IsTheOneThatWasMeant) {
    const std::vector<std::string> known{"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"};
    EXPECT_EQ(near_word("cpus", known), "cpu");
    EXPECT_EQ(near_word("cup", known), "cpu");
    EXPECT_EQ(near_word("memroy", known), "memory");
    EXPECT_EQ(near_word("nvidia.com/gpus", known), "nvidia.com/gpu");
    EXPECT_EQ(near_word("disk", known), "");
}

}  // namespace
}  // namespace berth::cli
