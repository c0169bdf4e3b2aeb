#include "cli/shares.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "cli/dump.h"
#include "model/times.h"
#include "run/shares_scene.h"

// The cases of the specification as files: what is deserved, who may start, who goes.
namespace berth::cli {
namespace {

std::string node(std::string_view name, std::string_view cpu, std::string_view memory = "100Gi",
                 std::string_view spec = "") {
    return fmt::format(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {}}}\nspec: {{{}}}\nstatus: {{allocatable: {{cpu: \"{}\", "
        "memory: {}, pods: \"500\"}}}}\n",
        name, spec, cpu, memory);
}

struct PodText {
    std::string_view requests = "cpu: \"1\"";
    std::string_view node = "";
    std::string_view meta = "";
    std::string_view spec = "";
};

// p-1, p-2...; each a second newer than the one before.
std::string pods(std::string_view ns, int count, const PodText& text, int from = 1) {
    std::string out;
    for (int i = from; i < from + count; ++i) {
        out += fmt::format(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p-{}, namespace: {}, creationTimestamp: "
            "\"2026-01-01T00:{:02}:{:02}Z\"{}}}\nspec: {{{}{}containers: [{{name: c, image: i, resources: {{requests: "
            "{{{}}}}}}}]}}\n",
            i, ns, i / 60, i % 60, text.meta, text.node.empty() ? "" : fmt::format("nodeName: {}, ", text.node),
            text.spec, text.requests);
    }
    return out;
}

std::string consumer(std::string_view name, std::string_view spec) {
    return fmt::format(
        "---\napiVersion: kuabe-arbitrator.incubator.k8s.io/v1\nkind: Consumer\nmetadata: {{name: {}}}\nspec: {{{}}}\n",
        name, spec);
}

Json document_of(const std::string& text, share::Policy policy = share::Policy::Surplus) {
    share::Settings settings;
    settings.policy = policy;
    settings.now = *model::parse_time("2026-01-02T00:00:00Z");
    settings.spread = false;
    run::SharesScene gathered(settings.now);
    const auto objects = read_objects(text);
    EXPECT_TRUE(objects.ok());
    for (const auto& object : *objects) {
        const auto known = gathered.put(object);
        EXPECT_TRUE(known.ok() && *known) << base::to_text(object);
    }
    const share::Scene scene = gathered.take(false);
    return shares_document(scene, share::answer(scene, settings));
}

const Json& consumer_in(const Json& document, std::string_view name) {
    for (const auto& one : document.at("consumers").as_array()) {
        if (base::find_string(one, {"name"}) == name) return one;
    }
    static const Json none;
    ADD_FAILURE() << "no consumer " << name;
    return none;
}

std::string deserved(const Json& document, std::string_view name) {
    return base::to_text(consumer_in(document, name).at("deserved"));
}

std::vector<std::string> victims(const Json& document) {
    std::vector<std::string> out;
    for (const auto& victim : document.at("victims").as_array())
        out.push_back(fmt::format("{}/{} for {}", victim.at("namespace").as_string().c_str(),
                                  victim.at("name").as_string().c_str(), victim.at("for").as_string().c_str()));
    return out;
}

int admitted(const Json& document) {
    int count = 0;
    for (const auto& pod : document.at("pods").as_array()) count += pod.at("admitted").as_bool() ? 1 : 0;
    return count;
}

bool has_condition(const Json& document, std::string_view name, std::string_view type) {
    for (const auto& condition : consumer_in(document, name).at("conditions").as_array()) {
        if (base::find_string(condition, {"type"}) == type) return true;
    }
    return false;
}

using Names = std::vector<std::string>;

TEST(Shares, Case1IsTheExampleOfTheContract) {
    const auto answer = document_of(node("n1", "9", "18Gi") + pods("a", 50, {.requests = "cpu: \"1\", memory: 4Gi"}) +
                                    pods("b", 50, {.requests = "cpu: \"3\", memory: 1Gi"}));
    EXPECT_EQ(base::to_text(answer.at("capacity")), R"({"cpu":"9","memory":"18Gi"})");
    const Json& a = consumer_in(answer, "a");
    EXPECT_EQ(
        base::to_text(a),
        R"({"name":"a","parent":null,"weight":1,"infinite":false,"reserved":{},"hard":{},"demand":{"cpu":"50","memory":"200Gi"},"used":{},"fair":{"cpu":3,"memory":12884901888},"deserved":{"cpu":"3","memory":"12Gi"},"borrowed":{"cpu":"3","memory":"12Gi"},"lent":{},"overused":false,"reclaim":{},"boundBy":"memory","conditions":[]})");
    EXPECT_EQ(base::to_text(answer.at("loans").as_array().front()),
              R"({"from":"","to":"a","resource":"cpu","amount":"3"})");
    EXPECT_EQ(admitted(answer), 5);
}

std::string cpus(const Json& document) {
    std::string out;
    for (const auto& one : document.at("consumers").as_array()) {
        const auto cpu = base::find_string(one, {"deserved", "cpu"});
        out +=
            fmt::format("{}{}={}", out.empty() ? "" : " ", base::find_string(one, {"name"}), cpu.empty() ? "0" : cpu);
    }
    return out;
}

TEST(Shares, Cases2And4And5ByFiles) {
    const auto two = document_of(node("n1", "30", "30Gi") + pods("a", 40, {.requests = "cpu: \"1\", memory: 3Gi"}) +
                                 pods("b", 40, {.requests = "cpu: \"1\", memory: 1Gi"}));
    EXPECT_EQ(deserved(two, "a"), R"({"cpu":"5","memory":"15Gi"})");
    EXPECT_EQ(deserved(two, "b"), R"({"cpu":"15","memory":"15Gi"})");
    const auto four = document_of(node("n1", "9", "18Gi") + consumer("a", "weight: 2") +
                                  pods("a", 50, {.requests = "cpu: \"1\", memory: 4Gi"}) +
                                  pods("b", 50, {.requests = "cpu: \"3\", memory: 1Gi"}));
    EXPECT_NEAR(consumer_in(four, "a").at("fair").at("cpu").as_double(), 54.0 / 13, 1e-6);
    EXPECT_NEAR(consumer_in(four, "b").at("fair").at("cpu").as_double(), 54.0 / 13, 1e-6);
    const auto five = document_of(node("n1", "10", "10Gi") + pods("a", 20, {}) + pods("b", 20, {}) +
                                  pods("c", 20, {.requests = "memory: 1Gi"}));
    EXPECT_EQ(cpus(five), "a=5 b=5 c=0");
    EXPECT_EQ(deserved(five, "c"), R"({"memory":"10Gi"})");
}

TEST(Shares, Case6AreasByPercentages) {
    const std::string areas = node("n1", "100") + consumer("app", "reserved: {cpu: 40%}") +
                              consumer("bigdata", "reserved: {cpu: 60%}") + consumer("spark", "parent: bigdata") +
                              consumer("hadoop", "parent: bigdata");
    EXPECT_EQ(cpus(document_of(areas + pods("app", 110, {}) + pods("spark", 110, {}) + pods("hadoop", 110, {}))),
              "app=40 bigdata=60 hadoop=30 spark=30");
    EXPECT_EQ(cpus(document_of(areas + pods("app", 10, {}) + pods("spark", 110, {}) + pods("hadoop", 110, {}))),
              "app=10 bigdata=90 hadoop=45 spark=45");
    EXPECT_EQ(cpus(document_of(areas + pods("app", 110, {}) + pods("spark", 110, {}) + pods("hadoop", 5, {}))),
              "app=40 bigdata=60 hadoop=5 spark=55");
}

TEST(Shares, Cases7To9And11ByFiles) {
    const std::string seven = node("n1", "100") + consumer("a", "reserved: {cpu: \"60\"}") +
                              consumer("b", "reserved: {cpu: \"20\"}") + pods("a", 110, {}) + pods("b", 110, {});
    EXPECT_EQ(cpus(document_of(seven)), "a=70 b=30");
    EXPECT_EQ(cpus(document_of(seven, share::Policy::Floor)), "a=60 b=40");
    const auto eight = document_of(node("n1", "100") + consumer("a", "reserved: {cpu: \"30\"}") +
                                   consumer("b", "reserved: {cpu: \"90\"}") + pods("a", 110, {}) + pods("b", 110, {}));
    EXPECT_EQ(cpus(eight), "a=25 b=75");
    EXPECT_TRUE(has_condition(eight, "a", "ReservationScaled"));
    EXPECT_EQ(cpus(document_of(node("n1", "100") + consumer("a", "weight: 40, reserved: {cpu: \"10\"}") +
                               consumer("b", "weight: 60, reserved: {cpu: \"15\"}") +
                               consumer("c", "weight: 50, reserved: {cpu: \"20\"}") +
                               consumer("d", "weight: 80, reserved: {cpu: \"15\"}") + pods("a", 5, {}) +
                               pods("b", 20, {}) + pods("c", 40, {}) + pods("d", 70, {}))),
              "a=5 b=20 c=35 d=40");
    const auto eleven =
        document_of(node("n1", "10") + pods("kube-system", 3, {}) + pods("a", 20, {}) + pods("b", 20, {}));
    EXPECT_EQ(cpus(eleven), "a=4 b=3 kube-system=3");
    EXPECT_EQ(base::to_text(consumer_in(eleven, "a").at("fair")), R"({"cpu":3.5})");
}

TEST(Shares, ABrokenConsumerHarmsNobodyElse) {
    const auto answer =
        document_of(node("n1", "4") + consumer("a", "reserved: {cpu: much}") + pods("a", 9, {}) + pods("b", 9, {}));
    EXPECT_EQ(cpus(answer), "a=2 b=2");
}

// T1 to T3 of the proposal.
TEST(Shares, Case3TheNewerPodGoesForTheOneThatWaits) {
    const PodText size{.requests = "cpu: \"1\", memory: 1Gi", .node = "n1"};
    const std::string full = node("n1", "2", "2Gi") + pods("c1", 2, size);
    const auto empty = document_of(full + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: c2}\n");
    EXPECT_EQ(victims(empty), Names{});
    EXPECT_EQ(deserved(empty, "c1"), R"({"cpu":"2","memory":"2Gi"})");
    const auto waits = document_of(full + pods("c2", 1, {.requests = "cpu: \"1\", memory: 1Gi"}));
    EXPECT_EQ(victims(waits), Names{"c1/p-2 for c2/p-1"});
    EXPECT_EQ(base::to_text(consumer_in(waits, "c1").at("reclaim")), R"({"cpu":"1","memory":"1Gi"})");
    // Its replacement is refused, the other passes.
    const auto after =
        document_of(node("n1", "2", "2Gi") + pods("c1", 1, size) + pods("c1", 1, {.requests = size.requests}, 3) +
                    pods("c2", 1, {.requests = size.requests}, 4));
    EXPECT_EQ(admitted(after), 1);
    EXPECT_EQ(after.at("pods").as_array().back().at("admitted"), true);
    EXPECT_EQ(victims(after), Names{});
}

TEST(Shares, Case12ExactlyThreeGo) {
    const auto answer = document_of(node("n1", "10") + consumer("a", "reserved: {cpu: \"4\"}") +
                                    pods("a", 10, {.node = "n1"}) + pods("b", 10, {}));
    EXPECT_EQ(deserved(answer, "a"), R"({"cpu":"7"})");
    EXPECT_EQ(deserved(answer, "b"), R"({"cpu":"3"})");
    EXPECT_EQ(victims(answer), (Names{"a/p-10 for b/p-1", "a/p-9 for b/p-2", "a/p-8 for b/p-3"}));
}

TEST(Shares, Case13TheMostOverusedGivesFirst) {
    const auto answer = document_of(node("n1", "12") + pods("a", 7, {.node = "n1"}) + pods("b", 5, {.node = "n1"}) +
                                    pods("new", 4, {}));
    EXPECT_EQ(victims(answer),
              (Names{"a/p-7 for new/p-1", "a/p-6 for new/p-2", "a/p-5 for new/p-3", "b/p-5 for new/p-4"}));
}

TEST(Shares, Case14ABudgetIsNotBroken) {
    const auto answer = document_of(node("n1", "5") + consumer("b", "reserved: {cpu: \"3\"}") +
                                    pods("a", 5, {.node = "n1", .meta = ", labels: {app: a}"}) + pods("b", 3, {}) +
                                    "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: keep, "
                                    "namespace: a}\nspec: {minAvailable: 4, selector: {matchLabels: {app: a}}}\n");
    EXPECT_EQ(victims(answer), Names{"a/p-5 for b/p-1"});
    EXPECT_TRUE(has_condition(answer, "a", "ReclaimBlockedByPDB"));
}

TEST(Shares, Case15OneNodeMustFitAfterwards) {
    const std::string full =
        node("n1", "4") + node("n2", "4") + pods("a", 4, {.node = "n1"}) + pods("a", 4, {.node = "n2"}, 5);
    EXPECT_EQ(victims(document_of(full + pods("b", 1, {.requests = "cpu: \"6\""}))), Names{});
    const auto four = document_of(full + pods("b", 1, {.requests = "cpu: \"4\""}));
    EXPECT_EQ(victims(four).size(), 4);
    for (const auto& victim : four.at("victims").as_array()) EXPECT_EQ(victim.at("node"), "n1");
}

TEST(Shares, Case16ThePredicateCountsWhatItGranted) {
    const auto answer = document_of(node("n1", "4") + consumer("a", "hard: {cpu: \"2\"}") +
                                    pods("a", 1, {.node = "n1"}) + pods("a", 3, {}, 2));
    ASSERT_EQ(answer.at("pods").as_array().size(), 3);
    EXPECT_EQ(answer.at("pods").as_array()[0].at("admitted"), true);
    EXPECT_EQ(answer.at("pods").as_array()[1].at("admitted"), false);
    EXPECT_EQ(answer.at("pods").as_array()[2].at("admitted"), false);
    EXPECT_EQ(consumer_in(answer, "a").at("boundBy"), "hard");
}

TEST(Shares, Case18ACordonEvictsNobody) {
    const auto answer = document_of(node("n1", "4", "100Gi", "unschedulable: true") + node("n2", "4") +
                                    pods("a", 4, {.node = "n1"}) + pods("b", 4, {.node = "n2"}) + pods("b", 2, {}, 5));
    EXPECT_EQ(victims(answer), Names{});
    EXPECT_EQ(base::to_text(answer.at("capacity")), R"({"cpu":"8","memory":"100Gi"})");
}

// Who may start, by namespace, and how many go for whom.
std::string starts_and_victims(const Json& document) {
    std::map<std::string, int> starts, goes;
    for (const auto& pod : document.at("pods").as_array()) {
        if (pod.at("admitted").as_bool()) ++starts[pod.at("namespace").as_string().c_str()];
    }
    for (const auto& victim : document.at("victims").as_array()) {
        const std::string claim = victim.at("for").as_string().c_str();
        ++goes[fmt::format("{} for {}", victim.at("namespace").as_string().c_str(), claim.substr(0, claim.find('/')))];
    }
    std::string out;
    for (const auto& [ns, count] : starts) out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", ns, count);
    out += ";";
    for (const auto& [who, count] : goes) out += fmt::format(" {} {}", count, who);
    return out;
}

// The cases in which the specification says what is deserved, when somebody already runs more than that.
TEST(Shares, WhoeverHasMoreThanItDeservesGivesWayInEveryCase) {
    const std::string areas = node("n1", "100") + consumer("app", "reserved: {cpu: 40%}") +
                              consumer("bigdata", "reserved: {cpu: 60%}") + consumer("spark", "parent: bigdata") +
                              consumer("hadoop", "parent: bigdata");
    const PodText here{.node = "n1"};
    const PodText memory{.requests = "cpu: \"1\", memory: 4Gi"};
    const PodText cpu{.requests = "cpu: \"3\", memory: 1Gi", .node = "n1"};
    const std::string one = node("n1", "9", "18Gi") + pods("b", 3, cpu) + pods("a", 12, memory);
    const std::string seven = node("n1", "100") + consumer("a", "reserved: {cpu: \"60\"}") +
                              consumer("b", "reserved: {cpu: \"20\"}") + pods("a", 100, here) + pods("b", 110, {});
    const std::string nine = node("n1", "100") + consumer("a", "weight: 40, reserved: {cpu: \"10\"}") +
                             consumer("b", "weight: 60, reserved: {cpu: \"15\"}") +
                             consumer("c", "weight: 50, reserved: {cpu: \"20\"}") +
                             consumer("d", "weight: 80, reserved: {cpu: \"15\"}") + pods("a", 5, {}) +
                             pods("b", 20, {}) + pods("c", 30, here) + pods("c", 10, {}, 31) + pods("d", 70, here);
    struct Row {
        const char* which;
        std::string scene;
        const char* expected;  // who may start, and who goes
        share::Policy policy = share::Policy::Surplus;
    };
    const std::vector<Row> rows = {
        {"1: of b's 3 the newest goes for three of a's", one, "a: 3; 1 b for a"},
        {"2: five of a's hold the memory of 15",
         node("n1", "30", "30Gi") + pods("a", 10, {.requests = "cpu: \"1\", memory: 3Gi", .node = "n1"}) +
             pods("b", 40, {.requests = "cpu: \"1\", memory: 1Gi"}),
         "b: 15; 5 a for b"},
        {"4: weights", one + consumer("a", "weight: 2"), "a: 4; 2 b for a"},
        {"5: whoever needs another resource is not waited for",
         node("n1", "10", "10Gi") + pods("a", 10, here) + pods("b", 20, {}) +
             pods("c", 20, {.requests = "memory: 1Gi"}),
         "b: 5, c: 10; 5 a for b"},
        {"6: within its own area first",
         areas + pods("app", 40, here) + pods("spark", 60, here) + pods("hadoop", 60, {}),
         "hadoop: 30; 30 spark for hadoop"},
        {"6: app needs 10", areas + pods("app", 10, here) + pods("spark", 90, here) + pods("hadoop", 60, {}),
         "hadoop: 45; 45 spark for hadoop"},
        {"6: hadoop needs 5", areas + pods("app", 40, here) + pods("spark", 60, here) + pods("hadoop", 5, {}),
         "hadoop: 5; 5 spark for hadoop"},
        {"6: what was lent comes back", areas + pods("spark", 100, here) + pods("app", 60, {}),
         "app: 40; 40 spark for app"},
        {"7", seven, "b: 30; 30 a for b"},
        // 40 are deserved, but beyond 30 the claimant would have more above its guarantee than the victim.
        {"7: floor", seven, "b: 40; 30 a for b", share::Policy::Floor},
        // 25 are deserved, and nobody is pushed below the 30 that it is guaranteed.
        {"8: a node was lost",
         node("n1", "100") + consumer("a", "reserved: {cpu: \"30\"}") + consumer("b", "reserved: {cpu: \"90\"}") +
             pods("a", 40, here) + pods("b", 60, here) + pods("a", 60, {}, 41) + pods("b", 60, {}, 61),
         "b: 15; 10 a for b"},
        {"9", nine, "a: 5, b: 20, c: 5; 5 d for a 20 d for b 5 d for c"},
        {"10: a guarantee that was lent",
         node("n1", "10") + consumer("a", "reserved: {cpu: \"4\"}") + pods("b", 10, here) + pods("a", 4, {}),
         "a: 4; 4 b for a"},
        {"10: and one that was not",
         node("n1", "10") + consumer("a", "reserved: {cpu: \"4\"}, lendingLimit: {cpu: \"0\"}") + pods("b", 20, {}),
         "b: 6;"},
        {"11: infinite ones first, from the most overused",
         node("n1", "10") + pods("kube-system", 3, {}) + pods("a", 5, here) + pods("b", 5, here) + pods("a", 9, {}, 6) +
             pods("b", 9, {}, 6),
         "kube-system: 3; 1 a for kube-system 2 b for kube-system"},
    };
    for (const Row& row : rows)
        EXPECT_EQ(starts_and_victims(document_of(row.scene, row.policy)), row.expected) << row.which;
}

TEST(Shares, Case10WhoLendsToWhom) {
    const auto answer = document_of(node("n1", "10") + consumer("a", "reserved: {cpu: \"4\"}") +
                                    "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n" + pods("b", 20, {}));
    EXPECT_EQ(
        base::to_text(answer.at("loans")),
        R"([{"from":"","to":"b","resource":"cpu","amount":"6"},{"from":"a","to":"b","resource":"cpu","amount":"4"}])");
    EXPECT_EQ(base::to_text(consumer_in(answer, "a").at("lent")), R"({"cpu":"4"})");
}

std::string loans(const Json& document) {
    std::string out;
    for (const auto& loan : document.at("loans").as_array())
        out += fmt::format("{}{} to {}: {}", out.empty() ? "" : ", ", loan.at("from").as_string().c_str(),
                           loan.at("to").as_string().c_str(), loan.at("amount").as_string().c_str());
    return out;
}

TEST(Shares, NobodyLendsMoreThanItsLimit) {
    const std::string namespaces = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
    const auto none =
        document_of(node("n1", "10") + consumer("a", "reserved: {cpu: \"4\"}, lendingLimit: {cpu: \"0\"}") +
                    namespaces + pods("b", 20, {}));
    EXPECT_EQ(loans(none), " to b: 6");
    EXPECT_EQ(base::to_text(consumer_in(none, "a").at("lent")), "{}");
    const auto one =
        document_of(node("n1", "10") + consumer("a", "reserved: {cpu: \"4\"}, lendingLimit: {cpu: \"1\"}") +
                    namespaces + pods("b", 20, {}));
    EXPECT_EQ(loans(one), " to b: 6, a to b: 1");
    EXPECT_EQ(base::to_text(consumer_in(one, "a").at("lent")), R"({"cpu":"1"})");
}

TEST(Shares, AnAreaLendsWhatIsIdleInIt) {
    const std::string areas =
        node("n1", "100") + consumer("app", "reserved: {cpu: 40%}") + consumer("bigdata", "reserved: {cpu: 60%}") +
        consumer("spark", "parent: bigdata, reserved: {cpu: \"20\"}") + consumer("hadoop", "parent: bigdata");
    const auto idle = document_of(areas + pods("app", 110, {}) + pods("spark", 5, {}));
    EXPECT_EQ(loans(idle), "bigdata to app: 40, spark to app: 15");
    EXPECT_EQ(base::to_text(consumer_in(idle, "bigdata").at("lent")), R"({"cpu":"55"})");
    EXPECT_EQ(base::to_text(consumer_in(idle, "spark").at("lent")), R"({"cpu":"15"})");
}

TEST(Shares, QuotasClipAndStorageCounts) {
    const auto answer =
        document_of(node("n1", "10") + consumer("a", "hard: {requests.cpu: \"8\"}") + pods("a", 10, {}) +
                    "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: a}\nspec: {hard: "
                    "{requests.cpu: \"3\", requests.memory: 1Gi}}\n"
                    "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, namespace: a}\nspec: "
                    "{storageClassName: gold, volumeName: v, resources: {requests: {storage: 5Gi}}}\n");
    EXPECT_TRUE(has_condition(answer, "a", "HardExceedsQuota"));
    const Json& a = consumer_in(answer, "a");
    EXPECT_EQ(base::to_text(a.at("hard")), R"({"cpu":"3","memory":"1Gi"})");
    EXPECT_EQ(a.at("deserved").at("cpu"), "3");
    EXPECT_EQ(a.at("used").at("requests.storage"), "5Gi");
    EXPECT_EQ(a.at("used").at("gold.storageclass.storage.k8s.io/requests.storage"), "5Gi");
}

TEST(Shares, OptedOutPodsAndTheirGuaranteesStay) {
    const std::string meta = ", annotations: {berth.dev/reclaimable: \"false\"}";
    const auto answer = document_of(node("n1", "4") + pods("a", 4, {.node = "n1", .meta = meta}) + pods("b", 2, {}));
    EXPECT_EQ(deserved(answer, "a"), R"({"cpu":"2"})");
    EXPECT_EQ(victims(answer), Names{});
}

}  // namespace
}  // namespace berth::cli
