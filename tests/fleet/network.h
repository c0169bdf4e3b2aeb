#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "link/machine_runtime.h"
#include "selected.h"
#include "tests/crash/small_server.h"

namespace berth::fleet_test {

struct Weather {
    int lost_percent = 0;
    int doubled_percent = 0;
    base::Duration slowest = std::chrono::milliseconds(5);
};

// What is on its way, in virtual time: each message arrives after a time of its own, so that they overtake one another.
class Network {
public:
    Network(base::ManualClock& clock, base::Random& random) : clock_(clock), random_(random) {}

    Weather weather;
    size_t messages = 0;
    std::map<crash::SmallServer*, std::map<std::string, std::unique_ptr<SelectedFeeds>>> selected;  // by resource

    // What servers have to tell to those who follow a part of it.
    void pump() {
        for (const auto& [server, feeds] : selected) {
            for (const auto& [resource, feed] : feeds) feed->pump();
        }
    }

    void send(std::function<void()> arrive) { after(delay(), std::move(arrive)); }
    void after(base::Duration wait, std::function<void()> arrive) {
        ++messages;
        later(wait, std::move(arrive));
    }
    // No message: somebody's patience ends.
    void later(base::Duration wait, std::function<void()> arrive) {
        on_way_.emplace(clock_.now() + wait, std::move(arrive));
    }
    bool lost() { return chance(weather.lost_percent); }
    bool doubled() { return chance(weather.doubled_percent); }
    // Everything whose time has come.
    void deliver() {
        while (!on_way_.empty() && on_way_.begin()->first <= clock_.now()) {
            const auto arrive = std::move(on_way_.begin()->second);
            on_way_.erase(on_way_.begin());
            arrive();
        }
    }
    std::optional<base::Instant> next() const {
        if (on_way_.empty()) return std::nullopt;
        return on_way_.begin()->first;
    }

private:
    bool chance(int percent) { return percent > 0 && random_.chance(static_cast<uint64_t>(percent), 100); }
    base::Duration delay() { return base::Duration(random_.between(0, weather.slowest.count())); }

    base::ManualClock& clock_;
    base::Random& random_;
    std::multimap<base::Instant, std::function<void()>> on_way_;
};

// The way to a layer's server. Answers to whoever is gone go nowhere.
class Client final : public link::ApiClient {
public:
    Client(crash::SmallServer& server, Network& network) : server_(server), network_(network) {}
    ~Client() override { *alive_ = false; }

    void send(link::Request request, link::ReplyTo reply) override {
        const auto back = [alive = alive_, reply = std::move(reply)](const Result<link::Reply>& answer) {
            if (*alive) reply(answer);
        };
        network_.send([this_server = &server_, network = &network_, request, back] {
            const bool lost = network->lost();
            const auto answer = this_server->perform(request);
            network->send([answer, back, lost] {
                back(lost ? Result<link::Reply>(base::internal("the answer was lost")) : Result<link::Reply>(answer));
            });
        });
    }
    std::unique_ptr<link::Feed> follow(const link::Resource& resource, std::function<void()> notify) override {
        if (resource.only.empty() && resource.labels.empty()) return server_.follow(resource, std::move(notify));
        auto& selected = network_.selected[&server_][resource.plural + "." + resource.group];
        if (selected == nullptr) selected = std::make_unique<SelectedFeeds>(server_, resource);
        return selected->follow(resource, std::move(notify));
    }

private:
    crash::SmallServer& server_;
    Network& network_;
    const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// A provider or broker that may be dead just now, and those who watch it.
struct Far {
    std::shared_ptr<link::MachineRuntime> runtime;
    std::vector<std::function<void(Error)>> watchers;
    bool cut = false;
    bool no_reservations = false;                          // it is a release of IronCore's
    int swallow = 0;                                       // answers to requests to reserve that will be lost
    std::function<void(model::IriReservation&)> lie = {};  // what becomes of each answer about a reservation
    base::Duration stall = {};                             // how much longer every message takes to it

    void kill() {
        runtime.reset();
        for (const auto& ended : std::exchange(watchers, {})) ended({Reason::ServiceUnavailable, "killed"});
    }
};

// The way to it: requests and answers are lost, doubled and late; each is answered once all the same.
class Wire final : public link::MachineRuntime {
public:
    Wire(Far& far, Network& network) : far_(far), network_(network) {}

