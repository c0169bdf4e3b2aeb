#include "load_world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "control/low_node_load.h"
#include "control/migration.h"
#include "control/test_objects.h"
#include "model/kinds/path.h"
#include "model/reservation.h"
#include "model/times.h"

namespace berth::properties {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;
constexpr const char* kZone = "zone";

// The node that a reservation is for.
std::string asked_node(const Json& reservation) {
    const std::string key = R"("operator":"In","values":[")", text = base::to_text(reservation);
    const auto at = text.find(key);
    EXPECT_NE(at, std::string::npos) << "room anywhere";
    const auto begin = at + key.size();
    return text.substr(begin, text.find('"', begin) - begin);
}

JsonObject amounts(const Amounts& of) {
    return {{"cpu", fmt::format("{}m", of.cpu)}, {"memory", fmt::format("{}", of.memory)}};
}

}  // namespace

LoadWorld::LoadWorld(uint64_t seed, control::DeschedulerConfig config)
    : Cluster({}), random(seed), config_(std::move(config)) {
    restart();
    const int64_t count = roll(3, 6);
    for (int64_t i = 0; i < count; ++i) {
        LoadMachine machine;
        machine.size = {roll(4, 16) * 1000, roll(8, 64) * 1024 * kMebi};
        if (roll(0, 3) == 0) machine.reserved.cpu = roll(1, 3) * 1000;
        machine.system = {roll(0, machine.size.cpu / 4), roll(0, 2048) * kMebi};
        machine.zone = fmt::format("z{}", roll(0, 1));
        machine.pool = roll(0, 3) == 0 ? "other" : "main";
        machines[fmt::format("n{}", i)] = machine;
    }
    for (int i = 0; i < 5; ++i) {
        LoadApp app;
        app.replicas = static_cast<int>(roll(1, 6));
        app.least = roll(0, 1) == 0 ? 0 : static_cast<int>(roll(1, app.replicas));
        if (roll(0, 3) == 0) app.zone = fmt::format("z{}", roll(0, 1));
        app.is_daemon = i == 4;
        app.is_kept = roll(0, 5) == 0;
        apps[fmt::format("a{}", i)] = app;
    }
    for (const auto& [name, machine] : machines) put_node(name);
    for (const auto& [name, app] : apps) {
        // Many to the first ones, so that there is something to do.
        for (int i = 0; i < app.replicas; ++i) start(name, "");
    }
}

int64_t LoadWorld::roll(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(random() % static_cast<uint64_t>(last - first + 1));
}

void LoadWorld::restart() {
    reconcilers_.clear();
    reconcilers_.push_back(control::low_node_load_reconciler(config_.load));
    reconcilers_.push_back(control::migration_reconciler(config_.limits));
}

// Rooms are counted here, and nowhere else.
void LoadWorld::keep(const std::string& resource, const std::string& text, uint64_t revision) {
    if (resource == model::kReservationResource) return Cluster::keep(resource, text, revision);
    control::keep(objects, resource, text, revision);
}

void LoadWorld::put_node(const std::string& name) {
    const auto& machine = machines.at(name);
    JsonObject notes;
    if (machine.reserved.cpu > 0)
        notes["node.koordinator.sh/reservation"] =
            fmt::format(R"({{"resources":{{"cpu":"{}m"}}}})", machine.reserved.cpu);
    if (!machine.note.empty()) notes[control::kBusyNode] = machine.note;
    put("nodes",
        JsonObject{
            {"kind", "Node"},
            {"metadata", JsonObject{{"name", name},
                                    {"uid", "uid-" + name},
                                    {"labels", JsonObject{{kZone, machine.zone}, {"pool", machine.pool}}},
                                    {"annotations", std::move(notes)}}},
            {"spec", JsonObject{{"unschedulable", machine.cordoned}}},
            {"status", JsonObject{{"capacity", amounts(machine.size)}, {"allocatable", amounts(machine.size)}}}});
}

void LoadWorld::put_pod(const std::string& name) {
    const auto& task = tasks.at(name);
    const auto& app = apps.at(task.app);
    const JsonObject owner{{"apiVersion", "apps/v1"},
                           {"kind", app.is_daemon ? "DaemonSet" : "ReplicaSet"},
                           {"name", task.app},
                           {"uid", "uid-" + task.app},
                           {"controller", true}};
    JsonObject spec{
        {"nodeName", task.node},
        {"priority", task.priority},
        {"containers",
         JsonArray{
             JsonObject{{"name", "c"}, {"image", "i"}, {"resources", JsonObject{{"requests", amounts(task.asked)}}}}}}};
    if (!app.zone.empty()) spec["nodeSelector"] = JsonObject{{kZone, app.zone}};
    put("pods", JsonObject{{"kind", "Pod"},
                           {"metadata", JsonObject{{"namespace", "ns"},
                                                   {"name", name},
                                                   {"uid", task.uid},
                                                   {"creationTimestamp", model::time_text(task.born)},
                                                   {"labels", JsonObject{{"kept", app.is_kept ? "yes" : "no"}}},
                                                   {"ownerReferences", JsonArray{owner}}}},
                           {"spec", std::move(spec)},
                           {"status", JsonObject{{"phase", "Running"}}}});
}

