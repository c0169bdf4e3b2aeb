#include "api/node_rules.h"

#include <gtest/gtest.h>

#include "api/test_front.h"

namespace berth::api {
namespace {

std::string pod_text(const std::string& name, const std::string& node, const std::string& more = "") {
    return R"({"metadata":{"name":")" + name + R"("},"spec":{"nodeName":")" + node +
           R"(","containers":[{"name":"c","image":"i"}])" + more + "}}";
}

// Two nodes; "mine" runs on n1, "theirs" on n2, each with a secret, a map and a claim of its own.
class Nodes : public testing::Test {
protected:
    Nodes() {
        for (const auto* node : {"n1", "n2"}) put("/api/v1/nodes", named(node));
        for (const auto* name : {"mine", "theirs"}) {
            const std::string own(name);
            put("/api/v1/namespaces/default/secrets", named(name));
            put("/api/v1/namespaces/default/configmaps", named(name));
            put("/api/v1/namespaces/default/persistentvolumeclaims",
                R"({"metadata":{"name":")" + own +
                    R"("},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
            put("/api/v1/persistentvolumes", R"({"metadata":{"name":"pv-)" + own +
                                                 R"("},"spec":{"capacity":{"storage":"1Gi"},)"
                                                 R"("accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"},)"
                                                 R"("claimRef":{"namespace":"default","name":")" +
                                                 own + R"("}}})");
            const std::string volumes = R"(,"volumes":[{"name":"s","secret":{"secretName":")" + own +
                                        R"("}},{"name":"m","configMap":{"name":")" + own +
                                        R"("}},{"name":"p","persistentVolumeClaim":{"claimName":")" + own + R"("}}])";
            put(kPods, pod_text(own, own == "mine" ? "n1" : "n2", volumes));
        }
        be("n1");
    }

    static std::string named(const std::string& name) { return R"({"metadata":{"name":")" + name + R"("}})"; }
    void be(const std::string& node) { t.peer = {"system:node:" + node, {"system:nodes"}}; }
    void be_admin() { t.peer = {"admin", {"system:masters"}}; }
    void put(const std::string& path, const std::string& body) {
        const auto made = t.ask("POST", path, body);
        ASSERT_EQ(made.code, 201) << path << ": " << made.raw.body;
    }
    int code(const std::string& method, const std::string& path, const std::string& body = "",
             const Pairs& headers = {}) {
        return t.ask(method, path, body, headers).code;
    }
    int watch(const std::string& path) { return t.send("GET", path)->answered->status; }

    TestFront t;
};

TEST_F(Nodes, ReadOnlyTheirOwnNode) {
    EXPECT_EQ(code("GET", "/api/v1/nodes/n1"), 200);
    EXPECT_EQ(code("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1"), 200);
    EXPECT_EQ(watch("/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dn1"), 200);
    EXPECT_EQ(code("GET", "/api/v1/nodes/n2"), 403);
    EXPECT_EQ(code("GET", "/api/v1/nodes"), 403);
    EXPECT_EQ(watch("/api/v1/nodes?watch=1"), 403);
    EXPECT_EQ(code("GET", "/api/v1/nodes?fieldSelector=metadata.name!%3Dn1"), 403);
}

TEST_F(Nodes, WriteWhatTheirAgentSaysOfThemAndOfNobodyElse) {
    const std::string topologies = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies";
    const std::string metrics = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
    const std::string slos = "/apis/slo.koordinator.sh/v1alpha1/nodeslos";
    const std::string devices = "/apis/scheduling.koordinator.sh/v1alpha1/devices";
    const auto topology = [](const std::string& name) {
        return R"({"metadata":{"name":")" + name + R"("},"topologyPolicies":["None"],"zones":[]})";
    };
    EXPECT_EQ(code("POST", topologies, topology("n1")), 201);
    EXPECT_EQ(code("POST", topologies, topology("n2")), 403);
    for (const auto& path : {metrics, devices}) {
        EXPECT_EQ(code("POST", path, named("n1")), 201) << path;
        EXPECT_EQ(code("POST", path, named("n2")), 403) << path;
        EXPECT_EQ(code("PATCH", path + "/n2", R"({"metadata":{"labels":{"a":"b"}}})", kMerge), 403) << path;
        EXPECT_EQ(code("DELETE", path + "/n1"), 403) << path;
    }
    EXPECT_EQ(code("PATCH", metrics + "/n1/status", R"({"status":{"updateTime":"2026-01-01T00:00:00Z"}})", kMerge),
              200);
    EXPECT_EQ(code("PATCH", metrics + "/n2/status", R"({"status":{}})", kMerge), 403);
    EXPECT_EQ(code("GET", topologies + "?fieldSelector=metadata.name%3Dn1"), 200);
    EXPECT_EQ(code("GET", topologies), 403);
    EXPECT_EQ(code("POST", slos, named("n1")), 403) << "how far best-effort pods may go is not the node's to say";
    EXPECT_EQ(code("GET", slos + "/n2"), 403);
    be_admin();
    put(slos, named("n1"));
    be("n1");
    EXPECT_EQ(code("GET", slos + "/n1"), 200);
}

