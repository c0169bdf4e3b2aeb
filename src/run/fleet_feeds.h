#pragma once

#include <map>
#include <set>
#include <string>

#include "base/json.h"
#include "fleet/objects.h"
#include "link/session.h"
#include "run/driver.h"
#include "run/writes.h"

// What the drivers of layered pools have in common: objects of a layer as they follow them, and writes that wait until
// they were seen.
namespace berth::run {

inline link::Resource fleet_resource(const std::string& name) {
    const auto slash = name.find('/');
    return {name.substr(0, slash), fleet::kVersion, name.substr(slash + 1)};
}

// An object as it was told, with the revision that it was told with.
inline Result<Json> fleet_document(const link::FeedEvent& event) {
    Json out = TRY(base::parse_json(*event.text));
    if (event.revision != 0) base::object_at(out, {"metadata"})["resourceVersion"] = std::to_string(event.revision);
    return out;
}

// "default/m" or "p": as it is named within its resource.
inline std::string fleet_key(const model::Meta& meta) {
    return meta.ns.empty() ? meta.name : meta.ns + "/" + meta.name;
}

inline model::Write fleet_write(model::Write::Verb verb, const std::string& resource, const model::Meta& meta,
                                Json body, std::string subresource = "") {
    model::Write out{verb, resource, fleet::kVersion, meta.ns, meta.name, std::move(subresource), std::move(body)};
    out.uid = meta.uid;
    return out;
}

inline model::Write fleet_delete(const std::string& resource, const model::Meta& meta) {
    return fleet_write(model::Write::Verb::Delete, resource, meta,
                       JsonObject{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}});
}

inline model::Write fleet_patch(const std::string& resource, const model::Meta& meta, Json body,
                                std::string subresource = "") {
    return fleet_write(model::Write::Verb::MergePatch, resource, meta, std::move(body), std::move(subresource));
}

// One write per object at a time: the next is decided when the one before was answered, and seen.
class Pace {
public:
    bool busy(const std::string& key) const { return waits_.contains(key); }
    void sent(const std::string& key) { waits_[key] = 0; }
    // What was written comes with that revision; 0: nothing will come.
    void answered(const std::string& key, uint64_t revision) {
        if (revision == 0) {
            waits_.erase(key);
        } else {
            waits_[key] = revision;
        }
    }
    // The object as it is now; true: decide anew.
    void seen(const std::string& key, uint64_t revision) {
        const auto found = waits_.find(key);
        if (found != waits_.end() && found->second != 0 && revision >= found->second) waits_.erase(found);
    }
    void gone(const std::string& key) {
        const auto found = waits_.find(key);
        if (found != waits_.end() && found->second != 0) waits_.erase(found);
    }

private:
    std::map<std::string, uint64_t> waits_;
};

}  // namespace berth::run
