#include "promises.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/allocated.h"

namespace berth::reservations {
namespace {

using Names = std::set<std::string>;

struct HolderPod {
    std::string name;
    std::string node;
    const model::Pod* pod = nullptr;
    std::string draws_from = "";  // the uid of the first reservation in its links that is there and live
};

bool is_live_on(const Stage& stage, const std::string& uid, const std::string& node) {
    return std::any_of(stage.reservations.begin(), stage.reservations.end(), [&](const auto& entry) {
        return entry.second->meta.uid == uid && model::holds_room(*entry.second) && entry.second->node == node;
    });
}

// Bound, or about to be.
std::vector<HolderPod> pods_of(const Stage& stage) {
    std::vector<HolderPod> out;
    for (const auto& [name, pod] : stage.pods) {
        const auto flight = stage.in_flight.find(name);
        const bool flies = flight != stage.in_flight.end();
        if (pod.node.empty() && !flies) continue;
        HolderPod holder{name, flies ? flight->second.node : pod.node, &pod};
        const auto links = model::read_links(flies ? flight->second.annotations : pod.meta.annotations).value();
        std::vector<std::string> uids;
        if (links.allocated) uids.push_back(links.allocated->uid);
        for (const auto& draw : links.draws) uids.push_back(draw.uid);
        for (const auto& uid : uids) {
            if (holder.draws_from.empty() && is_live_on(stage, uid, holder.node)) holder.draws_from = uid;
        }
        out.push_back(std::move(holder));
    }
    return out;
}

using Live = std::shared_ptr<const model::Reservation>;

std::vector<Live> live_of(const Stage& stage) {
    std::vector<Live> out;
    for (const auto& [name, object] : stage.reservations) {
        if (model::holds_room(*object)) out.push_back(object);
    }
    return out;
}

bool is_owner(const HolderPod& pod, const model::Reservation& reservation) {
    return std::any_of(reservation.owners.begin(), reservation.owners.end(),
                       [&](const auto& owner) { return owner.labels->matches(pod.pod->meta.labels); });
}

Names claims_of(const model::PodSpec& spec) {
    Names out;
    for (const auto& volume : spec.volumes) out.insert(volume.id);
    return out;
}

Names without(Names names, const Names& others) {
    for (const auto& name : others) names.erase(name);
    return names;
}

// Of a thing that only one may hold: who has it, and who of them may have it beside whom.
class OneHolder {
public:
    explicit OneHolder(std::string what) : what_(std::move(what)) {}
    void add(const HolderPod& pod) { pods_.push_back(&pod); }
    void add(const model::Reservation& reservation) { reservations_.push_back(&reservation); }

    void judge(std::vector<std::string>& out) const {
        if (pods_.size() > 1) {
            out.push_back(fmt::format("pods {} and {} both have {}", pods_[0]->name, pods_[1]->name, what_));
        }
        if (reservations_.size() > 1) {
            out.push_back(fmt::format("reservations {} and {} both hold {}", reservations_[0]->meta.name,
                                      reservations_[1]->meta.name, what_));
        }
        for (const auto* pod : pods_) {
            for (const auto* reservation : reservations_) {
                if (is_owner(*pod, *reservation)) continue;
                out.push_back(fmt::format("pod {} has {} of reservation {}, which is not its own", pod->name, what_,
                                          reservation->meta.name));
            }
        }
    }

private:
    std::string what_;
    std::vector<const HolderPod*> pods_;
    std::vector<const model::Reservation*> reservations_;
};

void judge_ports(const std::vector<HolderPod>& pods, const std::vector<Live>& live, std::vector<std::string>& out) {
    std::map<std::string, OneHolder> holders;
    const auto enter = [&](const std::string& node, const model::PodSpec& spec, const auto& who) {
        for (const auto& port : spec.ports) {
            const std::string what = fmt::format("port {} of {}", port.port, node);
            holders.try_emplace(what, what).first->second.add(who);
        }
    };
    for (const auto& pod : pods) enter(pod.node, *pod.pod->spec, pod);
    for (const auto& reservation : live) enter(reservation->node, *reservation->spec, *reservation);
    for (const auto& [what, holder] : holders) holder.judge(out);
}

// Wherever the node is, and whether or not it is there.
void judge_once_pod(const Stage& stage, const std::vector<HolderPod>& pods, const std::vector<Live>& live,
                    std::vector<std::string>& out) {
    for (const auto& [name, claim] : stage.claims) {
        if (!claim->modes.has(model::AccessMode::ReadWriteOncePod)) continue;
        OneHolder holder("claim " + name);
        for (const auto& pod : pods) {
            if (claims_of(*pod.pod->spec).contains(name)) holder.add(pod);
        }
        for (const auto& reservation : live) {
            if (claims_of(*reservation->spec).contains(name)) holder.add(*reservation);
        }
        holder.judge(out);
    }
}

// One node, what is attached to it and what must still be attachable.
struct Attachments {
    std::vector<HolderPod> pods;
    std::vector<Live> live;

