#include "api/audit.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "api/authz.h"
#include "api/call.h"
#include "base/json.h"
#include "model/times.h"

namespace berth::api {
namespace {

constexpr size_t kLongest = 1024;  // of what a client says of itself

// What a client sent need be no text.
std::string cleaned(std::string_view text) {
    std::string out(text.substr(0, kLongest));
    if (text.size() > kLongest) out += "...";
    if (simdjson::validate_utf8(out)) return out;
    for (char& c : out) {
        if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    }
    return out;
}

// Members of an object, in the order in which they are added; empty texts are left out.
class Members {
public:
    explicit Members(std::string& out) : out_(out) { out_ += '{'; }
    ~Members() { out_ += '}'; }
    Members(const Members&) = delete;
    Members& operator=(const Members&) = delete;

    std::string& at(std::string_view name) {
        if (out_.back() != '{') out_ += ',';
        base::append_quoted(name, out_);
        out_ += ':';
        return out_;
    }
    void text(std::string_view name, std::string_view value) {
        if (!value.empty()) base::append_quoted(value, at(name));
    }

private:
    std::string& out_;
};

void append_list(const std::vector<std::string>& list, std::string& out) {
    out += '[';
    for (size_t i = 0; i < list.size(); ++i) {
        if (i > 0) out += ',';
        base::append_quoted(cleaned(list[i]), out);
    }
    out += ']';
}

// What he was known by, as the commands token and certificate name it.
std::string credential_of(const Identity& who) {
    if (who.certificate != nullptr) return fmt::format("X509SERIAL={}", who.certificate->serial);
    return who.token_hash.empty() ? "" : fmt::format("TOKENID={}", who.token_hash.substr(0, 12));
}

void append_user(const Identity& who, std::string& out) {
    Members user(out);
    user.text("username", cleaned(who.user));
    user.text("uid", cleaned(who.uid));
    if (!who.groups.empty()) append_list(who.groups, user.at("groups"));
    const auto known_by = credential_of(who);
    if (known_by.empty() && who.extra.empty()) return;
    Members extra(user.at("extra"));
    for (const auto& [key, values] : who.extra) append_list(values, extra.at(cleaned(key)));
    if (!known_by.empty()) append_list({known_by}, extra.at("authentication.kubernetes.io/credential-id"));
}

void append_object_ref(const AuditEvent& event, std::string& out) {
    Members ref(out);
    ref.text("resource", event.resource);
    ref.text("namespace", cleaned(event.ns));
    ref.text("name", cleaned(event.name));
    ref.text("apiGroup", event.group);
    ref.text("apiVersion", event.version);
    ref.text("subresource", event.subresource);
}

}  // namespace

void AuditTrail::add(store::Revision revision) {
    const std::lock_guard lock(mutex_);
    revisions_.push_back(revision);
}

std::string AuditTrail::text() const {
    const std::lock_guard lock(mutex_);
    auto sorted = revisions_;
    std::sort(sorted.begin(), sorted.end());
    std::string out;
    for (size_t i = 0; i < sorted.size();) {
        size_t end = i;
        while (end + 1 < sorted.size() && sorted[end + 1] <= sorted[end] + 1) ++end;
        if (!out.empty()) out += ',';
        out += sorted[i] == sorted[end] ? fmt::format("{}", sorted[i]) : fmt::format("{}-{}", sorted[i], sorted[end]);
        i = end + 1;
    }
    return out;
}

void describe(const Call& call, AuditEvent& event) {
    event.who = call.who;
    event.verb = name_of(call.verb);
    event.group = call.kind->group;
    event.version = call.kind->version;
    event.resource = call.kind->plural;
    event.subresource = call.subresource;
    event.ns = call.ns;
    event.name = call.name;
}

namespace {

std::string uri_of(const Call& call) {
    const model::Kind& kind = *call.kind;
    std::string out = kind.group.empty() ? fmt::format("/api/{}", kind.version)
                                         : fmt::format("/apis/{}/{}", kind.group, kind.version);
    if (!call.ns.empty()) out += fmt::format("/namespaces/{}", call.ns);
    out += fmt::format("/{}", kind.plural);
    if (!call.name.empty()) out += fmt::format("/{}", call.name);
    if (!call.subresource.empty()) out += fmt::format("/{}", call.subresource);
    return out;
}

}  // namespace

Done audited(ApiContext& context, Call& call, Done done) {
    if (!context.audit) return done;
    auto event = std::make_shared<AuditEvent>();
    describe(call, *event);
    event->id = context.ids.uid();
    event->received = context.clock.wall();
    event->uri = uri_of(call);
    event->agent = "berth (in process)";
    call.trail = std::make_shared<AuditTrail>();
    return [&context, event, trail = call.trail, done = std::move(done)](Result<Served> result) {
        event->code = result ? result->code : base::http_code(result.error().reason);
        if (is_audited(event->verb, event->code)) {
            event->completed = context.clock.wall();
            event->revisions = trail->text();
            if (result && result->record != nullptr && event->name.empty()) event->name = result->record->key.name;
            context.audit(std::move(*event));
        }
        done(std::move(result));
    };
}

bool is_audited(std::string_view verb, int code) {
    return code == 401 || code == 403 || !has_word("get list watch", verb);
}

std::string audit_line(const AuditEvent& event) {
    std::string out;
    {
        Members line(out);
        line.text("kind", "Event");
        line.text("apiVersion", "audit.k8s.io/v1");
        line.text("level", "Metadata");
        line.text("auditID", event.id);
        line.text("stage", "ResponseComplete");
        line.text("requestURI", cleaned(event.uri));
        line.text("verb", event.verb);
        append_user(event.who.by != nullptr ? *event.who.by : event.who, line.at("user"));
        if (event.who.by != nullptr) {
            const Identity as{event.who.user, event.who.groups, event.who.uid, event.who.extra};
            append_user(as, line.at("impersonatedUser"));
        }
        if (!event.address.empty()) append_list({event.address}, line.at("sourceIPs"));
        line.text("userAgent", cleaned(event.agent));
        if (!event.resource.empty()) append_object_ref(event, line.at("objectRef"));
        line.at("responseStatus") += fmt::format(R"({{"metadata":{{}},{}"code":{}}})",
                                                 event.code >= 400 ? R"("status":"Failure",)" : "", event.code);
        line.text("requestReceivedTimestamp", model::micro_time_text(event.received));
        line.text("stageTimestamp", model::micro_time_text(event.completed));
        if (event.code != 401) {
            Members annotations(line.at("annotations"));
            annotations.text("authorization.k8s.io/decision", event.code == 403 ? "forbid" : "allow");
            annotations.text("berth.dev/revisions", event.revisions);
        }
    }
    out += '\n';
    return out;
}

}  // namespace berth::api
