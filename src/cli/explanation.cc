#include "cli/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "cli/advice.h"
#include "model/reservation_status.h"
#include "model/times.h"
#include "sched/draw.h"
#include "sched/match.h"
#include "sched/preempt.h"

namespace berth::cli {
namespace {

using ledger::Row;
using ledger::View;
using model::ResourceId;

constexpr size_t kNearest = 5;
constexpr size_t kLookedAt = 200;  // nodes, for those that lack least

// Asks every filter, both in turn (how many nodes each leaves) and alone (everything that stands in the way of a node).
void walk_filters(const sched::Ask& ask, const sched::Profile& profile, const View& ledger, Explanation& out) {
    const Row end = static_cast<Row>(ledger.rows());
    sched::Strikes in_turn(ledger, 0, end);
    for (Row row = 0; row < end; ++row) {
        if (ledger.alive(row)) out.nodes[std::string(ledger.name(row))];
    }
    for (const auto& filter : profile.filters) {
        const size_t in = in_turn.open_rows().size();
        filter->strike(ask, ledger, in_turn);
        out.steps.push_back({std::string(filter->name()), in, in_turn.open_rows().size()});
        sched::Strikes alone(ledger, 0, end);
        filter->strike(ask, ledger, alone);
        for (Row row = 0; row < end; ++row) {
            if (!ledger.alive(row)) continue;
            const auto* refusal = alone.why(row);
            if (refusal == nullptr) continue;
            auto& blocks = out.nodes[std::string(ledger.name(row))];
            // Two parts of one plugin may both refuse.
            if (blocks.empty() || blocks.back().filter != refusal->plugin)
                blocks.push_back({refusal->plugin, refusal->reasons});
        }
    }
}

// In words: of several nodes the first says who stands in the way.
std::vector<std::string> change_texts(const std::vector<Change>& changes, const std::vector<std::string>& nodes) {
    std::vector<std::string> out;
    for (const auto& [what, who] : changes) {
        std::string text = what;
        if (what == kUncordon) text += fmt::format(" {}", fmt::join(nodes, " "));
        if (!who.empty()) text += fmt::format(" ({}{})", nodes.size() > 1 ? "e.g. " : "", who);
        out.push_back(std::move(text));
    }
    return out;
}

// Nodes that lack the same are one answer.
void find_nearest(const sched::Ask& ask, const View& ledger, Explanation& out) {
    std::vector<std::tuple<size_t, double, std::string>> ranked;
    for (const auto& [name, blocks] : out.nodes) {
        if (blocks.empty()) continue;
        ranked.emplace_back(blocks.size(), shortage_share(ask, ledger, ledger.row_of(name)), name);
    }
    const size_t looked = std::min(kLookedAt, ranked.size());
    std::partial_sort(ranked.begin(), ranked.begin() + static_cast<long>(looked), ranked.end());
    const auto same = [](const std::vector<Change>& a, const std::vector<Change>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [](const Change& x, const Change& y) { return x.what == y.what; });
    };
    std::vector<std::pair<std::vector<Change>, std::vector<std::string>>> groups;
    for (size_t i = 0; i < looked; ++i) {
        const auto& name = std::get<2>(ranked[i]);
        auto changes = advice_for(ask, ledger, ledger.row_of(name), out.nodes[name]);
        const auto known =
            std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return same(group.first, changes); });
        if (known != groups.end()) {
            known->second.push_back(name);
        } else if (groups.size() < kNearest) {
            groups.push_back({std::move(changes), {name}});
        }
    }
    for (auto& [changes, nodes] : groups) {
        auto texts = change_texts(changes, nodes);
        out.nearest.push_back({std::move(nodes), std::move(texts)});
    }
}

void fill_nodes(const sched::Ask& ask, const sched::Verdict& verdict, const run::Cluster& cluster, Explanation& out) {
    const View& ledger = cluster.ledger();
    walk_filters(ask, cluster.profile_for(*ask.spec), ledger, out);
    for (size_t i = 0; i < verdict.feasible.size(); ++i) {
        if (!verdict.scores.empty()) out.scores[std::string(ledger.name(verdict.feasible[i]))] = verdict.scores[i];
    }
}

