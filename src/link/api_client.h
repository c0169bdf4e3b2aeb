#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/memo.h"
#include "base/result.h"

// The doors to an API server, embedded or remote. Everything above sees objects as JSON texts and answers as codes.
namespace berth::link {

struct Resource {
    std::string group;  // "" is core
    std::string version = "v1";
    std::string plural;
    // A field selector, and one of labels: a remote server need not send the others. An embedded one may tell them all
    // the same. Who ceases to match is told as Gone.
    std::string only = {};
    std::string labels = {};
    std::string path() const { return (group.empty() ? "/api/" : "/apis/" + group + "/") + version; }
};

// Low: events for people, which wait when a remote server is slow.
enum class Urgency : uint8_t { Low, Normal };

struct Request {
    std::string method;  // GET, POST, PUT, PATCH, DELETE
    std::string path;    // with its query
    std::string body = {};
    std::string content_type = "application/json";
    Urgency urgency = Urgency::Normal;
};

struct Reply {
    int code = 0;
    std::string body;
    uint64_t revision = 0;  // of the object that was written, where the answer has one
    bool ok() const { return code >= 200 && code < 300; }
};

// An answer with any code is definite. An Error means that nobody knows whether the request took effect.
using ReplyTo = std::function<void(Result<Reply>)>;

struct FeedEvent {
    enum class Type : uint8_t {
        Put,     // the object as it is now
        Gone,    // it is no longer there; of `text` only metadata's name, namespace and uid are certain
        Synced,  // everything that was there at the start has been told
    };
    Type type = Type::Put;
    std::shared_ptr<const std::string> text = {};
    uint64_t revision = 0;
    std::shared_ptr<const base::Memo> memo = {};  // of `text`; null: nobody else reads it
};

// List and watch of one resource, kept up over closed connections, 410 and restarts; what vanished meanwhile comes as
// Gone. Poll from one thread.
class Feed {
public:
    virtual ~Feed() = default;
    virtual std::vector<FeedEvent> poll(size_t most) = 0;
};

class ApiClient {
public:
    virtual ~ApiClient() = default;
    // Calls back exactly once, on any thread.
    virtual void send(Request request, ReplyTo reply) = 0;
    // `notify` is called on any thread when there is something to poll, then not again until poll() came back empty.
    virtual std::unique_ptr<Feed> follow(const Resource& resource, std::function<void()> notify) = 0;
};

}  // namespace berth::link
