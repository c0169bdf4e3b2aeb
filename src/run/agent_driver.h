#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "link/recorder.h"
#include "link/session.h"
#include "model/write.h"
#include "node/meter.h"
#include "node/plan.h"
#include "node/tree.h"
#include "run/driver.h"

namespace berth::run {

// The agent of one node: follows its Node, its Pods and its NodeSLO, measures, leads the cgroup tree to what is
// planned, and writes NodeResourceTopology, NodeMetric and a condition of the Node when they differ from what the
// server has.
class AgentDriver final : public Driver {
public:
    struct Doors {
        std::unique_ptr<link::ApiClient> server;
        link::Wake wake;
        std::unique_ptr<node::Tree> tree;
        std::function<Result<node::Kubelet>()> kubelet;  // read anew for each plan; its state changes
    };
    struct Options {
        std::string node;
        node::Machine machine;
        base::Duration period = std::chrono::seconds(1);
        base::Duration report = std::chrono::seconds(60);
        // Each period looks at what is used; all groups are read only so often, and when something has changed.
        base::Duration whole = std::chrono::seconds(5);
        bool restore = false;                // when it stops
        std::function<void()> on_done = {};  // after the first whole round
    };
    AgentDriver(Doors doors, Options options);
    ~AgentDriver() override;
    AgentDriver(const AgentDriver&) = delete;
    AgentDriver& operator=(const AgentDriver&) = delete;

    void turn(const Moment& now) override;
    base::Instant next() const override;
    void stop() override;
    bool idle() const override { return session_.under_way() == 0; }
    bool synced() const override { return session_.synced(); }

private:
    // As it was read, and with the groups that were found below its own.
    struct KnownPod {
        node::NodePod pod, found;
        std::vector<std::string> faults;
    };

    void apply_pod(const Json& document, bool gone);
    void apply(const std::string& resource, const link::FeedEvent& event);
    void take_answers();
    void round();
    node::Situation situation(std::vector<std::string>& faults);
    void find_containers();
    bool measure(node::Situation& situation, bool whole);
    void report_topology(const node::Plan& plan);
    void report_metric(node::Situation situation);
    void report_condition(const node::Plan& plan);
    void evict(const node::Situation& situation, const node::Plan& plan);
    bool rests(const std::string& what) const;  // it was sent a moment ago
    void send(const std::string& what, model::Write write);
    void say_once(const std::vector<std::string>& troubles);

    link::Session<std::string> session_;
    link::Recorder recorder_;
    std::unique_ptr<node::Tree> tree_;
    std::function<Result<node::Kubelet>()> kubelet_;
    const Options options_;
    std::optional<Json> node_, slo_, topology_, metric_;
    std::map<std::string, KnownPod> pods_;  // by namespace/name
    std::optional<node::Sample> before_;
    std::optional<node::Sample> at_report_;  // what is reported is what was used since
    std::optional<node::Goals> goals_;       // the tree was led to
    base::Instant whole_due_;
    std::optional<base::Instant> reported_;
    std::optional<base::Instant> starved_since_;
    std::map<std::string, base::Instant> rests_;  // what was sent: not again before
    std::set<std::string> said_;
    Moment now_;
    base::Instant due_;
    bool active_ = false;
    bool changed_ = true;
    bool stopping_ = false;
    bool done_ = false;
};

}  // namespace berth::run
