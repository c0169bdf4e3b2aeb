#include "judge.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace berth::attack {
namespace {

const std::string kLink = "scheduling.koordinator.sh/reservation-allocated";
const std::string kCores = "scheduling.koordinator.sh/resource-status";
const std::string kDraws = "berth.dev/reservation-draws";

// "500m", "3", "2Gi", "-1".
int64_t amount(const std::string& resource, const std::string& text) {
    const int64_t number = std::stoll(text);
    if (text.ends_with("Gi")) return number << 30;
    if (resource != "cpu" || text.ends_with("m")) return number;
    return number * 1000;
}

const Json* at(const Json& json, std::initializer_list<std::string_view> path) {
    return base::find(json, path);
}

std::string text(const Json& json, std::initializer_list<std::string_view> path) {
    return std::string(base::find_string(json, path));
}

std::vector<Json> items(const Json* list) {
    if (list == nullptr || !list->is_array()) return {};
    return {list->as_array().begin(), list->as_array().end()};
}

Amounts amounts(const Json* list) {
    Amounts out;
    if (list == nullptr || !list->is_object()) return out;
    for (const auto& [name, value] : list->as_object()) {
        const std::string given = value.is_string() ? std::string(value.as_string()) : base::to_text(value);
        out[std::string(name)] = amount(std::string(name), given);
    }
    return out;
}

void add(Amounts& to, const Amounts& more) {
    for (const auto& [name, value] : more) to[name] += value;
}
void grow(Amounts& to, const Amounts& other) {
    for (const auto& [name, value] : other) to[name] = to.contains(name) ? std::max(to[name], value) : value;
}

// The larger of what the container asks for and what its status says, or the latter alone when the node cannot give
// more.
Amounts demand_of(const Json& container, const Json& pod, std::string_view statuses) {
    bool infeasible = false;
    for (const auto& condition : items(at(pod, {"status", "conditions"}))) {
        infeasible |= text(condition, {"type"}) == "PodResizePending" && text(condition, {"reason"}) == "Infeasible";
    }
    Amounts asked = amounts(at(container, {"resources", "requests"}));
    Amounts given;
    for (const auto& status : items(at(pod, {"status", statuses}))) {
        if (text(status, {"name"}) != text(container, {"name"})) continue;
        grow(given, amounts(at(status, {"allocatedResources"})));
        grow(given, amounts(at(status, {"resources", "requests"})));
    }
    if (!given.empty() && infeasible) asked = given;
    grow(asked, given);
    return asked;
}

// The containers and the sidecars, or, where that is more, what runs before them and the sidecars so far; what the pod
// asks for as a whole, if it says so; with the overhead, and a slot.
Amounts demand(const Json& pod) {
    Amounts out, sidecars, peak;
    for (const auto& container : items(at(pod, {"spec", "containers"}))) {
        add(out, demand_of(container, pod, "containerStatuses"));
    }
    for (const auto& container : items(at(pod, {"spec", "initContainers"}))) {
        const bool stays = text(container, {"restartPolicy"}) == "Always";
        Amounts then = sidecars;
        if (stays) {
            add(sidecars, demand_of(container, pod, "initContainerStatuses"));
            then = sidecars;
        } else {
            add(then, amounts(at(container, {"resources", "requests"})));
        }
        grow(peak, then);
    }
    add(out, sidecars);
    grow(out, peak);
    for (const auto& [name, whole] : amounts(at(pod, {"spec", "resources", "requests"}))) out[name] = whole;
    add(out, amounts(at(pod, {"spec", "overhead"})));
    out["pods"] = 1;
    return out;
}

bool ended(const Json& pod) {
    const auto phase = text(pod, {"status", "phase"});
    return phase == "Succeeded" || phase == "Failed";
}

// The attacker's owners are all of the form {labelSelector: {matchLabels: {app: x}}}.
bool owns(const Json& pod, const Json& reservation) {
    for (const auto& owner : items(at(reservation, {"spec", "owners"}))) {
        if (text(owner, {"labelSelector", "matchLabels", "app"}) == text(pod, {"metadata", "labels", "app"}))
            return true;
    }
    return false;
}

// What the pod's links say it takes, by the reservation's uid: a draw takes what it names, as far as the pod asks for
// it; the allocated one all the rest.
std::map<std::string, Amounts> taken(const Json& pod) {
    std::map<std::string, Amounts> out;
    const auto link = base::parse_json(text(pod, {"metadata", "annotations", kLink}));
    const auto draws = base::parse_json(text(pod, {"metadata", "annotations", kDraws}));
    Amounts rest = demand(pod);
    if (draws) {
        for (const auto& draw : items(&*draws)) {
            Amounts& part = out[text(draw, {"uid"})];
            for (const auto& [name, wanted] : amounts(at(draw, {"resources"}))) {
                const int64_t given = name == "pods" ? 0 : std::min(wanted, rest.contains(name) ? rest[name] : 0);
                part[name] += given;
                rest[name] -= given;
            }
        }
    }
    if (link && link->is_object()) out[text(*link, {"uid"})] = rest;
    return out;
}

// "0-2,5"; nothing where it cannot be read.
std::vector<int> cpus_of(const std::string& list) {
    std::vector<int> out;
    if (list.find_first_not_of("0123456789,-") != std::string::npos) return out;
    std::istringstream in(list);
    for (std::string part; std::getline(in, part, ',');) {
        const auto dash = part.find('-');
        const int last = std::stoi(dash == std::string::npos ? part : part.substr(dash + 1));
        for (int cpu = std::stoi(part); cpu <= last; ++cpu) out.push_back(cpu);
    }
    return out;
}

// The attacker's machines have CPUs 0 to 3.
void look_at_cores(const std::vector<Json>& pods, const std::vector<Json>& reservations, Picture& out) {
    std::map<std::pair<std::string, int>, std::string> holder, reserver;  // uid
    const auto take = [&](auto& of, const std::string& node, int cpu, const std::string& uid) {
        const auto [found, first] = of.emplace(std::pair(node, cpu), uid);
        const std::string what = uid + " has CPU " + std::to_string(cpu);
        if (!first) out.nodes[node].core_faults.insert(what + ", which " + found->second + " has, too");
        if (cpu > 3) out.nodes[node].core_faults.insert(what + ", which is not there");
    };
    std::map<std::string, std::string> links;  // what each pod draws from
    for (const auto& pod : pods) {
        if (text(pod, {"spec", "nodeName"}).empty() || ended(pod)) continue;
        const auto uid = text(pod, {"metadata", "uid"});
        const auto record = base::parse_json(text(pod, {"metadata", "annotations", kCores}));
        for (const auto& [drawn, part] : taken(pod)) links[uid] += drawn + " ";
        if (!record || !record->is_object()) continue;
        for (const int cpu : cpus_of(text(*record, {"cpuset"})))
            take(holder, text(pod, {"spec", "nodeName"}), cpu, uid);
    }
    for (const auto& reservation : reservations) {
        const auto uid = text(reservation, {"metadata", "uid"});
        const auto node = text(reservation, {"status", "nodeName"});
        if (!out.reservations[uid].live()) continue;
        for (const int cpu : cpus_of(text(reservation, {"status", "resourceStatus", "cpuset"}))) {
            take(reserver, node, cpu, uid);
            const auto held = holder.find({node, cpu});
            if (held == holder.end()) continue;
            bool pays = links[held->second].find(uid) != std::string::npos;
            for (const auto& pod : pods) {
                if (text(pod, {"metadata", "uid"}) == held->second) pays = pays && owns(pod, reservation);
            }
            if (pays) continue;
            out.nodes[node].core_faults.insert(held->second + " has CPU " + std::to_string(cpu) + ", which " + uid +
                                               " reserves");
        }
    }
}

std::vector<Json> documents(const store::Store& store, const std::string& kind) {
    std::vector<Json> out;
    const auto page = store.list({.kind = kind});
    for (const auto& record : page->records) out.push_back(*base::parse_json(*record->bytes));
    return out;
}

void look_at_nodes(const std::vector<Json>& nodes, const Picture& before, Picture& out) {
    for (const auto& [name, holding] : before.nodes) out.nodes[name].allocatable = holding.allocatable;
    for (const auto& node : nodes) {
        Holding& holding = out.nodes[text(node, {"metadata", "name"})];
        holding.exists = true;
        holding.allocatable = amounts(at(node, {"status", "allocatable"}));
        const auto kept = base::parse_json(text(node, {"metadata", "annotations", "node.koordinator.sh/reservation"}));
        if (kept && kept->is_object()) {
            for (const auto& [name, value] : amounts(at(*kept, {"resources"}))) {
                holding.allocatable[name] = std::max<int64_t>(0, holding.allocatable[name] - value);
            }
        }
    }
}

}  // namespace

