#include "api/admission.h"
#include "api/decode.h"
#include "api/meta.h"
#include "api/wire.h"
#include "api/write.h"

namespace berth::api {
namespace {

constexpr size_t kMaxObject = 3u << 19;  // 1.5 MiB

// Kinds whose creator may say the status at once.
bool keeps_status(const Call& call) {
    return call.kind->group.empty() && call.kind->plural == "nodes";
}

Result<Json> new_object(Desk& desk, const Call& call, const Json& wanted, std::vector<std::string>& warnings) {
    Json object = wanted;
    if (auto matched = match_url(call, object); !matched) return matched.error();
    if (auto stamped = stamp_new(desk, call, object); !stamped) return stamped.error();
    if (auto open = check_namespace(desk, call, meta_text(object, "name")); !open) return open.error();
    if (call.kind->has_status() && !keeps_status(call)) object.as_object().erase("status");
    Entry entry{desk, call, nullptr, object, warnings};
    if (auto admitted = admit(entry); !admitted) return admitted.error();
    return object;
}

}  // namespace

void create_object(Desk& desk, CallPtr call, Done done) {
    auto decoded = decode_object(*call, *call->kind);
    if (!decoded) return done(std::move(decoded).error());
    auto wanted = std::make_shared<const Decoded>(std::move(*decoded));
    write(
        desk, call,
        [&desk, call, wanted](const store::RecordPtr&) -> Result<Draft> {
            Draft out;
            out.code = 201;
            out.warnings = wanted->warnings;
            const Json object = TRY(new_object(desk, *call, wanted->object, out.warnings));
            store::Write write;
            write.op = store::Op::Create;
            write.key = call->key();
            write.key.name = std::string(meta_text(object, "name"));
            write.uid = std::string(meta_text(object, "uid"));
            write.bytes = stored_bytes(object);
            if (write.bytes->size() > kMaxObject) {
                return Error{Reason::RequestEntityTooLarge, "the object is larger than 1.5 MiB"};
            }
            out.txn.writes.push_back(std::move(write));
            if (!call->ns.empty()) {
                store::Write home;
                home.op = store::Op::Check;
                home.key = {"namespaces", "", call->ns};
                out.txn.writes.push_back(std::move(home));
            }
            return out;
        },
        std::move(done));
}

}  // namespace berth::api
