#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "app/server.h"
#include "base/json.h"
#include "base/random.h"
#include "link/api_client.h"
#include "link/session.h"
#include "link/wake_event.h"
#include "run/controllers_driver.h"
#include "run/driver.h"

namespace berth::whatif {

inline constexpr const char* kPods = "/api/v1/namespaces/default/pods";
inline constexpr const char* kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
inline constexpr const char* kReplicaSets = "/apis/apps/v1/namespaces/default/replicasets";
inline constexpr const char* kDaemonSets = "/apis/apps/v1/namespaces/default/daemonsets";
inline constexpr const char* kBudgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
inline constexpr const char* kNodes = "/api/v1/nodes";

// Where everything is: a line for each pod and reservation, sorted. Rooms that preemption makes for itself are left
// out.
using Picture = std::vector<std::string>;
Picture picture_of(const std::vector<Json>& documents);
// " from NAME", or nothing for a room.
std::string drawn_from(const std::string& reservation);

// `berth up` in this process, in memory, without nodes: the server, and its drivers turned over virtual time. Whoever
// was refused is tried again at once.
class Live {
public:
    // With these controllers besides those of reservations and simulated nodes.
    explicit Live(run::ControllersDriver::Reconcilers more = {});
    ~Live();
    Live(const Live&) = delete;
    Live& operator=(const Live&) = delete;

    // The request must be carried out.
    void ask(link::Request request);
    // False: it was refused.
    bool try_to(link::Request request);
    // Turns until nobody has anything more to do.
    void settle();
    // Turns over that much time, whatever there is to do in it.
    void advance(base::Duration by);
    // Somebody's turn; what is under way is left to itself.
    void turn_any(base::Random& random);
    // Two of them, when one is there already; and the oldest one less, on the spot.
    void add_scheduler();
    void kill_scheduler();
    // One driver more, and one less: it ends on the spot, whatever it had under way.
    run::Driver* add(std::unique_ptr<run::Driver> driver);
    void kill(run::Driver* driver);
    link::Wake wake();
    std::unique_ptr<link::ApiClient> door(const char* controller);
    app::Server& server() { return *server_; }
    const run::Moment& now() const { return now_; }
    // Everything that placement depends on, each kind by name.
    std::vector<Json> dump() const;
    // What the conditions say, for people.
    std::string why() const;
    // Deletes all that a history made.
    void clear();

private:
    std::unique_ptr<run::Driver> scheduler();
    bool turn();
    bool anybody_is_going() const;
    void remove(const std::string& collection, const std::string& name);

    std::string data_dir_;
    std::unique_ptr<app::Server> server_;
    std::unique_ptr<link::ApiClient> door_;
    link::WakeEvent wake_;
    std::atomic<bool> woken_ = false;
    std::vector<std::unique_ptr<run::Driver>> drivers_;
    std::vector<run::Driver*> schedulers_;  // of these, in the order of their beginnings
    run::Moment now_;
};

}  // namespace berth::whatif
