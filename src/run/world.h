#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/cluster.h"

namespace berth::run {

// Where a reservation stands.
struct Holding {
    std::string name;
    model::ReservationPhase phase = model::ReservationPhase::Pending;
    std::string node;
    model::Resources allocatable;
    model::Resources allocated;
    std::vector<model::PodRef> owners;
    model::Which which;
};

// The documents of a cluster in memory: reads them, and keeps what cannot be read or is not taken as it is written.
class World {
public:
    explicit World(base::Time now, ClusterOptions options = {})
        : cluster_(std::make_unique<Cluster>(now, std::move(options))) {}

    // Takes an object over, new or changed. False: the kind means nothing here. An Error harms that object alone.
    Result<bool> put(const Json& object);
    void remove(std::string_view kind, std::string_view ns, std::string_view name);
    // The pod loses its node and comes again; what comes of it says where it was.
    void displace(const model::Pod& pod);
    // The same of one that was removed.
    void bring_back(const model::Pod& pod);

    // Those that cannot be read, once, then what came of the others.
    std::vector<Placement> settle();
    Cluster& cluster() { return *cluster_; }
    const Cluster& cluster() const { return *cluster_; }
    const ledger::View& ledger() const { return cluster_->ledger(); }

    // What of the objects is not taken as it is written, one sentence each.
    std::vector<std::string> warnings() const;
    // Pods that are bound and cannot be read, so that their room is not counted: one sentence each. (Of a reservation
    // that is placed what can be read counts.)
    std::vector<std::string> unreadable_holders() const { return texts(unreadable_holders_); }
    std::vector<Holding> holdings() const;
    // Where a pod is, and which reservation it draws from; nullptr: unknown or pending.
    const ledger::PodEntry* find_pod(std::string_view ns, std::string_view name) const;
    // What went wrong when a scheduler tried to place the pod, as its condition says; empty: nothing. That no node fits
    // is nothing wrong.
    std::string failure_of(const model::Pod& pod) const;
    // What cannot be read of an object; empty: nothing.
    std::string fault_of(bool is_reservation, std::string_view ns, std::string_view name) const;

private:
    struct Broken {
        bool is_reservation;
        std::string ns, name, error;
        bool told;  // settle() has said so
    };

    // What is said about an object, until it is put again or goes.
    struct Remark {
        std::string object;  // kind/namespace/name
        std::string text;
    };

    static std::vector<std::string> texts(const std::vector<Remark>& remarks);
    void forget(std::string_view kind, std::string_view ns, std::string_view name);
    void put_pod(model::Pod pod);
    void put_reservation(model::Reservation reservation);
    void warn(std::string_view kind, std::string_view name, std::string_view what);

    std::unique_ptr<Cluster> cluster_;
    std::map<std::string, std::string> failures_;  // by namespace/name
    std::vector<Broken> broken_;
    std::vector<Remark> warnings_;
    std::vector<Remark> unreadable_holders_;
    std::map<std::string, std::string> left_;  // by namespace/name: the node that a pod had to leave
};

}  // namespace berth::run
