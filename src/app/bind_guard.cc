#include "app/bind_guard.h"

#include "base/json_view.h"
#include "model/node.h"
#include "sched/decide.h"

namespace berth::app {
namespace {

constexpr std::string_view kReservations = "scheduling.koordinator.sh/reservations";

template <class Read>
auto decode(const store::Record& record, Read read) -> decltype(read(JsonView())) {
    base::JsonParser parser;
    const JsonView view = TRY(parser.parse(*record.bytes));
    auto object = read(view);
    if (object) object->meta.revision = record.revision;
    return object;
}

bool is_bound(const store::RecordPtr& record) {
    if (!record) return false;
    const auto pod = decode(*record, model::read_pod);
    return !pod || !pod->node.empty();
}

bool is_placed(const store::RecordPtr& record) {
    if (!record) return false;
    const auto reservation = decode(*record, model::read_reservation);
    return reservation && reservation->live();
}

}  // namespace

BindGuard::BindGuard(const store::Store& store) {
    for (const std::string_view kind : {std::string_view("nodes"), kReservations, std::string_view("pods")}) {
        const auto page = store.list({.kind = std::string(kind)});
        CHECK(page.ok());
        for (const auto& record : page->records) count({store::Event::Type::Added, record, nullptr});
    }
}

Status BindGuard::admit(std::span<const store::EventPtr> events, const store::Head&) {
    for (const auto& event : events) {
        if (auto fits = judge(*event); !fits) return fits;
    }
    for (const auto& event : events) count(*event);
    return {};
}

// Only a step from "somewhere to be placed" to "placed" is judged. What cannot be read has been refused at the door.
Status BindGuard::judge(const store::Event& event) const {
    if (event.type != store::Event::Type::Modified) return {};
    const auto& record = *event.record;
    if (record.key.kind == "pods") {
        const auto pod = decode(record, model::read_pod);
        if (!pod || pod->node.empty() || pod->terminal() || is_bound(event.previous)) return {};
        return rules_.judge_bind(*pod, ledger_);
    }
    if (record.key.kind == kReservations) {
        const auto reservation = decode(record, model::read_reservation);
        const bool takes_place = reservation && reservation->phase == model::ReservationPhase::Available;
        if (!takes_place || is_placed(event.previous)) return {};
        return rules_.judge_room(sched::ask_for(*reservation), reservation->node, ledger_);
    }
    return {};
}

void BindGuard::count(const store::Event& event) {
    const auto& record = *event.record;
    const bool gone = event.type == store::Event::Type::Deleted;
    if (record.key.kind == "nodes") {
        if (gone) return ledger_.remove_node(record.key.name);
        if (auto node = decode(record, model::read_node)) {
            ledger_.put(std::make_shared<const model::Node>(std::move(*node)));
        }
    } else if (record.key.kind == "pods") {
        if (gone) return ledger_.remove_pod(record.uid);
        if (const auto pod = decode(record, model::read_pod)) ledger_.put(*pod);
    } else if (record.key.kind == kReservations) {
        if (gone) return ledger_.remove_reservation(record.uid);
        if (auto reservation = decode(record, model::read_reservation)) {
            ledger_.put(std::make_shared<const model::Reservation>(std::move(*reservation)));
        }
    }
}

}  // namespace berth::app
