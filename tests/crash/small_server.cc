#include "small_server.h"

#include <fmt/format.h>

#include <set>

#include "base/check.h"
#include "base/json.h"
#include "model/kinds/patch.h"

namespace berth::crash {
namespace {

constexpr const char* kNow = "2026-01-01T00:00:00Z";

std::vector<std::string> words_of(const std::string& path) {
    std::vector<std::string> words;
    for (size_t at = 1; at < path.size();) {
        const auto end = std::min(path.find('/', at), path.size());
        words.push_back(path.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

// A pool has one entry: the kinds of machines say so of status.pools.
bool names_twice(const Json& document) {
    const Json* pools = base::find(document, {"status", "pools"});
    if (pools == nullptr || !pools->is_array()) return false;
    std::set<std::string> names;
    for (const auto& entry : pools->as_array()) {
        if (!names.insert(std::string(base::find_string(entry, {"name"}))).second) return true;
    }
    return false;
}

// Conditions are merged by type, as a strategic merge does.
void merge_conditions(Json& document, Json& patch) {
    Json* added = base::find(patch, {"status", "conditions"});
    if (!added || !added->is_array()) return;
    JsonArray all;
    if (const Json* old = base::find(document, {"status", "conditions"}); old && old->is_array()) {
        for (const auto& condition : old->as_array()) {
            bool replaced = false;
            for (const auto& fresh : added->as_array()) {
                replaced = replaced || base::find_string(fresh, {"type"}) == base::find_string(condition, {"type"});
            }
            if (!replaced) all.push_back(condition);
        }
    }
    for (auto& fresh : added->as_array()) all.push_back(std::move(fresh));
    *added = std::move(all);
}

bool has_finalizers(const Json& document) {
    const Json* found = base::find(document, {"metadata", "finalizers"});
    return found != nullptr && found->is_array() && !found->get_array().empty();
}

// What a JSON patch adds to metadata stands for preconditions, as in a merge patch.
Json preconditions_of(const Json& patch) {
    JsonObject meta;
    for (const auto& step : patch.as_array()) {
        const auto path = base::find_string(step, {"path"});
        if (path == "/metadata/uid") meta["uid"] = base::find_string(step, {"value"});
        if (path == "/metadata/resourceVersion") meta["resourceVersion"] = base::find_string(step, {"value"});
    }
    return JsonObject{{"metadata", meta}};
}

}  // namespace

SmallServer::SmallServer(bool guarded)
    : store_(*store::Store::open(store::memory_log())), guard_(*store_), local_(*store_, {}) {
    if (guarded) store_->set_guard(&guard_);
}

// "/api/v1/namespaces/NS/pods/NAME/SUB", "/apis/GROUP/VERSION/PLURAL/NAME/SUB", ...
SmallServer::Target SmallServer::target_of(const std::string& path) {
    std::vector<std::string> words = words_of(path);
    const bool core = words[0] == "api";
    Target target;
    size_t at = core ? 2 : 3;
    if (words[at] == "namespaces" && words.size() > at + 2) {
        target.key.ns = words[at + 1];
        at += 2;
    }
    target.key.kind = core ? words[at] : words[1] + "/" + words[at];
    if (words.size() > at + 1) target.key.name = words[at + 1];
    if (words.size() > at + 2) target.subresource = words[at + 2];
    return target;
}

link::Reply SmallServer::perform(const link::Request& request) {
    const Target target = target_of(request.path);
    const Json body = request.body.empty() ? Json() : *base::parse_json(request.body);
    if (request.method == "GET") {
        const auto record = store_->get(target.key);
        return record ? link::Reply{200, *record->bytes, record->revision} : link::Reply{404, "", 0};
    }
    if (request.method == "DELETE") return erase(target.key, body);
    if (target.subresource == "binding") return bind(target.key, body);
    if (request.method == "POST") return create_object(target.key, body);
    if (body.is_array()) {
        // A step that finds something else than it tests for refuses the whole.
        const auto record = store_->get(target.key);
        Json probe = record ? document(*record) : Json();
        if (record && !model::apply_json_patch(probe, body)) return {422, "", 0};
        return change(target.key, preconditions_of(body),
                      [&](Json& document) { CHECK(model::apply_json_patch(document, body).ok()); });
    }
    return change(target.key, body, [&](Json& document) {
        Json patch = body;
        merge_conditions(document, patch);
        CHECK(model::apply_merge_patch(document, patch).ok());
    });
}

void SmallServer::create(const std::string& kind, Json document) {
    const store::Key key{kind, std::string(base::find_string(document, {"metadata", "namespace"})), ""};
    const auto reply = create_object(key, std::move(document));
    CHECK(reply.ok());
}

link::Reply SmallServer::create_object(store::Key key, Json body) {
    JsonObject& meta = base::object_at(body, {"metadata"});
    if (!meta.contains("uid")) meta["uid"] = fmt::format("uid-{}", ++serial_);
    meta["creationTimestamp"] = kNow;
    key.name = meta["name"].as_string();
    const std::string uid(meta["uid"].as_string());
    return commit({store::Op::Create, key, std::make_shared<const std::string>(base::to_text(body)), uid});
}

link::Reply SmallServer::change(const store::Key& key, const Json& patch, const std::function<void(Json&)>& edit) {
    const auto record = store_->get(key);
    if (!record) return {404, "", 0};
    store::Write write{store::Op::Update, key};
    if (const auto uid = base::find_string(patch, {"metadata", "uid"}); !uid.empty()) write.if_uid = std::string(uid);
    if (const auto revision = base::find_string(patch, {"metadata", "resourceVersion"}); !revision.empty()) {
        write.if_revision = std::stoull(std::string(revision));
    }
    Json next = document(*record);
    const bool finalized = has_finalizers(next);
    edit(next);
    if (names_twice(next)) return {422, "", 0};
    const bool ends = finalized && !has_finalizers(next) && base::find(next, {"metadata", "deletionTimestamp"});
    if (ends) return commit({store::Op::Delete, key, {}, {}, write.if_revision, record->uid});
    base::object_at(next, {"metadata"}).erase("resourceVersion");
    base::object_at(next, {"metadata"})["uid"] = record->uid;
    write.bytes = std::make_shared<const std::string>(base::to_text(next));
    return commit(std::move(write));
}

link::Reply SmallServer::bind(const store::Key& key, const Json& body) {
    const auto record = store_->get(key);
    if (!record) return {404, "", 0};
    const Json pod = document(*record);
    const bool open = base::find_string(pod, {"spec", "nodeName"}).empty() &&
                      !base::find(pod, {"metadata", "deletionTimestamp"}) &&
                      base::find_string(body, {"metadata", "uid"}) == record->uid;
    if (!open) return {409, "", 0};
    return change(key, body, [&](Json& document) {
        base::object_at(document, {"spec"})["nodeName"] = base::find_string(body, {"target", "name"});
        if (const Json* notes = base::find(body, {"metadata", "annotations"})) {
            for (const auto& note : notes->as_object()) {
                base::object_at(document, {"metadata", "annotations"})[note.key()] = note.value();
            }
        }
        base::object_at(document, {"status"}).erase("nominatedNodeName");
        Json scheduled(JsonObject{{"status", JsonObject{{"conditions", JsonArray{JsonObject{{"type", "PodScheduled"},
                                                                                            {"status", "True"}}}}}}});
        merge_conditions(document, scheduled);
        base::object_at(document, {"status"})["conditions"] = *base::find(scheduled, {"status", "conditions"});
    });
}

// Bound pods end gracefully: they are marked, and gone when their node says so.
link::Reply SmallServer::erase(const store::Key& key, const Json& options) {
    const auto record = store_->get(key);
    if (!record) return {404, "", 0};
    const auto uid = base::find_string(options, {"preconditions", "uid"});
    if (!uid.empty() && uid != record->uid) return {409, "", 0};
    const bool graceful = has_finalizers(document(*record)) ||
                          (key.kind == "pods" && !base::find_string(document(*record), {"spec", "nodeName"}).empty());
    if (!graceful) return commit({store::Op::Delete, key, {}, {}, {}, record->uid});
    return change(key, Json(JsonObject()),
                  [](Json& document) { base::object_at(document, {"metadata"})["deletionTimestamp"] = kNow; });
}

void SmallServer::remove(const store::Key& key) {
    commit({store::Op::Delete, key});
}

link::Reply SmallServer::commit(store::Write write) {
    const auto done = store_->commit({{std::move(write)}});
    if (!done) return {409, done.error().message, 0};
    if (written) written();
    return {200, "", done->revision};
}

std::vector<store::RecordPtr> SmallServer::list(const std::string& kind) const {
    return store_->list({.kind = kind})->records;
}

}  // namespace berth::crash
