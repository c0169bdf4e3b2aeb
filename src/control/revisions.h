#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/objects.h"
#include "model/write.h"

namespace berth::control {

inline constexpr std::string_view kRevisionLabel = "controller-revision-hash";

// The templates that a StatefulSet or DaemonSet had, as ControllerRevisions: what its pods are made from, and what
// `kubectl rollout history` and `undo` read.
class Revisions {
public:
    Revisions(const Object& owner, std::string_view owner_kind, const Objects& objects);

    // That of today's template; nullptr: keep() makes it.
    const Object* update() const { return update_.get(); }
    // nullptr: there is none of that name.
    const Object* find(std::string_view name) const;
    static const Json* template_of(const Object& revision);

    // Makes the one of today's template, or, where an old template came back, gives it the highest number.
    void keep(model::Writes& writes) const;
    // Old ones that nobody needs go, those with the lowest number first, until spec.revisionHistoryLimit are left.
    void truncate(const std::set<std::string, std::less<>>& needed, model::Writes& writes) const;

private:
    const Object& owner_;
    std::string_view owner_kind_;
    std::vector<ObjectPtr> all_;  // lowest number first
    ObjectPtr update_;
};

}  // namespace berth::control
