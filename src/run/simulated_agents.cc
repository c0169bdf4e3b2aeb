#include "run/simulated_agents.h"

#include <algorithm>
#include <set>

#include "base/json_view.h"
#include "control/simulated.h"
#include "model/kinds/path.h"
#include "model/quantity.h"
#include "model/reservation.h"
#include "model/times.h"
#include "node/topology_object.h"
#include "run/agent_reports.h"

namespace berth::run {
namespace {

using control::Key;
using control::Object;
using control::ObjectPtr;
using control::Objects;
using control::Reconciled;

const std::string kTopologies(node::kTopologyResource);
constexpr base::Duration kReport = std::chrono::seconds(60);
constexpr base::Duration kLeastBetween = std::chrono::seconds(5);  // though more has changed

// nullopt: it says nothing, or nothing that can be read.
std::optional<node::Used> said_use(const model::Meta& meta) {
    const auto* text = meta.annotations.find(kSimulatedUsage);
    const auto document = text ? base::parse_json(*text) : Result<Json>(Json());
    if (!document || !document->is_object()) return std::nullopt;
    const auto amount = [&](const char* name) {
        const auto read = Quantity::parse(std::string(base::find_string(*document, {name})));
        return read && !read->is_negative() ? *read : Quantity();
    };
    return node::Used{amount("cpu").milli(), amount("memory").value()};
}

std::optional<node::Machine> machine_of(const Object& topology) {
    const auto* text = topology.meta.annotations.find(model::kCpuTopology);
    if (text == nullptr) return std::nullopt;
    auto cpus = model::read_cpu_topology(*text);
    if (!cpus || cpus->empty()) return std::nullopt;
    std::set<int32_t> numas;
    for (const auto& cpu : *cpus) numas.insert(cpu.numa);
    node::Machine out{std::move(*cpus), {}};
    for (const int32_t id : numas) out.numas.push_back({id, 0, {}});
    return out;
}

class SimulatedAgents final : public control::Reconciler {
public:
    std::string_view name() const override { return "simulated-agents"; }
    std::string resource() const override { return kTopologies; }
    std::vector<std::string> watches() const override {
        return {kTopologies, "nodes", "pods", kNodeMetrics, kNodeSlos};
    }
    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        const std::string& node = resource == "pods" ? object.node : object.meta.name;
        const auto topology = resource == kTopologies ? nullptr : objects.find(kTopologies, "", node);
        const Object& its = topology ? *topology : object;
        if ((resource != kTopologies && !topology) || its.meta.annotations.get(kSimulatedAgent) != "true") return {};
        return {{"", node}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto topology = objects.find(kTopologies, "", target.name);
        const auto node = objects.find("nodes", "", target.name);
        if (!topology || !node || topology->meta.annotations.get(kSimulatedAgent) != "true") return {};
        const auto found = situation(*topology, *node, objects);
        if (!found) return {};
        Reconciled out;
        report_topology(*topology, node::plan(*found), out);
        report_metric(node->meta, objects, *found, now, out);
        return out;
    }

private:
    static std::optional<node::Situation> situation(const Object& topology, const Object& node,
                                                    const Objects& objects) {
        auto machine = machine_of(topology);
        base::JsonParser parser;
        const auto view = parser.parse(node.text());
        auto read = view ? model::read_node(*view) : Result<model::Node>(view.error());
        if (!machine || !read) return std::nullopt;
        node::Situation out;
        out.machine = std::move(*machine);
        out.node = std::move(*read);
        if (const auto slo = objects.find(kNodeSlos, "", node.meta.name)) {
            if (const auto limits = node::read_slo(slo->document())) out.slo = *limits;
        }
        auto& usage = out.usage;
        usage.node = said_use(node.meta).value_or(node::Used());
        std::vector<std::string> faults;
        for (const auto* pod : objects.pods_on(node.meta.name)) {
            auto its = node::read_node_pod(pod->document(), node.meta.name, faults);
            if (!its) continue;
            const auto used = said_use(pod->meta).value_or(
                node::Used{its->cpu_request + its->batch_cpu_request, its->memory_request});
            usage.pods[its->full_name()] = used;
            usage.node.cpu += used.cpu;
            usage.node.memory += used.memory;
            out.pods.push_back(std::move(*its));
        }
        return out;
    }

    // What its zones say is whoever's who made it.
    static void report_topology(const Object& topology, const node::Plan& plan, Reconciled& out) {
        JsonObject notes;
        for (const auto& key :
             {std::string_view("node.koordinator.sh/cpu-shared-pools"),
              std::string_view("node.koordinator.sh/be-cpu-shared-pools"), std::string_view(model::kNodeReservation)}) {
            const Json* wanted = base::find(plan.topology, {"metadata", "annotations", key});
            const auto* has = topology.meta.annotations.find(key);
            if (wanted != nullptr && (has == nullptr || *has != std::string_view(wanted->get_string())))
                notes[key] = *wanted;
            if (wanted == nullptr && has != nullptr) notes[key] = nullptr;
        }
        if (notes.empty()) return;
        out.writes.push_back(model::patch_object(
            kTopologies, topology.meta, JsonObject{{"metadata", JsonObject{{"annotations", std::move(notes)}}}}));
    }

    static void report_metric(const model::Meta& node, const Objects& objects, const node::Situation& found,
                              base::Time now, Reconciled& out) {
        const auto metric = objects.find(kNodeMetrics, "", node.name);
        if (!metric) {
            out.writes.push_back(model::create_object(kNodeMetrics, "", new_metric(node.name, node.uid)));
            return;
        }
        JsonObject status = metric_status(found, now);
        const auto last = model::parse_time(model::string_at(metric->document(), ".status.updateTime"));
        const auto& said = model::members_at(metric->document(), ".status");
        const bool same = std::all_of(status.begin(), status.end(), [&](const auto& part) {
            const Json* its = said.if_contains(part.key());
            return part.key() == "updateTime" || (its != nullptr && *its == part.value());
        });
        const auto due = last ? *last + (same ? kReport : kLeastBetween) : now;
        if (now < due) {
            out.again = due;
            return;
        }
        out.again = now + kReport;
        out.writes.push_back(model::patch_status(kNodeMetrics, metric->meta, std::move(status)));
    }
};

}  // namespace

std::unique_ptr<control::Reconciler> simulated_agents_reconciler() {
    return std::make_unique<SimulatedAgents>();
}

}  // namespace berth::run
