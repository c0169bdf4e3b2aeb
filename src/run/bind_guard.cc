#include "run/bind_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/mentions.h"
#include "base/string_map.h"
#include "model/allocated.h"
#include "model/node.h"
#include "run/decoded.h"

namespace berth::run {
namespace {

// The kinds that judging a placement reads, by the store's name for them. Null: it is none of them.
const ledger::Kind* judged_kind(std::string_view stored) {
    static const auto by_name = [] {
        base::StringMap<const ledger::Kind*> out;
        for (const auto& kind : ledger::kinds()) {
            if (kind.judged()) out.emplace(kind.stored(), &kind);
        }
        return out;
    }();
    const auto found = by_name.find(stored);
    return found == by_name.end() ? nullptr : found->second;
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

Error stays(const model::Reservation& before, std::string_view what) {
    return base::conflict(fmt::format("reservation \"{}\" holds {} on node \"{}\": {}", before.meta.name,
                                      before.allocatable.text(), before.node, what));
}

}  // namespace

BindGuard::BindGuard(const store::Store& store, BindRules rules, const base::Clock& clock)
    : clock_(clock), rules_(std::move(rules)) {
    for (const auto& kind : ledger::kinds()) {
        if (!kind.judged()) continue;
        const auto page = store.list({.kind = kind.stored()});
        CHECK(page.ok());
        for (const auto& record : page->records) {
            const store::Event event{store::Event::Type::Added, record, nullptr};
            if (const auto entry = read(event)) count(event, *entry);
        }
    }
    ledger_.pass_time(clock_.wall(), clock_.now());
}

std::shared_ptr<void> BindGuard::prepare(const store::Write& write) const {
    if (write.key.kind != "pods" || !write.bytes || !base::mentions(*write.bytes, "\"nodeName\"")) return nullptr;
    auto pod = read_pod_here(*write.bytes);
    return pod ? std::make_shared<model::Pod>(std::move(*pod)) : nullptr;
}

// An object is read once, for the judgement and for the count. What holds room and cannot be read may hold any amount.
Result<BindGuard::Entry> BindGuard::read(const store::Event& event) {
    const auto& record = *event.record;
    const ledger::Kind* kind = judged_kind(record.key.kind);
    if (kind == nullptr || event.type == store::Event::Type::Deleted) return Entry{kind};
    if (event.prepared) {
        const auto pod = std::static_pointer_cast<model::Pod>(std::exchange(event.prepared, nullptr));
        pod->meta.revision = record.revision;
        return Entry{kind, ledger::Object(event.memo.get<model::Pod>([&] { return pod; }))};
    }
    if (record.key.kind == "pods" && !mentions_node(record)) return Entry{};
    auto object = run::decode(*kind, *record.bytes, record.revision, &event.memo);
    if (object) return Entry{kind, std::move(*object)};
    if (kind->reader == ledger::Reader::Judges) return Entry{};  // refused at the door
    // A reservation that was never whole harms itself only.
    const bool was_whole = event.previous && decode(*event.previous, model::read_reservation);
    if (kind->gives<model::Reservation>() && !was_whole) return Entry{};
    return object.error();
}

Status BindGuard::admit(std::span<const store::EventPtr> events, const store::Head&) {
    ledger_.pass_time(clock_.wall(), clock_.now());
    std::vector<Entry> entries;
    for (const auto& event : events) {
        auto entry = read(*event);
        if (!entry) return base::invalid(entry.error().message);
        entries.push_back(std::move(*entry));
        if (auto fits = judge(*event, entries.back()); !fits) return fits;
    }
    for (size_t i = 0; i < events.size(); ++i) count(*events[i], entries[i]);
    return {};
}

Status BindGuard::judge(const store::Event& event, const Entry& entry) {
    if (!entry.object) return {};
    if (const auto pod = entry.object->as<model::Pod>()) return judge_pod(event, *pod);
    if (const auto reservation = entry.object->as<model::Reservation>()) return judge_reservation(event, *reservation);
    return {};
}

Status BindGuard::judge_pod(const store::Event& event, const model::Pod& pod) {
    if (pod.node.empty()) return {};
    if (pod.terminal()) return judge_ended(event, pod);
    const auto index = ledger_.find_pod(event.record->uid);
    if (index != ledger::kNone) {
        return rules_.judge_change(pod, index, ledger_, [&] { return decode(*event.previous, model::read_pod); });
    }
    return event.type == store::Event::Type::Added ? rules_.judge_created(pod, ledger_)
                                                   : rules_.judge_bind(pod, ledger_);
}

// It holds nothing, but what it says it draws from would be used up by it, e.g. a reservation for one pod, whose owner
// is bound, and a second pod that failed before it was.
Status BindGuard::judge_ended(const store::Event& event, const model::Pod& pod) {
    if (!event.previous) return {};
    const auto before = decode(*event.previous, model::read_pod);
    if (!before || !before->node.empty()) return {};
    return base::conflict(fmt::format("pod \"{}\" has ended, and goes nowhere", pod.meta.full_name()));
}

// Its way is from Pending to a place, from there to its end, and nowhere else.
Status BindGuard::judge_reservation(const store::Event& event, const model::Reservation& after) const {
    const auto before = event.previous ? decode(*event.previous, model::read_reservation)
                                       : Result<model::Reservation>(base::internal("there was none"));
    if (before && model::holds_room(*before)) return judge_hold(*before, after);
    if (before && model::is_final(before->phase) && after.phase != before->phase) {
        return base::conflict(
            fmt::format("reservation \"{}\" is {}, for good", after.meta.name, model::name_of(before->phase)));
    }
    if (!model::holds_room(after)) return {};
    if (!after.fault.empty()) return base::conflict(after.fault);
    return rules_.judge_place(after, ledger_);
}

Status BindGuard::judge_hold(const model::Reservation& before, const model::Reservation& after) const {
    using Phase = model::ReservationPhase;
    if (model::is_final(after.phase)) return {};
    if (after.phase != before.phase && !(before.phase == Phase::Waiting && after.phase == Phase::Available)) {
        return stays(before, fmt::format("it is {} and cannot become {}", model::name_of(before.phase),
                                         model::name_of(after.phase)));
    }
    if (!after.fault.empty() && before.fault.empty()) return stays(before, after.fault);
    if (after.node != before.node) return stays(before, fmt::format("it cannot move to \"{}\"", after.node));
    if (after.fault.empty() && before.fault.empty() && after.allocatable != before.allocatable) {
        return stays(before, "it cannot hold another amount");
    }
    const bool opens = after.phase != before.phase;
    if (!(after.which == before.which) && !(opens && before.which.empty())) {
        return stays(before, "it cannot hold others");
    }
    const bool same_owners = after.owners == before.owners;
    if (after.phase == before.phase && same_owners) return {};
    const auto index = ledger_.find_reservation(after.meta.uid);
    if (index == ledger::kNone || ledger_.reservation(index).row == ledger::kNoRow) {
        return stays(before, "there is no such node that could say whether it fits");
    }
    if (after.phase != before.phase && !ledger_.has_its_room(index)) {
        const Resources missing = ledger_.shortage(index);
        return stays(before, fmt::format("it waits for {}", missing.empty() ? "its ports" : missing.text()));
    }
    if (opens) TRY(rules_.judge_opening(after, ledger_));
    return same_owners ? Status() : judge_owners(after);
}

// Pods that draw from it and are no longer its owners would stand beside all of what it reserves.
// E.g. 4 cpu, R of 3 with an owner of 3 that it disowns: 3 + 3.
Status BindGuard::judge_owners(const model::Reservation& after) const {
    const auto index = ledger_.find_reservation(after.meta.uid);
    const auto& entry = ledger_.reservation(index);
    Resources leaving;
    for (const auto owner : entry.owners) {
        if (ledger_.is_owner(owner, after)) continue;
        if (entry.which && ledger_.pod(owner).which) {
            return stays(*entry.object, "pods that have cores of it would no longer be its owners");
        }
        leaving.add(ledger_.drawn(owner, index));
    }
    Status fits;
    leaving.for_each([&](model::ResourceId id, int64_t amount) {
        const int64_t reserved = entry.allocatable.get(id), charged = entry.charged.get(id);
        const int64_t more = std::max(reserved, charged - amount) + amount - std::max(reserved, charged);
        if (!fits || more <= 0 || more <= ledger_.free(entry.row, id)) return;
        fits = stays(*entry.object, fmt::format("pods that draw from it would no longer be its owners, and the node "
                                                "has too little {} for them beside it",
                                                model::resource_name(id)));
    });
    return fits;
}

void BindGuard::count(const store::Event& event, const Entry& entry) {
    if (entry.kind == nullptr) return;
    if (entry.object) return entry.kind->put(ledger_, *entry.object);
    model::Meta gone;
    gone.ns = event.record->key.ns;
    gone.name = event.record->key.name;
    gone.uid = event.record->uid;
    entry.kind->remove(ledger_, gone);
}

}  // namespace berth::run
