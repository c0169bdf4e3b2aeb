#include "model/core_record.h"

#include <algorithm>

#include "base/json.h"
#include "model/allocated.h"
#include "model/pod_resources.h"
#include "model/reader.h"

namespace berth::model {

CoreRecord read_core_record(const Reader& from) {
    CoreRecord out;
    std::string fault;
    const Reader cpus = from["cpuset"];
    out.cpus = read_cpu_list(cpus.text(), fault);
    if (!fault.empty()) cpus.wrong(fault);
    const Reader numa = from["numaNodeResources"];
    numa.each([&](const Reader& item) {
        const Reader node = item["node"];
        const int64_t id = node.integer();
        if (id < 0 || id > kMaxCpuId) return node.wrong("is no NUMA node");
        out.numa.push_back({static_cast<int32_t>(id), read_resource_list(item["resources"])});
        out.numa.back().amount.for_each([&](ResourceId, int64_t amount) {
            if (amount < 0) item["resources"].wrong("must not be negative");
        });
    });
    std::sort(out.numa.begin(), out.numa.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
    const auto twice = std::adjacent_find(out.numa.begin(), out.numa.end(),
                                          [](const auto& a, const auto& b) { return a.node == b.node; });
    if (twice != out.numa.end()) numa.wrong("names a NUMA node twice");
    return out;
}

JsonArray numa_document(const CoreRecord& record) {
    JsonArray out;
    for (const auto& [node, amount] : record.numa) {
        out.push_back(JsonObject{{"node", node}, {"resources", amounts_document(amount)}});
    }
    return out;
}

JsonObject core_record_document(const CoreRecord& record) {
    JsonObject out;
    if (!record.cpus.empty()) out["cpuset"] = cpu_list_text(record.cpus);
    if (!record.numa.empty()) out["numaNodeResources"] = numa_document(record);
    return out;
}

}  // namespace berth::model
