#include "cli/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/json_view.h"
#include "control/reservations.h"
#include "model/node.h"
#include "model/node_reservation.h"
#include "model/preemption_hold.h"
#include "model/reservation_rules.h"
#include "model/reservation_status.h"
#include "sched/cycle.h"
#include "sched/draw.h"
#include "sched/volume_plan.h"

namespace berth::cli {
namespace {

void fill(Placement& outcome, const sched::Verdict& verdict, const ledger::Ledger& ledger) {
    for (size_t i = 0; i < verdict.feasible.size(); ++i) {
        const std::string name(ledger.name(verdict.feasible[i]));
        outcome.feasible.push_back(name);
        if (!verdict.scores.empty()) outcome.scores[name] = verdict.scores[i];
        if (!verdict.reservation_scores.empty()) outcome.reservation_scores[name] = verdict.reservation_scores[i];
    }
    std::sort(outcome.feasible.begin(), outcome.feasible.end());
    for (ledger::Row row = 0; row < ledger.rows(); ++row) {
        if (!ledger.alive(row)) continue;
        if (const auto* refusal = verdict.strikes.why(row))
            outcome.rejected[std::string(ledger.name(row))] = refusal->reasons;
    }
    outcome.error = verdict.fault;
    if (!verdict.fault.empty()) return;
    if (verdict.chosen == ledger::kNoRow) {
        outcome.message = sched::diagnosis(verdict.strikes, ledger);
    } else {
        outcome.node = ledger.name(verdict.chosen);
    }
}

// Kinds are told apart by their group: others have Services and Reservations, too. Without one it is believed.
bool means_something(std::string_view kind, std::string_view version) {
    const auto slash = version.find('/');
    const std::string_view group = slash == version.npos ? "" : version.substr(0, slash);
    const auto* known = ledger::kind_named(kind);
    return known != nullptr && (version.empty() || known->group == group);
}

}  // namespace

// One pending object in the queue: highest priority first, then the oldest, then the first that came.
struct World::Entrant {
    int32_t priority;
    base::Time created;
    uint64_t arrival;
    bool is_reservation;
    std::string key;
    auto rank() const { return std::tuple(-static_cast<int64_t>(priority), created, arrival); }
};

// What its scheduler says that could not place the pod for other reasons than a lack of nodes.
static std::string failure_in(const Json& pod) {
    const Json* conditions = base::find(pod, {"status", "conditions"});
    if (conditions == nullptr || !conditions->is_array()) return "";
    for (const auto& condition : conditions->as_array()) {
        const bool failed = base::find_string(condition, {"type"}) == "PodScheduled" &&
                            base::find_string(condition, {"reason"}) == "SchedulerError";
        if (failed) return std::string(base::find_string(condition, {"message"}));
    }
    return "";
}

Result<bool> World::put(const Json& object) {
    const std::string_view kind = base::find_string(object, {"kind"});
    const std::string name(base::find_string(object, {"metadata", "name"}));
    if (!means_something(kind, base::find_string(object, {"apiVersion"}))) return false;
    base::JsonParser parser;
    const std::string text = base::to_text(object);
    const JsonView view = TRY(parser.parse(text));
    const bool is_pending_kind = kind == "Pod" || kind == "Reservation";
    const Error nameless = base::bad_request(fmt::format("{}: metadata.name is missing", kind));
    if (name.empty() && !is_pending_kind) return nameless;
    if (kind == "Node") {
        auto node = TRY(model::read_node(view));
        for (const auto& fault : model::view_of(node).faults) warn("Node", name, fault.message);
        ledger_.put(std::make_shared<model::Node>(std::move(node)));
        return true;
    }
    const auto spoiled = [&](bool is_reservation, const Error& error) {
        const auto ns = base::find_string(object, {"metadata", "namespace"});
        broken_.push_back({is_reservation, is_reservation ? "" : std::string(ns.empty() ? "default" : ns), name,
                           error.message, false});
    };
    if (name.empty()) {
        spoiled(kind == "Reservation", nameless);
        return true;
    }
    if (kind == "Pod") {
        auto pod = model::read_pod(view);
        if (pod) {
            failures_[pod->meta.full_name()] = failure_in(object);
            TRY(put_pod(std::move(*pod)));
        } else {
            spoiled(false, pod.error());
        }
        return true;
    }
    if (kind == "Reservation") {
        auto reservation = model::read_reservation(view);
        forget_broken(name);
        if (reservation) {
            TRY(put_reservation(std::move(*reservation)));
        } else {
            spoiled(true, reservation.error());
        }
        return true;
    }
    const auto& row = *ledger::kind_named(kind);
    row.put(ledger_, TRY(row.read(view, 0)));
    return true;
}

void World::warn(std::string_view kind, std::string_view name, std::string_view what) {
    warnings_.push_back(fmt::format("{} \"{}\": {}", kind, name, what));
}

Status World::put_pod(model::Pod pod) {
    const std::string key = pod.meta.full_name();
    for (const auto& event : control::judge_links(pod)) {
        if (event.kind == "Pod") warn("Pod", key, event.message);
    }
    const auto [order, fresh] = order_.emplace("pod/" + key, arrivals_);
    if (fresh) ++arrivals_;
    if (pod.meta.uid.empty()) pod.meta.uid = fmt::format("pod-{}", order->second);
    if (pod.meta.created == base::Time{}) pod.meta.created = now_;
    ledger_.put(pod);
    pods_.insert_or_assign(key, std::move(pod));
    return {};
}

Status World::put_reservation(model::Reservation reservation) {
    const std::string key = reservation.meta.name;
    if (!reservation.fault.empty()) warn("Reservation", key, reservation.fault + "; nobody may draw from it");
    if (reservation.ttl && reservation.expires) {
        warn("Reservation", key, "spec.ttl and spec.expires are meant to be exclusive; spec.expires decides");
    }
    const auto [order, fresh] = order_.emplace("reservation/" + key, arrivals_);
    if (fresh) ++arrivals_;
    if (reservation.meta.uid.empty()) reservation.meta.uid = fmt::format("reservation-{}", order->second);
    if (reservation.meta.created == base::Time{}) reservation.meta.created = now_;
    store(std::move(reservation));
    return {};
}

void World::store(model::Reservation reservation) {
    auto object = std::make_shared<const model::Reservation>(std::move(reservation));
    ledger_.put(object);
    reservations_.insert_or_assign(object->meta.name, std::move(object));
}

void World::remove(std::string_view kind, std::string_view ns, std::string_view name) {
    const std::string key = ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name);
    if (kind != "Pod" && kind != "Reservation") {
        model::Meta gone;
        gone.ns = ns;
        gone.name = name;
        return ledger::kind_named(kind)->remove(ledger_, gone);
    }
    if (const auto pod = pods_.find(key); kind == "Pod" && pod != pods_.end()) {
        ledger_.remove_pod(pod->second.meta.uid);
        failures_.erase(key);
        pods_.erase(pod);
    }
    if (kind == "Reservation") forget_broken(name);
    if (const auto held = reservations_.find(name); kind == "Reservation" && held != reservations_.end()) {
        ledger_.remove_reservation(held->second->meta.uid);
        reservations_.erase(held);
    }
}

