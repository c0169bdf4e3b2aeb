#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/meta.h"

namespace berth::control {

// An object as controllers see it: what every object carries, read once, and the document.
struct Object {
    model::Meta meta;
    Json document;
};
using ObjectPtr = std::shared_ptr<const Object>;

// What the controllers know of the cluster, by resource ("pods", "apps/replicasets") and name. Fed from list and watch;
// one thread.
class Objects {
public:
    // The text of an object; false when it cannot be read.
    bool put(const std::string& resource, std::string_view text, uint64_t revision);
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

    std::map<std::string, std::map<Name, ObjectPtr>> by_resource_;
    std::map<std::string, std::set<Place>> by_owner_;
    std::map<std::string, size_t> uids_;  // events.k8s.io and core events are one object under two names
};

}  // namespace berth::control
