#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/resources.h"

// What is to be shared, and what comes out. Amounts are exact, in the unit of their resource (cpu in thousandths).
namespace berth::share {

using model::ResourceId;
using model::Resources;

enum class Policy : uint8_t {
    Surplus,  // what is not reserved is shared by dominant shares
    Floor,    // the larger of guarantee and weighted share
};

// Pods of one size.
struct PodRun {
    Resources size;
    int64_t count = 1;
    bool present = false;  // they run; else they wait
};

// What a consumer asks for with one set of resources: a direction, so that a resource that is full stops only those who
// need it. What `demand` has beyond the pods can be split anywhere.
struct Leaf {
    Resources demand;
    std::vector<PodRun> pods;  // in the order in which they are kept: those that run come first
};

struct Consumer {
    std::string name;
    std::string parent;  // "": the cluster
    int64_t weight = 1;  // 0: its guarantee only
    Resources reserved;
    Resources hard;             // a missing key is infinite, 0 is zero
    Resources lending_limit;    // of an idle guarantee; a missing key: all of it
    Resources borrowing_limit;  // above the guarantee; a missing key: no limit
    bool infinite = false;      // it gets what it asks for, before everybody
    std::vector<Leaf> leaves;   // each set of resources once
};

struct Problem {
    Resources capacity;  // a missing key is infinite
    std::vector<Consumer> consumers;
    Policy policy = Policy::Surplus;
    bool spread = true;  // what is left of each resource is filled by weight
};

struct Share {
    std::vector<std::pair<ResourceId, double>> fair;  // rules 1 to 3, sorted by id
    Resources deserved;         // rule 4: whole pods, and no less than the guarantee that is asked for
    std::vector<int64_t> pods;  // of each leaf, how many of its pods are deserved
    std::string bound_by;       // "demand", "hard", "borrowingLimit", or the resource in which its share is largest
    bool scaled = false;        // its guarantee does not fit and was shrunk

    double fair_of(ResourceId id) const;
};

// A problem that is solved again and again while demands change.
class Solver {
public:
    explicit Solver(Problem problem);
    ~Solver();
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    const Problem& problem() const { return problem_; }
    // Another demand of one leaf, or a new leaf. Cheap while the set of resources is the same, and cheapest where it
    // moves nobody's level (change.h): then nothing is left for solve() to do.
    void change(size_t consumer, size_t leaf, Leaf wish);
    // Another capacity; of the same resources, or of more.
    void set_capacity(Resources capacity);
    // Rules 1 to 4, unless all that has changed since is settled.
    void solve();
    // How often all of it was solved; as long as it is the same, only those who changed and who were refused for a
    // fraction of a pod may deserve something else.
    uint64_t times() const { return times_; }
    // What share() says of it, and no more: that goes through all of them once after a change.
    Resources deserved(size_t consumer) const;
    // Of the last solve(), by the consumer's place in the problem.
    Share share(size_t consumer) const;

private:
    struct State;
    void build();
    Problem problem_;
    std::unique_ptr<State> state_;
    bool built_ = false;
    bool due_ = true;
    uint64_t times_ = 0;
};

// Aligned with the consumers. The same for every order in which they are given.
std::vector<Share> solve(const Problem& problem);

}  // namespace berth::share
