// The workloads with reservations in core mode, see docs/reference/performance.md.
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "bench/core.h"

namespace berth::bench {
namespace {

constexpr size_t kReservations = 5000;

std::function<SharedSpec(size_t)> always(model::PodSpec spec) {
    return [spec = std::make_shared<const model::PodSpec>(std::move(spec))](size_t) { return spec; };
}

model::PodSpec spec_for(std::string_view app) {
    model::PodSpec spec = plain_spec();
    spec.labels.set("app", app);
    return spec;
}

std::string uid_of(size_t number) {
    return fmt::format("{:08x}-0000-4000-9000-{:012x}", number * 2654435761u % (uint64_t{1} << 32), number);
}

size_t nodes_of(const BenchOptions& options) {
    return options.nodes > 0 ? static_cast<size_t>(options.nodes) : 5000;
}

struct Made {
    std::string owners;  // the label app of the pods that it is for
    bool once = true;
    int64_t pods = 1;  // that it has room for
};

// Pending; with room for so many plain pods.
model::Reservation reservation(size_t number, const Made& made) {
    static const auto one = std::make_shared<const model::PodSpec>(plain_spec());
    model::Reservation out;
    out.meta.name = fmt::format("reservation-{}", number);
    out.meta.uid = uid_of(number);
    out.spec = one;
    if (made.pods != 1) {
        model::PodSpec spec = *one;
        one->requests.for_each(
            [&](model::ResourceId id, int64_t amount) { spec.requests.set(id, made.pods * amount); });
        spec.requests.set(model::kPods, 1);
        out.spec = std::make_shared<const model::PodSpec>(std::move(spec));
    }
    model::ReservationOwner owner;
    owner.labels = Selector({{"app", model::Requirement::Op::In, {made.owners}}});
    out.owners.push_back(std::move(owner));
    out.allocate_once = made.once;
    return out;
}

void put_available(model::Reservation object, size_t node, ledger::Ledger& ledger) {
    object.phase = model::ReservationPhase::Available;
    object.node = plain_node(node).meta.name;
    object.allocatable = object.spec->requests;
    ledger.put(std::make_shared<const model::Reservation>(std::move(object)));
}

// Plain pods among reservations that are all for somebody else, one a node and round again.
Result<JsonObject> miss(const BenchOptions& options) {
    const size_t count = options.variant == "50k" ? 50'000 : kReservations;
    const auto prepare = [nodes = nodes_of(options), count](ledger::Ledger& ledger) {
        for (size_t i = 0; i < count; ++i) {
            put_available(reservation(i, {.owners = fmt::format("other-{}", i)}), i % nodes, ledger);
        }
    };
    if (!options.variant.empty() && options.variant != "5k" && options.variant != "50k") {
        return base::bad_request("the variants are 5k and 50k");
    }
    return run_core({.node = plain_node, .spec = always(plain_spec()), .prepare = prepare}, options);
}

// Every pod finds a reservation: as many allocateOnce ones as pods, or reusable ones with room for two.
Result<JsonObject> hit(const BenchOptions& options) {
    const bool once = options.variant != "reusable";
    if (!options.variant.empty() && once && options.variant != "once") {
        return base::bad_request("the variants are once and reusable");
    }
    CoreWorkload workload{.pods = once ? 5000 : 10'000, .node = plain_node, .must_draw = true};
    const int64_t pods = options.pods > 0 ? options.pods : workload.pods;
    workload.prepare = [once, pods, nodes = nodes_of(options)](ledger::Ledger& ledger) {
        const auto count = static_cast<size_t>(once ? pods : (pods + 1) / 2);
        for (size_t i = 0; i < count; ++i) {
            put_available(reservation(i, {"owner", once, once ? 1 : 2}), i % nodes, ledger);
        }
    };
    workload.initial_spec = always(plain_spec());
    workload.spec = always(spec_for("owner"));
    return run_core(workload, options);
}

Result<JsonObject> create(const BenchOptions& options) {
    CoreWorkload workload{.node = plain_node};
    workload.reservation = [](size_t number) {
        return std::make_shared<const model::Reservation>(
            reservation(number, {.owners = fmt::format("owner-{}", number)}));
    };
    return run_core(workload, options);
}

// "1000/20": so many reservations, of which so many in a hundred match the pods.
struct Share {
    size_t reservations = 1000;
    size_t percent = 20;
};
Result<Share> read_share(const std::string& variant) {
    Share out;
    if (variant.empty()) return out;
    const char* end = variant.data() + variant.size();
    const auto count = std::from_chars(variant.data(), end, out.reservations);
    const bool divided = count.ec == std::errc() && count.ptr != end && *count.ptr == '/';
    const auto percent = std::from_chars(divided ? count.ptr + 1 : end, end, out.percent);
    if (!divided || percent.ec != std::errc() || percent.ptr != end || out.percent > 100) {
        return base::bad_request("the variant is RESERVATIONS/PERCENT, such as 1000/20");
    }
    return out;
}

// Reusable ones with room for two pods; once those that match are full, the pods go elsewhere.
Result<JsonObject> selector(const BenchOptions& options) {
    const Share share = TRY(read_share(options.variant));
    CoreWorkload workload{.node = plain_node, .initial_spec = always(plain_spec()), .spec = always(spec_for("owner"))};
    workload.prepare = [share, nodes = nodes_of(options)](ledger::Ledger& ledger) {
        for (size_t i = 0; i < share.reservations; ++i) {
            const bool match = i % 100 < share.percent;
            put_available(reservation(i, {match ? "owner" : fmt::format("other-{}", i), false, 2}), i % nodes, ledger);
        }
    };
    return run_core(workload, options);
}

// A thousand reservations a second end, and as many come; one in ten is for the pods.
class Churn {
public:
    Churn(size_t nodes) : nodes_(nodes) {}
    void prepare(ledger::Ledger& ledger) {
        for (size_t i = 0; i < kReservations; ++i) add(ledger);
        start_ = base::system_clock().now();
    }
    void step(ledger::Ledger& ledger, size_t decision) {
        if (decision % 16 != 0) return;
        const base::Duration elapsed = base::system_clock().now() - start_;
        const auto due = static_cast<size_t>(std::chrono::duration<double>(elapsed).count() * 1000);
        for (; ended_ < due; ++ended_) {
            ledger.remove_reservation(uid_of(ended_));
            add(ledger);
        }
    }

private:
    void add(ledger::Ledger& ledger) {
        const bool match = made_ % 10 == 0;
        put_available(reservation(made_, {match ? "owner" : fmt::format("other-{}", made_), false, 2}), made_ % nodes_,
                      ledger);
        ++made_;
    }
    size_t nodes_;
    size_t made_ = 0;
    size_t ended_ = 0;
    base::Instant start_;
};

Result<JsonObject> churn(const BenchOptions& options) {
    const auto state = std::make_shared<Churn>(nodes_of(options));
    CoreWorkload workload{.node = plain_node, .initial_spec = always(plain_spec()), .spec = always(spec_for("owner"))};
    workload.prepare = [state](ledger::Ledger& ledger) { state->prepare(ledger); };
    workload.churn = [state](ledger::Ledger& ledger, size_t decision) { state->step(ledger, decision); };
    return run_core(workload, options);
}

constexpr std::array kWorkloads{
    Workload{"ReservationHit", "pods that find a reservation; --variant once or reusable", hit},
    Workload{"ReservationMiss", "plain pods among 5,000 reservations of others; --variant 5k or 50k", miss},
    Workload{"ReservationCreate", "reservations ask for a place", create},
    Workload{"ReservationSelector", "--variant RESERVATIONS/PERCENT: how many, and how many match", selector},
    Workload{"ReservationChurn", "1,000 reservations a second end and come", churn},
};

}  // namespace

std::span<const Workload> reservation_workloads() {
    return kWorkloads;
}

}  // namespace berth::bench
