#pragma once

#include <string>
#include <vector>

#include "model/hold.h"
#include "model/labels.h"

// What IRI (machine.v1alpha1.MachineRuntime) carries, as values; proto/ has the same with numbers.
namespace berth::model {

struct IriMeta {
    std::string id;
    Labels annotations;
    Labels labels;
    int64_t generation = 0;
    int64_t created_at = 0;  // nanoseconds since 1970; 0 is unset
    int64_t deleted_at = 0;
    bool operator==(const IriMeta&) const = default;
};

struct IriVolume {
    std::string name;
    std::string device;
    int64_t local_disk_bytes = -1;  // below 0: no local disk
    std::string local_disk_image;
    std::string driver;  // of a connection; "" is none
    std::string handle;
    Labels attributes;
    std::vector<std::pair<std::string, std::string>> secret_data;
    std::vector<std::pair<std::string, std::string>> encryption_data;
    int64_t effective_storage_bytes = 0;
    bool operator==(const IriVolume&) const = default;
};

struct IriNetworkInterface {
    std::string name;
    std::string network_id;
    std::vector<std::string> ips;
    Labels attributes;
    bool operator==(const IriNetworkInterface&) const = default;
};

enum class IriMachineState : uint8_t { Pending, Running, Suspended, Terminated, Terminating, Stopped };

struct IriMachine {
    IriMeta meta;
    bool on = true;
    std::string machine_class;
    std::string ignition;
    std::vector<IriVolume> volumes;
    std::vector<IriNetworkInterface> network_interfaces;
    std::string hostname;
    // Its status.
    int64_t observed_generation = 0;
    IriMachineState state = IriMachineState::Pending;
    std::string image_ref;
    bool operator==(const IriMachine&) const = default;
};

struct IriReservation {
    IriMeta meta;
    HoldAsk ask;
    HoldAnswer answer;
    std::string epoch;      // of the provider's ledger: another one has forgotten what this one promised
    uint64_t sequence = 0;  // grows with every change of an answer
};

struct IriFilter {
    std::string id;
    Labels selector;

    bool matches(const IriMeta& meta) const;
};

struct IriEvent {
    IriMeta about;
    std::string reason;
    std::string message;
    std::string type;
    std::string action;
    int64_t seconds = 0;
};

struct IriEventFilter {
    IriFilter about;
    int64_t from = 0;  // seconds
    int64_t to = 0;
};

struct IriClassStatus {
    std::string name;
    Amounts capabilities;
    int64_t quantity = 0;
};

}  // namespace berth::model
