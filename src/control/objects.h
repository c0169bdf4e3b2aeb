#pragma once

#include <absl/container/flat_hash_map.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
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

// What the controllers know of the cluster, by resource ("pods", "apps/replicasets") and name. Fed from list and watch;
// one thread.
class Objects {
public:
    void put(const std::string& resource, ObjectPtr object);
    void remove(const std::string& resource, const std::string& ns, const std::string& name);

    ObjectPtr find(const std::string& resource, const std::string& ns, const std::string& name) const;
    // Of one namespace, or of all when ns is empty; by name.
    std::vector<ObjectPtr> list(const std::string& resource, const std::string& ns = "") const;
    // Those whose controller has this uid.
    std::vector<ObjectPtr> controlled_by(const std::string& resource, const std::string& uid) const;
    // Whether any object of any resource has this uid.
    bool exists(const std::string& uid) const { return uids_.contains(uid); }
    // Every object that names this uid as an owner, with its resource.
    std::vector<std::pair<std::string, ObjectPtr>> dependents(const std::string& uid) const;

private:
    using Name = std::pair<std::string, std::string>;
    struct Place {
        std::string resource;
        Name name;
        auto operator<=>(const Place&) const = default;
    };

    void index(const std::string& resource, const Object& object);
    void forget(const std::string& resource, const Object& object);

    std::map<std::string, std::map<Name, ObjectPtr>> by_resource_;
    absl::flat_hash_map<std::string, std::set<Place>> by_owner_;
    absl::flat_hash_map<std::string, size_t> uids_;  // events.k8s.io and core events are one object under two names
};

}  // namespace berth::control
