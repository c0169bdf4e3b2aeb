#include <optional>

#include "api/admission.h"
#include "api/decode.h"
#include "api/meta.h"
#include "api/pods.h"
#include "api/wire.h"
#include "api/write.h"

namespace berth::api {
namespace {

constexpr size_t kMaxObject = 3u << 19;  // 1.5 MiB

// Whether the creator may say the status at once.
bool keeps_status(const Call& call) {
    return (call.kind->group.empty() && call.kind->plural == "nodes") || call.who.in(kImporters);
}

// Makes of what was sent the object that is stored.
Status complete_new(ApiContext& context, const Call& call, Decoded& sent) {
    Json& object = sent.object;
    TRY(match_url(call, object));
    TRY(stamp_new(context, call, object));
    TRY(check_namespace(context, call, meta_text(object, "name")));
    if (call.kind->has_status() && !keeps_status(call)) object.as_object().erase("status");
    Admission entry{context, call, nullptr, object, sent.warnings};
    return admit(entry);
}

Result<Draft> compose_new(ApiContext& context, const Call& call, const std::optional<base::Cause>& refused) {
    Decoded sent = TRY(decode_object(call, *call.kind));
    TRY(complete_new(context, call, sent));
    if (refused) refuse_on_node(sent.object, *refused, context.now_text());
    Draft out;
    out.code = 201;
    out.warnings = std::move(sent.warnings);
    store::Write write;
    write.op = store::Op::Create;
    write.key = call.key();
    write.key.name = std::string(meta_text(sent.object, "name"));
    write.uid = std::string(meta_text(sent.object, "uid"));
    write.bytes = stored_bytes(sent.object);
    if (write.bytes->size() > kMaxObject) {
        return Error{Reason::RequestEntityTooLarge, "the object is larger than 1.5 MiB"};
    }
    out.txn.writes.push_back(std::move(write));
    if (!call.ns.empty()) {
        store::Write home;
        home.op = store::Op::Check;
        home.key = {"namespaces", "", call.ns};
        out.txn.writes.push_back(std::move(home));
    }
    if (refused) out.txn.writes.push_back(event_of_refusal(context, sent.object, *refused));
    return out;
}

void create(ApiContext& context, const CallPtr& call, const std::optional<base::Cause>& refused, Done done) {
    write(
        context, call,
        [&context, call, refused](const store::RecordPtr&) { return compose_new(context, *call, refused); },
        std::move(done));
}

}  // namespace

void create_object(ApiContext& context, CallPtr call, Done done) {
    create(context, call, {}, [&context, call, done = std::move(done)](Result<Served> result) {
        const auto refused = result ? std::nullopt : refusal_of_node(*call, result.error());
        if (!refused) return done(std::move(result));
        create(context, call, refused, done);
    });
}

}  // namespace berth::api
