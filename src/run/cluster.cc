#include "run/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "base/json_view.h"
#include "control/reservations.h"
#include "model/node_reservation.h"

namespace berth::run {
namespace {

// How far time may run ahead while things settle: many backoffs, and less than anything else that waits for a time.
constexpr base::Duration kAhead = std::chrono::milliseconds(1);
constexpr base::Duration kBackoff = std::chrono::nanoseconds(1);
// Steps for each object until all are at rest; more than any cluster needs.
constexpr size_t kMostSteps = 1000;

sched::SchedulerOptions scheduler_options(const ClusterOptions& options) {
    sched::SchedulerOptions out;
    out.claims_first = !options.ends_with_bind;
    out.holds_rooms = options.holds_rooms;
    out.shares = options.shares;
    out.first_backoff = kBackoff;
    out.longest_backoff = kBackoff;
    out.counts_costs = false;
    return out;
}

std::string key_of(std::string_view ns, std::string_view name) {
    return ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name);
}

// The uid of the pod that is to go where others make room for it; empty: there is none.
std::string preemptor_in(const std::vector<sched::Plan>& plans) {
    for (const auto& plan : plans) {
        const auto* refuse = std::get_if<sched::RefusePod>(&plan);
        if (refuse && refuse->nominated && !refuse->nominated->empty()) return refuse->uid;
    }
    return "";
}

}  // namespace

sched::Scheduler::Profiles usual_profiles() {
    sched::Scheduler::Profiles out;
    for (const auto* name : {"berth", "default-scheduler", "koord-scheduler"}) {
        out.emplace(name, sched::default_profile());
    }
    return out;
}

bool Cluster::is_pending(const model::Pod& pod) {
    return pod.node.empty() && !pod.terminal() && !pod.meta.deleted;
}

model::Pod made_again(model::Pod pod) {
    pod.node.clear();
    pod.nominated_node.clear();
    pod.phase = model::PodPhase::Pending;
    pod.started.reset();
    pod.meta.uid.clear();
    pod.meta.created = {};
    for (const auto key : model::kPlacementAnnotations) pod.meta.annotations.erase(key);
    return pod;
}

Cluster::Cluster(base::Time now, ClusterOptions options)
    : options_([&] {
          for (auto& [name, profile] : options.profiles) profile.preempts = profile.preempts && options.preempts;
          return std::move(options);
      }()),
      wall_(now),
      now_{now.nanos},
      scheduler_(options_.profiles, [this] {
          auto out = scheduler_options(options_);
          out.witness = [this](const sched::Ask& ask, const sched::Strikes* refused) { see(ask, refused); };
          return out;
      }()) {}

// ---- what others write

// What the controller wrote beside an annotation stays when somebody else writes the node.
void Cluster::put(model::Node node) {
    const auto row = ledger().row_of(node.meta.name);
    const std::string applied(model::kReservationApplied);
    if (row != ledger::kNoRow && node.meta.annotations.find(applied) == nullptr) {
        const auto* before = ledger().node(row).meta.annotations.find(applied);
        if (before != nullptr) node.meta.annotations.set(applied, *before);
    }
    const model::NodeView view = model::view_of(node);
    if (view.applied.empty()) {
        node.meta.annotations.erase(applied);
    } else {
        node.meta.annotations.set(applied, view.applied);
    }
    scheduler_.put(std::make_shared<const model::Node>(std::move(node)), now_);
}

void Cluster::put(model::Pod pod) {
    const std::string key = pod.meta.full_name();
    const auto known = pods_.find(key);
    if (known != pods_.end() && pod.meta.uid.empty()) pod.meta.uid = known->second.pod.meta.uid;
    if (known != pods_.end() && pod.meta.uid != known->second.pod.meta.uid) erase_pod(key);
    const auto [found, fresh] = pods_.try_emplace(key);
    if (fresh) found->second.arrival = arrivals_++;
    if (pod.meta.uid.empty()) pod.meta.uid = fmt::format("pod-{}", found->second.arrival);
    if (pod.meta.created == base::Time{}) pod.meta.created = wall_;
    StoredPod& stored = found->second;
    stored.pod = std::move(pod);
    const bool waits = is_pending(stored.pod);
    if (waits || !stored.pod.has_priority) fresh_[stored.arrival] = {false, key};
    if (!waits) feed(stored.pod);
}

// To the scheduler, under a name that it serves.
void Cluster::feed(const model::Pod& pod) {
    if (serves(pod) || !is_pending(pod)) return scheduler_.put(std::make_shared<const model::Pod>(pod), now_);
    model::Pod ours = pod;
    auto spec = std::make_shared<model::PodSpec>(*pod.spec);
    spec->scheduler_name = first_profile();
    ours.spec = std::move(spec);
    scheduler_.put(std::make_shared<const model::Pod>(std::move(ours)), now_);
}