TEST_F(Nodes, WriteOnlyTheirOwnNodeAndLease) {
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1/status", R"({"status":{"phase":"Running"}})", kMerge), 200);
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n2/status", R"({"status":{"phase":"Running"}})", kMerge), 403);
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n2", R"({"metadata":{"labels":{"a":"b"}}})", kMerge), 403);
    EXPECT_EQ(code("DELETE", "/api/v1/nodes/n1"), 403);
    EXPECT_EQ(code("POST", "/api/v1/nodes", named("n3")), 403);
    EXPECT_EQ(code("POST", "/api/v1/nodes", R"({"metadata":{"generateName":"n1"}})"), 403);
    be("n3");
    EXPECT_EQ(code("POST", "/api/v1/nodes", named("n3")), 201);
    const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    EXPECT_EQ(code("POST", leases, named("n3")), 201);
    EXPECT_EQ(code("POST", leases, named("n1")), 403);
    EXPECT_EQ(code("PATCH", leases + "/n3", R"({"spec":{"holderIdentity":"n3"}})", kMerge), 200);
    EXPECT_EQ(code("GET", leases), 403);
    EXPECT_EQ(code("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", named("n3")), 403);
    EXPECT_EQ(code("POST", "/apis/storage.k8s.io/v1/csinodes", R"({"metadata":{"name":"n3"},"spec":{"drivers":[]}})"),
              201);
}

TEST_F(Nodes, SeeOnlyTheirPods) {
    const std::string pods = kPods;
    EXPECT_EQ(code("GET", pods + "/mine"), 200);
    EXPECT_EQ(code("GET", pods + "/theirs"), 403);
    EXPECT_EQ(code("GET", pods + "/nothing"), 403);
    EXPECT_EQ(code("GET", pods), 403);
    EXPECT_EQ(code("GET", "/api/v1/pods"), 403);
    EXPECT_EQ(watch("/api/v1/pods?watch=1"), 403);
    EXPECT_EQ(code("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2"), 403);
    EXPECT_EQ(code("GET", "/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1"), 403);
    EXPECT_EQ(watch("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1"), 200);
    const auto listed = t.ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1");
    ASSERT_EQ(listed.code, 200);
    ASSERT_EQ(listed.json.at("items").as_array().size(), 1U);
    EXPECT_EQ(base::find_string(listed.json.at("items").at(0), {"metadata", "name"}), "mine");
}

TEST_F(Nodes, WriteOnlyTheirPodsStatusAndEndOnlyThem) {
    const std::string pods = kPods, running = R"({"status":{"phase":"Running"}})";
    EXPECT_EQ(code("PATCH", pods + "/mine/status", running, kMerge), 200);
    EXPECT_EQ(code("PATCH", pods + "/theirs/status", running, kMerge), 403);
    EXPECT_EQ(code("PATCH", pods + "/nothing/status", running, kMerge), 404);
    EXPECT_EQ(code("PATCH", pods + "/mine/status", R"({"metadata":{"labels":{"app":"web"}}})", kMerge), 403);
    EXPECT_EQ(code("PATCH", pods + "/mine", R"({"metadata":{"labels":{"app":"web"}}})", kMerge), 403);
    EXPECT_EQ(code("POST", pods, pod_text("another", "n1")), 403);
    EXPECT_EQ(code("POST", pods + "/mine/binding", R"({"target":{"name":"n1"}})"), 403);
    EXPECT_EQ(code("DELETE", pods), 403);
    EXPECT_EQ(code("DELETE", pods + "/theirs?gracePeriodSeconds=0"), 403);
    EXPECT_EQ(code("POST", pods + "/theirs/eviction", "{}"), 403);
    EXPECT_EQ(code("POST", pods + "/mine/eviction?dryRun=All", "{}"), 201);
    EXPECT_EQ(code("DELETE", pods + "/mine?gracePeriodSeconds=0"), 200);
    be_admin();
    EXPECT_EQ(code("GET", pods + "/theirs"), 200);
}

