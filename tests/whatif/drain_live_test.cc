// What `berth whatif --drain` foretells is what evicting the pods of the nodes does, as `kubectl drain` would: who goes
// and who is blocked, where those who are made again land, and which reservations go with the nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/clock.h"
#include "cli/leaving.h"
#include "cli/question.h"
#include "history.h"
#include "live.h"
#include "settings.h"

namespace berth::whatif {
namespace {

std::string field(const Json& document, std::initializer_list<std::string_view> path) {
    return std::string(base::find_string(document, path));
}

std::string called(const Json& document) {
    return field(document, {"metadata", "name"});
}

run::ControllersDriver::Reconcilers workloads() {
    run::ControllersDriver::Reconcilers out;
    out.push_back(control::replicaset_reconciler());
    out.push_back(control::daemonset_reconciler());
    out.push_back(control::disruption_reconciler());
    return out;
}

// A cluster in which things run, by chance; the same for the same seed.
class Scene {
public:
    Scene(Live& live, uint64_t seed) : live_(live), random_(seed), story_(fmt::format("seed {}:", seed)) {
        const auto nodes = random_.between(3, 5);
        for (int64_t i = 0; i < nodes; ++i) add_node(fmt::format("n{}", i));
        if (random_.chance(1, 2)) add_daemons();
        for (const auto* app : {"a", "b"}) add_reservations(app);
        for (const auto* app : {"a", "b", "c"}) add_app(app);
        live_.settle();
        for (const auto& node : nodes_) {
            const bool all = drained_.size() + 1 == nodes_.size();
            if (!all && random_.chance(1, 3)) drained_.push_back(node);
        }
        if (drained_.empty()) drained_.push_back(nodes_[random_.below(nodes_.size())]);
        story_ += fmt::format("\ndrain {}", fmt::join(drained_, " "));
    }
    const std::vector<std::string>& drained() const { return drained_; }
    const std::string& story() const { return story_; }

private:
    void make(const char* collection, const JsonObject& meta, Json spec) {
        story_ += fmt::format("\n{} {}", field(meta, {"name"}), base::to_text(spec));
        live_.ask({"POST", collection, base::to_text(JsonObject{{"metadata", meta}, {"spec", std::move(spec)}})});
    }
    static JsonObject labels(const std::string& app) { return JsonObject{{"app", app}}; }
    static JsonObject selector(const std::string& app) { return JsonObject{{"matchLabels", labels(app)}}; }
    static JsonObject pod_spec(const std::string& cpu) {
        const JsonObject requests{{"cpu", cpu}, {"memory", "1Gi"}};
        const JsonObject container{{"name", "c"}, {"image", "i"}, {"resources", JsonObject{{"requests", requests}}}};
        return JsonObject{
            {"schedulerName", "berth"}, {"terminationGracePeriodSeconds", 0}, {"containers", JsonArray{container}}};
    }
    static JsonObject pod_template(const std::string& app, const JsonObject& spec) {
        return JsonObject{{"metadata", JsonObject{{"labels", labels(app)}}}, {"spec", spec}};
    }
    std::string cpu(int64_t most) { return std::to_string(random_.between(1, most)); }

    void add_node(const std::string& name) {
        const Deed deed = History::make_node(name, static_cast<int>(random_.between(4, 9)));
        story_ += "\n" + deed.what;
        live_.ask(deed.request);
        live_.settle();
        nodes_.push_back(name);
    }
    void add_daemons() {
        make(kDaemonSets, JsonObject{{"name", "agent"}},
             JsonObject{{"selector", selector("agent")}, {"template", pod_template("agent", pod_spec("500m"))}});
        live_.settle();
        if (random_.chance(1, 3)) add_budget("agent", 1);
    }
    void add_reservations(const std::string& app) {
        for (int64_t i = random_.between(0, 2); i > 0; --i) {
            make(kReservations, JsonObject{{"name", fmt::format("r-{}{}", app, i)}},
                 JsonObject{{"ttl", "0"},
                            {"owners", JsonArray{JsonObject{{"labelSelector", selector(app)}}}},
                            {"allocateOnce", random_.chance(1, 2)},
                            {"template", JsonObject{{"spec", pod_spec(cpu(3))}}}});
            live_.settle();
        }
    }
    // Under a budget or two, or under none; sometimes of pods that nobody makes again.
    void add_app(const std::string& app) {
        const int64_t count = random_.between(1, 4);
        JsonObject spec = pod_spec(cpu(3));
        if (random_.chance(1, 5)) spec["priorityClassName"] = "high";
        const bool bare = random_.chance(1, 4);
        for (int64_t i = 0; bare && i < count; ++i) {
            make(kPods, JsonObject{{"name", fmt::format("{}-bare-{}", app, i)}, {"labels", labels(app)}}, spec);
        }
        if (!bare) {
            make(kReplicaSets, JsonObject{{"name", app}},
                 JsonObject{{"replicas", count}, {"selector", selector(app)}, {"template", pod_template(app, spec)}});
        }
        live_.settle();
        if (random_.chance(2, 3)) add_budget(app, count, bare);
        if (random_.chance(1, 10)) add_budget(app, count, bare);
    }
    void add_budget(const std::string& app, int64_t count, bool bare = false) {
        JsonObject spec{{"selector", selector(app)}};
        const uint64_t form = bare ? 0 : random_.below(4);  // of pods without a controller only a number is counted
        if (form == 0) spec["minAvailable"] = random_.between(0, count);
        if (form == 1) spec["maxUnavailable"] = random_.between(0, 2);
        if (form == 2) spec["minAvailable"] = fmt::format("{}%", random_.between(0, 100));
        if (form == 3) spec["maxUnavailable"] = fmt::format("{}%", random_.between(0, 100));
        make(kBudgets, JsonObject{{"name", fmt::format("keep-{}-{}", app, ++budgets_)}}, spec);
    }

