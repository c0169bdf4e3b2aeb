#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "control/pods.h"
#include "control/reconciler.h"
#include "model/kinds/patch.h"
#include "model/times.h"

namespace berth::control {

using Reconcilers = std::vector<std::unique_ptr<Reconciler>>;

// The reconcilers against a cluster that is nothing but objects: what they want is done at once, and they are asked
// again until they want nothing more.
class Cluster {
public:
    explicit Cluster(Reconcilers reconcilers) : reconcilers_(std::move(reconcilers)) {}
    virtual ~Cluster() = default;

    void put(const std::string& resource, Json document) {
        JsonObject& meta = base::object_at(document, {"metadata"});
        if (!meta.contains("uid")) meta["uid"] = fmt::format("uid-{}", ++serial_);
        if (!meta.contains("name")) {
            meta["name"] = fmt::format("{}{}", std::string_view(meta["generateName"].as_string()), serial_);
        }
        if (!meta.contains("creationTimestamp")) meta["creationTimestamp"] = model::time_text(now);
        keep(resource, base::to_text(document), ++revision_);
    }
    void put_text(const std::string& resource, std::string_view text) { put(resource, *base::parse_json(text)); }

    // Until nobody wants anything; false when that does not end.
    bool settle() {
        for (int round = 0; round < 200; ++round) {
            Writes writes;
            for (const auto& reconciler : reconcilers_) collect(*reconciler, writes);
            if (writes.empty()) return true;
            for (const auto& write : writes) carry_out(write);
        }
        return false;
    }

    int64_t status(const std::string& resource, const std::string& ns, const std::string& name,
                   std::string_view field) {
        const auto object = objects.find(resource, ns, name);
        return object ? integer_at(object->document(), {"status", field}, 0) : -1;
    }

    Objects objects;
    Json last_eviction;             // what it asked for
    std::vector<std::string> told;  // the reasons of the events
    base::Time now = *model::parse_time("2026-01-01T00:00:00Z");

protected:
    virtual void keep(const std::string& resource, const std::string& text, uint64_t revision) {
        const auto object = read_object(std::make_shared<const std::string>(text), revision);
        ASSERT_NE(object, nullptr);
        objects.put(resource, object);
    }

    Reconcilers reconcilers_;

    // As a server would.
    void carry_out(const Write& write) {
        if (write.event) told.push_back(write.event->reason);
        const auto object = objects.find(write.resource, write.ns, write.name);
        if (write.subresource == "eviction") {
            last_eviction = write.body;
            if (object) erase(write.resource, *object);
            return;
        }
        if (write.verb == Write::Verb::Create) return put(write.resource, write.body);
        if (!object || (!write.uid.empty() && write.uid != object->meta.uid)) return;
        if (write.revision != 0 && write.revision != object->meta.revision) return;  // decided anew
        if (write.verb == Write::Verb::Delete) return erase(write.resource, *object);
        Json document = write.verb == Write::Verb::Replace ? write.body : object->document();
        if (write.verb == Write::Verb::MergePatch) {
            const Json patch = write.text.empty() ? write.body : *base::parse_json(write.text);
            ASSERT_TRUE(model::apply_merge_patch(document, patch));
        }
        const Json* finalizers = base::find(document, {"metadata", "finalizers"});
        const bool released = object->meta.deleted && (!finalizers || finalizers->as_array().empty());
        if (released || write.subresource == "finalize") return objects.remove(write.resource, write.ns, write.name);
        put(write.resource, document);
    }

private:
    void collect(const Reconciler& reconciler, Writes& writes) {
        std::set<Key> targets;
        for (auto& target : reconciler.standing()) targets.insert(target);
        for (const auto& resource : reconciler.watches()) {
            for (const auto& object : objects.list(resource)) {
                for (auto& target : reconciler.concerned(resource, *object, objects)) targets.insert(target);
            }
        }
        for (const auto& target : targets) {
            for (auto& write : reconciler.reconcile(target, objects, now).writes) writes.push_back(std::move(write));
        }
    }

    void erase(const std::string& resource, const Object& object) {
        const Json* finalizers = base::find(object.document(), {"metadata", "finalizers"});
        if (!finalizers || finalizers->as_array().empty()) {
            return objects.remove(resource, object.meta.ns, object.meta.name);
        }
        Json document = object.document();
        base::object_at(document, {"metadata"})["deletionTimestamp"] = model::time_text(now);
        put(resource, document);
    }

    uint64_t serial_ = 0;
    uint64_t revision_ = 0;
};

}  // namespace berth::control