TEST_F(Nodes, ReadOnlyWhatTheirPodsMount) {
    const std::string home = "/api/v1/namespaces/default/";
    for (const std::string kind : {"secrets", "configmaps", "persistentvolumeclaims"}) {
        EXPECT_EQ(code("GET", home + kind + "/mine"), 200) << kind;
        EXPECT_EQ(code("GET", home + kind + "/theirs"), 403) << kind;
        EXPECT_EQ(code("GET", home + kind), 403) << kind;
        EXPECT_EQ(code("GET", "/api/v1/" + kind), 403) << kind;
        EXPECT_EQ(code("DELETE", home + kind + "/mine"), 403) << kind;
    }
    EXPECT_EQ(code("GET", "/api/v1/persistentvolumes/pv-mine"), 200);
    EXPECT_EQ(code("GET", "/api/v1/persistentvolumes/pv-theirs"), 403);
    EXPECT_EQ(watch(home + "secrets?watch=1&fieldSelector=metadata.name%3Dmine"), 200);
    EXPECT_EQ(watch(home + "secrets?watch=1&fieldSelector=metadata.name%3Dtheirs"), 403);
    EXPECT_EQ(watch("/api/v1/secrets?watch=1&fieldSelector=metadata.name%3Dmine"), 403);
    EXPECT_EQ(code("DELETE", kPods + "/mine?gracePeriodSeconds=0"), 200);
    EXPECT_EQ(code("GET", home + "secrets/mine"), 403);
}

TEST_F(Nodes, FindEveryPlaceWhereAPodMentionsThings) {
    be_admin();
    const std::string containers = R"(,"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"by-env","key":"k"}}}],)"
                                   R"("envFrom":[{"configMapRef":{"name":"all-env"}}])";
    std::string pod = pod_text("many", "n1",
                               R"(,"imagePullSecrets":[{"name":"pull"}],"volumes":[{"name":"x","projected":{"sources":)"
                               R"([{"configMap":{"name":"one"}},{"secret":{"name":"two"}}]}},{"name":"scratch",)"
                               R"("ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],)"
                               R"("resources":{"requests":{"storage":"1Gi"}}}}}}])");
    pod.insert(pod.find(R"("image":"i")") + 11, containers);
    put(kPods, pod);
    const auto mounts = [&](const std::string& kind, const std::string& name) {
        return allowed(node_identity("n1"), {"get", "", kind, "", "default", name}, *t.store);
    };
    for (const auto* name : {"pull", "two", "by-env"}) EXPECT_TRUE(mounts("secrets", name)) << name;
    for (const auto* name : {"one", "all-env"}) EXPECT_TRUE(mounts("configmaps", name)) << name;
    EXPECT_TRUE(mounts("persistentvolumeclaims", "many-scratch"));
    EXPECT_FALSE(mounts("secrets", "one"));
    EXPECT_FALSE(mounts("configmaps", "pull"));
    EXPECT_FALSE(allowed(node_identity("n2"), {"get", "", "secrets", "", "default", "pull"}, *t.store));
    EXPECT_FALSE(allowed(node_identity("n1"), {"get", "", "secrets", "", "kube-system", "pull"}, *t.store));
}

