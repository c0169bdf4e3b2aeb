// Reservations, their owners, and volumes.
#include <fmt/format.h>

#include <array>

#include "random_objects.h"

namespace berth::properties {
namespace {

using base::Random;

constexpr uint64_t kClaims = 10;

std::string controller(Random& random) {
    return fmt::format("set-{}", random.below(3));
}

model::ReservationOwner random_owner(Random& random) {
    model::ReservationOwner owner;
    const uint64_t how = random.below(10);
    if (how == 0) {
        owner.object.emplace();
        owner.object->name = fmt::format("pod-{}", random.below(6));
    } else if (how == 1) {
        owner.controller.emplace();
        owner.controller->name = controller(random);
    } else {
        std::vector<model::Requirement> all{{"app", model::Requirement::Op::In, {fmt::format("{}", random.below(5))}}};
        if (random.chance(1, 4)) all.front().values.push_back(fmt::format("{}", random.below(5)));
        if (random.chance(1, 8)) all.push_back({"tier", model::Requirement::Op::DoesNotExist, {}});
        owner.labels = Selector(all);
    }
    return owner;
}

}  // namespace

void add_identity(Random& random, model::Pod& pod) {
    pod.meta.ns = pod.spec->ns;
    pod.meta.labels = pod.spec->labels;
    pod.meta.name = fmt::format("pod-{}", random.below(30));
    if (random.chance(1, 4)) pod.meta.owners.push_back({"apps/v1", "ReplicaSet", controller(random), "", true});
    if (random.chance(1, 12)) {
        static constexpr std::array kAffinities{
            "{}", R"({"name":"r-1"})", R"({"reservationSelector":{"pool":"a"}})", "broken",
            R"({"requiredDuringSchedulingIgnoredDuringExecution":{"reservationSelectorTerms":[{"matchExpressions":[)"
            R"({"key":"zone","operator":"In","values":["1","2"]}]}]}})"};
        pod.meta.annotations.set(std::string(model::kReservationAffinity), kAffinities[random.below(5)]);
    }
    if (random.chance(1, 20)) pod.meta.annotations.set(std::string(model::kExactMatch), R"({"resourceNames":["cpu"]})");
}

model::Reservation random_reservation(Random& random, size_t number, size_t nodes) {
    model::Reservation made;
    made.meta.name = fmt::format("r-{}", number);
    made.meta.uid = fmt::format("{:08x}-0000-4000-9000-{:012x}", number, number);
    made.meta.created = base::Time{random.between(0, 3)};
    if (random.chance(1, 3)) made.meta.labels.set("pool", "a");
    made.spec = random.chance(1, 4) ? random_near_spec(random, nodes) : random_spec(random, nodes);
    for (uint64_t i = 0; i <= random.below(2); ++i) made.owners.push_back(random_owner(random));
    made.allocate_once = random.chance(1, 2);
    static constexpr std::array kPolicies{model::AllocatePolicy::Default, model::AllocatePolicy::Default,
                                          model::AllocatePolicy::Aligned, model::AllocatePolicy::Restricted};
    made.policy = kPolicies[random.below(kPolicies.size())];
    if (random.chance(1, 6)) made.order = random.between(1, 3);
    if (random.chance(1, 6)) made.restricted = {model::kCpu};
    if (random.chance(1, 8)) made.held_back.set(model::kCpu, 100);
    if (random.chance(1, 10)) made.taints.push_back({"zone", "1", random.chance(1, 2) ? "NoSchedule" : "NoExecute"});
    made.unschedulable = random.chance(1, 20);
    made.phase = model::ReservationPhase::Available;
    made.node = node_name(random.below(nodes));
    made.allocatable = made.spec->requests;
    return made;
}

std::shared_ptr<const model::PodSpec> random_holding_spec(Random& random, size_t nodes) {
    const auto base = random.chance(1, 4) ? random_near_spec(random, nodes) : random_spec(random, nodes);
    auto spec = std::make_shared<model::PodSpec>(*base);
    for (uint64_t i = 0; random.chance(1, 3) && i < 2; ++i) {
        model::Volume volume;
        volume.kind = random.chance(3, 4) ? model::VolumeKind::Claim : model::VolumeKind::GcePd;
        volume.name = fmt::format("v{}", i);
        volume.id = fmt::format("claim-{}", random.below(kClaims + 1));
        volume.read_only = random.chance(1, 4);
        spec->volumes.push_back(volume);
    }
    return spec;
}

void put_volumes(Random& random, size_t nodes, ledger::Ledger& ledger) {
    for (uint64_t i = 0; i < kClaims; ++i) {
        auto volume = std::make_shared<model::PersistentVolume>();
        volume->meta.name = fmt::format("volume-{}", i);
        volume->meta.uid = fmt::format("uid-volume-{}", i);
        volume->phase = model::VolumePhase::Bound;
        volume->source = {"disk.example.com", volume->meta.name, true};
        if (random.chance(1, 2)) {
            const std::vector<std::string> zones{fmt::format("{}", random.below(4)),
                                                 fmt::format("{}", random.below(4))};
            volume->affinity = model::NodeSelector({{{{"zone", "In", zones}}, {}}});
        }
        auto claim = std::make_shared<model::PersistentVolumeClaim>();
        claim->meta.ns = "default";
        claim->meta.name = fmt::format("claim-{}", i);
        claim->meta.uid = fmt::format("uid-claim-{}", i);
        claim->volume = volume->meta.name;
        claim->phase = model::ClaimPhase::Bound;
        claim->bind_completed = true;
        claim->modes.bits = static_cast<uint8_t>(random.chance(1, 3) ? model::AccessMode::ReadWriteOncePod
                                                                     : model::AccessMode::ReadWriteMany);
        volume->claim = model::ClaimRef{"default", claim->meta.name, claim->meta.uid};
        ledger.volumes().put(std::shared_ptr<const model::PersistentVolume>(std::move(volume)));
        ledger.volumes().put(std::shared_ptr<const model::PersistentVolumeClaim>(std::move(claim)));
    }
    for (size_t i = 0; i < nodes; ++i) {
        auto node = std::make_shared<model::CsiNode>();
        node->meta.name = node_name(i);
        if (random.chance(1, 2)) node->drivers.push_back({"disk.example.com", random.between(0, 3)});
        ledger.volumes().put(std::shared_ptr<const model::CsiNode>(std::move(node)));
    }
}

}  // namespace berth::properties
