#include "judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace berth::crash {
namespace {

constexpr const char* kAllocated = "scheduling.koordinator.sh/reservation-allocated";
constexpr const char* kDraws = "berth.dev/reservation-draws";

// Thousandths: "2" and "1500m" are all that the stories write.
int64_t amount_of(const Json& value) {
    const std::string text(value.as_string());
    const bool milli = text.back() == 'm';
    return std::stoll(text) * (milli ? 1 : 1000);
}

std::map<std::string, int64_t> cpu_of(const Json* amounts) {
    std::map<std::string, int64_t> out;
    if (amounts == nullptr) return out;
    if (const Json* cpu = base::find(*amounts, {"cpu"})) out["cpu"] = amount_of(*cpu);
    return out;
}

std::string text_at(const Json& document, std::initializer_list<std::string_view> path) {
    return std::string(base::find_string(document, path));
}

Json note_of(const Json& pod, const char* key) {
    const auto text = base::find_string(pod, {"metadata", "annotations", key});
    return text.empty() ? Json() : *base::parse_json(text);
}

// uid -> what the pod draws from it: the further draws as they are written, the rest from the first.
std::map<std::string, std::map<std::string, int64_t>> draws_of(const Json& pod) {
    std::map<std::string, std::map<std::string, int64_t>> out;
    const Json first = note_of(pod, kAllocated);
    if (first.is_null()) return out;
    auto rest = cpu_of(base::find(pod.at("spec").at("containers").at(0), {"resources", "requests"}));
    rest["pods"] = 1000;
    const Json further = note_of(pod, kDraws);
    if (further.is_array()) {
        for (const auto& draw : further.as_array()) {
            auto part = cpu_of(base::find(draw, {"resources"}));
            for (const auto& [name, amount] : part) rest[name] -= amount;
            out[text_at(draw, {"uid"})] = std::move(part);
        }
    }
    out[text_at(first, {"uid"})] = std::move(rest);
    return out;
}

}  // namespace

void Judge::follow_place(const std::string& what, const std::string& uid, const std::string& node) {
    const auto& first = places_.try_emplace(uid, node).first->second;
    if (first != node) wrong(fmt::format("{} moved from {} to {}", what, first, node));
}

std::map<std::string, Judge::Held> Judge::reservations_of(const SmallServer& server) {
    std::map<std::string, Held> out;
    for (const auto& record : server.list(kReservations)) {
        const Json document = SmallServer::document(*record);
        const std::string phase = text_at(document, {"status", "phase"});
        const Json* once = base::find(document, {"spec", "allocateOnce"});
        if (once == nullptr || once->as_bool()) once_[record->uid] = record->key.name;
        if (const auto found = ended_.find(record->uid); found != ended_.end() && found->second != phase) {
            wrong(fmt::format("{} was {} and is {}", record->key.name, found->second, phase));
        }
        if (phase == "Succeeded" || phase == "Failed") ended_[record->uid] = phase;
        Held held;
        held.available = phase == "Available";
        held.live = held.available || phase == "Waiting";
        if (!held.live) continue;
        held.node = text_at(document, {"status", "nodeName"});
        follow_place(record->key.name, record->uid, held.node);
        held.reserved = cpu_of(base::find(document, {"status", "allocatable"}));
        held.reserved["pods"] = 1000;
        out.emplace(record->uid, std::move(held));
    }
    return out;
}

void Judge::follow_draws(const Json& pod) {
    for (const auto& [uid, amounts] : draws_of(pod)) {
        const auto once = once_.find(uid);
        if (once == once_.end()) continue;
        auto& drawers = drawers_[uid];
        drawers.insert(text_at(pod, {"metadata", "uid"}));
        if (drawers.size() > 1) wrong(fmt::format("{} was used twice", once->second));
    }
}

void Judge::read_conditions(const Json& pod) {
    const Json* conditions = base::find(pod, {"status", "conditions"});
    if (conditions == nullptr) return;
    for (const auto& condition : conditions->as_array()) {
        if (text_at(condition, {"type"}) == "PodScheduled" && text_at(condition, {"status"}) == "False") {
            wrong(fmt::format("{} is bound and says that it is not", text_at(pod, {"metadata", "name"})));
        }
    }
}

void Judge::count_pods(const SmallServer& server, std::map<std::string, Held>& held, Use& used) {
    for (const auto& record : server.list("pods")) {
        const Json pod = SmallServer::document(*record);
        const std::string node = text_at(pod, {"spec", "nodeName"});
        if (node.empty()) continue;
        follow_place(record->key.name, record->uid, node);
        follow_draws(pod);
        if (reads_conditions_) read_conditions(pod);
        auto own = cpu_of(base::find(pod.at("spec").at("containers").at(0), {"resources", "requests"}));
        own["pods"] = 1000;
        for (const auto& [uid, amounts] : draws_of(pod)) {
            const auto found = held.find(uid);
            if (found == held.end() || found->second.node != node) continue;
            for (const auto& [name, amount] : amounts) {
                found->second.charged[name] += amount;
                own[name] -= amount;
            }
        }
        for (const auto& [name, amount] : own) used[node][name] += amount;
    }
}

void Judge::look(const SmallServer& server) {
    if (!verdict_.empty()) return;
    auto held = reservations_of(server);
    Use used;
    count_pods(server, held, used);
    for (auto& [uid, each] : held) {
        for (const char* name : {"cpu", "pods"}) {
            const int64_t charged = each.charged[name];
            used[each.node][name] += each.available ? std::max(each.reserved[name], charged) : charged;
        }
    }
    for (const auto& record : server.list("nodes")) {
        const Json document = SmallServer::document(*record);
        for (const auto& [name, amount] : used[record->key.name]) {
            const Json* has = base::find(document, {"status", "allocatable", name});
            CHECK(has != nullptr);
            const int64_t over = amount - amount_of(*has);
            if (over > 0) wrong(fmt::format("{} is oversold by {} thousandths of {}", record->key.name, over, name));
        }
    }
}

}  // namespace berth::crash
