// Small nodes with few slots, and reservations and pods that nearly fill them.
#include <fmt/format.h>

#include <array>

#include "random_objects.h"

namespace berth::properties {
namespace {

using base::Random;

constexpr int64_t kGi = int64_t{1} << 30;

std::string app(Random& random) {
    return random.chance(4, 5) ? "0" : "1";
}

int64_t cpu(Random& random, int64_t most) {
    return random.chance(1, 6) ? 500 * random.between(1, 2 * most) : 1000 * random.between(1, most);
}

// Often only one of both or none, so that a reservation has nothing of what a pod asks for, or only its slot is used.
void add_tight_requests(Random& random, int64_t most, bool mostly_cpu, model::PodSpec& spec) {
    const uint64_t which = mostly_cpu ? random.below(5) : random.below(10);
    if (which < 6) spec.requests.set(model::kCpu, cpu(random, most));
    if (which >= 4 && which < 8) spec.requests.set(model::kMemory, random.between(1, most) * kGi);
    if (random.chance(1, 20)) spec.requests.set(model::kEphemeralStorage, random.between(0, 2) * kGi);
    spec.requests.set(model::kPods, 1);
    spec.scoring_cpu_milli = spec.requests.get(model::kCpu, 100);
    spec.scoring_memory = spec.requests.get(model::kMemory, int64_t{200} << 20);
    if (random.chance(1, 25)) spec.ports.push_back({static_cast<int32_t>(random.between(80, 81))});
}

}  // namespace

model::Node tight_node(Random& random, std::string name) {
    model::Node node;
    node.meta.name = std::move(name);
    node.allocatable.set(model::kCpu, 1000 * random.between(2, 6));
    node.allocatable.set(model::kMemory, random.between(1, 6) * kGi);
    node.allocatable.set(model::kEphemeralStorage, 2 * kGi);
    node.allocatable.set(model::kPods, random.chance(1, 8) ? 110 : random.between(1, 5));
    return node;
}

std::shared_ptr<const model::PodSpec> tight_spec(Random& random, bool joint) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    spec->labels.set("app", app(random));
    // In a joint world some use but a slot, and leave the cpu to those that want much of it.
    if (joint && random.chance(1, 4)) {
        spec->requests.set(model::kPods, 1);
    } else {
        add_tight_requests(random, 4, joint, *spec);
    }
    spec->priority = random.chance(1, 6) ? 10 : 0;
    return spec;
}

model::Reservation tight_reservation(Random& random, size_t number, bool joint) {
    model::Reservation made;
    made.meta.name = fmt::format("r-{}", number);
    made.meta.uid = fmt::format("{:08x}-0000-4000-9000-{:012x}", number, number);
    made.meta.created = base::Time{random.between(0, 3)};
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    spec->labels.set("number", fmt::format("{}", number));  // no two are the same
    add_tight_requests(random, random.chance(2, 3) ? 1 : 2, joint, *spec);
    made.spec = std::move(spec);
    model::ReservationOwner owner;
    owner.labels = Selector({{"app", model::Requirement::Op::In, {app(random)}}});
    made.owners.push_back(std::move(owner));
    made.allocate_once = random.chance(1, 2);
    static constexpr std::array kPolicies{model::AllocatePolicy::Default, model::AllocatePolicy::Aligned,
                                          model::AllocatePolicy::Restricted};
    made.policy = joint ? model::AllocatePolicy::Default : kPolicies[random.below(kPolicies.size())];
    made.pre_allocation = random.chance(1, 8);
    if (random.chance(1, 6)) made.order = random.between(1, 3);
    if (random.chance(1, 6)) made.restricted = {model::kCpu};
    if (random.chance(1, 12)) made.held_back.set(model::kCpu, 1000);
    return made;
}

}  // namespace berth::properties
