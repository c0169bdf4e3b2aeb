// Reservation: who may draw from what, and what may be reserved beside what.
#include <fmt/format.h>

#include <algorithm>

#include "sched/draw.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

constexpr PluginId kPlugin = PluginId::Reservation;

// Before all others: pods that go nowhere at all, or which must draw and cannot.
class ReservationMatch final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    RowTerm row_term() const override { return RowTerm::Credit; }
    bool concerns(const Ask& ask, const View&) const override { return ask.pod && !ask.plain(); }

    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (!ask.pod) return;
        if (ask.plain()) return;
        if (!ask.fault.empty()) return strikes.refuse(strikes.refusal(kPlugin, {ask.fault}, true));
        const auto unmatched = strikes.refusal(kPlugin, {"node(s) no reservations match reservation affinity"}, true);
        const auto unreadable =
            strikes.refusal(kPlugin, {"node(s) had a pod whose reservation-allocated cannot be read"}, true);
        strikes.each_open([&](Row row) {
            const bool credit = ask.credit(row) != nullptr;
            if (!credit && ask.wishes.affinity) return strikes.strike(row, unmatched);
            if (credit && ledger.at(row).unreadable > 0) strikes.strike(row, unreadable);
        });
    }
};

// After the node's own resources: what the reservations themselves must have.
class ReservationFit final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    RowTerm row_term() const override { return RowTerm::Credit; }
    bool concerns(const Ask& ask, const View& ledger) const override {
        return ask.reservation ? !ledger.reservations().empty() : !ask.credits.empty();
    }

    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (ask.reservation) return strike_conflicts(*ask.reservation, ledger, strikes);
        if (ask.credits.empty()) return;
        strikes.each_open([&](Row row) {
            const Credit* credit = ask.credit(row);
            if (!credit) return;
            const Drawing drawing = draw_on(*credit, ask, ledger, row);
            if (!drawing.withheld.empty()) return refuse(row, insufficient(drawing.withheld), strikes);
            if (ask.wishes.affinity && drawing.charges.empty()) refuse(row, nothing_left(ask), strikes);
        });
    }

private:
    static std::vector<std::string> insufficient(const std::vector<model::ResourceId>& lacks) {
        std::vector<std::string> reasons;
        for (const auto id : lacks) {
            reasons.push_back(fmt::format("Reservation(s) Insufficient {}", model::resource_name(id)));
        }
        std::sort(reasons.begin(), reasons.end());
        return reasons;
    }
    // Of what the pod asks for.
    static std::vector<std::string> nothing_left(const Ask& ask) {
        std::vector<model::ResourceId> asked;
        ask.spec->requests.for_each([&](model::ResourceId id, int64_t amount) {
            if (amount > 0 && id != model::kPods) asked.push_back(id);
        });
        if (!asked.empty()) return insufficient(asked);
        if (ask.spec->ports.empty()) return insufficient({model::kPods});
        return {"Reservation(s) didn't have free ports for the requested pod ports"};
    }
    static void refuse(Row row, std::vector<std::string> reasons, Strikes& strikes) {
        strikes.strike(row, strikes.refusal(kPlugin, std::move(reasons), false));
    }

    static void strike_conflicts(const model::Reservation& asks, const View& ledger, Strikes& strikes) {
        if (asks.made_by_us()) return;
        const bool joint = asks.policy == model::AllocatePolicy::Default;
        const auto conflict = strikes.refusal(kPlugin, {"node(s) reservation allocate policy conflict"}, true);
        const auto same = strikes.refusal(kPlugin, {"node(s) already had the same reusable reservation"}, true);
        strikes.each_open([&](Row row) {
            for (const ReservationIndex index : ledger.at(row).reservations) {
                const auto& other = *ledger.reservation(index).object;
                const bool differ = joint != (other.policy == model::AllocatePolicy::Default);
                const bool reusable = !asks.allocate_once && !other.allocate_once;
                if (!differ && !reusable) continue;
                if (other.made_by_us() || other.meta.uid == asks.meta.uid) continue;
                if (differ) return strikes.strike(row, conflict);
                if (model::same_purpose(asks, other)) return strikes.strike(row, same);
            }
        });
    }
};

}  // namespace

std::shared_ptr<const Filter> reservation_match() {
    return std::make_shared<ReservationMatch>();
}

std::shared_ptr<const Filter> reservation_fit() {
    return std::make_shared<ReservationFit>();
}

}  // namespace berth::sched::plugins
