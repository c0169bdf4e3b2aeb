#include "node_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/json.h"

namespace berth::properties {
namespace {

using Amounts = NodeJudge::Amounts;

int64_t of(const Amounts& amounts, const std::string& name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? 0 : found->second;
}

void add(Amounts& to, const Amounts& more) {
    for (const auto& [name, amount] : more) to[name] += amount;
}

// "500m", "3", "2Gi".
int64_t amount_of(const std::string& name, const std::string& text) {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    CHECK(error == std::errc());
    const std::string suffix(stop, end);
    const int64_t unit = name == "cpu" ? 1000 : 1;
    if (suffix.empty()) return value * unit;
    if (suffix == "m") return value;
    static const std::map<std::string, int> kShifts{{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}};
    return (value << kShifts.at(suffix)) * unit;
}

Json parsed(const std::string& text) {
    auto value = base::parse_json(text);
    CHECK(value.ok());
    return std::move(*value);
}

}  // namespace

// A draw is what it says, the nominated one is charged the rest.
NodeJudge::Parts NodeJudge::parts_of(const Pod& pod) {
    Parts parts;
    if (pod.allocated.empty()) return parts;
    Amounts rest = pod.requests;
    if (!pod.draws.empty()) {
        const Json draws = parsed(pod.draws);
        for (const auto& draw : draws.as_array()) {
            Amounts part;
            for (const auto& [key, value] : draw.at("resources").as_object()) {
                const std::string name(key);
                part[name] = std::min(of(rest, name), amount_of(name, std::string(value.as_string())));
                rest[name] -= part[name];
            }
            parts.emplace_back(std::string(draw.at("uid").as_string()), std::move(part));
        }
    }
    parts.insert(parts.begin(), {std::string(parsed(pod.allocated).at("uid").as_string()), std::move(rest)});
    return parts;
}

// A link counts while the reservation is live on the pod's node and the pod is its owner.
bool NodeJudge::pays(const std::string& uid, const Pod& pod) const {
    const auto found = reservations.find(uid);
    return found != reservations.end() && found->second.live && found->second.node == pod.node &&
           found->second.owner == pod.app;
}

Amounts NodeJudge::charged(const std::string& uid) const {
    Amounts sum;
    for (const auto& [name, pod] : pods) {
        for (const auto& [from, part] : parts_of(pod)) {
            if (from == uid && pays(uid, pod)) add(sum, part);
        }
    }
    return sum;
}

Amounts NodeJudge::remaining(const std::string& uid) const {
    const Reservation& reservation = reservations.at(uid);
    const Amounts taken = charged(uid);
    Amounts left;
    for (const auto& [name, amount] : reservation.reserved) {
        left[name] = std::max<int64_t>(0, amount - of(reservation.held_back, name) - of(taken, name));
    }
    return left;
}

NodeJudge::Use NodeJudge::use_of(const std::string& node) const {
    Use use;
    for (const auto& [name, pod] : pods) {
        if (pod.node != node) continue;
        add(use.pods, pod.requests);
        Amounts rest = pod.requests;
        for (const auto& [from, part] : parts_of(pod)) {
            if (!pays(from, pod)) continue;
            for (const auto& [resource, amount] : part) rest[resource] -= amount;
        }
        add(use.used, rest);
    }
    use.with_waiting = use.used;
    for (const auto& [uid, reservation] : reservations) {
        if (!reservation.live || reservation.node != node) continue;
        Amounts held = charged(uid);
        for (const auto& [name, amount] : reservation.reserved) held[name] = std::max(held[name], amount);
        if (!reservation.waiting) add(use.used, held);
        add(use.with_waiting, held);
    }
    return use;
}

bool NodeJudge::over(const Amounts& used, const std::string& node) const {
    return std::any_of(used.begin(), used.end(),
                       [&](const auto& entry) { return entry.second > of(nodes.at(node), entry.first); });
}

// What is used may not be raised above what there is, those that wait included: what a pod gets from the node is not
// theirs. A pod that draws from nothing needs room beside them; and the pods alone never ask for more than there is.
std::vector<std::string> NodeJudge::faults_of(const std::string& uid, const Use& before) const {
    std::vector<std::string> out;
    const Pod& pod = pods.at(uid);
    const Use now = use_of(pod.node);
    const auto check = [&](const char* what, const Amounts& was, const Amounts& is) {
        for (const auto& [name, amount] : pod.requests) {
            const int64_t has = of(nodes.at(pod.node), name);
            if (amount == 0 || of(is, name) <= std::max(has, of(was, name))) continue;
            out.push_back(fmt::format("{} of {}: {} of {} {} (before: {})", pod.node, what, of(is, name), has, name,
                                      of(was, name)));
        }
    };
    check("used", before.used, now.used);
    check("requested by pods", {}, now.pods);
    const Parts parts = parts_of(pod);
    check("used with those that wait", parts.empty() ? Amounts() : before.with_waiting, now.with_waiting);
    for (const auto& [from, part] : parts) judge_reservation(from, out);
    return out;
}

std::vector<std::string> NodeJudge::faults() const {
    std::vector<std::string> out;
    for (const auto& [node, allocatable] : nodes) {
        const Use use = use_of(node);
        for (const auto& [name, amount] : use.used) {
            if (amount <= of(allocatable, name)) continue;
            out.push_back(fmt::format("{}: {} of {} {} used", node, amount, of(allocatable, name), name));
        }
    }
    for (const auto& [uid, reservation] : reservations) judge_reservation(uid, out);
    return out;
}

void NodeJudge::judge_reservation(const std::string& uid, std::vector<std::string>& out) const {
    const auto found = reservations.find(uid);
    if (found == reservations.end()) {
        out.push_back(fmt::format("reservation {} is not there", uid));
        return;
    }
    const Reservation& reservation = found->second;
    judge_owners(uid, reservation, out);
    if (reservation.policy != Reservation::Policy::Restricted) return;
    const Amounts taken = charged(uid);
    for (const auto& [name, amount] : reservation.reserved) {
        if (name == "pods" || (!reservation.restricted.empty() && !reservation.restricted.contains(name))) continue;
        if (of(taken, name) <= std::max<int64_t>(0, amount - of(reservation.held_back, name))) continue;
        out.push_back(fmt::format("Restricted {}: {} of {} {}", uid, of(taken, name), amount, name));
    }
}

// An allocateOnce one has one owner, live or not; Aligned and Restricted ones are drawn from alone.
void NodeJudge::judge_owners(const std::string& uid, const Reservation& reservation,
                             std::vector<std::string>& out) const {
    int64_t owners = 0;
    for (const auto& [name, pod] : pods) {
        const Parts parts = parts_of(pod);
        const bool draws = std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.first == uid; });
        if (!draws) continue;
        ++owners;
        if (pod.node != reservation.node || pod.app != reservation.owner) {
            out.push_back(fmt::format("{} draws from {}, which is not for it", name, uid));
        }
        if (reservation.policy != Reservation::Policy::Default && parts.size() > 1) {
            out.push_back(fmt::format("{} draws from {} and others", name, uid));
        }
    }
    if (reservation.once && owners > 1) out.push_back(fmt::format("{} is used by {} pods", uid, owners));
}

