#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/string_map.h"
#include "control/ages.h"
#include "ledger/intake.h"
#include "model/meta.h"
#include "model/pod.h"

namespace berth::control {

// An object as controllers see it: what they look at with every event is read at once, the document when it is first
// asked for. One thread.
class Object {
public:
    Object(model::Meta what, std::shared_ptr<const std::string> text) : meta(std::move(what)), text_(std::move(text)) {}
    const Json& document() const;
    const std::string& text() const { return *text_; }

    model::Meta meta;
    std::string node;   // spec.nodeName
    std::string phase;  // status.phase

private:
    std::shared_ptr<const std::string> text_;
    mutable std::optional<Json> document_;
};
using ObjectPtr = std::shared_ptr<const Object>;

// nullptr when it cannot be read.
ObjectPtr read_object(std::shared_ptr<const std::string> text, uint64_t revision);
// The same of a pod that somebody else has read.
ObjectPtr object_of(const model::Pod& pod, std::shared_ptr<const std::string> text);

// What the controllers know of the cluster: documents by resource ("pods", "apps/replicasets") and name, and for those
// who count, who holds what. Fed from list and watch; one thread.
class Objects {
public:
    void put(const std::string& resource, ObjectPtr object);
    void remove(const std::string& resource, const std::string& ns, const std::string& name);

    ObjectPtr find(const std::string& resource, const std::string& ns, const std::string& name) const;
    // Of one namespace, or of all when ns is empty; by name.
    std::vector<ObjectPtr> list(const std::string& resource, const std::string& ns = "") const;
    // Those whose controller has this uid.
    std::vector<ObjectPtr> controlled_by(const std::string& resource, const std::string& uid) const;
    // The pods that are bound to a node; by namespace and name. Good until the next put or remove.
    std::vector<const Object*> pods_on(std::string_view node) const;
    // Whether any object of any resource has this uid.
    bool exists(const std::string& uid) const { return uids_.contains(uid); }
    // Every object that names this uid as an owner, with its resource.
    std::vector<std::pair<std::string, ObjectPtr>> dependents(const std::string& uid) const;

    // What is counted: stored objects alone.
    void count(const ledger::Kind& kind, const ledger::Object& object);
    void uncount(const ledger::Kind& kind, const model::Meta& meta);
    // Time passes: the reservations that have ended since.
    std::vector<ledger::ReservationIndex> pass_time(base::Time wall, base::Instant now);
    const ledger::View& ledger() const { return ledger_; }
    // For how long a reservation has been final.
    std::optional<base::Duration> final_for(std::string_view uid) const { return final_.of(uid); }

private:
    using Name = std::pair<std::string, std::string>;
    struct Place {
        std::string resource;
        Name name;
        auto operator<=>(const Place&) const = default;
    };

    void index(const std::string& resource, const Object& object);
    void forget(const std::string& resource, const Object& object);

    ledger::Ledger ledger_;
    Ages final_;  // uids of reservations
    std::map<std::string, std::map<Name, ObjectPtr>> by_resource_;
    absl::flat_hash_map<std::string, std::set<Place>> by_owner_;
    base::StringMap<absl::flat_hash_set<const Object*>> by_node_;  // pods
    absl::flat_hash_map<std::string, size_t> uids_;  // events.k8s.io and core events are one object under two names
};

}  // namespace berth::control
