#include "model/pod_resources.h"

#include <fmt/format.h>

#include "model/quantity.h"
#include "model/reader.h"

namespace berth::model {
namespace {

constexpr int64_t kStandInCpuMilli = 100;
constexpr int64_t kStandInMemory = 200LL << 20;

// One container's or one phase's demand, in both currencies.
struct Demand {
    Resources real;
    Resources scoring;  // cpu and memory only

    void add(const Demand& other) {
        real.add(other.real);
        scoring.add(other.scoring);
    }
    void grow_to(const Demand& other) {
        real.max(other.real);
        scoring.max(other.scoring);
    }
};

Demand demand_of(Resources real) {
    Demand demand;
    demand.scoring.set(kCpu, real.has(kCpu) ? real.get(kCpu) : kStandInCpuMilli);
    demand.scoring.set(kMemory, real.has(kMemory) ? real.get(kMemory) : kStandInMemory);
    demand.real = std::move(real);
    return demand;
}

Resources with_defaults_from_limits(const Reader& resources) {
    Resources requests = read_resource_list(resources["requests"]);
    const Resources limits = read_resource_list(resources["limits"]);
    limits.for_each([&](ResourceId id, int64_t amount) {
        if (!requests.has(id)) requests.set(id, amount);
    });
    return requests;
}

// The container's entry in status.containerStatuses or status.initContainerStatuses, by name.
Resources in_status(const Reader& status, std::string_view list, std::string_view name, bool& found) {
    Resources amounts;
    const Reader statuses = status[list];
    statuses.each([&](const Reader& item) {
        if (item["name"].text() != name) return;
        found = true;
        amounts.max(read_resource_list(item["allocatedResources"]));
        const Reader resources = item["resources"];
        amounts.max(read_resource_list(resources["requests"]));
    });
    return amounts;
}

bool resize_infeasible(const Reader& status) {
    bool infeasible = false;
    const Reader conditions = status["conditions"];
    conditions.each([&](const Reader& item) {
        if (item["type"].text() == "PodResizePending" && item["reason"].text() == "Infeasible") infeasible = true;
    });
    return infeasible;
}

Demand container_demand(const Reader& container, const Reader& status, std::string_view list, bool infeasible) {
    Resources requests = with_defaults_from_limits(container["resources"]);
    bool in_resize = false;
    const Resources current = in_status(status, list, container["name"].text(), in_resize);
    if (in_resize && current != Resources()) {
        if (infeasible) {
            requests = current;
        } else {
            requests.max(current);
        }
    }
    return demand_of(std::move(requests));
}

bool pod_level(ResourceId id) {
    return id == kCpu || id == kMemory || is_hugepages(resource_name(id));
}

// spec.resources: what is given there replaces what the containers add up to.
void replace_by_pod_level(const Reader& resources, Demand& total) {
    if (!resources.present()) return;
    Resources requests = read_resource_list(resources["requests"]);
    const Resources limits = read_resource_list(resources["limits"]);
    limits.for_each([&](ResourceId id, int64_t amount) {
        if (!requests.has(id) && !total.real.has(id)) requests.set(id, amount);
    });
    requests.for_each([&](ResourceId id, int64_t amount) {
        if (!pod_level(id)) return;
        total.real.set(id, amount);
        if (id == kCpu || id == kMemory) total.scoring.set(id, amount);
    });
}

}  // namespace

Resources read_resource_list(const Reader& list) {
    Resources amounts;
    list.entries([&](std::string_view name, const Reader& value) {
        const auto quantity = Quantity::parse(value.text_or_number());
        if (!quantity) return value.wrong(quantity.error().message);
        if (quantity->is_negative())
            return value.wrong(fmt::format("must not be negative, but is {}", quantity->text()));
        const auto id = intern_resource(name);
        if (!id) return value.wrong(id.error().message);
        amounts.set(*id, amount_of(*id, *quantity));
    });
    return amounts;
}

PodRequests read_requests(const Reader& spec, const Reader& status) {
    const bool infeasible = resize_infeasible(status);
    Demand total;
    Demand sidecars;
    Demand init_peak;
    const Reader containers = spec["containers"];
    containers.each(
        [&](const Reader& item) { total.add(container_demand(item, status, "containerStatuses", infeasible)); });
    const Reader init_containers = spec["initContainers"];
    init_containers.each([&](const Reader& item) {
        Demand demand = container_demand(item, status, "initContainerStatuses", infeasible);
        if (item["restartPolicy"].text() == "Always") {
            total.add(demand);
            sidecars.add(demand);
            init_peak.grow_to(sidecars);
        } else {
            demand.add(sidecars);
            init_peak.grow_to(demand);
        }
    });
    total.grow_to(init_peak);
    replace_by_pod_level(spec["resources"], total);
    const Resources overhead = read_resource_list(spec["overhead"]);
    total.real.add(overhead);
    PodRequests out;
    total.scoring.add(kCpu, overhead.get(kCpu));
    total.scoring.add(kMemory, overhead.get(kMemory));
    out.scoring_cpu_milli = total.scoring.get(kCpu);
    out.scoring_memory = total.scoring.get(kMemory);
    total.real.set(kPods, 1);
    out.requests = std::move(total.real);
    return out;
}

}  // namespace berth::model