// ---- what could have been

bool NodeJudge::withheld(const std::string& uid, const Pod& pod) const {
    const Reservation& reservation = reservations.at(uid);
    if (reservation.policy != Reservation::Policy::Restricted) return false;
    const Amounts left = remaining(uid);
    return std::any_of(pod.requests.begin(), pod.requests.end(), [&](const auto& entry) {
        const auto& [name, amount] = entry;
        const bool restricts = reservation.restricted.empty() || reservation.restricted.contains(name);
        return name != "pods" && amount > 0 && reservation.reserved.contains(name) && restricts &&
               amount > of(left, name);
    });
}

// Whether it has anything left of what the pod asks for.
bool NodeJudge::useful(const std::string& uid, const Pod& pod) const {
    const Amounts left = remaining(uid);
    bool asks = false;
    for (const auto& [name, amount] : pod.requests) {
        if (name == "pods" || amount == 0) continue;
        asks = true;
        if (of(left, name) > 0) return true;
    }
    return !asks;
}

std::vector<std::string> NodeJudge::matched(const Pod& pod, const std::string& node) const {
    std::vector<std::string> out;
    for (const auto& [uid, reservation] : reservations) {
        const bool there = reservation.live && !reservation.waiting && reservation.open && reservation.node == node;
        if (!there || reservation.owner != pod.app) continue;
        const bool used = std::any_of(pods.begin(), pods.end(), [&](const auto& other) {
            const Parts parts = parts_of(other.second);
            return std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.first == uid; });
        });
        if (!reservation.once || !used) out.push_back(uid);
    }
    return out;
}

