#include "run/agent_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/json_view.h"
#include "base/log.h"
#include "model/kinds/path.h"
#include "model/reservation.h"
#include "model/times.h"
#include "node/evict.h"
#include "node/reconcile.h"
#include "node/topology_object.h"
#include "run/agent_reports.h"
#include "run/writes.h"

namespace berth::run {
namespace {

constexpr const char* kNodes = "nodes";
constexpr const char* kPods = "pods";
constexpr std::string_view kStarved = "BerthBestEffortStarved";
constexpr base::Duration kRest = std::chrono::seconds(10);  // after a request, before the same again

link::Resource followed(std::string_view resource, std::string only) {
    const auto slash = resource.find('/');
    const bool core = slash == std::string_view::npos;
    return {core ? "" : std::string(resource.substr(0, slash)), model::version_of(resource),
            std::string(core ? resource : resource.substr(slash + 1)), std::move(only)};
}

model::Meta meta_of(const Json& object) {
    model::Meta meta;
    meta.ns = model::string_at(object, ".metadata.namespace");
    meta.name = model::string_at(object, ".metadata.name");
    meta.uid = model::string_at(object, ".metadata.uid");
    return meta;
}

}  // namespace

AgentDriver::AgentDriver(Doors doors, Options options)
    : session_(std::move(doors.server), std::move(doors.wake)),
      recorder_(session_.server(), "berth-agent"),
      tree_(std::move(doors.tree)),
      kubelet_(std::move(doors.kubelet)),
      options_(std::move(options)) {
    const std::string own = "metadata.name=" + options_.node;
    session_.follow(kNodes, followed(kNodes, own));
    session_.follow(kPods, followed(kPods, "spec.nodeName=" + options_.node));
    for (const auto resource : {std::string_view(kNodeSlos), std::string_view(kNodeMetrics), node::kTopologyResource})
        session_.follow(std::string(resource), followed(resource, own));
}

AgentDriver::~AgentDriver() = default;

void AgentDriver::turn(const Moment& now) {
    now_ = now;
    active_ = session_.poll([this](const auto& resource, const auto& event) { apply(resource, event); });
    changed_ = changed_ || active_;
    take_answers();
    if (stopping_ || !session_.synced() || (!changed_ && now_.now < due_)) return;
    due_ = now_.now + options_.period;
    round();
}

base::Instant AgentDriver::next() const {
    return active_ ? now_.now : std::max(due_, now_.now);
}

void AgentDriver::stop() {
    if (std::exchange(stopping_, true) || !options_.restore) return;
    find_containers();
    std::vector<std::string> faults;
    const auto found = situation(faults);
    if (node_) say_once(node::reconcile(*tree_, node::restored(found)).troubles);
}

void AgentDriver::apply(const std::string& resource, const link::FeedEvent& event) {
    auto document = base::parse_json(*event.text);
    if (!document) return base::log_warning("Unreadable object", {{"resource", resource}, {"error", document.error()}});
    const auto name = model::string_at(*document, ".metadata.name");
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    if (resource == kPods) return apply_pod(*document, gone);
    if (name != options_.node) return;  // an embedded server tells all
    auto& place = resource == kNodes         ? node_
                  : resource == kNodeSlos    ? slo_
                  : resource == kNodeMetrics ? metric_
                                             : topology_;
    if (gone) {
        place.reset();
    } else {
        place = std::move(*document);
    }
}

void AgentDriver::apply_pod(const Json& document, bool gone) {
    const auto key = fmt::format("{}/{}", model::string_at(document, ".metadata.namespace"),
                                 model::string_at(document, ".metadata.name"));
    KnownPod known;
    auto pod = gone || model::string_at(document, ".spec.nodeName") != options_.node
                   ? std::nullopt
                   : node::read_node_pod(document, options_.node, known.faults);
    if (!pod) {
        pods_.erase(key);
        return;
    }
    known.pod = known.found = std::move(*pod);
    pods_[key] = std::move(known);
}

void AgentDriver::take_answers() {
    session_.answers([this](const std::string& what, const Result<link::Reply>& reply) {
        // A conflict is decided anew by what comes.
        if (reply && (reply->ok() || reply->code == 409)) return;
        say_once({fmt::format("{}: {}", what, reply ? reply->body.substr(0, 300) : reply.error().message)});
    });
}

node::Situation AgentDriver::situation(std::vector<std::string>& faults) {
    node::Situation out;
    out.machine = options_.machine;
    out.tree = tree_->hierarchy();
    if (node_) {
        base::JsonParser parser;
        const std::string text = base::to_text(*node_);
        const auto view = parser.parse(text);
        auto read = view ? model::read_node(*view) : Result<model::Node>(view.error());
        if (read) out.node = std::move(*read);
        if (!read) faults.push_back(fmt::format("Node \"{}\": {}", options_.node, read.error().message));
    }
    for (const auto& [key, known] : pods_) {
        faults.insert(faults.end(), known.faults.begin(), known.faults.end());
        out.pods.push_back(known.found);
    }
    if (auto kubelet = kubelet_()) {
        out.kubelet = std::move(*kubelet);
    } else {
        faults.push_back(kubelet.error().message);
    }
    if (slo_) {
        const auto slo = node::read_slo(*slo_);
        if (slo) out.slo = *slo;
        if (!slo) faults.push_back(fmt::format("NodeSLO \"{}\": {}", options_.node, slo.error().message));
    }
    return out;
}

// A container that began is in the tree before its pod's status says so.
void AgentDriver::find_containers() {
    for (auto& [key, known] : pods_) {
        known.found = known.pod;
        node::add_containers(*tree_, known.found);
    }
}

// False: there is nothing to compare with yet.
bool AgentDriver::measure(node::Situation& situation, bool whole) {
    auto sample = node::take_sample(*tree_, situation.pods, now_.now, before_ && !whole ? &*before_ : nullptr);
    if (!sample) {
        say_once({sample.error().message});
        return false;
    }
    const bool known = before_ && now_.now > before_->at;
    if (known) situation.usage = node::usage_between(*before_, *sample, situation.pods);
    node::read_current(*tree_, situation.usage);
    if (!before_ || now_.now - before_->at >= options_.period) before_ = std::move(*sample);
    return known;
}

void AgentDriver::round() {
    const bool whole = changed_ || now_.now >= whole_due_;
    changed_ = false;
    if (!node_) return say_once({fmt::format("there is no Node \"{}\"", options_.node)});
    if (whole) {
        whole_due_ = now_.now + options_.whole;
        find_containers();
    }
    std::vector<std::string> faults;
    node::Situation found = situation(faults);
    const bool measured = measure(found, whole);
    const node::Plan plan = node::plan(found);
    faults.insert(faults.end(), plan.faults.begin(), plan.faults.end());
    node::Goals goals = plan.goals;
    // Without a measure nobody knows how far best-effort pods may go: their limits stay.
    if (!measured)
        goals.erase(
            std::remove_if(goals.begin(), goals.end(),
                           [&](const auto& goal) {
                               return goal.group.starts_with(node::qos_group(found.tree, model::KubeQos::BestEffort));
                           }),
            goals.end());
    node::Reconciled done;
    if (whole || goals_ != goals) done = node::reconcile(*tree_, goals);
    goals_.reset();
    if (done.troubles.empty()) goals_ = std::move(goals);  // else it is tried again
    faults.insert(faults.end(), done.troubles.begin(), done.troubles.end());
    say_once(faults);
    if (whole) report_topology(plan);
    if (!measured) return;
    report_metric(found);
    report_condition(plan);
    evict(found, plan);
    const bool settled = done.troubles.empty() && topology_ && reported_ && session_.under_way() == 0;
    if (settled && !std::exchange(done_, true) && options_.on_done) options_.on_done();
}

void AgentDriver::report_topology(const node::Plan& plan) {
    const std::string resource(node::kTopologyResource);
    if (!topology_) return send("NodeResourceTopology", model::create_object(resource, "", plan.topology));
    Json wanted = plan.topology;
    JsonObject& notes = base::object_at(wanted, {"metadata", "annotations"});
    // Those that say nothing when they are not there.
    for (const auto& key : {model::kNodeReservation, node::kPodCpus, kSimulatedAgent}) {
        if (!notes.contains(key) && base::find(*topology_, {"metadata", "annotations", key})) notes[key] = nullptr;
    }
    keep_others(*topology_, wanted);
    if (has_all(*topology_, wanted)) return;
    send("NodeResourceTopology", model::patch_object(resource, meta_of(*topology_), std::move(wanted)));
}

// The mean since the last time, not what a moment showed.
void AgentDriver::report_metric(node::Situation situation) {
    if (reported_ && now_.now - *reported_ < options_.report) return;
    if (!metric_) {
        return send("NodeMetric",
                    model::create_object(kNodeMetrics, "", new_metric(options_.node, meta_of(*node_).uid)));
    }
    if (rests("NodeMetric status")) return;
    reported_ = now_.now;
    if (at_report_ && before_ && before_->at > at_report_->at) {
        auto mean = node::usage_between(*at_report_, *before_, situation.pods);
        mean.pods.insert(situation.usage.pods.begin(), situation.usage.pods.end());  // who came since
        situation.usage = std::move(mean);
    }
    at_report_ = before_;
    send("NodeMetric status",
         model::patch_status(kNodeMetrics, meta_of(*metric_), metric_status(situation, now_.wall)));
}

// Said on the Node, so that whoever looks for idle best-effort pods finds why.
void AgentDriver::report_condition(const node::Plan& plan) {
    std::string_view said = "False";
    for (const auto& condition : model::list_at(*node_, ".status.conditions")) {
        if (model::string_at(condition, ".type") == kStarved) said = model::string_at(condition, ".status");
    }
    if ((said == "True") == plan.nothing_left) return;
    const JsonObject condition{
        {"type", kStarved},
        {"status", plan.nothing_left ? "True" : "False"},
        {"reason", plan.nothing_left ? "NoCoreLeft" : "CoresLeft"},
        {"message", plan.nothing_left ? "no core is left for best-effort pods: they have the least quota" : ""},
        {"lastTransitionTime", model::time_text(now_.wall)}};
    model::Write write = model::patch_status(kNodes, meta_of(*node_), {{"conditions", JsonArray{condition}}});
    write.verb = model::Write::Verb::StrategicPatch;  // the other conditions stay
    send("Node", std::move(write));
}

// Single pods, whatever made them; budgets are the server's to keep.
void AgentDriver::evict(const node::Situation& situation, const node::Plan& plan) {
    if (!node::is_starved(situation, plan)) starved_since_.reset();
    if (node::is_starved(situation, plan) && !starved_since_) starved_since_ = now_.now;
    const auto starved = starved_since_ ? now_.now - *starved_since_ : base::Duration::zero();
    for (const auto& eviction : node::evictions(situation, plan, starved)) {
        const auto& pod = situation.pods[eviction.pod];
        model::Write write;
        write.resource = kPods;
        write.ns = pod.ns;
        write.name = pod.name;
        write.subresource = "eviction";
        write.body = JsonObject{{"apiVersion", "policy/v1"},
                                {"kind", "Eviction"},
                                {"metadata", JsonObject{{"namespace", pod.ns}, {"name", pod.name}}},
                                {"deleteOptions", JsonObject{{"preconditions", JsonObject{{"uid", pod.uid}}}}}};
        send("eviction of " + pod.full_name(), std::move(write));
        recorder_.warning({"v1", "Pod", pod.ns, pod.name, pod.uid}, "BerthEvicted", eviction.because, now_.wall);
    }
}

bool AgentDriver::rests(const std::string& what) const {
    const auto rest = rests_.find(what);
    return rest != rests_.end() && now_.now < rest->second;
}

void AgentDriver::send(const std::string& what, model::Write write) {
    if (rests(what)) return;
    rests_[what] = now_.now + kRest;
    session_.send(request_for(std::move(write)), what);
}

void AgentDriver::say_once(const std::vector<std::string>& troubles) {
    for (const auto& trouble : troubles) {
        if (said_.insert(trouble).second)
            base::log_warning("Not as it should be", {{"node", options_.node}, {"what", trouble}});
    }
    constexpr size_t kMostRemembered = 10'000;
    if (said_.size() > kMostRemembered) said_.clear();
}

}  // namespace berth::run