int64_t Holding::over(const std::string& resource) const {
    const auto holds = used.find(resource);
    const auto has = allocatable.find(resource);
    if (holds == used.end()) return 0;
    return std::max<int64_t>(0, holds->second - (has == allocatable.end() ? 0 : has->second));
}

Picture look(const store::Store& store, const Picture& before) {
    Picture out;
    look_at_nodes(documents(store, "nodes"), before, out);
    const auto pods = documents(store, "pods");
    std::map<std::string, Amounts> left;  // of each pod that counts, what no reservation pays for
    for (const auto& pod : pods) {
        const auto node = text(pod, {"spec", "nodeName"});
        const auto uid = text(pod, {"metadata", "uid"});
        out.pods[uid] = {node, text(pod, {"status", "phase"})};
        if (node.empty() || ended(pod)) continue;
        left[uid] = demand(pod);
        for (const auto& container : items(at(pod, {"spec", "containers"}))) {
            for (const auto& port : items(at(container, {"ports"}))) {
                if (const Json* host = at(port, {"hostPort"}))
                    out.nodes[node].ports.push_back(host->to_number<int64_t>());
            }
        }
    }
    const auto reservations = documents(store, "scheduling.koordinator.sh/reservations");
    for (const auto& reservation : reservations) {
        const auto uid = text(reservation, {"metadata", "uid"});
        ReservationFacts& facts = out.reservations[uid];
        facts.node = text(reservation, {"status", "nodeName"});
        facts.phase = text(reservation, {"status", "phase"});
        facts.allocatable = amounts(at(reservation, {"status", "allocatable"}));
        const Json* once = at(reservation, {"spec", "allocateOnce"});
        facts.once = once == nullptr || once->as_bool();
        Amounts held = facts.allocatable;
        if (held.empty()) {
            for (const auto& container : items(at(reservation, {"spec", "template", "spec", "containers"}))) {
                add(held, amounts(at(container, {"resources", "requests"})));
            }
        }
        const Amounts reserved = held;
        held["pods"] = 1;
        Amounts charged;
        for (const auto& pod : pods) {
            const auto parts = taken(pod);
            const auto part = parts.find(uid);
            if (part == parts.end() || text(pod, {"spec", "nodeName"}).empty()) continue;
            if (owns(pod, reservation) && text(pod, {"spec", "nodeName"}) == facts.node) ++facts.users;
            if (!facts.live() || ended(pod) || text(pod, {"spec", "nodeName"}) != facts.node) continue;
            if (!owns(pod, reservation)) continue;
            add(charged, part->second);
            for (const auto& [name, value] : part->second) left[text(pod, {"metadata", "uid"})][name] -= value;
        }
        if (!facts.live()) continue;
        if (text(reservation, {"spec", "allocatePolicy"}) == "Restricted") {
            for (const auto& [name, value] : charged) {
                facts.restricted_over |= reserved.contains(name) && value > reserved.at(name);
            }
        }
        grow(held, charged);
        add(facts.phase == "Waiting" ? out.nodes[facts.node].waiting : out.nodes[facts.node].used, held);
    }
    for (const auto& [uid, rest] : left) add(out.nodes[out.pods[uid].node].used, rest);
    look_at_cores(pods, reservations, out);
    return out;
}