    template <class Wanted>
    Names of_pods(Wanted wanted) const {
        Names out;
        for (const auto& pod : pods) {
            if (wanted(pod)) out.merge(claims_of(*pod.pod->spec));
        }
        return out;
    }
    // A reservation keeps places for its own volumes, less one for each other volume that is there for its owners
    // alone: no other pod has it, no reservation holds it. E.g. R holds c, its owner has d: nothing is kept for c.
    // Given up first is what no other wants.
    Names kept(const model::Reservation& reservation, const Names& attached) const {
        const auto owner = [&](const HolderPod& pod) { return pod.draws_from == reservation.meta.uid; };
        const Names own = claims_of(*reservation.spec);
        const Names contested = wanted_by_others(reservation);
        const Names theirs = without(without(of_pods(owner), own), contested);
        size_t spared = without(theirs, of_pods([&](const auto& pod) { return !owner(pod); })).size();
        const Names open = without(own, attached);
        Names out = open;
        for (const bool any : {false, true}) {
            for (const auto& claim : open) {
                if (spared > 0 && (any || !contested.contains(claim))) spared -= out.erase(claim);
            }
        }
        return out;
    }

private:
    Names wanted_by_others(const model::Reservation& reservation) const {
        Names out;
        for (const auto& other : live) {
            if (other->meta.uid != reservation.meta.uid) out.merge(claims_of(*other->spec));
        }
        return out;
    }
};

void judge_attached(const std::string& node, int64_t limit, const Attachments& here, std::vector<std::string>& out) {
    Names attached = here.of_pods([](const auto&) { return true; });
    if (static_cast<int64_t>(attached.size()) > limit) {
        out.push_back(fmt::format("pods attach {} volumes to {}, which takes {}", attached.size(), node, limit));
    }
    for (const auto& reservation : here.live) attached.merge(here.kept(*reservation, attached));
    if (static_cast<int64_t>(attached.size()) > limit) {
        out.push_back(fmt::format("{} volumes are promised on {}, which takes {}", attached.size(), node, limit));
    }
}

}  // namespace

std::vector<std::string> broken_promises(const Stage& stage) {
    std::vector<std::string> out;
    const auto pods = pods_of(stage);
    const auto live = live_of(stage);
    judge_ports(pods, live, out);
    judge_once_pod(stage, pods, live, out);
    for (const auto& [node, object] : stage.csi_nodes) {
        Attachments here{pods, live};
        std::erase_if(here.pods, [&](const auto& pod) { return pod.node != node; });
        std::erase_if(here.live, [&](const auto& reservation) { return reservation->node != node; });
        for (const auto& driver : object->drivers) judge_attached(node, *driver.limit, here, out);
    }
    return out;
}

}  // namespace berth::reservations
