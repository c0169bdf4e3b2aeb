#pragma once

#include <map>
#include <string>
#include <vector>

#include "share/above.h"
#include "share/scene.h"

// What follows from a scene: what each consumer deserves, who borrows from whom, who may start, who would have to go.
namespace berth::share {

struct Condition {
    std::string type;
    std::string message;
};

// A consumer as it counts: with the limits of its quotas, percentages as amounts, and its pods added up.
struct Account {
    std::string name;
    std::string parent;
    int64_t weight = 1;
    bool infinite = false;
    bool reclaimable = true;
    bool owns_pods = true;  // it is a namespace; else an area, or nothing yet: it
                            // asks for nothing itself
    Resources reserved;
    Resources hard;           // a missing key is infinite
    Resources lending_limit;  // of an idle guarantee; a missing key: all of it
    Resources used;
    Resources releasing;  // of these, what is about to go
    Resources demand;
    Resources below_used, below_demand;     // of an area: its children's part
    int64_t pods = 0;                       // placed
    bool cut_by_hard = false;               // pods wait that would break it
    std::vector<uint32_t> unplaceable;      // pods that fit no node
    std::vector<uint32_t> placed, waiting;  // pods of the scene; the waiting ones that count in the demand
    std::vector<uint32_t> claims;           // that wait and count in the demand
    Share share;
    Resources borrowed, lent, reclaim;
    bool overused = false;
    std::vector<Condition> conditions;
};

struct Loan {
    std::string from;  // "": nobody's guarantee
    std::string to;
    ResourceId resource;
    int64_t amount = 0;
};

struct Admission {
    uint32_t pod = 0;  // of the scene
    bool admitted = false;
    std::string why;
};

struct Victim {
    uint32_t pod = 0;
    uint32_t claim = 0;  // the pod for which it goes
};

// Where a pod that waits finds room as it is.
struct Room {
    uint32_t pod = 0;
    uint32_t node = 0;
};

struct Answer {
    Resources capacity;
    Problem problem;                // its consumers stand as the accounts
    std::vector<Account> accounts;  // by name
    std::vector<Loan> loans;
    std::vector<Admission> admissions;  // of the pods that wait, in the order of the queue
    std::vector<Victim> victims;        // in order, those of one claim together
    std::vector<Room> rooms;            // of the pods that may start: those that need nobody to go
};

Answer answer(const Scene& scene, const Settings& settings);

// --- its parts, in the order in which they are computed

Resources capacity_of(const Scene& scene, const Settings& settings);
// Asks for one more pod.
void add_demand(Consumer& consumer, const Resources& size);
// One for every consumer and every namespace, by name.
std::vector<Account> accounts_of(const Scene& scene, const Settings& settings, const Resources& capacity);
Problem problem_of(const Scene& scene, const Settings& settings, const Resources& capacity,
                   std::vector<Account>& accounts);
// Who borrows, who lends, and by how much.
std::vector<Loan> lend(std::vector<Account>& accounts);
// As the predicate answers one pod after the other, with nothing bound between.
std::vector<Admission> admit(const Scene& scene, const std::vector<Account>& accounts);
// Who goes so that those who were admitted can start, if every grace period had passed; says what stands in the way,
// and what each overused consumer has to give back.
struct Reclaimed {
    std::vector<Victim> victims;
    std::vector<Room> rooms;
};
Reclaimed reclaim(const Scene& scene, const Settings& settings, const Resources& capacity,
                  const std::vector<Admission>& admissions, std::vector<Account>& accounts);

// Of the nodes where room is kept for pods: what is left there for others when those who are going are gone.
std::map<uint32_t, Resources> rooms_for_others(const Scene& scene);
// Whether all that the pod needs of a node is in the room.
bool fits(const Resources& size, const Resources& room);

// Who goes first: not started, lower priority, cheaper to delete, newer, then by uid; or by a seeded draw after
// priority.
bool goes_before(const ScenePod& a, const ScenePod& b, const Settings& settings);

Account* account_named(std::vector<Account>& accounts, std::string_view name);
const Account* account_named(const std::vector<Account>& accounts, std::string_view name);
std::vector<Named> names_of(const std::vector<Account>& accounts);

}  // namespace berth::share