// Whether the equation holds when the pod draws from these in this order, and from the node for the rest.
bool NodeJudge::holds_with(Pod pod, const std::string& node, const std::vector<std::string>& from) const {
    NodeJudge then;
    then.nodes[node] = nodes.at(node);
    for (const auto& [uid, reservation] : reservations) {
        if (reservation.node == node) then.reservations[uid] = reservation;
    }
    for (const auto& [uid, other] : pods) {
        if (other.node == node) then.pods[uid] = other;
    }
    pod.node = node;
    if (!from.empty()) pod.allocated = fmt::format(R"({{"uid":"{}"}})", from.front());
    Amounts rest = pod.requests;
    std::string draws;
    for (const auto& uid : from) {
        const Amounts left = remaining(uid);
        std::string texts;
        for (auto& [name, amount] : rest) {
            const int64_t part = name == "pods" ? 0 : std::min(amount, of(left, name));
            amount -= part;
            if (part == 0) continue;
            texts += fmt::format(R"({}"{}":"{}{}")", texts.empty() ? "" : ",", name, part, name == "cpu" ? "m" : "");
        }
        if (uid == from.front() || texts.empty()) continue;
        draws += fmt::format(R"({}{{"uid":"{}","resources":{{{}}}}})", draws.empty() ? "" : ",", uid, texts);
    }
    if (!draws.empty()) pod.draws = "[" + draws + "]";
    then.pods["asks"] = pod;
    const Amounts before = from.empty() ? Amounts() : use_of(node).with_waiting;
    const Amounts after = then.use_of(node).with_waiting;
    return std::all_of(pod.requests.begin(), pod.requests.end(), [&](const auto& entry) {
        const auto& [name, amount] = entry;
        return amount == 0 || of(after, name) <= std::max(of(nodes.at(node), name), of(before, name));
    });
}

bool NodeJudge::could_go_to(const Pod& pod, const std::string& node) const {
    const auto all = matched(pod, node);
    std::vector<std::string> alone, joint;
    for (const auto& uid : all) {
        if (reservations.at(uid).policy != Reservation::Policy::Default) alone.push_back(uid);
    }
    if (alone.empty()) {
        std::copy_if(all.begin(), all.end(), std::back_inserter(joint),
                     [&](const auto& uid) { return useful(uid, pod); });
        const bool once =
            std::any_of(joint.begin(), joint.end(), [&](const auto& uid) { return reservations.at(uid).once; });
        if (!once) std::swap(alone, joint);
        if (all.empty() || (alone.empty() && joint.empty())) return holds_with(pod, node, {});
    }
    for (const auto& uid : alone) {
        if (withheld(uid, pod)) continue;
        const std::vector<std::string> from = useful(uid, pod) ? std::vector{uid} : std::vector<std::string>();
        if (holds_with(pod, node, from)) return true;
    }
    for (size_t first = 0; first < joint.size(); ++first) {
        std::rotate(joint.begin(), joint.begin() + 1, joint.end());
        if (holds_with(pod, node, joint)) return true;
    }
    return false;
}

std::vector<std::string> NodeJudge::could_go(const Pod& pod) const {
    std::vector<std::string> out;
    for (const auto& [node, allocatable] : nodes) {
        if (!over(use_of(node).used, node) && could_go_to(pod, node)) out.push_back(node);
    }
    return out;
}

}  // namespace berth::properties
