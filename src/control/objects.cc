#include "control/objects.h"

#include "base/json_view.h"
#include "model/reader.h"

namespace berth::control {

bool Objects::put(const std::string& resource, std::string_view text, uint64_t revision) {
    auto document = base::parse_json(text);
    thread_local base::JsonParser parser;  // its buffers are large
    const auto view = parser.parse(text);
    if (!document || !view) return false;
    std::string trouble;
    auto object = std::make_shared<Object>();
    object->meta = model::read_meta(model::Reader(*view, trouble));
    object->meta.revision = revision;
    object->document = std::move(*document);
    const Name name{object->meta.ns, object->meta.name};
    remove(resource, name.first, name.second);
    for (const auto& owner : object->meta.owners) by_owner_[owner.uid].insert({resource, name});
    ++uids_[object->meta.uid];
    by_resource_[resource][name] = std::move(object);
    return true;
}

void Objects::remove(const std::string& resource, const std::string& ns, const std::string& name) {
    auto& objects = by_resource_[resource];
    const auto found = objects.find({ns, name});
    if (found == objects.end()) return;
    for (const auto& owner : found->second->meta.owners) {
        auto& places = by_owner_[owner.uid];
        places.erase({resource, {ns, name}});
        if (places.empty()) by_owner_.erase(owner.uid);
    }
    const auto uid = uids_.find(found->second->meta.uid);
    if (--uid->second == 0) uids_.erase(uid);
    objects.erase(found);
}

ObjectPtr Objects::find(const std::string& resource, const std::string& ns, const std::string& name) const {
    const auto objects = by_resource_.find(resource);
    if (objects == by_resource_.end()) return nullptr;
    const auto found = objects->second.find({ns, name});
    return found == objects->second.end() ? nullptr : found->second;
}

std::vector<ObjectPtr> Objects::list(const std::string& resource, const std::string& ns) const {
    std::vector<ObjectPtr> out;
    const auto objects = by_resource_.find(resource);
    if (objects == by_resource_.end()) return out;
    auto at = ns.empty() ? objects->second.begin() : objects->second.lower_bound({ns, ""});
    for (; at != objects->second.end() && (ns.empty() || at->first.first == ns); ++at) out.push_back(at->second);
    return out;
}

std::vector<ObjectPtr> Objects::controlled_by(const std::string& resource, const std::string& uid) const {
    std::vector<ObjectPtr> out;
    for (const auto& [kind, object] : dependents(uid)) {
        const auto* controller = object->meta.controller();
        if (kind == resource && controller && controller->uid == uid) out.push_back(object);
    }
    return out;
}

std::vector<std::pair<std::string, ObjectPtr>> Objects::dependents(const std::string& uid) const {
    std::vector<std::pair<std::string, ObjectPtr>> out;
    const auto places = by_owner_.find(uid);
    if (places == by_owner_.end()) return out;
    for (const auto& [resource, name] : places->second)
        out.emplace_back(resource, find(resource, name.first, name.second));
    return out;
}

}  // namespace berth::control