void fill_verdict(const sched::Ask& ask, const sched::Verdict& verdict, const run::Cluster& cluster, Explanation& out) {
    const View& ledger = cluster.ledger();
    fill_nodes(ask, verdict, cluster, out);
    out.summary = verdict.fault;
    if (!verdict.fault.empty()) return;
    if (verdict.chosen == ledger::kNoRow) {
        out.summary = sched::diagnosis(verdict.strikes, ledger);
        find_nearest(ask, ledger, out);
    } else {
        out.node = ledger.name(verdict.chosen);
    }
}

std::string held(const View& ledger, ledger::ReservationIndex index) {
    const auto& entry = ledger.reservation(index);
    std::string text(model::name_of(entry.object->phase));
    if (!entry.object->node.empty()) text += " on " + entry.object->node;
    if (entry.holding == ledger::Holding::Available) {
        model::Resources left;
        ledger.remaining(index).for_each([&](model::ResourceId id, int64_t amount) {
            if (id != model::kPods && amount > 0) left.set(id, amount);
        });
        std::vector<std::string> parts;
        if (!left.empty()) parts.push_back(left.text());
        for (const auto& port : entry.ports) parts.push_back(fmt::format("port {}", port.port));
        text += fmt::format(", {} left", parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", ")));
        if (!entry.object->held_back.empty()) text += fmt::format(" ({} held back)", entry.object->held_back.text());
    }
    return text;
}

// Why nobody may draw from it, whoever asks.
std::string closed_to_all(const View& ledger, ledger::ReservationIndex index) {
    const auto why = sched::closed_because(ledger, index);
    return why.empty() ? "" : fmt::format("; nobody may draw from it: {}", why);
}

std::string ready_message(const model::Reservation& object) {
    const auto* ready = model::find_condition(object, "Ready");
    return ready == nullptr ? "" : ready->message;
}

