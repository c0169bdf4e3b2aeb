#include "model/write.h"

#include <map>

#include "model/kinds/kinds_fleet.h"
#include "model/reservation_status.h"

namespace berth::model {

namespace {

Write write_to(Write::Verb verb, std::string resource, std::string ns, std::string name, Json body) {
    std::string version = version_of(resource);
    return {verb, std::move(resource), std::move(version), std::move(ns), std::move(name), "", std::move(body)};
}

// By resource; of several versions, the one that is stored.
std::map<std::string, std::string, std::less<>> stored_versions() {
    std::map<std::string, std::string, std::less<>> out;
    for (const auto& kind : kinds_with_fleet().all()) {
        if (!kind->stored_kind.empty()) continue;
        out.emplace(kind->group.empty() ? kind->plural : kind->group + "/" + kind->plural, kind->version);
    }
    return out;
}

}  // namespace

std::string version_of(std::string_view resource) {
    static const auto versions = stored_versions();
    const auto found = versions.find(resource);
    return found == versions.end() ? "v1" : found->second;
}

Write create_object(std::string resource, std::string ns, Json body) {
    return write_to(Write::Verb::Create, std::move(resource), std::move(ns), "", std::move(body));
}

Write patch_object(std::string resource, const Meta& meta, Json body) {
    Write write = write_to(Write::Verb::MergePatch, std::move(resource), meta.ns, meta.name, std::move(body));
    write.uid = meta.uid;
    return write;
}

Write patch_status(std::string resource, const Meta& meta, JsonObject status) {
    Write write = patch_object(std::move(resource), meta, JsonObject{{"status", std::move(status)}});
    write.subresource = "status";
    return write;
}

Write if_unchanged(Write write, const Meta& meta) {
    write.revision = meta.revision;
    return write;
}

Write delete_object(std::string resource, const Meta& meta) {
    Json body(JsonObject{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", "Background"}});
    Write write = write_to(Write::Verb::Delete, std::move(resource), meta.ns, meta.name, std::move(body));
    write.uid = meta.uid;
    return write;
}

Write reservation_status_write(std::string name, std::string uid, uint64_t revision, const ReservationStatus& status) {
    const JsonObject step{{"op", "add"}, {"path", "/status"}, {"value", status_document(status)}};
    Write write = write_to(Write::Verb::JsonPatch, kReservationResource, "", std::move(name), JsonArray{step});
    write.subresource = "status";
    write.uid = std::move(uid);
    write.revision = revision;
    return write;
}

}  // namespace berth::model
