#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fleet/translate.h"
#include "link/session.h"
#include "run/agenda.h"
#include "run/driver.h"
#include "run/fleet_feeds.h"
#include "run/inbox.h"
#include "run/served_runtime.h"

namespace berth::run {

// What answers for a whole layer to the poollet above: what is asked of it becomes objects in its own layer, and what
// the layer says of them goes up. It keeps nothing but the leases, which begin anew with it.
class FleetBroker final : public Driver, public ServedRuntime {
public:
    struct Doors {
        std::unique_ptr<link::ApiClient> server;  // of the layer
        link::Wake wake;
    };
    struct Times {
        base::Duration hold = std::chrono::seconds(30);
        base::Duration committed = std::chrono::seconds(120);
        base::Duration tombstone = std::chrono::seconds(240);
    };
    // `layer` says to the poollet above where this layer's server is, for those on the same machine.
    struct Shown {
        std::string layer = {};
        bool publish_amounts = false;
    };
    FleetBroker(Doors doors, fleet::BrokerPlace place, Times times);
    FleetBroker(Doors doors, fleet::BrokerPlace place, Times times, Shown shown);

    void turn(const Moment& now) override;
    base::Instant next() const override { return next_; }
    void stop() override { stopping_ = true; }
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

    void version(link::Answered<Version> answer) override;
    void status(link::Answered<std::vector<model::IriClassStatus>> answer) override;
    void list_machines(model::IriFilter filter, link::Answered<std::vector<model::IriMachine>> answer) override;
    void create_machine(model::IriMachine machine, link::Answered<model::IriMachine> answer) override;
    void delete_machine(std::string id, link::Answered<bool> answer) override;
    void update_power(std::string id, bool on, link::Answered<bool> answer) override;
    void update_annotations(std::string id, Labels annotations, link::Answered<bool> answer) override;
    void put_volume(std::string id, model::IriVolume volume, bool attach, link::Answered<bool> answer) override;
    void detach_volume(std::string id, std::string name, link::Answered<bool> answer) override;
    void attach_interface(std::string id, model::IriNetworkInterface nic, link::Answered<bool> answer) override;
    void detach_interface(std::string id, std::string name, link::Answered<bool> answer) override;
    void list_events(model::IriEventFilter filter, link::Answered<std::vector<model::IriEvent>> answer) override;
    void list_reservations(model::IriFilter filter, link::Answered<std::vector<model::IriReservation>> answer) override;
    void create_reservation(model::IriReservation reservation, link::Answered<model::IriReservation> answer) override;
    void delete_reservation(std::string id, link::Answered<bool> answer) override;
    void renew_reservation(std::string id, link::Answered<model::IriReservation> answer) override;
    void confirm_reservation(std::string id, uint64_t attempt, link::Answered<model::IriReservation> answer) override;

private:
    using Reply = Result<link::Reply>;
    struct Sent {
        std::function<void(const Reply&)> take;
    };
    struct Held {
        fleet::Reservation object;
        base::Instant until;  // of its lease
        bool deleting = false;
        bool promised = false;                  // Accepted was said upward
        bool lost = false;                      // since then
        bool released = false;                  // by whoever asked for it, who knows that it goes
        std::optional<model::HoldAnswer> said;  // to those who watch, or to whoever made it
    };

    struct Placed {
        fleet::Machine object;
        Json document;
        std::optional<model::IriMachine> said = {};
    };
    using Edit = std::function<Result<Json>(model::IriMachine& machine)>;

    template <class Work>
    void serve(Work work) {
        inbox().push([this, work = std::move(work)]() mutable {
            if (session_.synced()) return work();
            early_.push_back(std::move(work));
        });
    }
    void take(const std::string& resource, const link::FeedEvent& event);
    void take_reservation(const Json& document, bool put);
    void take_machine(const Json& document, bool put);
    void send(model::Write write, std::function<void(const Reply&)> take);
    void end_leases();
    void tell_all() override;
    model::IriReservation iri_of(const Held& held) const;
    void begin_lease(Held& held);
    void do_create(model::IriReservation wanted, link::Answered<model::IriReservation> answer);
    void do_confirm(const std::string& id, uint64_t attempt, const link::Answered<model::IriReservation>& answer);
    void make_machine(const model::IriMachine& wanted, const link::Answered<model::IriMachine>& answer);
    void do_create_machine(model::IriMachine wanted, link::Answered<model::IriMachine> answer);
    void do_delete(const std::string& resource, const model::Meta& meta, link::Answered<bool> answer);
    void patch_machine(const std::string& id, Json body, link::Answered<bool> answer);
    void edit_machine(std::string id, Edit edit, link::Answered<bool> answer);
    std::vector<model::IriClassStatus> class_status() const;

    link::Session<Sent> session_;
    const fleet::BrokerPlace place_;
    const Times times_;
    const Shown shown_;
    std::map<std::string, Held> held_;                    // by name
    std::map<std::string, Placed> machines_;              // by name
    std::map<std::string, fleet::MachineClass> classes_;  // by name
    std::map<std::string, Json> pools_;                   // by name
    std::map<std::string, base::Instant>
        ended_;  // names of reservations that were deleted: late copies come to nothing
    std::map<std::string, base::Instant> removed_;  // the same of machines, with their attempt
    std::vector<std::function<void()>> early_;      // calls before the layer was known
    Agenda leases_;                                 // names of reservations
    base::Instant forget_at_;
    Moment now_;
    base::Instant next_;
    bool stopping_ = false;
};

}  // namespace berth::run
