#include "sched/draw.h"

#include <algorithm>
#include <tuple>

#include "base/int128.h"
#include "base/saturating.h"
#include "model/allocated.h"
#include "sched/plugins/device_share.h"
#include "sched/which.h"

namespace berth::sched {
namespace {

constexpr int64_t kWhole = 1'000'000;  // shares are compared in millionths
// and added up finer than that, so that 2/3 and 1/3 make a whole.
constexpr int64_t kFine = 1'000'000;

// Amounts a pod asks for, without its slot.
template <class F>
void each_amount(const model::Resources& resources, F f) {
    resources.for_each([&](model::ResourceId id, int64_t amount) {
        if (id != model::kPods && amount > 0) f(id, amount);
    });
}

int64_t share_of(int64_t part, int64_t whole) {
    if (part >= whole) return kWhole * kFine;
    return static_cast<int64_t>(static_cast<int128>(part) * kWhole * kFine / whole);
}

int64_t mean_of(int64_t shares, int64_t count) {
    return (shares / count + kFine / 2) / kFine;
}

// The mean over the requested resources of the part that `remaining(id)` supplies.
template <class F>
int64_t supplied(const Ask& ask, F remaining) {
    int64_t sum = 0;
    int64_t count = 0;
    each_amount(ask.spec->requests, [&](model::ResourceId id, int64_t amount) {
        sum += share_of(remaining(id), amount);
        ++count;
    });
    return count == 0 ? kWhole : mean_of(sum, count);
}

// The mean over its resources of min(1, (charged + request) / allocatable).
int64_t fullness(ReservationIndex index, const Ask& ask, const View& ledger) {
    const auto& entry = ledger.reservation(index);
    int64_t sum = 0;
    int64_t count = 0;
    each_amount(entry.allocatable, [&](model::ResourceId id, int64_t amount) {
        const auto after = static_cast<int128>(entry.charged.get(id)) + ask.spec->requests.get(id);
        sum += share_of(after >= amount ? amount : static_cast<int64_t>(after), amount);
        ++count;
    });
    return count == 0 ? 0 : mean_of(sum, count);
}

bool holds(ReservationIndex index, const model::HostPort& port, const View& ledger) {
    const auto& ports = ledger.reservation(index).ports;
    return std::any_of(ports.begin(), ports.end(), [&](const auto& held) { return ledger::clash(held, port); });
}

int64_t wanted_ports(ReservationIndex index, const Ask& ask, const View& ledger) {
    return std::count_if(ask.spec->ports.begin(), ask.spec->ports.end(),
                         [&](const auto& port) { return holds(index, port, ledger); });
}

bool shares_claim(ReservationIndex index, const Ask& ask, const View& ledger) {
    if (ask.spec->volumes.empty()) return false;
    const auto& spec = *ledger.reservation(index).spec;
    if (spec.ns != ask.spec->ns) return false;
    return std::any_of(spec.volumes.begin(), spec.volumes.end(), [&](const model::Volume& held) {
        return held.kind == model::VolumeKind::Claim &&
               std::any_of(ask.spec->volumes.begin(), ask.spec->volumes.end(), [&](const model::Volume& volume) {
                   return volume.kind == held.kind && volume.id == held.id;
               });
    });
}

// Smaller is better. Those with an order come first; ties go to the oldest, then to the smaller name.
struct Rank {
    int64_t ports;
    bool unordered;
    int64_t order;
    int64_t share;     // negated
    int64_t fullness;  // negated
    base::Time created;
    std::string_view name;
    auto operator<=>(const Rank&) const = default;
};

Rank rank_of(ReservationIndex index, const Ask& ask, const View& ledger) {
    const auto& object = *ledger.reservation(index).object;
    return {-wanted_ports(index, ask, ledger),
            object.order == 0,
            object.order,
            -supplied(ask, [&](model::ResourceId id) { return ledger.remaining(index, id); }),
            -fullness(index, ask, ledger),
            object.meta.created,
            object.meta.name};
}

using Ranked = std::vector<std::pair<Rank, ReservationIndex>>;

// When all that are left after ports and order are reusable, only the earliest created is used.
void prefer_oldest_reusable(Ranked& ranked, const View& ledger) {
    const auto same_start = [&](const auto& other) {
        return std::tie(other.first.ports, other.first.unordered, other.first.order) ==
               std::tie(ranked.front().first.ports, ranked.front().first.unordered, ranked.front().first.order);
    };
    const auto end = std::find_if_not(ranked.begin(), ranked.end(), same_start);
    const bool reusable =
        std::all_of(ranked.begin(), end, [&](const auto& entry) { return !ledger.reservation(entry.second).once; });
    if (!reusable) return;
    std::sort(ranked.begin(), end, [](const auto& a, const auto& b) {
        return std::tie(a.first.created, a.first.name) < std::tie(b.first.created, b.first.name);
    });
}

// The best first.
void rank(Few& found, const Ask& ask, const View& ledger) {
    if (found.size() == 1) return;
    Ranked ranked;
    for (const ReservationIndex index : found) ranked.emplace_back(rank_of(index, ask, ledger), index);
    std::sort(ranked.begin(), ranked.end());
    prefer_oldest_reusable(ranked, ledger);
    for (size_t i = 0; i < found.size(); ++i) found[i] = ranked[i].second;
}

// Devices go by several names. Of a Restricted one's the pod gets what is left, and be it nothing.
bool has_devices(ReservationIndex index, const Ask& ask, const View& ledger) {
    const auto& demand = ask.spec->devices.demand;
    const auto* node = demand ? ledger.devices().at(ledger.reservation(index).row) : nullptr;
    return node && std::any_of(demand->types.begin(), demand->types.end(), [&](const auto& wanted) {
               return node->has_left(index, wanted.type) || plugins::restricts_devices(index, wanted.type, ledger);
           });
}

// Whether it has anything left of what the pod asks for: an amount, a device, a port, a claim, or, for a pod that asks
// for none of these, its slot.
bool useful(ReservationIndex index, const Ask& ask, const View& ledger) {
    bool asks = false;
    bool has = false;
    each_amount(ask.spec->requests, [&](model::ResourceId id, int64_t) {
        asks = true;
        has = has || ledger.remaining(index, id) > 0;
    });
    if (has || (!asks && ask.spec->ports.empty())) return true;
    return has_devices(index, ask, ledger) || wanted_ports(index, ask, ledger) > 0 || shares_claim(index, ask, ledger);
}

Drawing draw_from(std::span<const ReservationIndex> from, const Ask& ask, const View& ledger, Row row) {
    Drawing drawing;
    drawing.charges = charges_to(from, *ask.spec, ledger);
    drawing.lacking = ledger.lacking(ask.spec->requests, drawing.charges, row);
    return drawing;
}

// From no other; from none, if it is of no use.
Drawing draw_alone(ReservationIndex index, const Ask& ask, const View& ledger, Row row) {
    Drawing drawing = draw_from({&index, useful(index, ask, ledger) ? 1u : 0u}, ask, ledger, row);
    drawing.withheld = withheld_by(index, ask.spec->requests, ledger);
    return drawing;
}

Drawing draw_from_one(const Few& of, const Ask& ask, const View& ledger, Row row) {
    Few best;
    std::tuple<size_t, size_t, bool, bool> least;
    for (const ReservationIndex index : of) {
        const Drawing drawing = draw_alone(index, ask, ledger, row);
        const bool parts = finds_parts(ask, ledger, row, drawing.charges);
        const std::tuple lacks(drawing.lacking.size(), drawing.withheld.size(), !parts, drawing.charges.empty());
        if (best.empty() || lacks < least) {
            best.clear();
            least = lacks;
        }
        if (lacks == least) best.push_back(index);
    }
    rank(best, ask, ledger);
    return draw_alone(best.front(), ask, ledger, row);
}

// The pod's slot is charged to the nominated one: the first with which it has one.
Drawing draw_jointly(Few from, const Ask& ask, const View& ledger, Row row) {
    rank(from, ask, ledger);
    const Drawing best = draw_from(from, ask, ledger, row);
    if (!best.lacking.has(model::kPods)) return best;
    for (size_t i = 1; i < from.size(); ++i) {
        std::swap(from.front(), from[i]);  // the others stay in their order
        Drawing drawing = draw_from(from, ask, ledger, row);
        if (!drawing.lacking.has(model::kPods)) return drawing;
    }
    return best;
}

// Others may have taken more of a reservation than it had left; only the nominated one is charged beyond that.
Drawing draw_as_promised(const ledger::Charges& charges, const Ask& ask, const View& ledger, Row row) {
    Drawing drawing{charges, ledger.lacking(ask.spec->requests, charges, row), {}};
    for (const auto& charge : charges) {
        const bool nominated = &charge == &charges.front();
        if (nominated) drawing.withheld = withheld_by(charge.reservation, charge.amount, ledger);
        each_amount(charge.amount, [&](model::ResourceId id, int64_t amount) {
            if (!nominated && amount > ledger.remaining(charge.reservation, id)) drawing.withheld.push_back(id);
        });
    }
    return drawing;
}

}  // namespace

std::vector<model::ResourceId> withheld_by(ReservationIndex index, const model::Resources& request,
                                           const View& ledger) {
    std::vector<model::ResourceId> out;
    const auto& entry = ledger.reservation(index);
    if (entry.policy != model::AllocatePolicy::Restricted) return out;
    each_amount(request, [&](model::ResourceId id, int64_t amount) {
        if (!entry.allocatable.has(id) || !entry.object->restricts(id)) return;
        if (amount > ledger.remaining(index, id)) out.push_back(id);
    });
    return out;
}

Drawing draw_on(const Credit& credit, const Ask& ask, const View& ledger, Row row) {
    if (ledger.at(row).unreadable > 0) return draw_from({}, ask, ledger, row);
    if (credit.promised) return draw_as_promised(*credit.promised, ask, ledger, row);
    if (credit.matched.size() == 1) return draw_alone(credit.matched.front(), ask, ledger, row);
    Few alone, joint;
    bool once = false;
    for (const ReservationIndex index : credit.matched) {
        const auto& entry = ledger.reservation(index);
        if (entry.policy != model::AllocatePolicy::Default) {
            alone.push_back(index);
        } else if (useful(index, ask, ledger)) {
            joint.push_back(index);
            once = once || entry.once;
        }
    }
    if (!alone.empty()) return draw_from_one(alone, ask, ledger, row);
    if (once) return draw_jointly(std::move(joint), ask, ledger, row);
    return joint.empty() ? draw_from({}, ask, ledger, row) : draw_from_one(joint, ask, ledger, row);
}

ledger::Charges charges_on(const Ask& ask, const View& ledger, Row row) {
    const Credit* credit = ask.credit(row);
    return credit ? draw_on(*credit, ask, ledger, row).charges : ledger::Charges();
}

int64_t score_of(const ledger::Charges& charges, const Ask& ask, const View& ledger) {
    if (charges.empty()) return 0;
    const int64_t share = supplied(ask, [&](model::ResourceId id) {
        int64_t sum = 0;
        for (const auto& charge : charges) sum = base::saturating_add(sum, ledger.remaining(charge.reservation, id));
        return sum;
    });
    return share * (kWhole + 1) + fullness(charges.front().reservation, ask, ledger);
}

int64_t reservation_score(const Ask& ask, const View& ledger, Row row) {
    return score_of(charges_on(ask, ledger, row), ask, ledger);
}

ledger::Charges charges_to(std::span<const ReservationIndex> from, const model::PodSpec& spec, const View& ledger) {
    if (from.empty()) return {};
    ledger::Charges charges(from.size());
    if (from.size() == 1 && !spec.requests.empty()) {
        charges.front() = {from.front(), spec.requests};
        return charges;
    }
    for (size_t i = 0; i < from.size(); ++i) charges[i].reservation = from[i];
    model::Resources& rest = charges.front().amount = spec.requests;
    each_amount(spec.requests, [&](model::ResourceId id, int64_t amount) {
        int64_t left = amount - std::min(amount, ledger.remaining(charges.front().reservation, id));
        for (size_t i = 1; i < charges.size() && left > 0; ++i) {
            const int64_t part = std::min(left, ledger.remaining(charges[i].reservation, id));
            if (part == 0) continue;
            charges[i].amount.set(id, part);
            rest.add(id, -part);
            left -= part;
        }
    });
    const auto nothing = [](const ledger::Charge& charge) { return charge.amount.empty(); };
    charges.erase(std::remove_if(charges.begin(), charges.end(), nothing), charges.end());
    return charges;
}

namespace {

void add_links(const ledger::Charges& charges, const View& ledger, model::Labels& out) {
    std::vector<model::Draw> draws;
    for (const auto& charge : charges) {
        const auto& meta = ledger.reservation(charge.reservation).object->meta;
        draws.push_back({meta.name, meta.uid, charge.amount});
    }
    out.set(model::kReservationAllocated, model::allocated_text({draws.front().name, draws.front().uid}));
    draws.erase(draws.begin());
    if (!draws.empty()) out.set(model::kReservationDraws, model::draws_text(draws));
}

}  // namespace

model::Labels annotations_for(const ledger::Charges& charges, const ledger::WhichPtr& which, const model::Pod& pod,
                              const View& ledger) {
    model::Labels out;
    if (!charges.empty()) add_links(charges, ledger, out);
    if (which) model::write_which(*which, out);
    if (pod.meta.annotations.empty()) return out;
    // What stands there already means nothing, and must not begin to with the binding, which can only overwrite.
    for (const auto key : {model::kReservationAllocated, model::kReservationDraws}) {
        if (pod.meta.annotations.has(key) && !out.has(key)) out.set(key, "");
    }
    for (const auto key : model::kWhichAnnotations) {
        if (pod.meta.annotations.has(key) && !out.has(key)) out.set(key, "");
    }
    return out;
}

}  // namespace berth::sched