void LoadWorld::put_metric(const std::string& name) {
    auto& machine = machines.at(name);
    machine.measured = now;
    machine.system_said = machine.system;
    machine.said.clear();
    JsonArray pods;
    const Amounts use = use_of(name);
    for (const auto& [pod, task] : tasks) {
        if (task.node != name) continue;
        machine.said[pod] = task.used;
        pods.push_back(JsonObject{
            {"namespace", "ns"}, {"name", pod}, {"podUsage", JsonObject{{"resources", amounts(task.used)}}}});
    }
    const auto part = [](const Amounts& of) { return JsonObject{{"resources", amounts(of)}}; };
    const JsonObject node{{"nodeUsage", part(use)}, {"systemUsage", part(machine.system)}};
    put(control::kNodeMetrics, JsonObject{{"kind", "NodeMetric"},
                                          {"metadata", JsonObject{{"name", name}}},
                                          {"status", JsonObject{{"updateTime", model::time_text(now)},
                                                                {"nodeMetric", node},
                                                                {"podsMetric", std::move(pods)}}}});
}

Amounts LoadWorld::use_of(const std::string& node) const {
    Amounts out = machines.at(node).system;
    for (const auto& [name, task] : tasks) {
        if (task.node == node) out = {out.cpu + task.used.cpu, out.memory + task.used.memory};
    }
    return out;
}

Amounts LoadWorld::free_on(const std::string& node) const {
    const auto& machine = machines.at(node);
    Amounts out{machine.size.cpu - machine.reserved.cpu, machine.size.memory};
    const auto take = [&](const Amounts& asked) { out = {out.cpu - asked.cpu, out.memory - asked.memory}; };
    for (const auto& [name, task] : tasks) {
        if (task.node == node) take(task.asked);
    }
    for (const auto& [room, at] : room_node_) {
        if (at == node && tasks.contains(rooms_.at(room))) take(tasks.at(rooms_.at(room)).asked);
    }
    return out;
}

// Where there is room; "": nowhere.
std::string LoadWorld::place_for(const LoadTask& task, const std::string& only) {
    std::vector<std::string> fits;
    for (const auto& [name, machine] : machines) {
        const auto& zone = apps.at(task.app).zone;
        const Amounts free = free_on(name);
        if ((only.empty() || name == only) && !machine.cordoned && (zone.empty() || zone == machine.zone) &&
            task.asked.cpu <= free.cpu && task.asked.memory <= free.memory)
            fits.push_back(name);
    }
    if (fits.empty()) return "";
    return fits[static_cast<size_t>(roll(0, static_cast<int64_t>(fits.size()) - 1))];
}

void LoadWorld::start(const std::string& app, const std::string& node) {
    LoadTask task;
    task.app = app;
    task.asked = {roll(1, 20) * 100, roll(1, 20) * 128 * kMebi};
    task.used = {task.asked.cpu * roll(2, 25) / 10, task.asked.memory * roll(2, 15) / 10};
    task.priority = static_cast<int>(roll(0, 1) == 0 ? 9000 : 5000 + roll(0, 999));
    task.born = now;
    // The first node is everybody's choice as long as it has room.
    const bool first = roll(0, 3) > 0 && task.asked.cpu <= free_on("n0").cpu && !machines.at("n0").cordoned &&
                       (apps.at(app).zone.empty() || apps.at(app).zone == machines.at("n0").zone);
    task.node = !node.empty() ? node : first ? "n0" : place_for(task, "");
    if (task.node.empty()) return;
    const std::string name = fmt::format("{}-{}", app, ++names_);
    task.uid = "uid-" + name;
    tasks[name] = task;
    put_pod(name);
}

void LoadWorld::measure(bool all) {
    for (const auto& [name, machine] : machines) {
        if (all || roll(0, 9) > 0) put_metric(name);
    }
}

void LoadWorld::disturb() {
    if (tasks.empty()) return;
    auto at = std::next(tasks.begin(), roll(0, static_cast<int64_t>(tasks.size()) - 1));
    switch (roll(0, 4)) {
        case 0:
            at->second.used.cpu = at->second.asked.cpu * roll(1, 30) / 10;
            break;
        case 1: {
            const std::string app = at->second.app;
            objects.remove("pods", "ns", at->first);
            objects.uncount(*ledger::kind_named("Pod"), ledger::uid_alone(at->second.uid));
            tasks.erase(at);
            start(app, "");
            break;
        }
        case 2: {
            auto machine = std::next(machines.begin(), roll(0, static_cast<int64_t>(machines.size()) - 1));
            machine->second.cordoned = !machine->second.cordoned && roll(0, 1) == 0;
            put_node(machine->first);
            break;
        }
        case 3:
            machines.at("n0").system.cpu = roll(0, machines.at("n0").size.cpu / 3);
            break;
        default:
            break;
    }
}