void Cluster::put(model::Reservation reservation) {
    const std::string name = reservation.meta.name;
    const auto known = reservations_.find(name);
    if (known != reservations_.end() && reservation.meta.uid.empty()) {
        reservation.meta.uid = known->second.object->meta.uid;
    }
    if (known != reservations_.end() && reservation.meta.uid != known->second.object->meta.uid) {
        erase_reservation(name);
    }
    const auto [found, fresh] = reservations_.try_emplace(name);
    if (fresh) found->second.arrival = arrivals_++;
    if (reservation.meta.uid.empty()) reservation.meta.uid = fmt::format("reservation-{}", found->second.arrival);
    if (reservation.meta.created == base::Time{}) reservation.meta.created = wall_;
    if (reservation.phase != model::ReservationPhase::Pending) return store(std::move(reservation));
    reservation.meta.revision = ++revision_;
    found->second.object = std::make_shared<const model::Reservation>(std::move(reservation));
    fresh_[found->second.arrival] = {true, name};
}

void Cluster::store(model::Reservation reservation) {
    reservation.meta.revision = ++revision_;
    auto object = std::make_shared<const model::Reservation>(std::move(reservation));
    reservations_.find(object->meta.name)->second.object = object;
    scheduler_.put(std::move(object), now_);
}

Status Cluster::put(const ledger::Kind& kind, JsonView document) {
    const ledger::Object object = TRY(kind.read(document, ++revision_));
    if (const auto pod = object.as<model::Pod>()) {
        put(*pod);
    } else if (const auto node = object.as<model::Node>()) {
        put(*node);
    } else if (const auto reservation = object.as<model::Reservation>()) {
        put(*reservation);
    } else {
        scheduler_.put(object, now_);
    }
    return {};
}

void Cluster::remove(std::string_view kind, std::string_view ns, std::string_view name) {
    if (kind == "Pod") return erase_pod(key_of(ns, name));
    if (kind == "Reservation") return erase_reservation(std::string(name));
    model::Meta gone;
    gone.ns = ns;
    gone.name = name;
    if (const auto* row = ledger::kind_named(kind)) scheduler_.remove(*row, gone, now_);
}

void Cluster::erase_pod(const std::string& key) {
    const auto found = pods_.find(key);
    if (found == pods_.end()) return;
    const model::Meta gone = std::move(found->second.pod.meta);
    fresh_.erase(found->second.arrival);
    refusals_.erase(gone.uid);
    pods_.erase(found);
    scheduler_.remove(ledger::kind_of(typeid(model::Pod)), gone, now_);
}

void Cluster::displace(const std::string& ns, const std::string& name) {
    const auto found = pods_.find(key_of(ns, name));
    if (found == pods_.end()) return;
    model::Pod again = made_again(found->second.pod);
    erase_pod(found->first);
    put(std::move(again));
}

void Cluster::erase_reservation(const std::string& name) {
    const auto found = reservations_.find(name);
    if (found == reservations_.end()) return;
    const ReservationPtr gone = found->second.object;
    fresh_.erase(found->second.arrival);
    reservations_.erase(found);
    scheduler_.remove(ledger::kind_of(typeid(model::Reservation)), gone->meta, now_);
}

void Cluster::advance_to(base::Time wall) {
    now_ = std::max(now_, now_ + (wall - wall_));
    wall_ = wall;
}

// ---- what happens

// In the order in which they came, once the classes are known that they name. A pending one whose class is not there
// stays outside the queue.
void Cluster::feed_fresh() {
    for (auto& claim : ledger::given_default_class(ledger())) scheduler_.put(std::move(claim), now_);
    std::erase_if(fresh_, [&](const auto& entry) {
        const auto& [is_reservation, key] = entry.second;
        if (is_reservation) return find_class(reservations_.find(key)->second);
        StoredPod& stored = pods_.find(key)->second;
        stored.unclassed = !ledger().priority_classes().apply(stored.pod).ok();
        if (!stored.unclassed) feed(stored.pod);
        return !stored.unclassed;
    });
}

bool Cluster::find_class(StoredReservation& stored) {
    const std::string& named = stored.object->priority_class;
    const auto* known = ledger().priority_classes().find(named);
    stored.unclassed = !named.empty() && !known;
    if (stored.unclassed) {
        scheduler_.put_unclassed(stored.object);
        return false;
    }
    if (known) {
        stored.object = std::make_shared<const model::Reservation>(model::with_priority(*stored.object, known->value));
    }
    scheduler_.put(stored.object, now_);
    return true;
}

void Cluster::prepare() {
    if (stop_) return;
    feed_fresh();
    do {
        carry_out_all(step(0));
    } while (reconcile());
}

