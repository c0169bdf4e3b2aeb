// What a person asks `berth whatif`, as a command with files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/whatif.h"

namespace berth::cli {
namespace {

class WhatifQuestions : public testing::Test {
protected:
    WhatifQuestions() : folder_(testing::TempDir() + fmt::format("whatif-{}", ::getpid())) {
        std::filesystem::create_directories(folder_);
    }
    ~WhatifQuestions() override { std::filesystem::remove_all(folder_); }

    std::string file(const std::string& name, std::string_view text) {
        const std::string path = folder_ + "/" + name;
        std::ofstream(path) << text;
        return path;
    }
    // The exit code; what it printed is in said_ and warned_.
    int run(std::vector<std::string> words) {
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int code = whatif(std::move(words));
        std::fflush(stdout);
        said_ = testing::internal::GetCapturedStdout();
        warned_ = testing::internal::GetCapturedStderr();
        return code;
    }
    JsonObject ask(const std::string& dump, std::vector<std::string> more = {}) {
        std::vector<std::string> words{"-f", file("dump.yaml", dump), "-o", "json"};
        words.insert(words.end(), more.begin(), more.end());
        EXPECT_EQ(run(words), 0) << warned_;
        auto parsed = base::parse_json(said_);
        return parsed ? parsed->as_object() : JsonObject{};
    }
    static std::string places(const JsonObject& said) {
        std::string out;
        for (const auto& result : said.at("results").as_array()) {
            const auto text = [&](const char* key) {
                return result.at(key).is_null() ? "-" : std::string(result.at(key).as_string());
            };
            out += fmt::format("{}{} {} {}", out.empty() ? "" : ", ", text("name"), text("from"), text("node"));
        }
        return out;
    }
    static std::string node(const std::string& name, int cpu, const std::string& zone = "a") {
        return fmt::format(
            "kind: Node\nmetadata: {{name: {0}, labels: {{zone: {2}, kubernetes.io/hostname: {0}}}}}\n"
            "status: {{allocatable: {{cpu: {1}, memory: 64Gi, pods: 20}}}}\n---\n",
            name, cpu, zone);
    }
    static std::string pod(const std::string& name, int cpu, const std::string& on = "",
                           const std::string& controller = "ReplicaSet") {
        return fmt::format(
            "kind: Pod\nmetadata: {{name: {}, namespace: default, labels: {{app: web}}{}}}\n"
            "spec: {{{}containers: [{{name: c, resources: {{requests: {{cpu: {}}}}}}}]}}\n---\n",
            name,
            controller.empty() ? ""
                               : fmt::format(", ownerReferences: [{{apiVersion: apps/v1, kind: {}, name: "
                                             "web, uid: u-web, controller: true}}]",
                                             controller),
            on.empty() ? "" : fmt::format("nodeName: {}, ", on), cpu);
    }

    std::string folder_, said_, warned_;
};

// The naive edit of a dump for "what if I lose zone b": the nodes are taken out of it, and nothing else.
TEST_F(WhatifQuestions, PodsOfNodesThatAreNotThereArePlacedAgain) {
    const auto said = ask(node("n1", 8) + pod("a", 2, "n1") + pod("b", 4, "n2") + pod("c", 4, "n2") +
                          pod("watcher", 1, "n2", "DaemonSet"));
    EXPECT_EQ(places(said), "b n2 n1, c n2 -");
    EXPECT_NE(warned_.find("2 pods are bound to nodes that are not there (n2): homeless, placed again"),
              std::string::npos)
        << warned_;
    EXPECT_NE(warned_.find("1 pod is gone with the node: default/watcher"), std::string::npos) << warned_;
}

TEST_F(WhatifQuestions, WithoutNodesIsTheSameQuestion) {
    const std::string rest = pod("a", 2, "n1") + pod("b", 4, "n2") + pod("c", 4, "n2", "");
    const auto said = ask(node("n1", 8) + node("n2", 8, "b") + rest, {"--without-nodes", "zone=b"});
    EXPECT_EQ(places(said), "b n2 n1, c n2 -");
    EXPECT_NE(warned_.find("nobody makes those again that have no controller: default/c"), std::string::npos);
    EXPECT_EQ(run({"-f", folder_ + "/dump.yaml", "--without-nodes", "zone=c"}), 1);
    EXPECT_NE(warned_.find("no node has the labels \"zone=c\""), std::string::npos) << warned_;
}

// What a pod drew from goes with its node; the room of those that come again is their own.
TEST_F(WhatifQuestions, AReservationOnALostNodeFails) {
    const auto said = ask(node("n1", 8) + R"(
kind: Reservation
metadata: {name: r1, uid: u-r1}
spec:
  ttl: "0"
  allocateOnce: false
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: 6}}}]}}
status: {phase: Available, nodeName: n2, allocatable: {cpu: 6}}
---
kind: Pod
metadata:
  name: web-1
  labels: {app: web}
  annotations: {scheduling.koordinator.sh/reservation-allocated: '{"name":"r1","uid":"u-r1"}'}