    Live& live_;
    base::Random random_;
    std::string story_;
    std::vector<std::string> nodes_, drained_;
    size_t budgets_ = 0;
};

// Where how many pods of which app are. Those that somebody made again have names of their own.
using Places = std::map<std::pair<std::string, std::string>, int>;

std::string app_of(const Json& pod) {
    return field(pod, {"metadata", "labels", "app"});
}

// ---- what kubectl does

struct Drained {
    std::vector<std::string> moved, blocked, staying;
    Places places;
    std::set<std::string> lost;  // reservations, when the nodes are deleted
};

bool leaves(const Json& pod, const std::set<std::string>& nodes) {
    if (field(pod, {"kind"}) != "Pod") return false;
    return nodes.contains(field(pod, {"spec", "nodeName"}));
}

// All that may go, goes at once; what is refused is tried again when those who went have come to rest.
Drained drain_live(Live& live, const std::vector<std::string>& names) {
    const std::set<std::string> nodes(names.begin(), names.end());
    Drained out;
    const std::string cordoned = base::to_text(JsonObject{{"spec", JsonObject{{"unschedulable", true}}}});
    for (const auto& node : nodes) {
        live.ask({"PATCH", fmt::format("{}/{}", kNodes, node), cordoned, "application/merge-patch+json"});
    }
    live.settle();
    for (bool went = true; went;) {
        went = false;
        out.blocked.clear();
        out.staying.clear();
        for (const auto& document : live.dump()) {
            if (!leaves(document, nodes)) continue;
            if (app_of(document) == "agent") {
                out.staying.push_back(called(document));
                continue;
            }
            const JsonObject meta{{"name", called(document)}, {"namespace", "default"}};
            const Json eviction(JsonObject{{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", meta}});
            const bool gone =
                live.try_to({"POST", fmt::format("{}/{}/eviction", kPods, called(document)), base::to_text(eviction)});
            (gone ? out.moved : out.blocked).push_back(called(document));
            went = went || gone;
        }
        live.settle();
    }
    for (const auto& document : live.dump()) {
        if (field(document, {"kind"}) == "Pod") ++out.places[{app_of(document), field(document, {"spec", "nodeName"})}];
    }
    return out;
}

std::set<std::string> holding(const Live& live) {
    std::set<std::string> out;
    for (const auto& document : live.dump()) {
        const auto phase = field(document, {"status", "phase"});
        if (field(document, {"kind"}) != "Reservation") continue;
        if (phase == "Available" || phase == "Waiting") out.insert(called(document));
    }
    return out;
}

// Which of them end with the nodes.
std::set<std::string> lost_with(Live& live, const std::vector<std::string>& nodes) {
    const auto before = holding(live);
    for (const auto& node : nodes) live.ask({"DELETE", fmt::format("{}/{}", kNodes, node), ""});
    live.settle();
    const auto after = holding(live);
    std::set<std::string> out;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::inserter(out, out.end()));
    return out;
}

// ---- what whatif says

Drained drain_foretold(const std::vector<Json>& dump, const std::vector<std::string>& nodes) {
    cli::Question question;
    question.now = base::system_clock().wall();
    std::map<std::string, std::string> app;
    for (const auto& document : dump) {
        question.documents.emplace_back("live", document);
        if (field(document, {"kind"}) == "Pod") app[called(document)] = app_of(document);
    }
    Drained out;
    auto loaded = cli::load(question);
    EXPECT_TRUE(loaded) << loaded.error().message;
    if (!loaded) return out;
    std::vector<run::Placement> answers;
    const cli::Drain said = cli::drain(*loaded->world, nodes, answers);
    const auto plain = [](const std::string& full) { return full.substr(full.find('/') + 1); };
    for (const auto& name : said.moved) out.moved.push_back(plain(name));
    for (const auto& one : said.blocked) out.blocked.push_back(plain(one.pod));
    for (const auto& name : said.staying) out.staying.push_back(plain(name));
    out.lost.insert(said.reservations.begin(), said.reservations.end());
    const std::set<std::string> gone(said.bare.begin(), said.bare.end());
    loaded->world->cluster().each_pod([&](const model::Pod& pod) {
        if (!gone.contains(pod.meta.full_name())) ++out.places[{app[pod.meta.name], pod.node}];
    });
    return out;
}

std::string lines_of(const Places& places) {
    std::string out;
    for (const auto& [where, count] : places) {
        out += fmt::format("\n  {} of {} on {}", count, where.first, where.second.empty() ? "-" : where.second);
    }
    return out;
}

void check_drain(Live& live, uint64_t seed) {
    const Scene scene(live, seed);
    const auto dump = live.dump();
    Drained said = drain_foretold(dump, scene.drained());
    Drained seen = drain_live(live, scene.drained());
    seen.lost = lost_with(live, scene.drained());
    for (auto* each : {&said.moved, &seen.moved, &said.blocked, &seen.blocked, &said.staying, &seen.staying}) {
        std::sort(each->begin(), each->end());
    }
    EXPECT_EQ(seen.moved, said.moved) << scene.story();
    EXPECT_EQ(seen.blocked, said.blocked) << scene.story();
    EXPECT_EQ(seen.staying, said.staying) << scene.story();
    EXPECT_EQ(lines_of(seen.places), lines_of(said.places)) << scene.story() << live.why();
    EXPECT_EQ(seen.lost, said.lost) << scene.story();
    live.clear();
}

TEST(Drain, DoesWhatWasForetold) {
    Live live(workloads());
    each_seed(200, [&](uint64_t seed) { check_drain(live, seed); });
}

}  // namespace
}  // namespace berth::whatif
