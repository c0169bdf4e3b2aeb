#pragma once

#include <functional>
#include <memory>

#include "api/api_context.h"
#include "api/authn.h"
#include "api/call.h"
#include "api/documents.h"
#include "api/http.h"
#include "api/in_flight.h"
#include "api/metrics.h"
#include "api/route.h"
#include "api/watch.h"

namespace berth::api {

inline constexpr size_t kMostWrites = 1024;
inline constexpr size_t kMostAnswerBytes = 128u << 20;  // of large reads under way

// The front door: who is it, what do they want, are they allowed to, and then the verb.
class Front {
public:
    Front(ApiContext& context, Authenticator authenticator);

    // A request over HTTP.
    void handle(Request request, Responder responder);

    // Whether it may go on to send a body: who shows a wrong credential, or none, may not.
    Screening screen(const Request& head);

    // A request of a component inside the process: the same authorization, defaults, admission and guard. List and
    // watch are not for it: it reads the store.
    void call(Call call, Done done);

    // Streams may have something to send: called on the thread that made a write durable.
    void set_wake(std::function<void()> wake) { watches_.wake = std::move(wake); }
    // The names that we are reached by, besides addresses.
    void set_hosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
    // Ready says yes only after start-up is over.
    void set_ready(bool ready) { ready_ = ready; }
    Metrics& metrics() { return metrics_; }
    size_t writes_in_flight() const { return writes_.taken(); }
    size_t answer_bytes() const { return reads_.taken(); }

private:
    struct RequestContext;
    // The identity behind the credentials, or the one it asks to act as; who may not act so stays himself.
    Status identify(const Request& request, Identity& who) const;
    void tell(const Request& request, AuditEvent event) const;
    Response plain_path(const RequestContext& visit);
    void serve_plain(RequestContext& visit);
    void serve_resource(RequestContext visit, Route route);
    void serve_kind(RequestContext visit, Call call);
    Response health(const Request& request) const;

    ApiContext& context_;
    Authenticator authenticator_;
    WatchRoom watches_;
    Metrics metrics_;
    InFlight writes_{kMostWrites};
    InFlight reads_{kMostAnswerBytes};
    Documents documents_;
    std::vector<std::string> hosts_;
    std::atomic<bool> ready_{false};
};

}  // namespace berth::api