    void version(link::Answered<Version> a) override {
        relay<Version>(std::move(a), [](auto& far, auto back) { far.version(back); });
    }
    void status(link::Answered<std::vector<model::IriClassStatus>> a) override {
        relay<std::vector<model::IriClassStatus>>(std::move(a), [](auto& far, auto back) { far.status(back); });
    }
    void list_machines(model::IriFilter f, link::Answered<std::vector<model::IriMachine>> a) override {
        relay<std::vector<model::IriMachine>>(std::move(a), [f](auto& far, auto back) { far.list_machines(f, back); });
    }
    void create_machine(model::IriMachine m, link::Answered<model::IriMachine> a) override {
        relay<model::IriMachine>(std::move(a), [m](auto& far, auto back) { far.create_machine(m, back); });
    }
    void delete_machine(std::string id, link::Answered<bool> a) override {
        relay<bool>(std::move(a), [id](auto& far, auto back) { far.delete_machine(id, back); });
    }
    void update_power(std::string id, bool on, link::Answered<bool> a) override {
        relay<bool>(std::move(a), [id, on](auto& far, auto back) { far.update_power(id, on, back); });
    }
    void update_annotations(std::string, Labels, link::Answered<bool> a) override { a(true); }
    void put_volume(std::string, model::IriVolume, bool, link::Answered<bool> a) override { a(true); }
    void detach_volume(std::string, std::string, link::Answered<bool> a) override { a(true); }
    void attach_interface(std::string, model::IriNetworkInterface, link::Answered<bool> a) override { a(true); }
    void detach_interface(std::string, std::string, link::Answered<bool> a) override { a(true); }
    void list_events(model::IriEventFilter, link::Answered<std::vector<model::IriEvent>> a) override {
        a(std::vector<model::IriEvent>());
    }
    void list_reservations(model::IriFilter f, link::Answered<std::vector<model::IriReservation>> a) override {
        if (far_.no_reservations) return unknown(std::move(a));
        relay<std::vector<model::IriReservation>>(std::move(a),
                                                  [f](auto& far, auto back) { far.list_reservations(f, back); });
    }
    void create_reservation(model::IriReservation r, link::Answered<model::IriReservation> a) override {
        if (far_.no_reservations) return unknown(std::move(a));
        ++creates;
        auto* far = &far_;
        relay<model::IriReservation>(std::move(a), [r, far](auto& runtime, auto back) {
            runtime.create_reservation(r, [far, back](const Result<model::IriReservation>& answer) {
                if (far->swallow > 0) {
                    --far->swallow;
                } else {
                    back(answer);
                }
            });
        });
    }
    void delete_reservation(std::string id, link::Answered<bool> a) override {
        relay<bool>(std::move(a), [id](auto& far, auto back) { far.delete_reservation(id, back); });
    }
    void renew_reservation(std::string id, link::Answered<model::IriReservation> a) override {
        relay<model::IriReservation>(std::move(a), [id](auto& far, auto back) { far.renew_reservation(id, back); });
    }
    void confirm_reservation(std::string id, uint64_t attempt, link::Answered<model::IriReservation> a) override {
        relay<model::IriReservation>(
            std::move(a), [id, attempt](auto& far, auto back) { far.confirm_reservation(id, attempt, back); });
    }
    std::unique_ptr<Watch> watch(std::function<void(const link::RuntimeChange&)> change,
                                 std::function<void(Error)> ended) override {
        if (far_.runtime == nullptr || far_.cut) {
            network_.send([ended] { ended({Reason::ServiceUnavailable, "nobody there"}); });
            return nullptr;
        }
        if (far_.no_reservations) {
            network_.send([ended] { ended({base::Reason::MethodNotAllowed, "no such call"}); });
            return std::make_unique<Watch>();
        }
        far_.watchers.push_back(ended);
        auto* far = &far_;
        auto* network = &network_;
        return far_.runtime->watch(
            [change, far, network](const link::RuntimeChange& what) {
                auto told = what;
                if (far->lie && what.what == link::RuntimeChange::What::Reservation) far->lie(told.reservation);
                network->send([change, told, far] {
                    if (!far->cut) change(told);
                });
            },
            ended);
    }

    static inline size_t creates = 0;

private:
    template <class T>
    void unknown(link::Answered<T> answer) {
        network_.send([answer = std::move(answer)] { answer(Error{base::Reason::MethodNotAllowed, "no such call"}); });
    }
    template <class T, class Call>
    void relay(link::Answered<T> answer, Call call) {
        auto once = std::make_shared<link::Answered<T>>(std::move(answer));
        auto* network = &network_;
        auto* far = &far_;
        const auto say = [once](const Result<T>& what) {
            if (*once) std::exchange(*once, nullptr)(what);
        };
        network_.later(std::chrono::seconds(5), [say] { say(Error{Reason::Timeout, "no answer within 5 s"}); });
        const auto arrive = [say, call, network, far] {
            if (far->runtime == nullptr || far->cut) return;
            call(*far->runtime, [say, network, far](const Result<T>& what) {
                if (network->lost()) return;
                auto told = what;
                if constexpr (std::is_same_v<T, model::IriReservation>) {
                    if (far->lie && told) far->lie(*told);
                }
                network->send([say, told, far] {
                    if (!far->cut) say(told);
                });
            });
        };
        if (!network_.lost()) far_.stall.count() > 0 ? network_.after(far_.stall, arrive) : network_.send(arrive);
        if (network_.doubled()) network_.send(arrive);
    }

    Far& far_;
    Network& network_;
};

}  // namespace berth::fleet_test