std::string complaint(const Picture& before, const Picture& after, const std::string& node_written, bool imported) {
    for (const auto& [name, now] : after.nodes) {
        const auto known = before.nodes.find(name);
        const Holding was = known == before.nodes.end() ? Holding() : known->second;
        const std::set<int64_t> distinct(now.ports.begin(), now.ports.end());
        if (distinct.size() < now.ports.size() && now.ports.size() > was.ports.size()) {
            return "two pods on " + name + " have one port";
        }
        for (const auto& fault : now.core_faults) {
            if (!was.core_faults.contains(fault)) return name + ": " + fault;
        }
        for (const auto& [resource, holds] : now.used) {
            const auto size = [&](const Holding& holding) {
                const auto found = holding.allocatable.find(resource);
                return found == holding.allocatable.end() ? 0 : found->second;
            };
            if (name == node_written && size(now) < size(was)) continue;
            if (now.over(resource) <= was.over(resource)) continue;
            return name + " holds " + std::to_string(holds) + " " + resource + " of " + std::to_string(size(now));
        }
    }
    for (const auto& [uid, was] : before.pods) {
        const auto now = after.pods.find(uid);
        if (now == after.pods.end()) continue;
        const bool final = was.phase == "Succeeded" || was.phase == "Failed";
        if (final && now->second.phase != was.phase) return "a pod that was " + was.phase + " is " + now->second.phase;
        if (!was.node.empty() && now->second.node != was.node) return "a pod moved from " + was.node;
    }
    for (const auto& [uid, now] : after.reservations) {
        const auto known = before.reservations.find(uid);
        const ReservationFacts was = known == before.reservations.end() ? ReservationFacts() : known->second;
        const bool shared = now.once && was.once && now.users > 1 && now.users > was.users;
        if (shared && !imported) return "a reservation for one pod has two";
        if (now.restricted_over && !was.restricted_over && !imported)
            return "a Restricted reservation gave more than it has";
        if (known == before.reservations.end()) continue;
        if (!was.live() && was.phase != "Pending" && now.phase != was.phase) return "a final reservation changed";
        if (!was.live() || !now.live()) continue;
        if (now.node != was.node || now.allocatable != was.allocatable) return "a placed reservation moved or grew";
    }
    return "";
}

bool has_room(const Picture& now, const std::string& node, const Json& pod) {
    const auto found = now.nodes.find(node);
    if (found == now.nodes.end() || !found->second.exists) return false;
    const Holding& holding = found->second;
    for (const auto& [name, wanted] : demand(pod)) {
        if (wanted <= 0) continue;
        const auto value = [&](const Amounts& list) { return list.contains(name) ? list.at(name) : 0; };
        if (wanted > value(holding.allocatable) - value(holding.used) - value(holding.waiting)) return false;
    }
    return true;
}

}  // namespace berth::attack
