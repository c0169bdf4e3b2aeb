#include "control/revisions.h"

#include <algorithm>
#include <tuple>

#include "control/pods.h"
#include "control/templates.h"

namespace berth::control {
namespace {

constexpr const char* kRevisions = "apps/controllerrevisions";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

int64_t number_of(const Object& revision) {
    return integer_at(revision.document(), {"revision"}, 0);
}

std::string text_of(const Object& revision) {
    const Json* kept = Revisions::template_of(revision);
    if (!kept || !kept->is_object()) return "";
    JsonObject bare = kept->get_object();
    bare.erase("$patch");
    return template_text(bare);
}

}  // namespace

Revisions::Revisions(const Object& owner, std::string_view owner_kind, const Objects& objects)
    : owner_(owner), owner_kind_(owner_kind), all_(objects.controlled_by(kRevisions, owner.meta.uid)) {
    std::erase_if(all_, [](const auto& revision) { return is_deleting(*revision); });
    std::sort(all_.begin(), all_.end(), [](const auto& a, const auto& b) {
        return std::tuple(number_of(*a), a->meta.name) < std::tuple(number_of(*b), b->meta.name);
    });
    const Json* today = base::find(owner.document(), {"spec", "template"});
    const std::string wanted = today ? template_text(*today) : "";
    for (const auto& revision : all_) {
        if (text_of(*revision) == wanted) update_ = revision;
    }
}

const Object* Revisions::find(std::string_view name) const {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const auto& each) { return each->meta.name == name; });
    return found == all_.end() ? nullptr : found->get();
}

const Json* Revisions::template_of(const Object& revision) {
    return base::find(revision.document(), {"data", "spec", "template"});
}

// The data is a patch that brings the template back; `kubectl rollout undo` sends it as it is.
void Revisions::keep(model::Writes& writes) const {
    const int64_t highest = all_.empty() ? 0 : number_of(*all_.back());
    if (update_ && number_of(*update_) == highest) return;
    if (update_) {
        writes.push_back(patch_object(kRevisions, update_->meta, JsonObject{{"revision", highest + 1}}));
        return;
    }
    const Json* today = base::find(owner_.document(), {"spec", "template"});
    if (!today || !today->is_object()) return;
    JsonObject kept = today->get_object();
    const std::string hash = hash_text(template_text(*today));
    JsonObject labels;
    if (const Json* given = base::find(*today, {"metadata", "labels"}); given && given->is_object()) {
        labels = given->get_object();
    }
    labels["controller.kubernetes.io/hash"] = hash;
    JsonObject notes;  // the cause of the change is among them
    for (const auto& [key, value] : owner_.meta.annotations) {
        if (key != kLastApplied) notes[key] = value;
    }
    kept["$patch"] = "replace";
    writes.push_back(model::create_object(
        kRevisions, owner_.meta.ns,
        JsonObject{{"kind", "ControllerRevision"},
                   {"apiVersion", "apps/v1"},
                   {"metadata",
                    JsonObject{{"name", owner_.meta.name + "-" + hash},
                               {"namespace", owner_.meta.ns},
                               {"labels", std::move(labels)},
                               {"annotations", std::move(notes)},
                               {"ownerReferences", JsonArray{controller_reference(owner_, owner_kind_, "apps/v1")}}}},
                   {"data", JsonObject{{"spec", JsonObject{{"template", std::move(kept)}}}}},
                   {"revision", highest + 1}}));
}

void Revisions::truncate(const std::set<std::string, std::less<>>& needed, model::Writes& writes) const {
    std::vector<ObjectPtr> old;
    for (const auto& revision : all_) {
        if (revision != update_ && !needed.contains(revision->meta.name)) old.push_back(revision);
    }
    const int64_t limit = integer_at(owner_.document(), {"spec", "revisionHistoryLimit"}, 10);
    const int64_t surplus = static_cast<int64_t>(old.size()) - limit;
    for (int64_t i = 0; i < surplus; ++i) {
        writes.push_back(delete_object(kRevisions, old[static_cast<size_t>(i)]->meta));
    }
}

}  // namespace berth::control
