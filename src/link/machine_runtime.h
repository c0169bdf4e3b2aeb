#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/iri.h"

// The door to what is below a pool: a provider or a broker, in this process or behind gRPC (proto/).
namespace berth::link {

template <class T>
using Answered = std::function<void(Result<T>)>;

// What changed there: one of both.
struct RuntimeChange {
    enum class What : uint8_t { Reservation, Machine, Gone };  // Gone: a reservation of this id
    What what = What::Reservation;
    model::IriReservation reservation = {};
    model::IriMachine machine = {};
};

// Every call is answered exactly once, on any thread, within its deadline; each may be repeated, and has one effect.
// Unimplemented calls are answered with MethodNotAllowed. `Result`'s error is NotFound where an id is unknown.
class MachineRuntime {
public:
    struct Version {
        std::string name;
        std::string version;
        std::string layer = {};  // of a broker: the kubeconfig of its layer, for those on the same machine
    };
    // Hears of changes as long as it lives.
    class Watch {
    public:
        virtual ~Watch() = default;
    };

    virtual ~MachineRuntime() = default;
    virtual void version(Answered<Version> answer) = 0;
    virtual void status(Answered<std::vector<model::IriClassStatus>> answer) = 0;
    virtual void list_machines(model::IriFilter filter, Answered<std::vector<model::IriMachine>> answer) = 0;
    virtual void create_machine(model::IriMachine machine, Answered<model::IriMachine> answer) = 0;
    virtual void delete_machine(std::string id, Answered<bool> answer) = 0;
    virtual void update_power(std::string id, bool on, Answered<bool> answer) = 0;
    virtual void update_annotations(std::string id, Labels annotations, Answered<bool> answer) = 0;
    virtual void put_volume(std::string id, model::IriVolume volume, bool attach, Answered<bool> answer) = 0;
    virtual void detach_volume(std::string id, std::string name, Answered<bool> answer) = 0;
    virtual void attach_interface(std::string id, model::IriNetworkInterface nic, Answered<bool> answer) = 0;
    virtual void detach_interface(std::string id, std::string name, Answered<bool> answer) = 0;
    virtual void list_events(model::IriEventFilter filter, Answered<std::vector<model::IriEvent>> answer) = 0;

    virtual void list_reservations(model::IriFilter filter, Answered<std::vector<model::IriReservation>> answer) = 0;
    virtual void create_reservation(model::IriReservation reservation, Answered<model::IriReservation> answer) = 0;
    virtual void delete_reservation(std::string id, Answered<bool> answer) = 0;
    virtual void renew_reservation(std::string id, Answered<model::IriReservation> answer) = 0;
    virtual void confirm_reservation(std::string id, uint64_t attempt, Answered<model::IriReservation> answer) = 0;
    // `change` is called on any thread, first for all that is there; `ended` once, when no more can come.
    virtual std::unique_ptr<Watch> watch(std::function<void(const RuntimeChange&)> change,
                                         std::function<void(Error)> ended) = 0;
};

}  // namespace berth::link