spec: {nodeName: n2, containers: [{name: c, resources: {requests: {cpu: 6}}}]}
)");
    EXPECT_EQ(places(said), "web-1 n2 n1");
    EXPECT_TRUE(said.at("results").at(0).at("reservation").is_null());
    EXPECT_EQ(said.at("reservations").at(0).at("phase"), Json("Failed"));
}

constexpr std::string_view kDeployment = R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}
---
)";

TEST_F(WhatifQuestions, WorkloadsWithoutTheirPodsAreExpanded) {
    auto said = ask(node("n1", 8) + std::string(kDeployment));
    EXPECT_EQ(places(said), "web-1 - n1, web-2 - n1, web-3 - -");
    EXPECT_NE(warned_.find("3 of Deployment default/web"), std::string::npos) << warned_;
    // Those that are there count, whoever of the chain is in the dump.
    const std::string there = R"(
kind: Pod
metadata:
  name: web-77f-x
  namespace: default
  labels: {app: web, pod-template-hash: 77f}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-77f, uid: u-rs, controller: true}]
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 3}}}]}
---
)";
    said = ask(node("n1", 8) + std::string(kDeployment) + there);
    EXPECT_EQ(places(said), "web-1 - n1, web-2 - -");
    said = ask(node("n1", 8) + std::string(kDeployment) + there + R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-77f
  namespace: default
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-d, controller: true}]
spec: {replicas: 1, selector: {matchLabels: {app: web, pod-template-hash: 77f}}}
)");
    EXPECT_EQ(places(said), "web-1 - n1, web-2 - -");
}

TEST_F(WhatifQuestions, AStatefulSetBringsItsClaims) {
    const auto said = ask(node("n1", 8) + R"(
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: late, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
)");
    EXPECT_EQ(places(said), "db-0 - n1, db-1 - n1");
}

TEST_F(WhatifQuestions, JobsWantWhatIsLeft) {
    const auto job = [](const std::string& name, const std::string& more) {
        return fmt::format(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {}}}\nspec: {{parallelism: 3, completions: "
            "4, {}template: {{spec: {{containers: [{{name: c}}]}}}}}}\n",
            name, more);
    };
    const auto said =
        ask(node("n1", 8) + job("busy", "") + "status: {succeeded: 2}\n---\n" + job("sleeps", "suspend: true, ") +
            "---\n" + job("done", "") + "status: {succeeded: 4, conditions: [{type: Complete, status: \"True\"}]}\n");
    EXPECT_EQ(places(said), "busy-1 - n1, busy-2 - n1");
}

