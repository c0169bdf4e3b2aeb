#include "app/bind_guard.h"

#include <utility>

#include "app/decoded.h"
#include "base/mentions.h"
#include "cli/supporting.h"
#include "model/node.h"

namespace berth::app {
namespace {

constexpr std::string_view kReservations = "scheduling.koordinator.sh/reservations";

// What decides who holds a claim and how many volumes a node attaches: as stored, and its kind.
constexpr std::pair<std::string_view, std::string_view> kStorage[] = {
    {"persistentvolumeclaims", "PersistentVolumeClaim"},      {"persistentvolumes", "PersistentVolume"},
    {"storage.k8s.io/storageclasses", "StorageClass"},        {"storage.k8s.io/csinodes", "CSINode"},
    {"storage.k8s.io/volumeattachments", "VolumeAttachment"},
};

std::string_view storage_kind(std::string_view stored) {
    for (const auto& [name, kind] : kStorage) {
        if (name == stored) return kind;
    }
    return {};
}

template <class Read>
auto decode(const store::Record& record, Read read) -> decltype(read(JsonView())) {
    const JsonView view = TRY(parse_here(*record.bytes));
    auto object = read(view);
    if (object) object->meta.revision = record.revision;
    return object;
}

// A pod that is bound says so; one that does not need not be read.
bool mentions_node(const store::Record& record) {
    return base::mentions(*record.bytes, "\"nodeName\"");
}

bool is_bound(const store::RecordPtr& record) {
    if (!record || !mentions_node(*record)) return false;
    const auto pod = decode(*record, model::read_pod);
    return !pod || !pod->node.empty();
}

bool is_placed(const store::RecordPtr& record) {
    if (!record) return false;
    const auto reservation = decode(*record, model::read_reservation);
    return reservation && reservation->live();
}

}  // namespace

BindGuard::BindGuard(const store::Store& store, const base::Clock& clock) : clock_(clock) {
    std::vector<std::string_view> kinds{"nodes", kReservations, "pods"};
    for (const auto& [stored, kind] : kStorage) kinds.push_back(stored);
    for (const auto kind : kinds) {
        const auto page = store.list({.kind = std::string(kind)});
        CHECK(page.ok());
        for (const auto& record : page->records) {
            const store::Event event{store::Event::Type::Added, record, nullptr};
            count(event, read(event));
        }
    }
    ledger_.pass_time(clock_.wall(), clock_.now());
}

std::shared_ptr<void> BindGuard::prepare(const store::Write& write) const {
    if (write.key.kind != "pods" || !write.bytes || !base::mentions(*write.bytes, "\"nodeName\"")) return nullptr;
    auto pod = read_pod_here(*write.bytes);
    return pod ? std::make_shared<model::Pod>(std::move(*pod)) : nullptr;
}

// An object is read once, for the judgement and for the count. Nothing, where it says nothing to the ledger; what
// cannot be read has been refused at the door.
BindGuard::Object BindGuard::read(const store::Event& event) {
    const auto& record = *event.record;
    if (event.type == store::Event::Type::Deleted) return {};
    if (event.prepared) {
        const auto pod = std::static_pointer_cast<model::Pod>(std::exchange(event.prepared, nullptr));
        pod->meta.revision = record.revision;
        return event.memo.get<model::Pod>([&] { return pod; });
    }
    if (record.key.kind == "pods" && mentions_node(record)) {
        if (auto pod = decode_pod(*record.bytes, record.revision, &event.memo)) return std::move(*pod);
    } else if (record.key.kind == "nodes") {
        if (auto node = decode(record, model::read_node)) return std::make_shared<const model::Node>(std::move(*node));
    } else if (record.key.kind == kReservations) {
        if (auto object = decode(record, model::read_reservation)) {
            return std::make_shared<const model::Reservation>(std::move(*object));
        }
    }
    return {};
}

Status BindGuard::admit(std::span<const store::EventPtr> events, const store::Head&) {
    ledger_.pass_time(clock_.wall(), clock_.now());
    std::vector<Object> objects;
    for (const auto& event : events) {
        objects.push_back(read(*event));
        if (auto fits = judge(*event, objects.back()); !fits) return fits;
    }
    for (size_t i = 0; i < events.size(); ++i) count(*events[i], objects[i]);
    return {};
}

// Only a step from "somewhere to be placed" to "placed" is judged.
Status BindGuard::judge(const store::Event& event, const Object& object) const {
    if (event.type != store::Event::Type::Modified) return {};
    if (const auto* pod = std::get_if<PodPtr>(&object)) {
        const bool counted = ledger_.find_pod(event.record->uid) != ledger::kNone;
        if ((*pod)->node.empty() || (*pod)->terminal() || counted || is_bound(event.previous)) return {};
        return rules_.judge_bind(**pod, ledger_);
    }
    if (const auto* reservation = std::get_if<ReservationPtr>(&object)) {
        if (!(*reservation)->live() || is_placed(event.previous)) return {};
        return rules_.judge_place(**reservation, ledger_);
    }
    return {};
}

void BindGuard::count(const store::Event& event, const Object& object) {
    if (const auto* pod = std::get_if<PodPtr>(&object)) return ledger_.put(**pod);
    if (const auto* node = std::get_if<NodePtr>(&object)) return ledger_.put(*node);
    if (const auto* reservation = std::get_if<ReservationPtr>(&object)) return ledger_.put(*reservation);
    const auto& record = *event.record;
    if (event.type == store::Event::Type::Deleted) {
        if (record.key.kind == "nodes") return ledger_.remove_node(record.key.name);
        if (record.key.kind == "pods") return ledger_.remove_pod(record.uid);
        if (record.key.kind == kReservations) return ledger_.remove_reservation(record.uid);
    }
    if (const auto kind = storage_kind(record.key.kind); !kind.empty()) count_storage(kind, event);
}

void BindGuard::count_storage(std::string_view kind, const store::Event& event) {
    const auto& record = *event.record;
    if (event.type == store::Event::Type::Deleted) {
        return cli::remove_supporting(kind, record.key.ns, record.key.name, ledger_);
    }
    // What cannot be read has been refused at the door.
    if (const auto view = parse_here(*record.bytes)) {
        (void)cli::put_supporting(kind, *view, ledger_, record.revision);
    }
}

}  // namespace berth::app
