#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/json_view.h"
#include "base/yaml.h"
#include "model/disruption.h"
#include "model/node.h"
#include "model/storage.h"
#include "sched/decide.h"

namespace berth::sched {

// A table for tests, filled from objects as an operator writes them; a pod without nodeName is only remembered.
class TestTable {
public:
    Ledger ledger;

    void put(std::string_view yaml) {
        const auto documents = base::parse_yaml(yaml);
        ASSERT_TRUE(documents.ok()) << documents.error().message;
        for (const auto& document : *documents) put_one(document);
    }
    const model::Pod& pod(const std::string& name) const { return pods_.at(name); }
    Ask ask(const std::string& name) const { return ask_for(pod(name), ledger); }
    Verdict decide(const std::string& name) const { return sched::decide(ask(name), ledger, default_profile()); }
    std::string why(const std::string& name) const { return diagnosis(decide(name).strikes, ledger); }
    // The names of the feasible nodes, sorted.
    std::vector<std::string> feasible(const std::string& name) const {
        std::vector<std::string> out;
        for (const Row row : decide(name).feasible) out.emplace_back(ledger.name(row));
        std::sort(out.begin(), out.end());
        return out;
    }
    void place(const std::string& name, const std::string& node) { ledger.assume(pod(name), ledger.row_of(node), {}); }

private:
    template <class T>
    static std::shared_ptr<const T> shared(Result<T> read) {
        EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
        return read.ok() ? std::make_shared<const T>(*std::move(read)) : nullptr;
    }
    void put_one(const Json& document) {
        const std::string text = base::to_text(document);
        const std::string kind(base::find_string(document, {"kind"}));
        base::JsonParser parser;
        const auto view = parser.parse(text);
        ASSERT_TRUE(view.ok());
        auto& volumes = ledger.volumes();
        if (kind == "Pod") return put_pod(*shared(model::read_pod(*view)));
        if (kind == "Node") return ledger.put(shared(model::read_node(*view)));
        if (kind == "Namespace") return ledger.put(*shared(model::read_namespace(*view)));
        if (const auto workload = model::workload_kind(kind))
            return ledger.put(*shared(model::read_workload(*workload, *view)));
        if (kind == "Reservation") return put_reservation(*shared(model::read_reservation(*view)));
        if (kind == "PersistentVolume") return volumes.put(shared(model::read_persistent_volume(*view)));
        if (kind == "PersistentVolumeClaim") return volumes.put(shared(model::read_persistent_volume_claim(*view)));
        if (kind == "StorageClass") return volumes.put(shared(model::read_storage_class(*view)));
        if (kind == "CSINode") return volumes.put(shared(model::read_csi_node(*view)));
        if (kind == "CSIDriver") return volumes.put(shared(model::read_csi_driver(*view)));
        if (kind == "CSIStorageCapacity") return volumes.put(shared(model::read_csi_storage_capacity(*view)));
        if (kind == "VolumeAttachment") return volumes.put(shared(model::read_volume_attachment(*view)));
        if (kind == "PodDisruptionBudget")
            return ledger.budgets().put(shared(model::read_pod_disruption_budget(*view)));
        FAIL() << "no such kind: " << kind;
    }
    void put_pod(model::Pod pod) {
        if (pod.meta.uid.empty()) pod.meta.uid = "uid-" + pod.meta.name;
        ledger.put(pod);
        pods_.insert_or_assign(pod.meta.name, std::move(pod));
    }
    void put_reservation(model::Reservation reservation) {
        if (reservation.meta.uid.empty()) reservation.meta.uid = "uid-" + reservation.meta.name;
        ledger.put(std::make_shared<const model::Reservation>(std::move(reservation)));
    }
    std::map<std::string, model::Pod> pods_;
};

using Names = std::vector<std::string>;

// "n1" of 4 cpu, 8Gi and 110 pods.
inline std::string node_yaml(const std::string& name, const std::string& labels = "{}", const std::string& cpu = "4") {
    return "---\nkind: Node\nmetadata: {name: " + name + ", labels: " + labels + "}\nstatus: {allocatable: {cpu: \"" +
           cpu + "\", memory: 8Gi, pods: \"110\"}}\n";
}

}  // namespace berth::sched
