// What the runs tell of the objects that a server has: events, plans in order, metrics.
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "app/reservations_run.h"
#include "app/scheduler_run.h"
#include "base/json.h"
#include "base/yaml.h"

namespace berth::app {
namespace {

// What was sent to a server, as lines "REASON NAME: MESSAGE" for events and "METHOD PATH" for all else.
class Sent {
public:
    void add(const link::Request& request) {
        const std::lock_guard lock(mutex_);
        const auto body = base::parse_json(request.body);
        const bool event = request.method == "POST" && body && base::find_string(*body, {"kind"}) == "Event";
        const auto at = [&](std::initializer_list<std::string_view> path) {
            return std::string(base::find_string(*body, path));
        };
        lines_.push_back(event ? at({"reason"}) + " " + at({"involvedObject", "name"}) + ": " + at({"message"})
                               : request.method + " " + request.path);
        came_.notify_all();
    }
    // The position of the first line that begins so, once there is one.
    size_t wait_for(std::string_view beginning) {
        std::unique_lock lock(mutex_);
        size_t found = lines_.size();
        const bool came = came_.wait_for(lock, std::chrono::seconds(30), [&] {
            for (found = 0; found < lines_.size(); ++found) {
                if (lines_[found].starts_with(beginning)) return true;
            }
            return false;
        });
        EXPECT_TRUE(came) << "nobody said " << beginning;
        return found;
    }

private:
    std::mutex mutex_;
    std::condition_variable came_;
    std::vector<std::string> lines_;
};

// Tells its objects once; everything sent to it succeeds and changes nothing.
class StillServer : public link::Server {
public:
    StillServer(std::string_view yaml, Sent& sent) : sent_(sent) {
        const auto documents = base::parse_yaml(yaml);
        EXPECT_TRUE(documents);
        for (const auto& document : *documents) {
            objects_[std::string(base::find_string(document, {"kind"}))].push_back(
                std::make_shared<const std::string>(base::to_text(document)));
        }
    }
    void send(link::Request request, link::ReplyTo reply) override {
        sent_.add(request);
        // A revision that no feed ever tells: whoever wrote waits to see it.
        reply(link::Reply{200, "{}", 1'000'000});
    }
    std::unique_ptr<link::Feed> follow(const link::Resource& resource, std::function<void()> notify) override {
        static const std::map<std::string, std::string> kKinds{
            {"nodes", "Node"}, {"pods", "Pod"}, {"priorityclasses", "PriorityClass"}, {"reservations", "Reservation"}};
        auto feed = std::make_unique<Once>();
        if (const auto kind = kKinds.find(resource.plural); kind != kKinds.end()) {
            for (const auto& text : objects_[kind->second]) {
                feed->events.push_back({link::FeedEvent::Type::Put, text, feed->events.size() + 1});
            }
        }
        feed->events.push_back({link::FeedEvent::Type::Synced});
        notify();
        return feed;
    }

private:
    struct Once : link::Feed {
        std::vector<link::FeedEvent> events;
        std::vector<link::FeedEvent> poll(size_t) override { return std::exchange(events, {}); }
    };
    Sent& sent_;
    std::map<std::string, std::vector<std::shared_ptr<const std::string>>> objects_;
};

TEST(ReservationsRun, TellsWhatIsWrongAndShowsWhatIsHeld) {
    Sent sent;
    base::Metrics metrics;
    ReservationsRun run(std::make_unique<StillServer>(R"(
kind: Node
metadata: {name: n1, uid: u}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
kind: Pod
metadata: {name: by-others, namespace: default, uid: p1}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}
---
kind: Pod
metadata:
  {name: marked, namespace: default, uid: p2,
   annotations: {scheduling.koordinator.sh/reservation-allocated: '{"name":"held","uid":"r1"}'}}
spec: {containers: [{name: c}]}
---
kind: Reservation
metadata: {name: held, uid: r1}
spec:
  ttl: "0"
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1500m"}}}]}}
status:
  phase: Available
  nodeName: n1
  allocatable: {cpu: 1500m}
  conditions: [{type: Ready, status: "True", reason: Available}]
---
kind: Reservation
metadata: {name: broken, uid: r2}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {tolerations: [{key: a, operator: Near}], containers: [{name: c}]}}
)",
                                                      sent),
                        std::chrono::hours(24), base::system_clock(), metrics);
    sent.wait_for("NodeTooFull held: node n1 holds {cpu: \"1500m\"} more than it has");
    sent.wait_for(
        "AnnotationIgnored marked: annotation \"scheduling.koordinator.sh/reservation-allocated\" means nothing");
    sent.wait_for(
        "Unreadable broken: Reservation \"broken\": spec.template.spec.tolerations[0].operator: must be one of");
    const std::string shown = metrics.text();
    for (const auto* line :
         {"scheduler_reservation_status_phase{name=\"held\",phase=\"Available\"} 1\n",
          "scheduler_reservation_resource{name=\"held\",resource=\"cpu\",type=\"allocatable\",unit=\"core\"} 1.5\n"}) {
        EXPECT_NE(shown.find(line), std::string::npos) << shown;
    }
}

// No API server resolves the class of a template; until its class is there a reservation must not be taken for the
// most important one.
TEST(SchedulerRun, ResolvesThePriorityClassOfATemplate) {
    Sent sent;
    base::Metrics metrics;
    SchedulerRun run(std::make_unique<StillServer>(R"(
kind: Node
metadata: {name: n1, uid: u}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
kind: Pod
metadata: {name: ordinary, namespace: default, uid: p1}
spec: {priority: 0, schedulerName: berth, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
---
kind: PriorityClass
metadata: {name: background, uid: c}
value: -5
---
kind: Reservation
metadata: {name: low, uid: r1}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template:
    spec:
      {schedulerName: berth, priorityClassName: background, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
---
kind: Reservation
metadata: {name: unknown, uid: r2}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template:
    spec:
      {schedulerName: berth, priorityClassName: nobody, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
)",
                                                   sent),
                     {{"berth", sched::default_profile()}}, base::system_clock(), metrics, {}, ExtendersRun{});
    sent.wait_for("FailedScheduling unknown: no PriorityClass with name nobody was found");
    const size_t placed = sent.wait_for("PATCH /apis/scheduling.koordinator.sh/v1alpha1/reservations/low/status");
    EXPECT_LT(sent.wait_for("POST /api/v1/namespaces/default/pods/ordinary/binding"), placed);
}

}  // namespace
}  // namespace berth::app