TEST_F(WhatifQuestions, WhatIsNotCountedIsNamed) {
    ask(node("n1", 8) + R"(
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec: {selector: {matchLabels: {app: agent}}, template: {spec: {containers: [{name: c}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec: {schedule: "* * * * *"}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: bare}
spec: {replicas: 2, selector: {matchLabels: {app: bare}}}
)");
    EXPECT_NE(warned_.find("not counted: DaemonSet default/agent: it does not say how many pods it has, CronJob "
                           "default/report: its pods come at times of their own, ReplicaSet default/bare: it has no "
                           "template to make its pods from"),
              std::string::npos)
        << warned_;
}

TEST_F(WhatifQuestions, TheExitCodeSaysWhetherEverythingFits) {
    const std::string dump = node("n1", 8) + pod("a", 6);
    EXPECT_EQ(run({"-f", file("d", dump), "--exit-code"}), 0);
    EXPECT_EQ(run({"-f", file("d", dump + pod("b", 6)), "--exit-code"}), 3);
    EXPECT_EQ(run({"-f", file("d", dump + pod("b", 6))}), 0);
    const std::string gated =
        "kind: Pod\nmetadata: {name: g}\nspec: {schedulingGates: [{name: later}], containers: [{name: c}]}\n";
    EXPECT_EQ(run({"-f", file("d", dump + gated), "--exit-code"}), 0) << said_;
}

TEST_F(WhatifQuestions, AnEmptyInputIsAnError) {
    EXPECT_EQ(run({"-f", file("empty.yaml", "# nothing\n")}), 1);
    EXPECT_NE(warned_.find("empty.yaml: there is nothing in it"), std::string::npos) << warned_;
    EXPECT_EQ(run({"-f", file("list.json", R"({"kind":"List","items":[]})")}), 1);
    EXPECT_EQ(run({"-f", file("kindless.yaml", "metadata: {name: x}\n")}), 1);
    EXPECT_NE(warned_.find("has no kind"), std::string::npos) << warned_;
}

// A pending pod that cannot be read is answered; one that holds room would make every answer wrong.
TEST_F(WhatifQuestions, BrokenInputThatChangesTheAnswerIsAnError) {
    const std::string broken =
        "kind: Pod\nmetadata: {name: x}\nspec: {%containers: [{name: c, resources: {requests: "
        "{cpu: much}}}]}\n---\n";
    std::string pending = broken, bound = broken;
    pending.replace(pending.find('%'), 1, "");
    bound.replace(bound.find('%'), 1, "nodeName: n1, ");
    EXPECT_EQ(run({"-f", file("d", node("n1", 8) + pending)}), 0);
    EXPECT_NE(said_.find("cpu"), std::string::npos) << said_;
    EXPECT_EQ(run({"-f", file("d", node("n1", 8) + bound)}), 1);
    EXPECT_NE(warned_.find("Pod \"default/x\""), std::string::npos) << warned_;
}

// ---- drain

TEST_F(WhatifQuestions, DrainMovesWhatBudgetsAllow) {
    const std::string budget = R"(
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep, namespace: default}
spec: {selector: {matchLabels: {app: web}}}
status: {disruptionsAllowed: 1}
---
)";
    // One after the other: when a has its new place, b may go.
    const std::string pods = pod("a", 2, "n1") + pod("b", 2, "n1") + pod("agent", 1, "n1", "DaemonSet");
    auto said = ask(node("n1", 8) + node("n2", 8) + budget + pods, {"--drain", "n1"});
    EXPECT_EQ(places(said), "a n1 n2, b n1 n2");
    EXPECT_EQ(base::to_text(said.at("drain")),
              R"({"nodes":["n1"],"moved":["default/a","default/b"],"bare":[],"blocked":[],)"
              R"("staying":["default/agent"],"reservations":[]})");
    // Where the first finds none, the second stays.
    said = ask(node("n1", 8) + node("n2", 1) + budget + pods, {"--drain", "n1"});
    EXPECT_EQ(places(said), "a n1 -");
    EXPECT_EQ(base::to_text(said.at("drain").at("blocked")),
              R"([{"pod":"default/b","why":"PodDisruptionBudget default/keep allows no disruption"}])");
    EXPECT_EQ(run({"-f", folder_ + "/dump.yaml", "--drain", "n1", "--exit-code"}), 3);
    EXPECT_NE(said_.find("blocked: default/b: PodDisruptionBudget default/keep allows no disruption"),
              std::string::npos)
        << said_;
}

TEST_F(WhatifQuestions, DrainBySelectorNamesReservationsThatWouldBeLost) {
    const std::string dump =
        node("n1", 8, "b") + node("n2", 8, "b") + node("n3", 8) + pod("a", 2, "n1") + pod("b", 2, "n2", "") + R"(
kind: Reservation
metadata: {name: r1}
spec:
  ttl: "0"
  owners: [{labelSelector: {matchLabels: {app: db}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: 4}}}]}}
status: {phase: Available, nodeName: n2, allocatable: {cpu: 4}}
)";
    const auto said = ask(dump, {"--drain", "-l", "zone=b"});
    EXPECT_EQ(places(said), "a n1 n3, b n2 n3");
    EXPECT_EQ(base::to_text(said.at("drain").at("nodes")), R"(["n1","n2"])");
    EXPECT_EQ(base::to_text(said.at("drain").at("bare")), R"(["default/b"])");
    EXPECT_EQ(base::to_text(said.at("drain").at("reservations")), R"(["r1"])");
    EXPECT_EQ(run({"-f", folder_ + "/dump.yaml", "--drain", "n9"}), 1);
    EXPECT_NE(warned_.find("there is no node \"n9\""), std::string::npos) << warned_;
    EXPECT_EQ(run({"-f", folder_ + "/dump.yaml", "--drain"}), 2);
}

// ---- fit and need

TEST_F(WhatifQuestions, FitCountsHowManyMore) {
    const std::string wish = file("wish.yaml", pod("one", 3, "", ""));
    const auto said = ask(node("n1", 8) + node("n2", 10) + pod("a", 2, "n1"), {"--fit", wish});
    EXPECT_EQ(base::to_text(said.at("fit")),
              R"({"count":5,"all":false,"nodes":{"n1":2,"n2":3},"why":"0/2 nodes are available: 2 Insufficient cpu. )"
              R"(no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."})");
    const auto few = ask(node("n1", 8), {"--fit", file("web.yaml", kDeployment), "--max", "2"});
    EXPECT_EQ(base::to_text(few.at("fit")), R"({"count":2,"all":true,"nodes":{"n1":2},"why":null})");
    const std::string dump = file("d", node("n1", 8));
    EXPECT_EQ(run({"-f", dump, "--fit", wish, "--max", "3", "--exit-code"}), 3);
    EXPECT_EQ(run({"-f", dump, "--fit", wish, "--max", "2", "--exit-code"}), 0);
    EXPECT_EQ(run({"-f", dump, "--fit", wish, "--exit-code"}), 0);
    EXPECT_NE(said_.find("fit: 2 more (2 on n1)"), std::string::npos) << said_;
}