void LoadWorld::settle(const Watch& watch) {
    for (int round = 0; round < 100; ++round) {
        bool idle = true;
        for (size_t i = 0; i < reconcilers_.size(); ++i) {
            std::set<control::Key> targets;
            for (const auto& key : reconcilers_[i]->standing()) targets.insert(key);
            for (const auto& job : objects.list(control::kMigrationJobs)) {
                if (i == 1) targets.insert({"", job->meta.name});
            }
            for (const auto& target : targets) {
                const auto wanted = reconcilers_[i]->reconcile(target, objects, now);
                watch(wanted.writes, i == 0);
                for (const auto& write : wanted.writes) do_write(write);
                // An eviction that a budget refuses is asked for again by the clock.
                idle = idle && std::all_of(wanted.writes.begin(), wanted.writes.end(),
                                           [](const auto& write) { return write.subresource == "eviction"; });
            }
            keep_books();
        }
        if (idle) return;
    }
    ADD_FAILURE() << "they never want nothing";
}

void LoadWorld::do_write(const control::Write& write) {
    if (write.subresource == "eviction") return evict(write.name);
    ASSERT_FALSE(write.resource == "pods") << "pods go by eviction alone";
    const bool room = write.resource == model::kReservationResource;
    control::Write done = write;
    if (room && write.verb == control::Write::Verb::Create) {
        const std::string name(base::find_string(write.body, {"metadata", "name"}));
        base::object_at(done.body, {"status"}) = place_room(name, write.body);
        return carry_out(done);
    }
    carry_out(done);
    const auto object = objects.find(write.resource, write.ns, write.name);
    if (room && !object) room_node_.erase(write.name);
    if (write.resource != "nodes" || !object) return;
    const Json document = object->document();
    const Json* note = base::find(document, {"metadata", "annotations", control::kBusyNode});
    machines.at(write.name).note = note ? std::string(note->get_string()) : "";
}

// The scheduler's part: at once, or nowhere. The status.
JsonObject LoadWorld::place_room(const std::string& name, const Json& reservation) {
    for (const auto& [pod, job] : under_way) {
        if (job == name) rooms_[name] = pod;
    }
    const auto task = tasks.find(rooms_[name]);
    const std::string node = task == tasks.end() ? "" : place_for(task->second, asked_node(reservation));
    if (!node.empty()) {
        room_node_[name] = node;
        return {{"phase", "Available"}, {"nodeName", node}};
    }
    const JsonObject no_room{{"type", "Scheduled"}, {"status", "False"}, {"reason", "Unschedulable"}};
    return {{"phase", "Pending"}, {"conditions", JsonArray{no_room}}};
}

// The server's part: a budget counts pods, and whoever is evicted is made again where room was kept for him.
void LoadWorld::evict(const std::string& name) {
    const auto found = tasks.find(name);
    if (found == tasks.end()) return;
    const LoadTask task = found->second;
    const auto left =
        std::count_if(tasks.begin(), tasks.end(), [&](const auto& each) { return each.second.app == task.app; });
    if (left - 1 < apps.at(task.app).least) {
        ++refused;
        return;
    }
    ++moves;
    ++evicted[task.app];
    std::string room;
    for (const auto& [reservation, pod] : rooms_) {
        if (pod == name && room_node_.contains(reservation)) room = reservation;
    }
    objects.remove("pods", "ns", name);
    objects.uncount(*ledger::kind_named("Pod"), ledger::uid_alone(task.uid));
    tasks.erase(found);
    LoadTask next = task;
    next.node = room.empty() ? place_for(task, "") : room_node_.at(room);
    const std::string fresh = fmt::format("{}-{}", task.app, ++names_);
    if (!room.empty()) {
        room_node_.erase(room);
        Json document = objects.find(model::kReservationResource, "", room)->document();
        base::object_at(document, {"status"}) =
            JsonObject{{"phase", "Succeeded"},
                       {"nodeName", next.node},
                       {"currentOwners", JsonArray{JsonObject{{"namespace", "gone"}, {"name", fresh}}}}};
        put(model::kReservationResource, document);
    }
    if (next.node.empty()) return;
    next.uid = "uid-" + fresh;
    next.born = now;
    tasks[fresh] = next;
    put_pod(fresh);
}

void LoadWorld::keep_books() {
    under_way.clear();
    had_job.clear();
    for (const auto& job : objects.list(control::kMigrationJobs)) {
        const auto phase = model::string_at(job->document(), ".status.phase");
        const std::string pod(model::string_at(job->document(), ".spec.podRef.name"));
        had_job.emplace(model::string_at(job->document(), ".spec.podRef.uid"));
        if (phase != "Failed" && phase != "Succeeded") under_way[pod] = job->meta.uid;
    }
}

}  // namespace berth::properties
