#include "sched/table_test.h"

#include <algorithm>

#include "base/json_view.h"
#include "base/yaml.h"
#include "model/disruption.h"
#include "model/storage.h"

namespace berth::sched {
namespace {

template <class T>
std::shared_ptr<const T> shared(Result<T> read) {
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    return read.ok() ? std::make_shared<const T>(*std::move(read)) : nullptr;
}

}  // namespace

TestTable::TestTable() = default;

TestTable::~TestTable() = default;

void TestTable::put(std::string_view yaml) {
    const auto documents = base::parse_yaml(yaml);
    ASSERT_TRUE(documents.ok()) << documents.error().message;
    for (const auto& document : *documents) put_one(document);
}

std::vector<std::string> TestTable::feasible(const std::string& name) const {
    std::vector<std::string> out;
    for (const Row row : decide(name).feasible) out.emplace_back(ledger.name(row));
    std::sort(out.begin(), out.end());
    return out;
}

void TestTable::place(const std::string& name, const std::string& node) {
    ledger.assume(pod(name), ledger.row_of(node), {});
}

void TestTable::put_one(const Json& document) {
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
    if (kind == "PodDisruptionBudget") return ledger.budgets().put(shared(model::read_pod_disruption_budget(*view)));
    FAIL() << "no such kind: " << kind;
}

void TestTable::put_pod(model::Pod pod) {
    if (pod.meta.uid.empty()) pod.meta.uid = "uid-" + pod.meta.name;
    ledger.put(pod);
    pods_.insert_or_assign(pod.meta.name, std::move(pod));
}

void TestTable::put_reservation(model::Reservation reservation) {
    if (reservation.meta.uid.empty()) reservation.meta.uid = "uid-" + reservation.meta.name;
    ledger.put(std::make_shared<const model::Reservation>(std::move(reservation)));
}

}  // namespace berth::sched
