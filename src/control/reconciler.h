#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "control/objects.h"
#include "ledger/intake.h"
#include "model/write.h"

namespace berth::control {

using model::Write;
using model::Writes;

// The name of an object that a reconciler looks after, in its own resource.
struct Key {
    std::string ns;
    std::string name;
    auto operator<=>(const Key&) const = default;
};

struct Reconciled {
    Writes writes;
    std::optional<base::Time> again = {};  // look again then, though nothing may have happened
};

// A controller as a pure function: what is and what time it is, in; what shall be written, out. It is called again
// whenever something that it touches has changed and its earlier writes have been seen.
struct Reconciler {
    virtual ~Reconciler() = default;
    virtual std::string_view name() const = 0;
    // The resource of its targets.
    virtual std::string resource() const = 0;
    // Every resource whose documents it reads.
    virtual std::vector<std::string> watches() const = 0;
    // It reads Objects::ledger(), so what is counted there concerns it, and no documents are kept of that for its sake.
    virtual bool counts() const { return false; }
    // Targets that are there whatever is stored: looked at once when all has come, then when they ask for it.
    virtual std::vector<Key> standing() const { return {}; }
    // Which targets a changed or vanished object concerns: asked before and after.
    virtual std::vector<Key> concerned(const std::string& resource, const Object& object,
                                       const Objects& objects) const = 0;
    virtual Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const = 0;
    // What people hear of a counted object whenever it comes, whatever else is done about it.
    virtual std::vector<model::Event> remarks(const ledger::Object&) const { return {}; }
};

std::unique_ptr<Reconciler> replicaset_reconciler();
std::unique_ptr<Reconciler> deployment_reconciler();
std::unique_ptr<Reconciler> statefulset_reconciler();
std::unique_ptr<Reconciler> daemonset_reconciler();
std::unique_ptr<Reconciler> job_reconciler();
std::unique_ptr<Reconciler> cronjob_reconciler();
std::unique_ptr<Reconciler> endpoints_reconciler();
std::unique_ptr<Reconciler> namespace_reconciler(std::vector<std::string> namespaced_resources);
std::unique_ptr<Reconciler> namespace_defaults_reconciler(std::string ca_certificate);
std::unique_ptr<Reconciler> disruption_reconciler();
std::unique_ptr<Reconciler> garbage_reconciler(std::vector<std::string> resources);

}  // namespace berth::control
