// The unkind network: requests that are under way together are carried out in any order, answers come in any order,
// late or never, each watch has its own delay, and scheduler and controllers die at any point.
#include <algorithm>
#include <utility>

#include "cluster.h"
#include "run/requests.h"

namespace berth::crash {

// What was decided leaves at once.
void Cluster::take_off() {
    for (auto& sent : outbox_) flights_.push_back({std::move(sent.plan), std::move(sent.request), {}});
    outbox_.clear();
}

std::vector<size_t> Cluster::flights(bool carried_out) const {
    std::vector<size_t> out;
    for (size_t i = 0; i < flights_.size(); ++i) {
        if (flights_[i].reply.has_value() == carried_out) out.push_back(i);
    }
    return out;
}

bool Cluster::controllers_wait() const {
    return std::any_of(flights_.begin(), flights_.end(), [](const auto& flight) { return !flight.plan; });
}

void Cluster::carry_out(Flight& flight) {
    ++requests_;
    flight.reply = server_.perform(flight.request);
}

void Cluster::answer(Flight flight, bool lost) {
    if (!flight.plan) return;
    const Result<link::Reply> nobody_knows = base::internal("the connection broke");
    hear(*flight.plan, lost ? nobody_knows : Result<link::Reply>(*flight.reply));
    take_off();
}

// One that is under way takes the answer with it: nobody knows whether it was carried out.
void Cluster::lose(base::Random& random) {
    if (flights_.empty()) return;
    const size_t which = random.below(flights_.size());
    Flight flight = std::move(flights_[which]);
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(which));
    answer(std::move(flight), true);
}

void Cluster::disorder(base::Random& random) {
    const auto act = random.below(40);
    if (act < 12) {
        feed_->poll_one(random, [this](const auto& kind, const auto& event) { apply(kind, event); });
    } else if (act < 17) {
        take(scheduler_->step(now_, wall_, 1 + random.below(12)));
        take_off();
    } else if (act < 24) {
        if (const auto open = flights(false); !open.empty()) carry_out(flights_[open[random.below(open.size())]]);
    } else if (act < 30) {
        const auto done = flights(true);
        if (done.empty()) return;
        const size_t which = done[random.below(done.size())];
        Flight flight = std::move(flights_[which]);
        flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(which));
        answer(std::move(flight), false);
    } else if (act < 31) {
        if (random.chance(1, 3)) lose(random);
    } else if (act < 34) {
        controllers_feed_->poll_one(random, controllers_apply());
    } else if (act < 36) {
        if (controllers_wait()) return;
        for (auto& request : reservation_writes()) flights_.push_back({{}, std::move(request), {}});
    } else if (act < 37) {
        reconcile_objects();
    } else if (act < 38) {
        later(std::chrono::milliseconds(random.below(1500)));
    } else if (random.chance(1, 12)) {
        act == 38 ? die(random) : start_controllers();
    }
}

// Some of what was under way is carried out all the same, in any order.
void Cluster::die(base::Random& random) {
    while (true) {
        const auto open = flights(false);
        if (open.empty()) break;
        const size_t which = open[random.below(open.size())];
        if (random.chance(1, 2)) {
            carry_out(flights_[which]);
        } else {
            flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(which));
        }
    }
    std::erase_if(flights_, [](const Flight& flight) { return flight.plan.has_value(); });
    kill();
}

void Cluster::controllers_miss_the_end(base::Random& random) {
    calm_down();
    while (feed_->poll(1000, [this](const auto& kind, const auto& event) { apply(kind, event); })) {
    }
    for (const auto& pod : names("pods")) {
        if (random.chance(1, 2)) delete_pod(pod);
    }
    end_pods();
    start_controllers();
}

void Cluster::calm_down() {
    while (!flights_.empty()) {
        Flight flight = std::move(flights_.front());
        flights_.erase(flights_.begin());
        if (!flight.reply) carry_out(flight);
        answer(std::move(flight), false);
    }
}

}  // namespace berth::crash
