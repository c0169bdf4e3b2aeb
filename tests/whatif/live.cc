#include "live.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "api/identity.h"
#include "app/local_link.h"
#include "base/check.h"
#include "control/reservations.h"
#include "control/simulated.h"
#include "ledger/intake.h"
#include "link/connect.h"
#include "run/cluster.h"
#include "run/controllers_driver.h"
#include "run/scheduler_driver.h"

namespace berth::whatif {
namespace {

constexpr base::Duration kPatience = std::chrono::seconds(20);
// Less than what a driver waits for when it has nothing to do.
constexpr base::Duration kSoon = std::chrono::milliseconds(100);

std::string text_at(const Json& document, std::initializer_list<std::string_view> path) {
    const auto found = base::find_string(document, path);
    return found.empty() ? "-" : std::string(found);
}

// What is said about those that wait.
std::string why_of(const Json& document) {
    std::string out;
    const Json* conditions = base::find(document, {"status", "conditions"});
    if (!conditions || !conditions->is_array()) return out;
    for (const auto& condition : conditions->as_array()) {
        const auto message = base::find_string(condition, {"message"});
        if (!message.empty()) out += fmt::format("\n  {}: {}", text_at(document, {"metadata", "name"}), message);
    }
    return out;
}

// The reservations that a bound pod draws from, by name.
std::string draws_of(const Json& pod) {
    std::string out;
    for (const auto* key : {"scheduling.koordinator.sh/reservation-allocated", "berth.dev/reservation-draws"}) {
        const auto note = base::find_string(pod, {"metadata", "annotations", key});
        const auto read = base::parse_json(note);
        if (!read) continue;
        if (read->is_object()) out += drawn_from(text_at(*read, {"name"}));
        if (!read->is_array()) continue;
        for (const auto& draw : read->as_array()) out += drawn_from(text_at(draw, {"name"}));
    }
    return out;
}

std::string status_text(const Json& reservation) {
    const Json* allocated = base::find(reservation, {"status", "allocated"});
    std::string text = allocated && !allocated->as_object().empty() ? base::to_text(*allocated) : "nothing";
    if (const Json* owners = base::find(reservation, {"status", "currentOwners"}); owners && owners->is_array()) {
        for (const auto& owner : owners->as_array()) text += " " + text_at(owner, {"name"});
    }
    return text;
}

}  // namespace

std::string drawn_from(const std::string& reservation) {
    return reservation.starts_with("preemption-") ? "" : " from " + reservation;
}

Picture picture_of(const std::vector<Json>& documents) {
    Picture out;
    for (const auto& document : documents) {
        const auto kind = base::find_string(document, {"kind"});
        const std::string name = text_at(document, {"metadata", "name"});
        if (kind == "Pod") {
            out.push_back(
                fmt::format("pod {} on {}{}", name, text_at(document, {"spec", "nodeName"}), draws_of(document)));
        }
        if (kind == "Reservation" &&
            base::find_string(document, {"metadata", "labels", "berth.dev/made-for"}).empty()) {
            const auto phase = base::find_string(document, {"status", "phase"});
            out.push_back(fmt::format("reservation {} {} on {} holds {}", name, phase.empty() ? "Pending" : phase,
                                      text_at(document, {"status", "nodeName"}), status_text(document)));
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

Live::Live(run::ControllersDriver::Reconcilers more)
    : data_dir_(testing::TempDir() + fmt::format("berth-whatif-{}", ::getpid())) {
    app::ServerOptions options;
    options.data_dir = data_dir_;
    options.listen = "127.0.0.1:0";
    options.in_memory = true;
    auto started = app::Server::start(options);
    CHECK(started.ok());
    server_ = std::move(*started);
    door_ = app::local_link(*server_, {"berth:up", {std::string(api::kMasters), std::string(api::kImporters)}});
    ask({"POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
         base::to_text(JsonObject{{"metadata", JsonObject{{"name", "high"}}}, {"value", 100}})});
    now_ = run::moment(server_->context().clock);
    add_scheduler();
    const auto doors = [&](const char* identity) {
        return run::ControllersDriver::Doors{app::local_link(*server_, api::controller_identity(identity)),
                                             this->wake(), server_->front().metrics(), identity};
    };
    drivers_.push_back(std::make_unique<run::ControllersDriver>(
        doors("reservation"), control::reservation_reconcilers(std::chrono::hours(24))));
    run::ControllersDriver::Reconcilers kubelets;
    kubelets.push_back(control::simulated_pods_reconciler());
    kubelets.push_back(control::simulated_nodes_reconciler());
    std::move(more.begin(), more.end(), std::back_inserter(kubelets));
    drivers_.push_back(std::make_unique<run::ControllersDriver>(doors("berth"), std::move(kubelets)));
    settle();
}

Live::~Live() {
    drivers_.clear();
    door_.reset();
    server_.reset();
    std::filesystem::remove_all(data_dir_);
}

void Live::ask(link::Request request) {
    const std::string what = request.method + " " + request.path + " " + request.body;
    const auto reply = link::ask(*door_, std::move(request));
    ASSERT_TRUE(reply && reply->ok()) << what << ": " << (reply ? reply->body : reply.error().message);
}

bool Live::try_to(link::Request request) {
    const auto reply = link::ask(*door_, std::move(request));
    EXPECT_TRUE(reply.ok());
    return reply && reply->ok();
}

// False: nothing is under way, and nothing has come since.
bool Live::turn() {
    const uint64_t before = server_->store().revision();
    woken_ = false;
    for (const auto& driver : drivers_) driver->turn(now_);
    if (std::all_of(drivers_.begin(), drivers_.end(), [](const auto& driver) { return driver->idle(); })) {
        return woken_ || server_->store().revision() != before;
    }
    wake_.wait(kPatience);
    return true;
}

// Whoever was refused before is ready by then.
void Live::settle() {
    now_ = {now_.now + kSoon, now_.wall + kSoon};
    const auto& clock = base::system_clock();
    const auto deadline = clock.now() + kPatience;
    while (clock.now() < deadline) {
        if (turn()) continue;
        base::Instant next = drivers_.front()->next();
        for (const auto& driver : drivers_) next = std::min(next, driver->next());
        if (next > now_.now + kSoon && !anybody_is_going()) return;
        const base::Duration by = std::max(next - now_.now, base::Duration(1));
        now_ = {now_.now + by, now_.wall + by};
    }
    ADD_FAILURE() << "it does not come to rest";
}

void Live::advance(base::Duration by) {
    const run::Moment end{now_.now + by, now_.wall + by};
    const auto deadline = base::system_clock().now() + kPatience;
    while (base::system_clock().now() < deadline) {
        if (turn()) continue;
        base::Instant next = end.now;
        for (const auto& driver : drivers_) next = std::min(next, driver->next());
        if (now_.now >= end.now) return;
        const base::Duration step = std::max(next - now_.now, base::Duration(1));
        now_ = {now_.now + step, now_.wall + step};
    }
    ADD_FAILURE() << "it has too much to do";
}

std::unique_ptr<run::Driver> Live::scheduler() {
    sched::SchedulerOptions at_once;
    at_once.first_backoff = std::chrono::nanoseconds(1);
    at_once.longest_backoff = std::chrono::nanoseconds(1);
    return std::make_unique<run::SchedulerDriver>(
        run::SchedulerDriver::Doors{app::local_link(*server_, api::scheduler_identity()), wake(),
                                    server_->front().metrics(), server_->context().clock},
        run::usual_profiles(), at_once);
}

void Live::add_scheduler() {
    schedulers_.push_back(add(scheduler()));
}

void Live::kill_scheduler() {
    kill(schedulers_.front());
    schedulers_.erase(schedulers_.begin());
}

void Live::turn_any(base::Random& random) {
    now_ = {now_.now + base::Duration(1), now_.wall + base::Duration(1)};
    drivers_[random.below(drivers_.size())]->turn(now_);
}

run::Driver* Live::add(std::unique_ptr<run::Driver> driver) {
    drivers_.push_back(std::move(driver));
    return drivers_.back().get();
}

void Live::kill(run::Driver* driver) {
    std::erase_if(drivers_, [&](const auto& one) { return one.get() == driver; });
}

std::unique_ptr<link::ApiClient> Live::door(const char* controller) {
    return app::local_link(*server_, api::controller_identity(controller));
}

link::Wake Live::wake() {
    return [this] {
        woken_ = true;
        wake_.notify();
    };
}

bool Live::anybody_is_going() const {
    const auto listed = server_->store().list({.kind = "pods"});
    return std::any_of(listed->records.begin(), listed->records.end(), [](const auto& record) {
        return record->bytes->find("\"deletionTimestamp\"") != std::string::npos;
    });
}

void Live::remove(const std::string& collection, const std::string& name) {
    const Json at_once(JsonObject{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"gracePeriodSeconds", 0}});
    ask({"DELETE", collection + "/" + name, base::to_text(at_once)});
}

std::vector<Json> Live::dump() const {
    std::vector<Json> out;
    for (const auto& kind : ledger::kinds()) {
        const auto listed = server_->store().list({.kind = kind.stored()});
        for (const auto& record : listed->records) {
            Json document = *base::parse_json(*record->bytes);
            document.as_object()["kind"] = kind.kind;
            out.push_back(std::move(document));
        }
    }
    return out;
}

std::string Live::why() const {
    std::string out;
    for (const auto& document : dump()) {
        const auto kind = base::find_string(document, {"kind"});
        if (kind == "Pod" || kind == "Reservation") out += why_of(document);
    }
    return out;
}

// Those who would make others again go first.
void Live::clear() {
    const auto daemonsets = server_->store().list({.kind = "apps/daemonsets"});
    for (const auto& record : daemonsets->records) {
        remove(kDaemonSets, record->key.name);
    }
    for (const auto& document : dump()) {
        if (base::find_string(document, {"kind"}) == "ReplicaSet") {
            remove(kReplicaSets, text_at(document, {"metadata", "name"}));
        }
    }
    settle();
    for (const auto& document : dump()) {
        const auto kind = base::find_string(document, {"kind"});
        const std::string name = text_at(document, {"metadata", "name"});
        if (kind == "Pod") remove(kPods, name);
        if (kind == "Reservation") remove(kReservations, name);
        if (kind == "Node") remove(kNodes, name);
        if (kind == "PodDisruptionBudget") remove(kBudgets, name);
    }
    settle();
}

}  // namespace berth::whatif