TEST_F(WhatifQuestions, NeedCountsNodesToAdd) {
    const std::string wish = file("wish.yaml", kDeployment);
    const auto said = ask(node("n1", 4), {"--need", wish, "--shape", "cpu=4,memory=8Gi"});
    EXPECT_EQ(base::to_text(said.at("need")), R"({"nodes":2,"enough":true,"refused":0})");
    EXPECT_EQ(said.at("results").as_array().size(), 3u);
    const auto none = ask(node("n1", 16), {"--need", wish, "--shape", "cpu=4,memory=8Gi"});
    EXPECT_EQ(base::to_text(none.at("need")), R"({"nodes":0,"enough":true,"refused":0})");
    EXPECT_EQ(run({"-f", file("d", node("n1", 4)), "--need", wish, "--shape", "cpu=2", "--exit-code"}), 3);
    EXPECT_NE(said_.find("nodes of this shape do not help"), std::string::npos) << said_;
    EXPECT_EQ(run({"-f", folder_ + "/d", "--need", wish}), 2);
    EXPECT_EQ(run({"-f", folder_ + "/d", "--need", wish, "--shape", "cpu=much"}), 1);
    EXPECT_EQ(run({"-f", folder_ + "/d", "--need", wish, "--shape", "cpu=1", "--fit", wish}), 2);
}

// A green answer to a question that was not understood is the worst of all.
TEST_F(WhatifQuestions, WhatNothingIsMadeOfIsSaid) {
    ask(node("n1", 4) + R"(
kind: Pod
metadata: {name: a}
spec: {container: [{name: c}], containers: [{name: c, resource: {requests: {cpu: 100}}}]}
---
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c}, {name: d, resource: {}}]}
---
kind: Deployment
metadata: {name: web}
spec: {replica: 3, template: {spec: {containers: [{name: c}]}}}
---
kind: Pods
metadata: {name: b}
---
apiVersion: example.com/v1
kind: Reservation
metadata: {name: foreign}
)");
    for (const auto* words : {
             "unknown field \"spec.container\": nothing is made of it (Pod default/a)",
             "unknown field \"spec.containers[].resource\": nothing is made of it (Pod default/a and 1 more)",
             "unknown field \"spec.replica\": nothing is made of it (Deployment default/web)",
             "Pod default/a is given 2 times; the last one counts",
             "objects of kind \"Pods\" are ignored: did you mean Pod?",
             "objects of kind \"Reservation\" (example.com/v1) are ignored",
         }) {
        EXPECT_NE(warned_.find(words), std::string::npos) << words << "\n" << warned_;
    }
}

TEST_F(WhatifQuestions, WhereNothingCountsThereIsNoAnswer) {
    EXPECT_EQ(run({"-f", file("pods.yaml", "kind: Pods\nmetadata: {name: a}\n")}), 1);
    EXPECT_NE(warned_.find("there is nothing in it that placement depends on: objects of kind \"Pods\""),
              std::string::npos)
        << warned_;
    EXPECT_EQ(run({"-f", file("list.yaml", "kind: List\nitems: {}\n")}), 1);
    EXPECT_NE(warned_.find("list.yaml: items: {} is not a list"), std::string::npos) << warned_;
    const std::string dump = file("dump.yaml", node("n1", 4));
    const std::string service = file("service.yaml", "kind: Service\nmetadata: {name: s}\n");
    EXPECT_EQ(run({"-f", dump, "--need", service, "--shape", "cpu=4,memory=8Gi"}), 1);
    EXPECT_NE(warned_.find("service.yaml: nothing in it wants a place"), std::string::npos) << warned_;
}

TEST_F(WhatifQuestions, ReservationsNeedNodesToo) {
    const std::string wanted = file("wanted.yaml", R"(
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: kept}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: c, resources: {requests: {cpu: 6, memory: 1Gi}}}]}}
)");
    const JsonObject said = ask(node("n1", 4), {"--need", wanted, "--shape", "cpu=8,memory=32Gi"});
    EXPECT_EQ(said.at("need").at("nodes"), 1);
    EXPECT_EQ(said.at("need").at("enough"), true);
}

}  // namespace
}  // namespace berth::cli
