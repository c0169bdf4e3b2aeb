#include "api/front.h"

#include <fmt/format.h>

#include "api/audit.h"
#include "api/authz.h"
#include "api/browser.h"
#include "api/decode.h"
#include "api/handlers.h"
#include "api/read.h"
#include "api/render.h"
#include "api/route.h"
#include "api/usage.h"
#include "api/wire.h"

namespace berth::api {

// A request on its way through the house.
struct Front::RequestContext {
    Front& front;
    Request request;
    Responder responder;
    Identity who;
    std::string audit_id;
    base::Instant since;
    std::string_view verb = "get";
    std::string resource = {};
    InFlight::Place place = {};
    AuditEvent event = {};
    std::shared_ptr<AuditTrail> trail = {};

    // For the audit log: what it is about, and where its revisions are noted.
    void note(Call& call) {
        if (!front.context_.audit) return;
        describe(call, event);
        call.trail = trail = std::make_shared<AuditTrail>();
    }
    void tell(int code);
    void finish(Response response) {
        response.headers.emplace_back("Audit-Id", audit_id);
        front.metrics_.count_request(verb, resource, response.status, front.context_.clock.now() - since);
        if (front.context_.audit && is_audited(verb, response.status)) tell(response.status);
        responder.respond(std::move(response));
    }
    void stream(Response head, std::unique_ptr<Source> source) {
        head.headers.emplace_back("Audit-Id", audit_id);
        front.metrics_.count_request(verb, resource, head.status, front.context_.clock.now() - since);
        responder.stream(std::move(head), std::move(source));
    }
    void finish_read(const std::string& user, std::unique_ptr<AnswerSource> answer);
    void refuse(const Error& error, const Subject& subject = {}) { finish(error_response(error, subject)); }
};

void Front::RequestContext::tell(int code) {
    if (event.verb.empty()) {
        event.verb = verb;
        event.who = std::move(who);
    }
    event.id = audit_id;
    event.code = code;
    event.received = front.context_.clock.wall() + (since - front.context_.clock.now());
    if (trail) event.revisions = trail->text();
    front.tell(request, std::move(event));
}

// Who showed something wrong is nobody.
void Front::tell(const Request& request, AuditEvent event) const {
    if (event.who.user.empty()) event.who = anonymous();
    event.completed = context_.clock.wall();
    event.address = request.address;
    event.agent = request.header("user-agent");
    event.uri = request.path;
    for (const auto& [name, value] : request.query) {
        event.uri += fmt::format("{}{}={}", &name == &request.query.front().first ? '?' : '&', name, value);
    }
    context_.audit(std::move(event));
}

namespace {

std::optional<Verb> verb_of(const Request& request, const Route& route) {
    const std::string& method = request.method;
    const bool named = !route.name.empty();
    if (method == "GET" || method == "HEAD") {
        const auto* watch = request.param("watch");
        if (watch != nullptr && query_flag(*watch) && route.subresource.empty()) return Verb::Watch;
        return named ? Verb::Get : Verb::List;
    }
    if (method == "POST") return Verb::Create;
    if (method == "PUT" && named) return Verb::Update;
    if (method == "PATCH" && named) return Verb::Patch;
    if (method == "DELETE") return named ? Verb::Delete : Verb::DeleteCollection;
    return std::nullopt;
}

std::string_view path_verb(const Request& request) {
    if (request.method == "GET" || request.method == "HEAD") return "get";
    if (request.method == "POST") return "post";
    return request.method == "PUT" ? "put" : request.method == "PATCH" ? "patch" : "delete";
}

Error unauthorized() {
    return {Reason::Unauthorized, "Unauthorized"};
}

bool announces_body(const Request& head) {
    const auto length = head.header("content-length");
    return (!length.empty() && length != "0") || !head.header("transfer-encoding").empty();
}

// What a create calls its object stands in the body.
std::string name_in_body(const Call& call) {
    const auto document = decode_document(call, call.body);
    return document ? std::string(base::find_string(*document, {"metadata", "name"})) : "";
}

// Invalid names the Kind, every other error the resource.
Subject subject_of(const Call& call, const Error& error) {
    Subject out = call.subject();
    if (error.reason == Reason::Invalid) out.kind = call.kind->kind;
    if (call.verb == Verb::Create && out.name.empty() && error.reason != Reason::BadRequest) {
        out.name = name_in_body(call);
    }
    return out;
}

// Leases and bindings go past everyone: a cluster whose leader cannot renew, or that cannot place, only gets fuller.
bool urgent(const Call& call) {
    return call.kind->plural == "leases" || call.subresource == "binding";
}

Error too_many(std::string_view what) {
    return {Reason::TooManyRequests, fmt::format("too many {}, please try again later", what), {}, 1};
}

Status read_options_body(Call& call) {
    if (call.body.bytes.empty()) return {};
    return read_delete_options(TRY(decode_document(call, call.body)), call.options);
}

Response response_of(ApiContext& context, const Call& call, const Form& form, Served outcome) {
    Response out;
    out.status = outcome.code;
    if (!outcome.text.empty()) {
        out.body = std::move(outcome.text);
    } else {
        render_object({*call.kind, form, context.clock.wall()}, *outcome.record, out.body);
        out.body += '\n';
    }
    if (call.subresource == "log") out.content_type = "text/plain";
    add_warnings(outcome.warnings, out);
    return out;
}

}  // namespace

// What is small is answered at once; the rest has a place until it is sent.
void Front::RequestContext::finish_read(const std::string& user, std::unique_ptr<AnswerSource> answer) {
    Response out;
    if (answer->whole(out.body)) return finish(std::move(out));
    auto room = front.reads_.enter(user, answer->holds());
    if (!room) return refuse(too_many("large answers are being read"));
    answer->keep(std::move(*room));
    stream(std::move(out), std::move(answer));
}

Front::Front(ApiContext& context, Authenticator authenticator)
    : context_(context), authenticator_(std::move(authenticator)) {}

Status Front::identify(const Request& request, Identity& who) const {
    auto shown = authenticator_.identify(request);
    if (shown) who = std::move(*shown);
    TRY(check_browser(request, hosts_));
    if (!shown) return unauthorized();
    return impersonate(request, who);
}

Screening Front::screen(const Request& head) {
    Identity who;
    const auto named = identify(head, who);
    const bool known = named && !who.in(kUnauthenticated);
    if (known || (named && !announces_body(head))) return {known};
    Response refusal = error_response(named ? unauthorized() : named.error());
    AuditEvent event{context_.ids.uid(), context_.clock.wall(), {}, std::move(who), std::string(path_verb(head))};
    event.code = refusal.status;
    refusal.headers.emplace_back("Audit-Id", event.id);
    metrics_.count_request(event.verb, {}, refusal.status, {});
    if (context_.audit && is_audited(event.verb, event.code)) tell(head, std::move(event));
    return {false, std::move(refusal)};
}

void Front::handle(Request request, Responder responder) {
    RequestContext visit{*this, std::move(request), std::move(responder), {}, context_.ids.uid(), context_.clock.now()};
    visit.verb = path_verb(visit.request);
    if (const auto named = identify(visit.request, visit.who); !named) return visit.refuse(named.error());
    auto route = parse_route(visit.request.path);
    if (!route || route->plural.empty()) return serve_plain(visit);
    serve_resource(std::move(visit), std::move(*route));
}

// Paths that are no resources.
void Front::serve_plain(RequestContext& visit) {
    const std::string& path = visit.request.path;
    const Attributes what{visit.verb, {}, {}, {}, {}, {}, path};
    if (!allowed(visit.who, what)) {
        const bool unknown = visit.who.in(kUnauthenticated);
        return visit.refuse(unknown ? unauthorized() : forbidden(refusal(visit.who, what)));
    }
    visit.finish(visit.verb == "get" ? plain_path(visit)
                                     : error_response({Reason::MethodNotAllowed, "only GET is served here"}));
}

Response Front::plain_path(const RequestContext& visit) {
    const std::string& path = visit.request.path;
    if (is_health_path(path)) {
        return health(visit.request);
    }
    if (path == "/metrics") {
        Response out = text_response(200, metrics_.text());
        out.content_type = "text/plain; version=0.0.4; charset=utf-8";
        return out;
    }
    if (auto document = documents_.serve(context_.kinds(), visit.request)) return std::move(*document);
    return text_response(404, "404 page not found\n");
}

Response Front::health(const Request& request) const {
    struct Check {
        std::string_view name;
        bool ok;
    };
    const bool ready_path = request.path.starts_with("/readyz");
    std::vector<Check> checks{{"ping", true}, {"log", true}, {"store", !context_.store.failure()}};
    if (ready_path) checks.push_back({"bootstrap", ready_.load()});
    const auto slash = request.path.find('/', 1);
    const std::string only = slash == std::string::npos ? "" : request.path.substr(slash + 1);
    bool ok = true, known = only.empty();
    std::string verbose;
    for (const auto& check : checks) {
        if (!only.empty() && check.name != only) continue;
        known = true;
        ok = ok && check.ok;
        verbose += fmt::format("[{}]{} {}\n", check.ok ? '+' : '-', check.name,
                               check.ok                ? "ok"
                               : check.name == "store" ? "failed: every write is refused, the log says why"
                                                       : "failed");
    }
    if (!known) return text_response(404, "404 page not found\n");
    const std::string name = request.path.substr(1, slash == std::string::npos ? slash : slash - 1);
    if (!ok) return text_response(500, fmt::format("{}{} check failed\n", verbose, name));
    if (request.param("verbose") == nullptr) return text_response(200, "ok");
    return text_response(200, fmt::format("{}{} check passed\n", verbose, name));
}

void Front::serve_resource(RequestContext visit, Route route) {
    if (visit.who.in(kUnauthenticated)) return visit.refuse(unauthorized());
    Call call;
    call.table = context_.kinds();
    call.kind = call.table->find(route.group, route.version, route.plural);
    if (call.kind == nullptr || (!route.ns.empty() && !call.kind->namespaced)) {
        return visit.finish(text_response(404, "404 page not found\n"));
    }
    visit.resource = call.kind->plural;
    const auto verb = verb_of(visit.request, route);
    if (!verb)
        return visit.refuse(
            {Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"});
    call.verb = *verb;
    visit.verb = name_of(call.verb);
    if (call.kind->namespaced && route.ns.empty() && !route.name.empty()) {
        return visit.finish(text_response(404, "404 page not found\n"));
    }
    auto options = parse_options(visit.request.query);
    if (!options) return visit.refuse(options.error());
    call.who = std::move(visit.who);
    call.ns = std::move(route.ns);
    call.name = std::move(route.name);
    call.subresource = std::move(route.subresource);
    call.options = std::move(*options);
    call.body.content_type = std::string(visit.request.header("content-type"));
    call.body.bytes = std::move(visit.request.body);
    call.remote = true;
    if (!allowed(call.who, attributes_of(call), context_.store)) {
        visit.note(call);
        return visit.refuse(forbidden(refusal(call.who, attributes_of(call))), call.subject());
    }
    serve_kind(std::move(visit), std::move(call));
}

void Front::serve_kind(RequestContext visit, Call call) {
    if (is_audited(visit.verb, 200)) visit.note(call);
    if (auto has = check_verb(context_, call); !has) return visit.refuse(has.error());
    auto form = negotiate(visit.request.header("accept"));
    if (!form) return visit.refuse(form.error());
    if (const auto* include = visit.request.param("includeObject")) {
        if (*include == "Object")
            form->include = Form::Include::Object;
        else if (*include == "None")
            form->include = Form::Include::None;
    }
    if (is_usage(call)) {
        auto answer = answer_usage(context_, call);
        return answer ? visit.finish(std::move(*answer)) : visit.refuse(answer.error(), call.subject());
    }
    if (call.verb == Verb::List || (call.verb == Verb::Get && call.subresource.empty())) {
        auto answer = call.verb == Verb::List ? read_list(context_, call, *form) : read_one(context_, call, *form);
        return answer ? visit.finish_read(call.who.user, std::move(*answer))
                      : visit.refuse(answer.error(), subject_of(call, answer.error()));
    }
    if (call.verb == Verb::Watch) {
        auto source = open_watch(context_, watches_, call, *form);
        if (!source) return visit.refuse(source.error(), subject_of(call, source.error()));
        return visit.stream({}, std::move(*source));
    }
    if (call.verb == Verb::Delete || call.verb == Verb::DeleteCollection) {
        if (auto read = read_options_body(call); !read) return visit.refuse(read.error());
    }
    if (!urgent(call)) {
        auto place = writes_.enter(call.who.user);
        if (!place) return visit.refuse(too_many("writes are waiting"), call.subject());
        visit.place = std::move(*place);
    }
    auto shared = std::make_shared<RequestContext>(std::move(visit));
    auto pointer = std::make_shared<const Call>(std::move(call));
    perform(context_, pointer, [shared, pointer, this, form = *form](Result<Served> result) {
        if (!result) return shared->refuse(result.error(), subject_of(*pointer, result.error()));
        if (shared->event.name.empty() && result->record) shared->event.name = result->record->key.name;
        shared->finish(response_of(context_, *pointer, form, std::move(*result)));
    });
}

void Front::call(Call call, Done done) {
    if (is_audited(name_of(call.verb), 200)) done = audited(context_, call, std::move(done));
    if (auto has = check_verb(context_, call); !has) return done(has.error());
    if (!allowed(call.who, attributes_of(call), context_.store))
        return done(forbidden(refusal(call.who, attributes_of(call))));
    perform(context_, std::make_shared<const Call>(std::move(call)), std::move(done));
}

}  // namespace berth::api
