#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/test_front.h"
#include "base/random.h"
#include "judge.h"
#include "run/bind_guard.h"

namespace berth::attack {

// One write and what became of it.
struct Move {
    std::string who, method, path, body;
    std::string node_written;  // by name, when it is a write of a node
    std::optional<bool> fits;  // of a placement that draws from nothing: whether the node has room, by the judge
    int code = 0;
    std::string message = {};  // of a refusal
    bool placed = false;       // it was answered with a pod that has a node and is not refused by it
    std::string text() const {
        return who + " " + method + " " + path + " " + body + " -> " + std::to_string(code) + " " + message;
    }
};

// Somebody who knows the names of everything and writes what comes to his mind, as an administrator, a scheduler, a
// controller or an importer, by every kind of patch.
class Attacker {
public:
    explicit Attacker(uint64_t seed);
    ~Attacker();
    Move step(const Picture& now);
    const store::Store& store() const { return *front_.store; }

private:
    Move write(std::string who, std::string method, std::string path, const Json& body, std::string kind = {});
    Move patch(std::string who, std::string path, const Json& body);
    Move write_node();
    Move create_pod(const Picture& now);
    std::optional<Move> bind_owner();
    Move bind_pod(const Picture& now);
    Move change_pod();
    Move change_pod_status();
    Move write_reservation();
    Move place_reservation();
    Move change_reservation();

    std::string any(const std::vector<std::string>& of) { return of[random_.below(of.size())]; }
    std::string node() { return any({"n0", "n1", "n2"}); }
    std::string app() { return any({"a", "b", "c"}); }
    std::string cpu() { return any({"500m", "1", "1", "2", "3", "4"}); }
    std::string writer() { return any({"admin", "scheduler", "controller"}); }
    // The name of one that exists, if any does.
    std::string some(const std::string& kind, const std::string& otherwise);
    Json requests();
    Json container();
    // Containers that run before, some of them to the end, and what the pod asks for as a whole.
    void add_beside(JsonObject& spec);
    Json link_annotations();
    void add_cores(JsonObject& notes);
    Json reservation_status();

    api::TestFront front_;
    run::BindGuard guard_;
    base::Random random_;
    int made_ = 0;
};

}  // namespace berth::attack
