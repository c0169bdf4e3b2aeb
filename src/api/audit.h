#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/api_context.h"
#include "api/call.h"

namespace berth::api {

// The revisions that the writes of one call made, from whichever thread. A call may make many.
class AuditTrail {
public:
    void add(store::Revision revision);
    // "7,12-15"
    std::string text() const;

private:
    mutable std::mutex mutex_;
    std::vector<store::Revision> revisions_;
};

// Who wanted what, and what came of it.
struct AuditEvent {
    std::string id;
    base::Time received;
    base::Time completed;
    Identity who;
    std::string verb;
    std::string uri = {};
    std::string group = {}, version = {}, resource = {}, subresource = {}, ns = {}, name = {};
    std::string address = {};  // empty for a component in the process
    std::string agent = {};
    int code = 0;
    std::string revisions = {};
};

// What a call says of itself.
void describe(const Call& call, AuditEvent& event);
// Writes, and whatever was refused for who asked: those are told.
bool is_audited(std::string_view verb, int code);

// The call of a component in this process: what comes of it is told before `done` is.
Done audited(ApiContext& context, Call& call, Done done);

// One line: an Event of audit.k8s.io/v1 at the level Metadata, when the answer is complete.
std::string audit_line(const AuditEvent& event);

// A file of such lines, mode 0600, that moves to FILE.1, FILE.2, ... when it is full. Who tells never waits: a thread
// writes, and what it cannot write, or what waits for it beyond a bound, is counted and lost.
class AuditLog {
public:
    struct Options {
        std::string path;
        uint64_t max_bytes = 100u << 20;
        int backups = 10;
        const base::Clock* clock = &base::system_clock();
    };
    explicit AuditLog(Options options);
    // Writes what waits, for two seconds at most.
    ~AuditLog();
    AuditLog(const AuditLog&) = delete;
    AuditLog& operator=(const AuditLog&) = delete;

    void tell(AuditEvent event);
    uint64_t told() const;
    uint64_t lost() const;

private:
    struct State;
    std::shared_ptr<State> state_;  // the thread's too: a disk that hangs may keep it longer than us
    std::thread thread_;
};

}  // namespace berth::api
