#include "cli/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/phrases.h"
#include "model/device_request.h"
#include "model/node_reservation.h"
#include "sched/claims.h"
#include "sched/draw.h"
#include "sched/volume_plan.h"

namespace berth::cli {
namespace {

using ledger::Row;
using ledger::View;
using model::ResourceId;
using Changes = std::vector<Change>;

// What the row has for the ask: what is free; where it would draw from reservations, as much as it does not lack.
int64_t within_reach(const sched::Ask& ask, const View& ledger, Row row, ResourceId id) {
    const auto* credit = ask.credit(row);
    if (credit == nullptr) return ledger.free(row, id);
    return ask.spec->requests.get(id) - sched::draw_on(*credit, ask, ledger, row).lacking.get(id);
}

int64_t whole_of(const View& ledger, Row row, ResourceId id) {
    const auto* column = ledger.column(id);
    return column == nullptr ? 0 : column->allocatable[row];
}

std::string pod_name(const ledger::PodEntry& pod) {
    return fmt::format("{}/{}", pod.ns(), pod.name.view());
}

// Of a reservation there that is not for the ask: as one of its owners it would have it.
std::string kept_idle(const sched::Ask& ask, const View& ledger, Row row, ResourceId id) {
    std::string out;
    for (const auto index : ledger.at(row).reservations) {
        const auto* credit = ask.credit(row);
        const int64_t idle = ledger.remaining(index, id);
        if (idle <= 0 || (credit != nullptr && credit->covers(index))) continue;
        const auto& object = *ledger.reservation(index).object;
        out += fmt::format("; {} is kept by reservation {} for {}", model::quantity_text(id, idle), object.meta.name,
                           owners_text(object));
    }
    return out;
}

// Of pods that are on their way out.
std::string coming_free(const View& ledger, Row row, ResourceId id) {
    int64_t sum = 0;
    std::vector<std::string> who;
    for (const auto index : ledger.at(row).pods) {
        const auto& pod = ledger.pod(index);
        if (!pod.terminating || pod.spec->requests.get(id) == 0) continue;
        sum += pod.spec->requests.get(id);
        who.push_back(pod_name(pod));
    }
    if (who.empty()) return "";
    return fmt::format("; {} come{} free when {} {} gone", model::quantity_text(id, sum), who.size() == 1 ? "s" : "",
                       fmt::join(who, ", "), who.size() == 1 ? "has" : "have");
}

void lacking(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    ask.spec->requests.for_each([&](ResourceId id, int64_t amount) {
        const int64_t has = within_reach(ask, ledger, row, id);
        if (amount <= has) return;
        if (id == model::kPods) return out.push_back({"one pod fewer on it"});
        const int64_t whole = whole_of(ledger, row, id);
        const auto name = model::resource_name(id);
        const auto text = [&](int64_t value) { return model::quantity_text(id, value); };
        std::string outside;
        if (const int64_t kept = model::view_of(ledger.node(row)).held.get(id); kept > 0) {
            outside = fmt::format(", {} {} held for processes outside Kubernetes", text(kept), name);
        }
        if (whole == 0) {
            out.push_back({fmt::format("a node that has {}", name)});
        } else if (amount > whole) {
            out.push_back({fmt::format("a smaller request: {} {} is more than the node's {}{}", text(amount), name,
                                       text(whole), outside)});
        } else {
            out.push_back({fmt::format("{} more {} (wants {}, {} free{}{}{})", text(amount - has), name, text(amount),
                                       text(std::max<int64_t>(has, 0)), outside, kept_idle(ask, ledger, row, id),
                                       coming_free(ledger, row, id))});
        }
    });
}

void untolerated(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    for (const auto& taint : ledger.node(row).taints) {
        if (taint.effect == "PreferNoSchedule" || model::tolerates(ask.spec->tolerations, taint)) continue;
        out.push_back({fmt::format("a toleration of {}{}{}:{}", taint.key, taint.value.empty() ? "" : "=", taint.value,
                                   taint.effect)});
    }
}

std::string requirement_text(const model::NodeSelectorRequirement& wanted) {
    const std::string values = fmt::format("{}", fmt::join(wanted.values, ", "));
    if (wanted.op == "In" && wanted.values.size() == 1) return fmt::format("{}={}", wanted.key, values);
    if (wanted.op == "In") return fmt::format("{} in ({})", wanted.key, values);
    if (wanted.op == "NotIn") return fmt::format("{} not in ({})", wanted.key, values);
    if (wanted.op == "Exists") return wanted.key;
    if (wanted.op == "DoesNotExist") return "no " + wanted.key;
    return fmt::format("{} {} {}", wanted.key, wanted.op == "Gt" ? ">" : "<", values);
}

// What of one term the node does not have.
std::string unmet(const model::NodeSelectorTerm& term, const model::Node& node) {
    std::vector<std::string> out;
    for (const auto& wanted : term.match_expressions) {
        const model::NodeTerm alone({{wanted}, {}});
        if (!alone.matches(node.meta.name, node.meta.labels)) out.push_back("the label " + requirement_text(wanted));
    }
    for (const auto& wanted : term.match_fields) {
        const model::NodeTerm alone({{}, {wanted}});
        if (!alone.matches(node.meta.name, node.meta.labels)) out.push_back("a node with " + requirement_text(wanted));
    }
    return fmt::format("{}", fmt::join(out, " and "));
}

void unlabelled(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    const auto& node = ledger.node(row);
    for (const auto& [key, value] : ask.spec->node_selector) {
        const auto* has = node.meta.labels.find(key);
        if (has == nullptr || *has != value) out.push_back({fmt::format("the label {}={}", key, value)});
    }
    if (!ask.spec->required_nodes) return;
    std::vector<std::string> terms;
    for (const auto& term : *ask.spec->required_nodes) {
        if (model::NodeTerm(term).matches(node.meta.name, node.meta.labels)) return;
        if (auto text = unmet(term, node); !text.empty()) terms.push_back(std::move(text));
    }
    if (terms.empty()) terms.emplace_back("a required node affinity that names some node");
    out.push_back({fmt::format("{}", fmt::join(terms, ", or "))});
}

void taken_ports(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    for (const auto& port : ask.spec->ports) {
        std::string holder;
        for (const auto index : ledger.at(row).pods) {
            const auto& theirs = ledger.pod(index).spec->ports;
            const bool has =
                std::any_of(theirs.begin(), theirs.end(), [&](const auto& p) { return ledger::clash(p, port); });
            if (has) holder = pod_name(ledger.pod(index));
        }
        for (const auto index : ledger.at(row).reservations) {
            const auto& theirs = ledger.reservation(index).ports;
            const bool has =
                std::any_of(theirs.begin(), theirs.end(), [&](const auto& p) { return ledger::clash(p, port); });
            if (!has || !holder.empty()) continue;
            const auto& object = *ledger.reservation(index).object;
            holder = fmt::format("reservation {} for {}", object.meta.name, owners_text(object));
        }
        if (!holder.empty()) out.push_back({fmt::format("host port {}", port.port), holder + " has it"});
    }
}

void unreached_volumes(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    const auto claims = sched::claims_of(ask, ledger);
    for (const auto& claim : claims.bound) {
        const auto volume = ledger.volumes().volumes().find(claim->volume);
        if (!volume) {
            out.push_back(
                {fmt::format("volume {} of claim {}, which does not exist", claim->volume, claim->meta.name)});
        } else if (volume->affinity && !volume->affinity->matches("", ledger.node(row).meta.labels)) {
            out.push_back({fmt::format("volume {} of claim {} within its reach", claim->volume, claim->meta.name)});
        }
    }
    const auto answer = sched::VolumePlanner(claims, ledger).answer(row);
    if (!answer.no_volume && !answer.not_enough_space) return;
    for (const auto& claim : claims.delayed) {
        out.push_back({fmt::format("{} for claim {} of class {}",
                                   answer.not_enough_space ? "more storage" : "an available volume", claim->meta.name,
                                   claim->storage_class.value_or("\"\""))});
    }
}

void other_zones(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    const auto& labels = ledger.node(row).meta.labels;
    for (const auto& claim : sched::claims_of(ask, ledger).bound) {
        const auto volume = ledger.volumes().volumes().find(claim->volume);
        if (!volume) continue;
        for (const auto& [key, value] : volume->meta.labels) {
            const bool place = key.ends_with("/zone") || key.ends_with("/region");
            if (!place || labels.get(key) == value) continue;
            out.push_back({fmt::format("the label {}={}, where volume {} of claim {} is", key, value, claim->volume,
                                       claim->meta.name)});
        }
    }
}

void used_claims(const sched::Ask& ask, const View& ledger, Row, Changes& out) {
    for (const auto& claim : sched::claims_of(ask, ledger).once_pod) {
        for (const auto& user : ledger.volumes().users(claim->meta.full_name())) {
            if (sched::is_matched(ask, user)) continue;
            const auto who = user.reservation ? "reservation " + ledger.reservation(user.index).object->meta.name
                                              : pod_name(ledger.pod(user.index));
            out.push_back({fmt::format("claim {}, which one pod at a time may use", claim->meta.name), who + " does"});
        }
    }
    if (out.empty()) out.push_back({"an end of the pod there that has the same disk"});
}

void full_of_volumes(const sched::Ask&, const View& ledger, Row row, Changes& out) {
    const auto node = ledger.volumes().csi_nodes().find(ledger.name(row));
    if (!node) return;
    for (const auto& driver : node->drivers) {
        if (driver.limit) {
            out.push_back({fmt::format("fewer volumes of {} on it, which takes {}", driver.name, *driver.limit)});
        }
    }
}

// ---- rules about who is near whom

std::string pods_text(const std::optional<model::Selector>& selector) {
    return selector ? fmt::format("pods with {}", selector->text()) : "pods";
}

// Calls use(pod) for each pod in the same domain of the key; without the label there is none.
template <class F>
void each_near(const View& ledger, Row row, const std::string& key, F use) {
    const std::string* domain = ledger.node(row).meta.labels.find(key);
    if (domain == nullptr) return;
    for (Row other = 0; other < ledger.rows(); ++other) {
        if (!ledger.alive(other)) continue;
        const std::string* theirs = ledger.node(other).meta.labels.find(key);
        if (theirs == nullptr || *theirs != *domain) continue;
        for (const auto index : ledger.at(other).pods) use(ledger.pod(index));
    }
}

std::string place_text(const View& ledger, Row row, const std::string& key) {
    if (key == "kubernetes.io/hostname") return "on it";
    const std::string* value = ledger.node(row).meta.labels.find(key);
    return value == nullptr ? fmt::format("in the label {}, which it lacks", key)
                            : fmt::format("in {}={}", key, *value);
}

void unmet_affinity(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    for (const auto& term : ask.spec->affinity) {
        bool met = false;
        each_near(ledger, row, term.topology_key, [&](const ledger::PodEntry& pod) {
            met = met || ledger.near().asked_matches(term, pod.ns(), pod.spec->labels);
        });
        if (met) continue;
        out.push_back({fmt::format("one of the {} {}, as its podAffinity wants", pods_text(term.selector),
                                   place_text(ledger, row, term.topology_key))});
    }
}

void own_anti_affinity(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    for (const auto& term : ask.spec->anti_affinity) {
        std::string who;
        each_near(ledger, row, term.topology_key, [&](const ledger::PodEntry& pod) {
            if (ledger.near().asked_matches(term, pod.ns(), pod.spec->labels)) who = pod_name(pod);
        });
        if (who.empty()) continue;
        out.push_back({fmt::format("none of the {} {}, as its podAntiAffinity wants", pods_text(term.selector),
                                   place_text(ledger, row, term.topology_key)),
                       who + " is there"});
    }
}

// Of those who want none of its kind near them the first is named.
void held_anti_affinity(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    const auto& labels = ledger.node(row).meta.labels;
    for (Row other = 0; other < ledger.rows(); ++other) {
        if (!ledger.alive(other)) continue;
        for (const auto index : ledger.at(other).pods) {
            const auto& pod = ledger.pod(index);
            for (const auto& term : pod.spec->anti_affinity) {
                const std::string* here = labels.find(term.topology_key);
                const std::string* there = ledger.node(other).meta.labels.find(term.topology_key);
                if (here == nullptr || there == nullptr || *here != *there) continue;
                if (!ledger.near().asked_matches(term, ask.spec->ns, ask.spec->labels)) continue;
                out.push_back({fmt::format("nobody {} whose podAntiAffinity keeps {} away",
                                           place_text(ledger, row, term.topology_key), pods_text(term.selector)),
                               pod_name(pod) + " does"});
                return;
            }
        }
    }
}

void neighbours(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    unmet_affinity(ask, ledger, row, out);
    own_anti_affinity(ask, ledger, row, out);
    held_anti_affinity(ask, ledger, row, out);
}

void skewed(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    for (const auto& rule : ask.spec->spread) {
        if (!rule.hard) continue;
        if (!ledger.node(row).meta.labels.has(rule.topology_key)) {
            out.push_back(
                {fmt::format("the label {}, by which its {} are spread", rule.topology_key, pods_text(rule.selector))});
            continue;
        }
        size_t there = 0;
        each_near(ledger, row, rule.topology_key, [&](const ledger::PodEntry& pod) {
            const bool counts = pod.ns() == ask.spec->ns && !pod.terminating && rule.selector;
            there += counts && rule.selector->matches(pod.spec->labels) ? 1 : 0;
        });
        out.push_back({fmt::format("fewer {} {}: {} are there, and its spread has maxSkew {}", pods_text(rule.selector),
                                   place_text(ledger, row, rule.topology_key), there, rule.max_skew)});
    }
}

// ---- reservations

void other_reservations(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    const auto* credit = ask.credit(row);
    if (ask.reservation != nullptr) {
        for (const auto index : ledger.at(row).reservations) {
            const auto& other = *ledger.reservation(index).object;
            if (other.meta.uid == ask.reservation->meta.uid) continue;
            out.push_back({fmt::format("an end of reservation {}, which is there with {}", other.meta.name,
                                       model::same_purpose(*ask.reservation, other) ? "the same owners and template"
                                                                                    : "another allocatePolicy")});
        }
        return;
    }
    if (credit == nullptr) {
        for (const auto index : ledger.at(row).reservations) {
            const auto& object = *ledger.reservation(index).object;
            out.push_back(
                {fmt::format("to be an owner of reservation {} ({})", object.meta.name, owners_text(object))});
        }
        if (out.empty()) out.push_back({"a reservation on it that its reservation affinity wants"});
        return;
    }
    for (const auto index : credit->matched) {
        out.push_back({fmt::format("more in reservation {} ({} left)", ledger.reservation(index).object->meta.name,
                                   amounts_text(ledger.remaining(index)))});
    }
}

// Of 16, 4 of them reserved and 11 taken, to a pod of 3: "2 more CPUs of its own: of 16 there is 1 free, ...".
void few_cores(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    const auto* cores = ledger.cores().at(row);
    if (cores == nullptr || !cores->layout) return out.push_back({"a NodeResourceTopology with its CPUs"});
    if (auto fault = ledger.core_fault(row); !fault.empty()) return out.push_back({std::move(fault)});
    const int64_t wanted = ask.spec->requests.get(model::kCpu) / 1000;
    if (cores->free_cpus >= wanted) return;
    out.push_back(
        {fmt::format("{} more CPUs of its own: of {} there {} free, {} {} kept for others than pods, the rest is taken",
                     wanted - cores->free_cpus, cores->layout->all.count(),
                     cores->free_cpus == 1 ? "is 1" : fmt::format("are {}", cores->free_cpus), cores->kept.count(),
                     cores->kept.count() == 1 ? "is" : "are")});
}

// "1 more GPU: of 8 there 3 are wholly free", or why there are none to be had.
void few_devices(const sched::Ask& ask, const View& ledger, Row row, Changes& out) {
    const auto& demand = ask.spec->devices.demand;
    if (!demand) return;
    const auto* devices = ledger.devices().at(row);
    if (devices == nullptr || !devices->object) return out.push_back({"a Device object with what it has"});
    for (const auto& wanted : demand->types) {
        if (auto fault = ledger.device_fault(row, wanted.type); !fault.empty()) out.push_back({std::move(fault)});
        int64_t all = 0, fit = 0;
        for (size_t place = 0; place < devices->unit_count(); ++place) {
            if (devices->unit(place).type != wanted.type) continue;
            const auto takes = wanted.of(devices->unit(place));
            ++all;
            fit += devices->unit(place).healthy && takes && takes->within(devices->free[place]) ? 1 : 0;
        }
        if (fit >= wanted.count) continue;
        out.push_back({fmt::format("{} more {} with as much free as it asks for: of {} there {}", wanted.count - fit,
                                   model::name_of(wanted.type), all, fit == 1 ? "is 1" : fmt::format("are {}", fit))});
    }
}

using Adviser = void (*)(const sched::Ask&, const View&, Row, Changes&);

Adviser adviser_of(sched::PluginId filter) {
    switch (filter) {
        case sched::PluginId::NodeResourcesFit:
            return lacking;
        case sched::PluginId::NodeNUMAResource:
            return few_cores;
        case sched::PluginId::DeviceShare:
            return few_devices;
        case sched::PluginId::TaintToleration:
            return untolerated;
        case sched::PluginId::NodeAffinity:
            return unlabelled;
        case sched::PluginId::NodePorts:
            return taken_ports;
        case sched::PluginId::VolumeBinding:
            return unreached_volumes;
        case sched::PluginId::VolumeZone:
            return other_zones;
        case sched::PluginId::VolumeRestrictions:
            return used_claims;
        case sched::PluginId::NodeVolumeLimits:
            return full_of_volumes;
        case sched::PluginId::InterPodAffinity:
            return neighbours;
        case sched::PluginId::PodTopologySpread:
            return skewed;
        case sched::PluginId::Reservation:
            return other_reservations;
        case sched::PluginId::ShareFit:
            return [](const sched::Ask& ask, const View&, Row, Changes& out) {
                out.push_back(
                    {fmt::format("namespace {} to deserve more: others must ask for less, or its Consumer "
                                 "must say more (berth explain consumer {})",
                                 ask.spec->ns, ask.spec->ns)});
            };
        case sched::PluginId::NodeUnschedulable:
            return [](const sched::Ask&, const View&, Row, Changes& out) { out.push_back({std::string(kUncordon)}); };
        case sched::PluginId::NodeName:
            return [](const sched::Ask& ask, const View&, Row, Changes& out) {
                out.push_back({fmt::format("another spec.nodeName than {}", ask.spec->node_name)});
            };
        default:
            return nullptr;
    }
}

}  // namespace

std::vector<Change> advice_for(const sched::Ask& ask, const View& ledger, Row row,
                               const std::vector<Explanation::Block>& blocks) {
    Changes out;
    for (const auto& block : blocks) {
        Changes here;
        if (const auto advise = adviser_of(block.filter)) advise(ask, ledger, row, here);
        // A filter that nobody has taught us to speak for.
        if (here.empty()) {
            for (const auto& reason : block.reasons) here.push_back({reason});
        }
        out.insert(out.end(), here.begin(), here.end());
    }
    return out;
}

double shortage_share(const sched::Ask& ask, const View& ledger, Row row) {
    double share = 0;
    ask.spec->requests.for_each([&](ResourceId id, int64_t amount) {
        const int64_t lacks = amount - within_reach(ask, ledger, row, id);
        const auto whole = static_cast<double>(std::max<int64_t>(whole_of(ledger, row, id), 1));
        if (lacks > 0) share = std::max(share, static_cast<double>(lacks) / whole);
    });
    return share;
}

}  // namespace berth::cli
