#include "app/bind_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_view.h"
#include "model/allocated.h"
#include "model/node.h"
#include "sched/decide.h"
#include "sched/plugins/registry.h"

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
    rules_.filters = {sched::plugins::node_ports(), sched::plugins::fit_filter()};
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
        return judge_bind(*pod);
    }
    if (record.key.kind == kReservations) {
        const auto reservation = decode(record, model::read_reservation);
        const bool takes_place = reservation && reservation->phase == model::ReservationPhase::Available;
        if (!takes_place || is_placed(event.previous)) return {};
        return judge_room(sched::ask_for(*reservation), reservation->node);
    }
    return {};
}

Status BindGuard::judge_bind(const model::Pod& pod) const {
    const auto links = model::read_links(pod.meta.annotations);
    if (!links) return base::conflict(links.error().message);
    if (links->empty()) {
        sched::Ask ask;
        ask.spec = pod.spec.get();
        ask.pod = &pod;
        return judge_room(ask, pod.node);
    }
    const sched::Ask ask = sched::ask_for(pod, ledger_);
    const ledger::Row row = ledger_.row_of(pod.node);
    const sched::Credit* credit = row == ledger::kNoRow ? nullptr : ask.credit(row);
    const auto wanted = ledger_.find_reservation(links->allocated->uid);
    const bool matched =
        credit && std::find(credit->matched.begin(), credit->matched.end(), wanted) != credit->matched.end();
    if (!matched) {
        return base::conflict(fmt::format("reservation \"{}\" on node \"{}\" is not there for pod \"{}\"",
                                          links->allocated->name, pod.node, pod.meta.full_name()));
    }
    return judge_room(ask, pod.node);
}

Status BindGuard::judge_room(const sched::Ask& ask, const std::string& node) const {
    const ledger::Row row = ledger_.row_of(node);
    if (row == ledger::kNoRow) return base::conflict(fmt::format("there is no node \"{}\"", node));
    const auto strikes = sched::filter(ask, ledger_, rules_, row, row + 1);
    if (strikes.open(row)) return {};
    return base::conflict(
        fmt::format("node \"{}\" has no room for it: {}", node, fmt::join(strikes.why(row)->reasons, ", ")));
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