TEST_F(Nodes, DoNotBringPodsToThemselves) {
    const auto label = [&](const std::string& key) {
        return code("PATCH", "/api/v1/nodes/n1", R"({"metadata":{"labels":{")" + key + R"(":"x"}}})", kMerge);
    };
    for (const auto* key : {"node-restriction.kubernetes.io/pool", "a.node-restriction.kubernetes.io/pool",
                            "node-role.kubernetes.io/control-plane", "example.k8s.io/x"}) {
        EXPECT_EQ(label(key), 403) << key;
    }
    for (const auto* key : {"kubernetes.io/arch", "topology.kubernetes.io/zone", "node.kubernetes.io/x",
                            "kubelet.kubernetes.io/x", "example.com/pool", "notkubernetes.io/x", "plain"}) {
        EXPECT_EQ(label(key), 200) << key;
    }
    const std::string taint = R"({"spec":{"taints":[{"key":"a","value":"b","effect":"NoSchedule"}]}})";
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1", taint, kMerge), 403);
    const std::string reserve = R"({"metadata":{"annotations":{"node.koordinator.sh/reservation":)"
                                R"("{\"resources\":{\"cpu\":\"1\"}}"}}})";
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1", reserve, kMerge), 403);
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1/status", reserve, kMerge), 403);
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1", R"({"metadata":{"annotations":{"a":"b"}}})", kMerge), 200);
    be_admin();
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1", taint, kMerge), 200);
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1", reserve, kMerge), 200);
    be("n1");
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1", R"({"spec":{"taints":[]}})", kMerge), 403);
    EXPECT_EQ(code("PATCH", "/api/v1/nodes/n1",
                   R"({"metadata":{"annotations":{"node.koordinator.sh/reservation":null}}})", kMerge),
              403);
    be("n4");
    EXPECT_EQ(code("POST", "/api/v1/nodes",
                   R"({"metadata":{"name":"n4","labels":{"node-role.kubernetes.io/control-plane":""}}})"),
              403);
    EXPECT_EQ(code("POST", "/api/v1/nodes",
                   R"({"metadata":{"name":"n4","labels":{"kubernetes.io/hostname":"n4"}},)"
                   R"("spec":{"taints":[{"key":"new","effect":"NoSchedule"}]}})"),
              201);
}

TEST_F(Nodes, TellEventsAndChangeOnlyTheirOwn) {
    const std::string events = "/api/v1/namespaces/default/events";
    const auto event = [](const std::string& name, const std::string& host) {
        return R"({"metadata":{"name":")" + name +
               R"("},"involvedObject":{"kind":"Pod","namespace":"default","name":"mine"},)"
               R"("source":{"component":"kubelet","host":")" +
               host + R"("}})";
    };
    EXPECT_EQ(code("POST", events, event("a", "n1")), 201);
    be("n2");
    EXPECT_EQ(code("POST", events, event("b", "n2")), 201);
    EXPECT_EQ(code("PATCH", events + "/a", R"({"count":2})", kMerge), 403);
    EXPECT_EQ(code("PATCH", events + "/b", R"({"count":2})", kMerge), 200);
    EXPECT_EQ(code("PATCH", "/apis/events.k8s.io/v1/namespaces/default/events/a", R"({"note":"x"})", kMerge), 403);
    EXPECT_EQ(code("GET", events), 403);
}

TEST_F(Nodes, HaveNothingWithoutTheirGroupOrName) {
    t.peer = {"system:node:n1", {}};
    EXPECT_EQ(code("GET", "/api/v1/nodes/n1"), 403);
    t.peer = {"system:node:", {"system:nodes"}};
    EXPECT_EQ(code("GET", kPods), 403);
    t.peer = {"n1", {"system:nodes"}};
    EXPECT_EQ(code("GET", "/api/v1/nodes/n1"), 403);
}

TEST_F(Nodes, AreToldTheSameByAReview) {
    const auto may = [&](const std::string& attributes) {
        const auto answer = t.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                                  R"({"spec":{"resourceAttributes":)" + attributes + "}}");
        return answer.json.at("status").at("allowed").as_bool();
    };
    EXPECT_TRUE(may(R"({"verb":"get","resource":"secrets","namespace":"default","name":"mine"})"));
    EXPECT_FALSE(may(R"({"verb":"get","resource":"secrets","namespace":"default","name":"theirs"})"));
    EXPECT_FALSE(may(R"({"verb":"list","resource":"secrets"})"));
    EXPECT_TRUE(may(R"({"verb":"list","resource":"pods","fieldSelector":{"rawSelector":"spec.nodeName=n1"}})"));
}

// The pod that was looked at when the request was let in need not be the one that is written.
TEST_F(Nodes, AreAskedAgainOnTheHeadThatIsWritten) {
    const auto mine = t.store->head({"pods", "default", "mine"});
    const auto theirs = t.store->head({"pods", "default", "theirs"});
    const Attributes what{"delete", "", "pods", "", "default", "mine"};
    EXPECT_TRUE(node_may_write(node_identity("n1"), what, mine));
    EXPECT_FALSE(node_may_write(node_identity("n1"), what, theirs));
    EXPECT_TRUE(node_may_write(scheduler_identity(), what, theirs));
}

}  // namespace
}  // namespace berth::api
