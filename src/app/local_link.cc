#include "app/local_link.h"

#include <fmt/format.h>

#include "api/decode.h"
#include "api/route.h"
#include "base/json.h"
#include "link/local.h"

namespace berth::app {
namespace {

Result<api::Verb> verb_of(const std::string& method) {
    if (method == "GET") return api::Verb::Get;
    if (method == "POST") return api::Verb::Create;
    if (method == "PUT") return api::Verb::Update;
    if (method == "PATCH") return api::Verb::Patch;
    if (method == "DELETE") return api::Verb::Delete;
    return base::bad_request(fmt::format("there is no verb for {}", method));
}

Result<api::Call> call_for(Server& server, const api::Identity& who, link::Request request) {
    const auto route = api::parse_route(request.path);
    if (!route) return base::not_found(fmt::format("no such path: {}", request.path));
    api::Call call;
    call.who = who;
    call.verb = TRY(verb_of(request.method));
    call.table = server.context().kinds();
    call.kind = call.table->find(route->group, route->version, route->plural);
    if (!call.kind) return base::not_found(fmt::format("no such resource: {}", request.path));
    call.subresource = route->subresource;
    call.ns = route->ns;
    call.name = route->name;
    call.body = {std::move(request.body), std::move(request.content_type)};
    if (call.verb == api::Verb::Delete && !call.body.bytes.empty()) {
        const Json options = TRY(base::parse_json(call.body.bytes));
        TRY(api::read_delete_options(options, call.options));
    }
    return call;
}

link::Reply reply_of(const Error& error) {
    return {base::http_code(error.reason), error.message, 0};
}

}  // namespace

std::unique_ptr<link::ApiClient> local_link(Server& server, api::Identity who) {
    return std::make_unique<link::LocalServer>(
        server.store(), [&server, who = std::move(who)](link::Request request, link::ReplyTo reply) {
            // Who wrote an object sees it in its feed, and need not be given a copy.
            const bool reads = request.method == "GET";
            auto call = call_for(server, who, std::move(request));
            if (!call) return reply(reply_of(call.error()));
            server.front().call(std::move(*call), [reads, reply = std::move(reply)](Result<api::Served> outcome) {
                if (!outcome) return reply(reply_of(outcome.error()));
                link::Reply answer{outcome->code, std::move(outcome->text), 0};
                if (outcome->record) {
                    answer.revision = outcome->record->revision;
                    if (reads && answer.body.empty()) answer.body = *outcome->record->bytes;
                }
                reply(std::move(answer));
            });
        });
}

}  // namespace berth::app
