#include "run/world.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_view.h"
#include "control/reservations.h"
#include "ledger/intake.h"
#include "model/node.h"
#include "model/node_reservation.h"

namespace berth::run {
namespace {

// Kinds are told apart by their group: others have Services and Reservations, too. Without one it is believed.
bool means_something(std::string_view kind, std::string_view version) {
    const auto slash = version.find('/');
    const std::string_view group = slash == version.npos ? "" : version.substr(0, slash);
    const auto* known = ledger::kind_named(kind);
    return known != nullptr && (version.empty() || known->group == group);
}

// What its scheduler says that could not place the pod for other reasons than a lack of nodes.
std::string failure_in(const Json& pod) {
    const Json* conditions = base::find(pod, {"status", "conditions"});
    if (conditions == nullptr || !conditions->is_array()) return "";
    for (const auto& condition : conditions->as_array()) {
        const bool failed = base::find_string(condition, {"type"}) == "PodScheduled" &&
                            base::find_string(condition, {"reason"}) == "SchedulerError";
        if (failed) return std::string(base::find_string(condition, {"message"}));
    }
    return "";
}

// As messages name it, too: "default/web", or "n1" where there is no namespace.
std::string remark_key(std::string_view kind, std::string_view full_name) {
    return fmt::format("{}/{}", kind, full_name);
}

bool runs_somewhere(const Json& pod) {
    const auto phase = base::find_string(pod, {"status", "phase"});
    return phase != "Succeeded" && phase != "Failed" && !base::find_string(pod, {"spec", "nodeName"}).empty();
}

}  // namespace

Result<bool> World::put(const Json& object) {
    const std::string_view kind = base::find_string(object, {"kind"});
    const std::string name(base::find_string(object, {"metadata", "name"}));
    if (!means_something(kind, base::find_string(object, {"apiVersion"}))) return false;
    if (ledger::kind_named(kind)->reader == ledger::Reader::Shares && !cluster_->shares()) return false;
    base::JsonParser parser;
    const std::string text = base::to_text(object);
    const JsonView view = TRY(parser.parse(text));
    const bool is_pending_kind = kind == "Pod" || kind == "Reservation";
    const Error nameless = base::bad_request(fmt::format("{}: metadata.name is missing", kind));
    if (name.empty() && !is_pending_kind) return nameless;
    const auto named = base::find_string(object, {"metadata", "namespace"});
    forget(kind, kind == "Pod" && named.empty() ? "default" : named, name);
    if (kind == "Node") {
        auto node = TRY(model::read_node(view));
        for (const auto& fault : model::view_of(node).faults) warn("Node", name, fault.message);
        cluster_->put(std::move(node));
        return true;
    }
    const auto spoiled = [&](bool is_reservation, const Error& error) {
        const std::string where = is_reservation ? "" : std::string(named.empty() ? "default" : named);
        if (!is_reservation && runs_somewhere(object)) {
            unreadable_holders_.push_back({remark_key(kind, fmt::format("{}/{}", where, name)), error.message});
        }
        broken_.push_back({is_reservation, where, name, error.message, false});
    };
    if (name.empty()) {
        spoiled(kind == "Reservation", nameless);
        return true;
    }
    if (kind == "Pod") {
        auto pod = model::read_pod(view);
        if (pod) {
            failures_[pod->meta.full_name()] = failure_in(object);
            put_pod(std::move(*pod));
        } else {
            spoiled(false, pod.error());
        }
        return true;
    }
    if (kind == "Reservation") {
        auto reservation = model::read_reservation(view);
        if (reservation) {
            put_reservation(std::move(*reservation));
        } else {
            spoiled(true, reservation.error());
        }
        return true;
    }
    TRY(cluster_->put(*ledger::kind_named(kind), view));
    return true;
}

void World::warn(std::string_view kind, std::string_view name, std::string_view what) {
    warnings_.push_back({remark_key(kind, name), fmt::format("{} \"{}\": {}", kind, name, what)});
}

void World::put_pod(model::Pod pod) {
    for (const auto& event : control::judge_links(pod)) {
        if (event.kind == "Pod") warn("Pod", pod.meta.full_name(), event.message);
    }
    cluster_->put(std::move(pod));
}

void World::put_reservation(model::Reservation reservation) {
    const std::string& name = reservation.meta.name;
    if (!reservation.fault.empty()) warn("Reservation", name, reservation.fault + "; nobody may draw from it");
    if (reservation.ttl && reservation.expires) {
        warn("Reservation", name, "spec.ttl and spec.expires are meant to be exclusive; spec.expires decides");
    }
    cluster_->put(std::move(reservation));
}

void World::remove(std::string_view kind, std::string_view ns, std::string_view name) {
    if (kind == "Pod") failures_.erase(fmt::format("{}/{}", ns, name));
    forget(kind, ns, name);
    cluster_->remove(kind, ns, name);
}

void World::displace(const model::Pod& pod) {
    left_[pod.meta.full_name()] = pod.node;
    cluster_->displace(pod.meta.ns, pod.meta.name);
}

void World::bring_back(const model::Pod& pod) {
    left_[pod.meta.full_name()] = pod.node;
    cluster_->put(made_again(pod));
}

std::vector<Placement> World::settle() {
    std::vector<Placement> answers;
    for (auto& broken : broken_) {
        if (std::exchange(broken.told, true)) continue;
        Placement& answer = answers.emplace_back();
        answer.is_reservation = broken.is_reservation;
        answer.ns = broken.ns;
        answer.name = broken.name;
        answer.error = broken.error;
    }
    auto settled = cluster_->settle();
    for (auto& answer : settled) {
        const auto before = answer.is_reservation ? left_.end() : left_.find(answer.ns + "/" + answer.name);
        if (before != left_.end()) answer.from = before->second;
    }
    std::move(settled.begin(), settled.end(), std::back_inserter(answers));
    return answers;
}

std::vector<std::string> World::warnings() const {
    std::vector<std::string> out = texts(warnings_);
    for (const auto& [name, pods] : cluster_->foreign()) {
        out.push_back(
            fmt::format("{} pending pod(s) name the scheduler \"{}\", which no profile here serves; they are "
                        "placed by the profile \"{}\"",
                        pods, name, cluster_->first_profile()));
    }
    return out;
}

std::vector<Holding> World::holdings() const {
    std::vector<Holding> out;
    cluster_->each_reservation([&](const model::Reservation& object) {
        out.push_back({object.meta.name, object.phase, object.node, object.allocatable, object.allocated,
                       object.current_owners, object.which});
    });
    for (const auto& broken : broken_) {
        if (broken.is_reservation && !cluster_->reservation(broken.name)) out.emplace_back().name = broken.name;
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return out;
}

std::vector<std::string> World::texts(const std::vector<Remark>& remarks) {
    std::vector<std::string> out;
    for (const auto& remark : remarks) out.push_back(remark.text);
    return out;
}

void World::forget(std::string_view kind, std::string_view ns, std::string_view name) {
    const std::string key = remark_key(kind, ns.empty() ? std::string(name) : fmt::format("{}/{}", ns, name));
    std::erase_if(warnings_, [&](const Remark& remark) { return remark.object == key; });
    std::erase_if(unreadable_holders_, [&](const Remark& remark) { return remark.object == key; });
    if (name.empty() || (kind != "Pod" && kind != "Reservation")) return;
    std::erase_if(broken_, [&](const Broken& broken) {
        return broken.is_reservation == (kind == "Reservation") && broken.ns == ns && broken.name == name;
    });
}

std::string World::failure_of(const model::Pod& pod) const {
    const auto found = failures_.find(pod.meta.full_name());
    return found == failures_.end() ? "" : found->second;
}

std::string World::fault_of(bool is_reservation, std::string_view ns, std::string_view name) const {
    for (const auto& broken : broken_) {
        if (broken.is_reservation == is_reservation && broken.ns == ns && broken.name == name) return broken.error;
    }
    return {};
}

const ledger::PodEntry* World::find_pod(std::string_view ns, std::string_view name) const {
    const model::Pod* pod = cluster_->pod(ns, name);
    if (pod == nullptr) return nullptr;
    const auto index = ledger().find_pod(pod->meta.uid);
    return index == ledger::kNone ? nullptr : &ledger().pod(index);
}

}  // namespace berth::run
