#include "model/pod_resources.h"

#include <fmt/format.h>

#include <array>

#include "base/saturating.h"
#include "model/quantity.h"
#include "model/reader.h"
#include "model/resource_names.h"

namespace berth::model {
namespace {

constexpr int64_t kStandInCpuMilli = 100;
constexpr int64_t kStandInMemory = 200LL << 20;

Resources read_amounts(const Reader& list, Result<ResourceId> (*intern)(std::string_view)) {
    Resources amounts;
    size_t named = 0;
    list.entries([&](std::string_view name, const Reader& value) {
        if (++named > kMostNamed) return;
        const auto quantity = Quantity::parse(value.text_or_number());
        if (!quantity) return value.wrong(quantity.error().message);
        if (quantity->is_negative())
            return value.wrong(fmt::format("must not be negative, but is {}", quantity->text()));
        const auto id = intern(name);
        if (!id) return value.wrong(id.error().message);
        amounts.set(*id, amount_of(*id, *quantity));
    });
    if (named > kMostNamed) list.wrong(fmt::format("names {} resources, at most {} may be", named, kMostNamed));
    return amounts;
}

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

// `status` null: what is written in the spec.
Demand container_demand(const Reader& container, const Reader* status, std::string_view list) {
    Resources requests = with_defaults_from_limits(container["resources"]);
    bool in_resize = false;
    Resources current;
    if (status) current = in_status(*status, list, container["name"].text(), in_resize);
    if (in_resize && !current.empty()) {
        if (resize_infeasible(*status)) {
            requests = current;
        } else {
            requests.max(current);
        }
    }
    return demand_of(std::move(requests));
}

// max(containers + sidecars, the peak of the init phase).
Demand demand_of_containers(const Reader& spec, const Reader* status) {
    Demand total;
    Demand sidecars;
    Demand init_peak;
    const Reader containers = spec["containers"];
    containers.each([&](const Reader& item) { total.add(container_demand(item, status, "containerStatuses")); });
    const Reader init_containers = spec["initContainers"];
    init_containers.each([&](const Reader& item) {
        const bool sidecar = item["restartPolicy"].text() == "Always";
        // Only what keeps running is resized.
        Demand demand = container_demand(item, sidecar ? status : nullptr, "initContainerStatuses");
        if (sidecar) {
            total.add(demand);
            sidecars.add(demand);
            init_peak.grow_to(sidecars);
        } else {
            demand.add(sidecars);
            init_peak.grow_to(demand);
        }
    });
    total.grow_to(init_peak);
    return total;
}

bool pod_level(ResourceId id) {
    return id == kCpu || id == kMemory || is_hugepages(resource_name(id));
}

// As the API server completes spec.resources.requests: by what the containers ask for, then by the limits beside them.
void complete(Resources& requests, const Resources& limits, const Resources& of_containers) {
    bool completes = !limits.empty();
    of_containers.for_each([&](ResourceId id, int64_t) { completes |= is_hugepages(resource_name(id)); });
    if (!completes) return;
    for (const ResourceId id : {kCpu, kMemory}) {
        if (!requests.has(id) && of_containers.has(id)) requests.set(id, of_containers.get(id));
    }
    limits.for_each([&](ResourceId id, int64_t amount) {
        if (!requests.has(id)) requests.set(id, amount);
    });
}

// spec.resources: what is given there replaces what the containers add up to. Then nothing stands in for a container's
// missing key, unless nobody asks for that resource at all.
void replace_by_pod_level(const Reader& spec, const Resources& overhead, Demand& total) {
    const Reader resources = spec["resources"];
    Resources requests = read_resource_list(resources["requests"]);
    const Resources limits = read_resource_list(resources["limits"]);
    if (requests.empty() && limits.empty()) return;
    complete(requests, limits, demand_of_containers(spec, nullptr).real);
    requests.for_each([&](ResourceId id, int64_t amount) {
        if (pod_level(id)) total.real.set(id, amount);
    });
    for (const ResourceId id : {kCpu, kMemory}) {
        if (total.real.has(id) || overhead.has(id)) total.scoring.set(id, total.real.get(id));
    }
}

}  // namespace

Resources read_resource_list(const Reader& list) {
    return read_amounts(list, intern_asked_resource);
}

Resources read_offered_resources(const Reader& list) {
    return read_amounts(list, intern_resource);
}

Resources read_limits(const Reader& spec) {
    const auto of = [](const Reader& owner) {
        const Reader resources = owner["resources"];
        return read_resource_list(resources["limits"]);
    };
    Resources total;
    Resources sidecars;
    Resources init_peak;
    const Reader containers = spec["containers"];
    containers.each([&](const Reader& item) { total.add(of(item)); });
    const Reader init_containers = spec["initContainers"];
    init_containers.each([&](const Reader& item) {
        Resources limits = of(item);
        if (item["restartPolicy"].text() == "Always") {
            total.add(limits);
            sidecars.add(limits);
            init_peak.max(sidecars);
        } else {
            limits.add(sidecars);
            init_peak.max(limits);
        }
    });
    total.max(init_peak);
    of(spec).for_each([&](ResourceId id, int64_t amount) {
        if (pod_level(id)) total.set(id, amount);
    });
    Resources out;
    if (total.empty()) return out;
    static const std::array kLimited{std::pair(kCpu, *intern_resource("limits.cpu")),
                                     std::pair(kMemory, *intern_resource("limits.memory")),
                                     std::pair(kEphemeralStorage, *intern_resource("limits.ephemeral-storage"))};
    const Resources overhead = read_resource_list(spec["overhead"]);
    for (const auto& [id, limit] : kLimited) {
        if (total.has(id)) out.set(limit, base::saturating_add(total.get(id), overhead.get(id)));
    }
    return out;
}

PodRequests read_requests(const Reader& spec, const Reader& status) {
    Demand total = demand_of_containers(spec, &status);
    const Resources of_containers = total.scoring;
    const Resources overhead = read_resource_list(spec["overhead"]);
    replace_by_pod_level(spec, overhead, total);
    total.real.add(overhead);
    PodRequests out;
    out.pod_level_cpu_milli = base::saturating_subtract(total.scoring.get(kCpu), of_containers.get(kCpu));
    out.pod_level_memory = base::saturating_subtract(total.scoring.get(kMemory), of_containers.get(kMemory));
    total.scoring.add(kCpu, overhead.get(kCpu));
    total.scoring.add(kMemory, overhead.get(kMemory));
    out.scoring_cpu_milli = total.scoring.get(kCpu);
    out.scoring_memory = total.scoring.get(kMemory);
    total.real.set(kPods, 1);
    out.requests = std::move(total.real);
    return out;
}

}  // namespace berth::model
