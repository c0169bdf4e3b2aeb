#include "control/shares.h"

#include <algorithm>

#include "model/consumer.h"

namespace berth::control {
namespace {

bool names_namespace(const model::OwnerRef& owner) {
    return owner.kind == "Namespace" && owner.api_version == "v1";
}

JsonObject owner_of(const model::Meta& ns) {
    return {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"name", ns.name}, {"uid", ns.uid}};
}

// The owners as they are, and the namespace.
model::Write adoption(const model::Meta& consumer, const model::Meta& ns) {
    JsonArray owners;
    for (const auto& owner : consumer.owners) {
        if (names_namespace(owner)) continue;
        JsonObject entry{
            {"apiVersion", owner.api_version}, {"kind", owner.kind}, {"name", owner.name}, {"uid", owner.uid}};
        if (owner.controller) entry["controller"] = true;
        owners.push_back(std::move(entry));
    }
    owners.push_back(owner_of(ns));
    const Json body(JsonObject{{"metadata", JsonObject{{"ownerReferences", std::move(owners)}}}});
    return model::if_unchanged(model::patch_object(kConsumerResource, consumer, body), consumer);
}

}  // namespace

model::Writes keep_consumers(const std::map<std::string, model::Meta>& namespaces,
                             const std::map<std::string, model::Meta>& consumers) {
    model::Writes out;
    for (const auto& [name, ns] : namespaces) {
        if (ns.deleted) continue;
        const auto found = consumers.find(name);
        if (found == consumers.end()) {
            const JsonObject meta{{"name", name}, {"ownerReferences", JsonArray{owner_of(ns)}}};
            out.push_back(model::create_object(kConsumerResource, "",
                                               JsonObject{{"apiVersion", std::string(model::kSharesGroup) + "/v1"},
                                                          {"kind", "Consumer"},
                                                          {"metadata", meta},
                                                          {"spec", JsonObject{}}}));
            continue;
        }
        const auto& owners = found->second.owners;
        const bool owned = std::any_of(owners.begin(), owners.end(), [&](const auto& owner) {
            return names_namespace(owner) && owner.uid == ns.uid;
        });
        if (!owned && !found->second.deleted) out.push_back(adoption(found->second, ns));
    }
    for (const auto& [name, consumer] : consumers) {
        const bool orphan =
            !namespaces.contains(name) && std::any_of(consumer.owners.begin(), consumer.owners.end(), names_namespace);
        if (orphan && !consumer.deleted) out.push_back(model::delete_object(kConsumerResource, consumer));
    }
    return out;
}

}  // namespace berth::control