void World::advance_to(base::Time now) {
    now_ = now;
}

// Owners, success, expiry, lost nodes, waiting: what the controllers would write.
void World::reconcile() {
    const control::ReservationPass pass{ledger_, now_, base::Instant{now_.nanos}};
    store(control::reconcile_reservations(pass, ages_));
}

void World::store(control::Writes writes) {
    for (auto& write : writes.statuses) {
        model::Reservation next = *reservations_.find(write.target.name)->second;
        static_cast<model::ReservationStatus&>(next) = std::move(write.status);
        store(std::move(next));
    }
}

// A reservation that its owner has used up ends at once: what is left of it is free for the next decision, and for
// those that wait on its node first of all.
void World::use_up(const ledger::Charges& charges, ledger::Row row) {
    std::vector<ledger::ReservationIndex> used;
    for (const auto& charge : charges) {
        if (ledger_.reservation(charge.reservation).once) used.push_back(charge.reservation);
    }
    if (used.empty()) return;
    const control::ReservationPass pass{ledger_, now_, base::Instant{now_.nanos}};
    store(control::reconcile_these(pass, ages_, used));
    store(control::reconcile_these(pass, ages_, ledger_.waiting(row)));
}

std::vector<World::Entrant> World::entrants() const {
    std::vector<Entrant> all;
    for (const auto& [key, pod] : pods_) {
        if (ledger_.find_pod(pod.meta.uid) != ledger::kNone || pod.terminal() || pod.meta.deleted) continue;
        all.push_back({pod.spec->priority, pod.meta.created, order_.find("pod/" + key)->second, false, key});
    }
    for (const auto& [key, object] : reservations_) {
        if (object->phase != model::ReservationPhase::Pending || object->meta.deleted) continue;
        all.push_back(
            {object->spec->priority, object->meta.created, order_.find("reservation/" + key)->second, true, key});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
    return all;
}

// Classes may come after the objects that name them.
void World::resolve_classes() {
    ledger::default_storage_class(ledger_);
    for (auto& [key, pod] : pods_) {
        if (pod.has_priority) continue;
        if (ledger_.priority_classes().apply(pod) && pod.has_priority) ledger_.put(pod);
    }
    for (const auto& [name, object] : std::map(reservations_.begin(), reservations_.end())) {
        const auto* known = ledger_.priority_classes().find(object->priority_class);
        if (!known || object->spec->priority == known->value) continue;
        store(model::with_priority(*object, known->value));
    }
}

void World::see_nominations() {
    nominated_ = {};
    for (const auto& entrant : entrants()) {
        if (entrant.is_reservation) continue;
        const auto& pod = pods_.find(entrant.key)->second;
        if (pod.nominated_node.empty() || !pod.gates.empty()) continue;
        if (const auto room = reservation(model::preemption_hold_name(pod.meta.uid)); room && model::holds_room(*room))
            continue;
        nominated_.put(std::make_shared<const model::Pod>(pod), pod.nominated_node);
    }
}

void World::prepare() {
    reconcile();
    resolve_classes();
    see_nominations();
}

sched::Decision World::decide(const model::Pod& pod) {
    const sched::Profile& profile = profile_for(*pod.spec);
    const sched::Ask ask = sched::ask_for(pod, ledger_);
    const auto rows = static_cast<ledger::Row>(ledger_.rows());
    auto verdict = sched::weigh(ask, ledger_, profile, sched::filter(ask, ledger_, profile, nominated_, 0, rows));
    const ledger::Row waited_for = ledger_.row_of(pod.nominated_node);
    if (waited_for != ledger::kNoRow && verdict.strikes.open(waited_for)) {
        verdict.chosen = waited_for;
        verdict.fault.clear();  // a nominated node is not weighed against others
    }
    return sched::decided(ask, ledger_, nominated_, std::move(verdict));
}

sched::Preemption World::would_preempt(const sched::Ask& ask, const sched::Strikes& strikes) {
    if (!preempts_) return {};
    return sched::preempt(ask, ledger_, profile_for(*ask.spec), strikes, nominated_, costs_);
}

std::vector<Placement> World::settle() {
    prepare();
    std::vector<Placement> outcomes;
    for (auto& broken : broken_) {
        if (std::exchange(broken.told, true)) continue;
        Placement outcome;
        outcome.is_reservation = broken.is_reservation;
        outcome.ns = broken.ns;
        outcome.name = broken.name;
        outcome.error = broken.error;
        outcomes.push_back(std::move(outcome));
    }
    for (const auto& entrant : entrants()) {
        outcomes.push_back(entrant.is_reservation ? place_reservation(*reservations_.find(entrant.key)->second)
                                                  : place_pod(pods_.find(entrant.key)->second));
    }
    reconcile();
    return outcomes;
}

const sched::Profile& World::profile_for(const model::PodSpec& spec) const {
    if (profiles_.empty()) return sched::default_profile();
    const auto named = profiles_.find(spec.scheduler_name);
    return named == profiles_.end() ? profiles_.begin()->second : named->second;
}

Placement World::place_pod(const model::Pod& pod) {
    Placement outcome;
    outcome.ns = pod.meta.ns;
    outcome.name = pod.meta.name;
    if (!pod.gates.empty()) outcome.error = "Scheduling is blocked due to non-empty scheduling gates";
    if (!pod.has_priority && !pod.priority_class.empty()) {
        outcome.error = fmt::format("no PriorityClass with name {} was found", pod.priority_class);
    }
    if (outcome.error.empty()) outcome.error = sched::ask_for(pod, ledger_).fault;
    if (!outcome.error.empty()) return outcome;
    const sched::Decision decision = decide(pod);
    fill(outcome, decision.verdict, ledger_);
    if (!outcome.error.empty()) return outcome;
    if (decision.verdict.chosen == ledger::kNoRow) {
        make_room(pod, decision.verdict, outcome);
    } else {
        place(pod, decision, outcome);
    }
    return outcome;
}

void World::place(const model::Pod& pod, const sched::Decision& decision, Placement& outcome) {
    const ledger::Row row = decision.verdict.chosen;
    outcome.node = ledger_.name(row);
    for (const auto& charge : decision.charges) {
        const std::string& name = ledger_.reservation(charge.reservation).object->meta.name;
        if (outcome.reservation.empty()) outcome.reservation = name;
        auto& amounts = outcome.charges[name];
        charge.amount.for_each([&](model::ResourceId id, int64_t amount) {
            if (id != model::kPods && amount > 0) amounts.set(id, amount);
        });
    }
    nominated_.remove(pod.meta.uid);
    ledger_.volumes().assume(sched::volume_steps(sched::ask_for(pod, ledger_), ledger_, row));
    model::Pod bound = pod;
    bound.node = outcome.node;
    for (const auto& [key, value] : decision.annotations) bound.meta.annotations.set(key, value);
    ledger_.put(bound);
    pods_.insert_or_assign(pod.meta.full_name(), std::move(bound));
    use_up(decision.charges, row);
}

// Victims are gone for the next decisions, and the pod is where they were.
void World::make_room(const model::Pod& pod, const sched::Verdict& verdict, Placement& outcome) {
    if (!preempts_ || !profile_for(*pod.spec).preempts) return;
    const sched::Ask ask = sched::ask_for(pod, ledger_);
    const auto found = would_preempt(ask, verdict.strikes);
    if (found.ends_nomination) nominated_.remove(pod.meta.uid);
    if (!found.victims) {
        if (!found.message.empty()) outcome.message += " " + found.message;
        return;
    }
    outcome.message.clear();
    for (const auto& loser : nominated_.behind(ask, ledger_, found.victims->row)) {
        nominated_.remove(loser->meta.uid);
    }
    for (const auto index : found.victims->pods) {
        const auto& victim = ledger_.pod(index);
        outcome.victims.push_back(fmt::format("{}/{}", victim.ns(), victim.name.view()));
    }
    for (const auto& name : outcome.victims) {
        const auto slash = name.find('/');
        remove("Pod", name.substr(0, slash), name.substr(slash + 1));
    }
    reconcile();
    model::Pod there = pod;
    there.nominated_node = ledger_.name(found.victims->row);
    const sched::Decision decision = decide(there);
    if (decision.verdict.chosen == ledger::kNoRow) return fill(outcome, decision.verdict, ledger_);
    place(pod, decision, outcome);
}

Placement World::place_reservation(const model::Reservation& reservation) {
    Placement outcome;
    outcome.is_reservation = true;
    outcome.name = reservation.meta.name;
    if (const auto& named = reservation.priority_class; !named.empty() && !ledger_.priority_classes().find(named)) {
        outcome.error = fmt::format("no PriorityClass with name {} was found", named);
        return outcome;
    }
    const auto decision = sched::decide_reservation(reservation, ledger_, profile_for(*reservation.spec), nominated_);
    fill(outcome, decision.verdict, ledger_);
    model::Reservation next = reservation;
    model::ReservationStatus& status = next;
    if (outcome.node.empty()) {
        status = model::unschedulable(std::move(status), outcome.message, now_);
    } else if (decision.waiting) {
        status = model::placed_waiting(std::move(status), outcome.node, next.spec->requests, decision.missing, now_);
        outcome.message = model::find_condition(status, "Ready")->message;
    } else {
        status = model::placed(std::move(status), outcome.node, next.spec->requests, now_);
    }
    store(std::move(next));
    return outcome;
}

std::vector<Holding> World::holdings() const {
    std::vector<Holding> out;
    for (const auto& [name, object] : reservations_) {
        out.push_back(
            {name, object->phase, object->node, object->allocatable, object->allocated, object->current_owners});
    }
    for (const auto& broken : broken_) {
        if (broken.is_reservation && !reservations_.contains(broken.name)) out.emplace_back().name = broken.name;
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return out;
}

void World::forget_broken(std::string_view reservation) {
    std::erase_if(broken_, [&](const Broken& broken) { return broken.is_reservation && broken.name == reservation; });
}

const model::Pod* World::pod(std::string_view ns, std::string_view name) const {
    const auto found = pods_.find(fmt::format("{}/{}", ns, name));
    return found == pods_.end() ? nullptr : &found->second;
}

std::shared_ptr<const model::Reservation> World::reservation(std::string_view name) const {
    const auto found = reservations_.find(name);
    return found == reservations_.end() ? nullptr : found->second;
}

std::string World::failure_of(const model::Pod& pod) const {
    const auto found = failures_.find(pod.meta.full_name());
    return found == failures_.end() ? "" : found->second;
}

std::string World::fault_of(bool is_reservation, std::string_view ns, std::string_view name) const {
    for (const auto& broken : broken_) {
        if (broken.is_reservation == is_reservation && broken.ns == ns && broken.name == name) return broken.error;
    }
    return {};
}

const ledger::PodEntry* World::find_pod(std::string_view ns, std::string_view name) const {
    const auto found = pods_.find(fmt::format("{}/{}", ns, name));
    if (found == pods_.end()) return nullptr;
    const auto index = ledger_.find_pod(found->second.meta.uid);
    return index == ledger::kNone ? nullptr : &ledger_.pod(index);
}

}  // namespace berth::cli