bool Cluster::reconcile() {
    const control::ReservationOptions options{options_.gc.value_or(base::Duration::max()), false};
    auto changes = control::reconcile_reservations(options, scheduler_.ledger(), ages_, wall_, now_);
    bool stored = false;
    for (auto& change : changes) {
        stored = stored || change.over || change.status;
        store(std::move(change));
    }
    return stored;
}

void Cluster::store(control::ReservationChange change) {
    if (change.over) return erase_reservation(change.name);
    if (!change.status) return;
    model::Reservation next = *reservations_.find(change.name)->second.object;
    static_cast<model::ReservationStatus&>(next) = std::move(*change.status);
    store(std::move(next));
}

std::vector<Placement> Cluster::settle() {
    said_.clear();
    decisions_ = 0;
    steps_ = 0;
    again_.reset();
    prepare();
    const auto order = turns();
    rest();
    return answers_for(order);
}

void Cluster::settle_before(size_t turn) {
    prepare();
    steps_ = 0;
    stop_ = turn;
    rest();
}

// A jump that moved nobody would be followed by another like it.
void Cluster::rest() {
    const base::Instant end = now_ + kAhead;
    progress_ = true;
    while (true) {
        drain();
        if (stop_ && steps_ >= *stop_) return;
        ++steps_;
        if (reconcile()) continue;
        const auto next = scheduler_.next_wake();
        if (!next || *next > end || !std::exchange(progress_, false)) return;
        now_ = std::max(now_, *next);
    }
}

// One decision at a time: what follows from it has been done when the next one is made.
void Cluster::drain() {
    size_t left = kMostSteps * (pods_.size() + reservations_.size() + 1);
    for (; left > 0; --left) {
        if (stop_ && steps_ >= *stop_) return;
        if (auto plans = step(1); !plans.empty()) {
            const std::string preemptor = preemptor_in(plans);
            if (!preemptor.empty()) tell_again(preemptor);
            carry_out_all(std::move(plans));
            if (!preemptor.empty()) make_way(preemptor);
            ++steps_;
            continue;
        }
        const auto next = scheduler_.next_wake();
        if (!next || *next > now_) return;
    }
}

// Those who were going before anybody asked them to go with the others.
void Cluster::make_way(const std::string& uid) {
    for (const auto& victim : scheduler_.nominated().victims(uid)) {
        const auto index = ledger().find_pod(victim);
        if (index == ledger::kNone) continue;
        const auto& entry = ledger().pod(index);
        evict({victim, std::string(entry.ns()), std::string(entry.name.view()), "", uid, ""});
    }
    reconcile();
    carry_out_all(scheduler_.step_for(uid, now_, wall_));
}

void Cluster::carry_out_all(std::vector<sched::Plan> plans) {
    std::deque<sched::Plan> open(std::make_move_iterator(plans.begin()), std::make_move_iterator(plans.end()));
    while (!open.empty()) {
        const sched::Plan plan = std::move(open.front());
        open.pop_front();
        auto further = carry_out(plan);
        std::move(further.begin(), further.end(), std::back_inserter(open));
    }
}

// ---- questions

const sched::Profile& Cluster::profile_for(const model::PodSpec& spec) const {
    const auto named = options_.profiles.find(spec.scheduler_name);
    return named == options_.profiles.end() ? options_.profiles.begin()->second : named->second;
}

sched::Decision Cluster::decide(const model::Pod& pod) {
    return scheduler_.would_decide(pod, profile_for(*pod.spec));
}

sched::Decision Cluster::decide(const model::Reservation& reservation) {
    return scheduler_.would_decide(reservation, profile_for(*reservation.spec));
}

sched::Preemption Cluster::would_preempt(const sched::Ask& ask, const sched::Strikes& strikes) {
    const sched::Profile& profile = profile_for(*ask.spec);
    if (!profile.preempts) return {};
    return scheduler_.would_preempt(ask, profile, strikes, costs_);
}

const model::Pod* Cluster::pod(std::string_view ns, std::string_view name) const {
    const auto found = pods_.find(key_of(ns, name));
    return found == pods_.end() ? nullptr : &found->second.pod;
}

std::shared_ptr<const model::Reservation> Cluster::reservation(std::string_view name) const {
    const auto found = reservations_.find(name);
    return found == reservations_.end() ? nullptr : found->second.object;
}

void Cluster::each_pod(const std::function<void(const model::Pod&)>& use) const {
    for (const auto& [key, stored] : pods_) use(stored.pod);
}

void Cluster::each_reservation(const std::function<void(const model::Reservation&)>& use) const {
    for (const auto& [name, stored] : reservations_) use(*stored.object);
}

std::map<std::string, size_t> Cluster::foreign() const {
    std::map<std::string, size_t> out;
    each_pod([&](const model::Pod& pod) {
        if (is_pending(pod) && !serves(pod)) ++out[pod.spec->scheduler_name];
    });
    return out;
}

}  // namespace berth::run
