#include "control/objects.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/json_view.h"
#include "control/reservations.h"
#include "model/reader.h"

namespace berth::control {
namespace {

constexpr std::string_view kPods = "pods";

}  // namespace

const Json& Object::document() const {
    if (!document_) {
        auto parsed = base::parse_json(*text_);
        CHECK(parsed.ok());  // read_object() has read it, and no door lets a key in twice
        document_ = std::move(*parsed);
    }
    return *document_;
}

ObjectPtr read_object(std::shared_ptr<const std::string> text, uint64_t revision) {
    thread_local base::JsonParser parser;  // its buffers are large
    const auto view = parser.parse(*text);
    if (!view) return nullptr;
    std::string trouble;
    const model::Reader reader(*view, trouble);
    auto object = std::make_shared<Object>(model::read_meta(reader), std::move(text));
    object->meta.revision = revision;
    const auto spec = reader["spec"];
    const auto status = reader["status"];
    object->node = spec["nodeName"].text();
    object->phase = status["phase"].text();
    return object;
}

ObjectPtr object_of(const model::Pod& pod, std::shared_ptr<const std::string> text) {
    auto object = std::make_shared<Object>(pod.meta, std::move(text));
    object->node = pod.node;
    object->phase = model::phase_text(pod.phase);
    return object;
}

void Objects::put(const std::string& resource, ObjectPtr object) {
    ObjectPtr& place = by_resource_[resource][{object->meta.ns, object->meta.name}];
    if (place) forget(resource, *place);
    index(resource, *object);
    place = std::move(object);
}

void Objects::remove(const std::string& resource, const std::string& ns, const std::string& name) {
    auto& objects = by_resource_[resource];
    const auto found = objects.find({ns, name});
    if (found == objects.end()) return;
    forget(resource, *found->second);
    objects.erase(found);
}

void Objects::index(const std::string& resource, const Object& object) {
    ++uids_[object.meta.uid];
    if (resource == kPods && !object.node.empty()) by_node_[object.node].insert(&object);
    for (const auto& owner : object.meta.owners) {
        by_owner_[owner.uid].insert({resource, {object.meta.ns, object.meta.name}});
    }
}

void Objects::forget(const std::string& resource, const Object& object) {
    const auto uid = uids_.find(object.meta.uid);
    if (--uid->second == 0) uids_.erase(uid);
    if (const auto on = by_node_.find(object.node); resource == kPods && on != by_node_.end()) {
        on->second.erase(&object);
        if (on->second.empty()) by_node_.erase(on);
    }
    for (const auto& owner : object.meta.owners) {
        auto& places = by_owner_[owner.uid];
        places.erase({resource, {object.meta.ns, object.meta.name}});
        if (places.empty()) by_owner_.erase(owner.uid);
    }
}

void Objects::count(const ledger::Kind& kind, const ledger::Object& object) {
    kind.put(ledger_, object);
    const auto reservation = object.as<model::Reservation>();
    if (reservation && model::is_final(reservation->phase)) {
        final_.put(reservation->meta.uid, final_since(*reservation));
    }
}

void Objects::uncount(const ledger::Kind& kind, const model::Meta& meta) {
    kind.remove(ledger_, meta);
    final_.forget(meta.uid);
}

std::vector<ledger::ReservationIndex> Objects::pass_time(base::Time wall, base::Instant now) {
    final_.look(wall, now);
    return ledger_.pass_time(wall, now);
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

std::vector<const Object*> Objects::pods_on(std::string_view node) const {
    std::vector<const Object*> out;
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return out;
    out.assign(found->second.begin(), found->second.end());
    std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
        return std::tie(a->meta.ns, a->meta.name) < std::tie(b->meta.ns, b->meta.name);
    });
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