// Every reservation whose owners name the pod, whatever its phase: "why does it not use mine?" is the usual question.
void find_owned(const model::Pod& pod, const View& ledger, Explanation& out) {
    const auto wishes = model::read_wishes(pod.meta.annotations);
    for (const auto& [uid, index] : ledger.reservations()) {
        const auto& object = *ledger.reservation(index).object;
        if (!model::owned_by(object, pod)) continue;
        std::string state = held(ledger, index);
        if (object.phase == model::ReservationPhase::Waiting) state += ": " + ready_message(object);
        if (pod.node.empty() && wishes) {
            const auto why = sched::why_unsuited(ledger, index, pod, *wishes);
            if (!why.empty()) state += "; not for this pod: " + why;
        }
        out.matches.push_back({object.meta.name, std::move(state)});
    }
    std::sort(out.matches.begin(), out.matches.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

// Pods that draw from it, and pending ones that may.
void find_owners(const run::World& world, const model::Reservation& object, ledger::ReservationIndex index,
                 Explanation& out) {
    const auto& ledger = world.ledger();
    if (index != ledger::kNone) {
        for (const auto at : ledger.owners_of(index)) {
            const auto& pod = ledger.pod(at);
            auto drawn = ledger.drawn(at, index);
            drawn.erase(model::kPods);
            out.matches.push_back(
                {fmt::format("{}/{}", pod.ns(), pod.name.view()), fmt::format("draws {}", drawn.text())});
        }
    }
    world.cluster().each_pod([&](const model::Pod& pod) {
        if (!pod.node.empty() || pod.terminal()) return;
        if (model::owned_by(object, pod)) out.matches.push_back({pod.meta.full_name(), "pending"});
    });
}

void tell_bound(const run::World& world, const model::Pod& pod, Explanation& out) {
    out.state = "Bound";
    out.node = pod.node;
    out.summary = fmt::format("it is bound to {}", pod.node);
    const auto* entry = world.find_pod(pod.meta.ns, pod.meta.name);
    if (entry == nullptr) {
        out.summary += pod.terminal() ? " and has ended" : "";
        return;
    }
    if (entry->row == ledger::kNoRow) out.summary += ", a node that does not exist";
    std::vector<std::string> from;
    for (const auto& charge : entry->charges())
        from.push_back(world.ledger().reservation(charge.reservation).object->meta.name);
    if (!from.empty()) out.summary += fmt::format(", drawing from {}", fmt::join(from, ", "));
    if (entry->which && !entry->which->cores.cpus.empty()) {
        out.summary += fmt::format(", on the CPUs {}", model::cpu_list_text(entry->which->cores.cpus));
    }
    if (entry->which && !entry->which->devices.empty()) {
        out.summary += fmt::format(", with {}", model::device_record_summary(entry->which->devices));
    }
    if (!entry->linked) return;
    if (!entry->linked->fault.empty()) {
        out.summary += fmt::format("; what it draws from cannot be read: {}", entry->linked->fault);
    }
    // Those that ended with it, or since, or were deleted: they hold nothing any more.
    std::vector<std::string> used;
    for (const auto& link : entry->linked->links.named()) {
        if (std::find(from.begin(), from.end(), link.name) == from.end()) used.push_back(link.name);
    }
    if (!used.empty()) out.summary += fmt::format(", in the room that {} held for it", fmt::join(used, ", "));
}

// "", or how the node compares with those where the pod could go if it came again.
std::string compared(const sched::Verdict& verdict, const View& ledger, const Explanation& it) {
    const Row row = ledger.row_of(it.node);
    const auto open = verdict.strikes.open_rows();
    if (std::find(open.begin(), open.end(), row) == open.end()) {
        std::vector<std::string> reasons;
        const auto node = it.nodes.find(it.node);
        if (node == it.nodes.end()) return "";
        for (const auto& block : node->second) {
            reasons.insert(reasons.end(), block.reasons.begin(), block.reasons.end());
        }
        return fmt::format("; if it came again it could not go there: {}", fmt::join(reasons, ", "));
    }
    if (open.size() == 1) return "; no other node would do";
    if (verdict.chosen == row) return fmt::format("; of {} nodes that would do none is better", open.size());
    const std::string best(ledger.name(verdict.chosen));
    const auto points = [&](const std::string& node) {
        const auto found = it.scores.find(node);
        return found == it.scores.end() ? 0 : found->second;
    };
    std::string text = fmt::format("; of {} nodes that would do {} would be chosen now", open.size(), best);
    if (points(best) > points(it.node)) text += fmt::format(" ({} points against {})", points(best), points(it.node));
    return text;
}

// Why it is there: what a scheduler would say if the pod came again. It is taken out for the question.
void tell_why_there(run::World& world, const model::Pod& pod, Explanation& out) {
    if (pod.terminal() || world.ledger().row_of(pod.node) == ledger::kNoRow) return;
    const model::Pod kept = pod;
    const model::Pod again = run::made_again(kept);
    world.cluster().remove("Pod", kept.meta.ns, kept.meta.name);
    sched::Ask ask = sched::ask_for(again, world.ledger());
    if (ask.fault.empty()) {
        const auto decision = world.cluster().decide(again);
        ask.shares = world.cluster().scheduler().shares();
        fill_nodes(ask, decision.verdict, world.cluster(), out);
        if (decision.verdict.fault.empty()) out.summary += compared(decision.verdict, world.ledger(), out);
    }
    world.cluster().put(kept);
}

// Who is on the way out of the node that the pod is nominated for: it waits for them, and nobody else need go.
void tell_leaving(const View& ledger, const model::Pod& pod, Explanation& out) {
    const Row row = ledger.row_of(pod.nominated_node);
    if (row == ledger::kNoRow) return;
    for (const auto index : ledger.at(row).pods) {
        const auto& other = ledger.pod(index);
        if (other.terminating) out.leaving.push_back(fmt::format("{}/{}", other.ns(), other.name.view()));
    }
    if (out.leaving.empty()) return;
    std::sort(out.leaving.begin(), out.leaving.end());
    out.node = pod.nominated_node;
    out.summary = fmt::format("it waits for {} until {} {} gone; now {}", out.node, fmt::join(out.leaving, ", "),
                              out.leaving.size() == 1 ? "has" : "have", out.summary);
}

void consider_preemption(run::World& world, const sched::Ask& ask, const sched::Strikes& strikes, Explanation& out) {
    const auto found = world.cluster().would_preempt(ask, strikes);
    if (!found.victims) {
        if (!found.message.empty()) out.summary += " " + found.message;
        return;
    }
    out.node = world.ledger().name(found.victims->row);
    for (const auto index : found.victims->pods) {
        const auto& victim = world.ledger().pod(index);
        out.victims.push_back(fmt::format("{}/{}", victim.ns(), victim.name.view()));
    }
}

// Of the objects of a file every one has its turn; of a server's nobody knows when it comes.
std::string it_fits(const Foretold* foretold, std::string_view otherwise) {
    if (!foretold) return fmt::format("it fits: {}", otherwise);
    if (foretold->earlier == 0) return "it fits";
    return fmt::format("it fits, when {} {} placed before it", foretold->earlier,
                       foretold->earlier == 1 ? "other is" : "others are");
}

void explain_pending(run::World& world, const model::Pod& pod, const Foretold* foretold, Explanation& out) {
    sched::Ask ask = sched::ask_for(pod, world.ledger());
    if (!ask.fault.empty()) {
        out.summary = ask.fault;
        return;
    }
    const auto decision = world.cluster().decide(pod);
    ask.shares = world.cluster().scheduler().shares();
    fill_verdict(ask, decision.verdict, world.cluster(), out);
    if (!decision.verdict.fault.empty()) return;
    if (decision.verdict.chosen == ledger::kNoRow) {
        tell_leaving(world.ledger(), pod, out);
        if (out.leaving.empty()) consider_preemption(world, ask, decision.verdict.strikes, out);
    } else if (const auto failure = world.failure_of(pod); !failure.empty() && !foretold) {
        out.summary = fmt::format("it fits, and the scheduler tried in vain: {}", failure);
    } else {
        out.summary = it_fits(
            foretold, fmt::format("its turn has not come, or nobody schedules for \"{}\"", pod.spec->scheduler_name));
    }
}

}  // namespace

Result<Explanation> explain_pod(run::World& world, const std::string& ns, const std::string& name,
                                const Foretold* foretold) {
    world.cluster().prepare();
    Explanation out;
    out.ns = ns;
    out.name = name;
    if (auto fault = world.fault_of(false, ns, name); !fault.empty()) {
        out.state = "Broken";
        out.summary = std::move(fault);
        return out;
    }
    const model::Pod* pod = world.cluster().pod(ns, name);
    if (pod == nullptr) return base::not_found(fmt::format("pods \"{}\" not found in namespace \"{}\"", name, ns));
    find_owned(*pod, world.ledger(), out);
    if (!pod->node.empty()) {
        tell_bound(world, *pod, out);
        tell_why_there(world, *pod, out);
        if (foretold && !foretold->evicted_by.empty()) {
            out.summary += fmt::format("; {} would have it evicted", foretold->evicted_by);
        }
        return out;
    }
    if (!pod->gates.empty()) {
        out.state = "Gated";
        out.summary = fmt::format("it waits until its scheduling gates are removed: {}", fmt::join(pod->gates, ", "));
        return out;
    }
    out.state = "Pending";
    if (foretold && !foretold->error.empty()) {
        out.summary = foretold->error;
        return out;
    }
    explain_pending(world, *pod, foretold, out);
    if (foretold && !foretold->message.empty()) out.summary = foretold->message;
    if (foretold && !foretold->from.empty()) {
        out.summary = fmt::format("it was on {}, which is not there; {}", foretold->from, out.summary);
    }
    return out;
}

Result<Explanation> explain_reservation(run::World& world, const std::string& name, const Foretold* foretold) {
    world.cluster().prepare();
    Explanation out;
    out.is_reservation = true;
    out.name = name;
    if (auto fault = world.fault_of(true, "", name); !fault.empty()) {
        out.state = "Broken";
        out.summary = std::move(fault);
        return out;
    }
    const auto object = world.cluster().reservation(name);
    if (object == nullptr) return base::not_found(fmt::format("reservations \"{}\" not found", name));
    out.state = model::name_of(object->phase);
    out.node = object->node;
    const auto index = world.ledger().find_reservation(object->meta.uid);
    find_owners(world, *object, index, out);
    if (object->phase == model::ReservationPhase::Pending) {
        if (foretold && !foretold->error.empty()) {
            out.summary = foretold->error;
            return out;
        }
        const auto decision = world.cluster().decide(*object);
        fill_verdict(sched::ask_for(*object), decision.verdict, world.cluster(), out);
        if (!out.node.empty()) {
            out.summary = decision.waiting ? fmt::format("it would wait on {} until there is room", out.node)
                                           : it_fits(foretold, "its turn has not come");
        }
        if (foretold && !foretold->message.empty()) out.summary = foretold->message;
        return out;
    }
    const auto* ready = model::find_condition(*object, "Ready");
    out.summary = index == ledger::kNone ? out.state : held(world.ledger(), index);
    if (ready != nullptr && !ready->message.empty()) out.summary += ": " + ready->message;
    if (index != ledger::kNone) out.summary += closed_to_all(world.ledger(), index);
    if (const auto end = model::end_of(*object); end && model::holds_room(*object)) {
        out.summary += fmt::format("; it ends at {}", model::time_text(*end));
    }
    return out;
}

}  // namespace berth::cli
