#include "sched/table_test.h"
#include "sched/volume_plan.h"

namespace berth::sched {
namespace {

std::string claim(const std::string& name, const std::string& spec, const std::string& annotations = "{}") {
    return "---\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + ", namespace: default, uid: uid-" + name +
           ", annotations: " + annotations + "}\nspec: " + spec + "\n";
}

const std::string kBound = "{pv.kubernetes.io/bind-completed: \"yes\"}";

std::string bound_claim(const std::string& name, const std::string& volume, const std::string& mode = "ReadWriteOnce") {
    return claim(name, "{storageClassName: slow, volumeName: " + volume + ", accessModes: [" + mode + "]}", kBound);
}

std::string volume(const std::string& name, const std::string& size, const std::string& more = "",
                   const std::string& labels = "{}") {
    return "---\nkind: PersistentVolume\nmetadata: {name: " + name + ", labels: " + labels +
           "}\nspec: {capacity: {storage: " + size + "}, accessModes: [ReadWriteOnce], storageClassName: local" + more +
           "}\nstatus: {phase: Available}\n";
}

std::string csi(const std::string& driver, const std::string& handle) {
    return ", csi: {driver: " + driver + ", volumeHandle: " + handle + "}";
}

std::string on_zone(const std::string& zone) {
    return ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [" +
           zone + "]}]}]}}";
}

std::string storage_class(const std::string& name, const std::string& provisioner, const std::string& mode,
                          const std::string& more = "") {
    return "---\nkind: StorageClass\nmetadata: {name: " + name + "}\nprovisioner: " + provisioner +
           "\nvolumeBindingMode: " + mode + "\n" + more;
}

// A pod with claims c1, c2, ...
std::string pod(const std::string& name, const std::vector<std::string>& claims, const std::string& node = "") {
    std::string volumes;
    for (const auto& c : claims) volumes += "{name: v-" + c + ", persistentVolumeClaim: {claimName: " + c + "}}, ";
    return "---\nkind: Pod\nmetadata: {name: " + name + ", namespace: default, labels: {app: " + name + "}}\nspec: {" +
           (node.empty() ? "" : "nodeName: " + node + ", ") + "volumes: [" + volumes +
           "], containers: [{name: c, image: i}]}\n";
}

std::string disk_pod(const std::string& name, const std::string& disk, const std::string& node = "") {
    return "---\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {" +
           (node.empty() ? "" : "nodeName: " + node + ", ") + "volumes: [{name: d, " + disk +
           "}], containers: [{name: c}]}\n";
}

class VolumesTest : public testing::Test {
protected:
    VolumesTest() {
        table.put(node_yaml("n1", "{zone: a}") + node_yaml("n2", "{zone: b}"));
        table.put(storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer") +
                  storage_class("slow", "kubernetes.io/no-provisioner", "Immediate") +
                  storage_class("csi", "csi.example.com", "WaitForFirstConsumer"));
    }
    ledger::VolumeSteps steps(const std::string& name, const std::string& node) {
        return volume_steps(table.ask(name), table.ledger, table.ledger.row_of(node));
    }
    TestTable table;
};

TEST_F(VolumesTest, RefusalsBeforeAnyNodeAreToldOnce) {
    table.put(pod("p", {"gone"}));
    EXPECT_EQ(table.why("p"), "0/2 nodes are available: persistentvolumeclaim \"gone\" not found.");
    table.put(claim("gone", "{storageClassName: slow}"));
    EXPECT_EQ(table.why("p"), "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
    table.put(bound_claim("gone", "pv-9"));
    EXPECT_EQ(table.why("p"), "0/2 nodes are available: persistentvolume \"pv-9\" not found.");
    table.put(volume("pv-9", "1Gi"));
    EXPECT_EQ(table.feasible("p"), (Names{"n1", "n2"}));
    // Prebound by hand, but not seen by the controller yet.
    table.put(claim("gone", "{storageClassName: local, volumeName: pv-9}"));
    EXPECT_EQ(table.why("p"), "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
}

TEST_F(VolumesTest, LostAndGoingClaims) {
    table.put(pod("p", {"c"}));
    table.put(
        "kind: PersistentVolumeClaim\nmetadata: {name: c, namespace: default}\nspec: {volumeName: pv-1}\n"
        "status: {phase: Lost}\n");
    EXPECT_EQ(table.why("p"),
              "0/2 nodes are available: persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"pv-1\".");
    table.put(
        "kind: PersistentVolumeClaim\nmetadata: {name: c, namespace: default, "
        "deletionTimestamp: \"2026-01-01T00:00:00Z\"}\nspec: {storageClassName: local}\n");
    EXPECT_EQ(table.why("p"), "0/2 nodes are available: persistentvolumeclaim \"c\" is being deleted.");
}

TEST_F(VolumesTest, EphemeralClaimsBelongToTheirPod) {
    table.put(
        "kind: Pod\nmetadata: {name: p, uid: u1}\nspec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: "
        "{spec: {storageClassName: csi}}}}], containers: [{name: c}]}\n");
    EXPECT_EQ(table.why("p"),
              "0/2 nodes are available: waiting for ephemeral volume controller to create the "
              "persistentvolumeclaim \"p-v\".");
    table.put(claim("p-v", "{storageClassName: csi}"));
    EXPECT_EQ(table.why("p"),
              "0/2 nodes are available: PVC default/p-v was not created for pod default/p (pod is not owner).");
    table.put(
        "kind: PersistentVolumeClaim\nmetadata: {name: p-v, namespace: default, ownerReferences: [{kind: Pod, "
        "name: p, uid: u1, controller: true}]}\nspec: {storageClassName: csi}\n");
    EXPECT_EQ(table.feasible("p"), (Names{"n1", "n2"}));
}

TEST_F(VolumesTest, BoundClaimsGoWhereTheirVolumeIs) {
    table.put(volume("pv-1", "1Gi", on_zone("a")) + bound_claim("c", "pv-1") + pod("p", {"c"}));
    EXPECT_EQ(table.feasible("p"), Names{"n1"});
    table.put(volume("pv-1", "1Gi", on_zone("c")));
    EXPECT_EQ(table.why("p"), "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.");
    EXPECT_TRUE(table.decide("p").strikes.why(0)->unresolvable);
}

TEST_F(VolumesTest, SmallestFittingVolumeFirst) {
    table.put(volume("pv-5", "5Gi", on_zone("a")) + volume("pv-3", "3Gi", on_zone("a")) +
              volume("pv-1", "1Gi", on_zone("a")) + volume("pv-2b", "2Gi", on_zone("b")));
    table.put(
        claim("big", "{storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}") +
        claim("small",
              "{storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}") +
        pod("p", {"big", "small"}));
    EXPECT_EQ(table.feasible("p"), Names{"n1"});  // n2 has one volume for two claims
    EXPECT_EQ(table.why("p"), "0/2 nodes are available: 1 node(s) didn't find available persistent volumes to bind.");
    const ledger::VolumeSteps expected{
        "n1", {{"pv-1", {"default", "small", "uid-small"}}, {"pv-3", {"default", "big", "uid-big"}}}, {}};
    EXPECT_EQ(steps("p", "n1"), expected);
}

TEST_F(VolumesTest, VolumesMustMatchInEveryRespect) {
    table.put(claim("c",
                    "{storageClassName: local, accessModes: [ReadWriteOnce], selector: {matchLabels: {kind: ssd}}, "
                    "resources: {requests: {storage: 1Gi}}}") +
              pod("p", {"c"}));
    table.put(volume("labels", "1Gi"));
    table.put(volume("block", "1Gi", ", volumeMode: Block", "{kind: ssd}"));
    table.put(volume("taken", "1Gi", ", claimRef: {namespace: default, name: other}", "{kind: ssd}"));
    table.put(volume("class", "1Gi", ", volumeAttributesClassName: gold", "{kind: ssd}"));
    table.put(volume("little", "1000Mi", "", "{kind: ssd}"));
    table.put(
        "kind: PersistentVolume\nmetadata: {name: modes, labels: {kind: ssd}}\nspec: {capacity: {storage: 1Gi}, "
        "accessModes: [ReadOnlyMany], storageClassName: local}\nstatus: {phase: Available}\n");
    table.put(
        "kind: PersistentVolume\nmetadata: {name: pending, labels: {kind: ssd}}\nspec: {capacity: {storage: 1Gi}, "
        "accessModes: [ReadWriteOnce], storageClassName: local}\n");
    EXPECT_EQ(table.feasible("p"), Names{});
    table.put(volume("good", "1Gi", "", "{kind: ssd}"));
    EXPECT_EQ(table.feasible("p"), (Names{"n1", "n2"}));
}

TEST_F(VolumesTest, AVolumeKeptForTheClaimDecides) {
    table.put(claim("c", "{storageClassName: local, accessModes: [ReadWriteOnce]}") + pod("p", {"c"}));
    table.put(volume("free", "1Gi"));
    table.put(volume("kept", "9Gi", on_zone("b") + ", claimRef: {namespace: default, name: c}"));
    EXPECT_EQ(table.feasible("p"), Names{"n2"});
    EXPECT_EQ(steps("p", "n2").prebindings.front().volume, "kept");
}

TEST_F(VolumesTest, DecisionsAreSeenByTheNext) {
    table.put(volume("pv-1", "1Gi"));
    table.put(claim("c1", "{storageClassName: local}") + claim("c2", "{storageClassName: local}") + pod("p1", {"c1"}) +
              pod("p2", {"c2"}));
    const auto first = steps("p1", "n1");
    table.ledger.volumes().assume(first);
    EXPECT_EQ(table.feasible("p2"), Names{});
    table.ledger.volumes().give_back(first);
    EXPECT_EQ(table.feasible("p2"), (Names{"n1", "n2"}));
}

TEST_F(VolumesTest, ProvisioningFollowsTopologyAndTheSelectedNode) {
    table.put(storage_class("csi", "csi.example.com", "WaitForFirstConsumer",
                            "allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [b, c]}]}]\n"));
    table.put(claim("c", "{storageClassName: csi, resources: {requests: {storage: 1Gi}}}") + pod("p", {"c"}) +
              pod("q", {"c"}));
    EXPECT_EQ(table.feasible("p"), Names{"n2"});
    const auto made = steps("p", "n2");
    EXPECT_EQ(made.provisionings, (std::vector<model::ClaimRef>{{"default", "c", "uid-c"}}));
    table.put(storage_class("csi", "csi.example.com", "WaitForFirstConsumer"));
    EXPECT_EQ(table.feasible("q"), (Names{"n1", "n2"}));
    table.ledger.volumes().assume(made);
    EXPECT_EQ(table.feasible("q"), Names{"n2"});
}

TEST_F(VolumesTest, StorageCapacityWhereTheDriverAsks) {
    table.put(claim("c", "{storageClassName: csi, resources: {requests: {storage: 10Gi}}}") + pod("p", {"c"}));
    table.put("kind: CSIDriver\nmetadata: {name: csi.example.com}\nspec: {storageCapacity: true}\n");
    EXPECT_EQ(table.why("p"), "0/2 nodes are available: 2 node(s) did not have enough free storage.");
    table.put(
        "kind: CSIStorageCapacity\nmetadata: {name: a, namespace: s}\nstorageClassName: csi\ncapacity: 100Gi\n"
        "maximumVolumeSize: 9Gi\nnodeTopology: {matchLabels: {zone: a}}\n");
    table.put(
        "kind: CSIStorageCapacity\nmetadata: {name: b, namespace: s}\nstorageClassName: csi\ncapacity: 10Gi\n"
        "nodeTopology: {matchLabels: {zone: b}}\n");
    EXPECT_EQ(table.feasible("p"), Names{"n2"});
}

TEST_F(VolumesTest, OncePodClaimsHaveOneUser) {
    table.put(volume("pv-1", "1Gi") + bound_claim("c", "pv-1", "ReadWriteOncePod") + pod("first", {"c"}, "n1") +
              pod("second", {"c"}));
    EXPECT_EQ(table.why("second"),
              "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with "
              "ReadWriteOncePod access mode already in-use by another pod.");
    EXPECT_FALSE(table.decide("second").strikes.why(0)->unresolvable);
    table.ledger.remove_pod("uid-first");
    EXPECT_EQ(table.feasible("second"), (Names{"n1", "n2"}));
}

TEST_F(VolumesTest, AMatchedReservationsClaimsDoNotConflict) {
    table.put(volume("pv-1", "1Gi") + bound_claim("c", "pv-1", "ReadWriteOncePod") + pod("owner", {"c"}) +
              pod("other", {"c"}));
    table.put(
        "kind: Reservation\nmetadata: {name: r}\nspec: {owners: [{labelSelector: {matchLabels: {app: owner}}}], "
        "template: {spec: {containers: [{name: c}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}}\n"
        "status: {phase: Available, nodeName: n1}\n");
    EXPECT_EQ(table.feasible("owner"), (Names{"n1", "n2"}));
    EXPECT_EQ(table.feasible("other"), Names{});
}

TEST_F(VolumesTest, DisksMountedTwice) {
    const auto gce = [](bool read_only) {
        return std::string("gcePersistentDisk: {pdName: d1, readOnly: ") + (read_only ? "true}" : "false}");
    };
    table.put(disk_pod("reader", gce(true), "n1") + disk_pod("r2", gce(true)) + disk_pod("w", gce(false)));
    EXPECT_EQ(table.feasible("r2"), (Names{"n1", "n2"}));
    EXPECT_EQ(table.feasible("w"), Names{"n2"});
    EXPECT_EQ(table.why("w"), "0/2 nodes are available: 1 node(s) had no available disk.");
    table.put(disk_pod("e1", "awsElasticBlockStore: {volumeID: v1, readOnly: true}", "n1") +
              disk_pod("e2", "awsElasticBlockStore: {volumeID: v1, readOnly: true}"));
    EXPECT_EQ(table.feasible("e2"), Names{"n2"});
    table.put(disk_pod("b1", "rbd: {monitors: [a, b], image: i, pool: p}", "n1") +
              disk_pod("b2", "rbd: {monitors: [b, c], image: i, pool: p}") +
              disk_pod("b3", "rbd: {monitors: [c], image: i, pool: p}") +
              disk_pod("b4", "rbd: {monitors: [a], image: i}"));
    EXPECT_EQ(table.feasible("b2"), Names{"n2"});
    EXPECT_EQ(table.feasible("b3"), (Names{"n1", "n2"}));
    EXPECT_EQ(table.feasible("b4"), (Names{"n1", "n2"}));
}

class LimitsTest : public VolumesTest {
protected:
    LimitsTest() { limit(2); }
    void limit(int count) {
        table.put(
            "kind: CSINode\nmetadata: {name: n1}\nspec: {drivers: [{name: csi.example.com, nodeID: x, "
            "allocatable: {count: " +
            std::to_string(count) + "}}]}\n");
    }
    void add(const std::string& name) {
        table.put(volume("pv-" + name, "1Gi", csi("csi.example.com", "h-" + name)) + bound_claim(name, "pv-" + name));
    }
};

TEST_F(LimitsTest, VolumesAreCountedOnce) {
    for (const auto* name : {"a", "b", "c"}) add(name);
    table.put(pod("p1", {"a", "b"}, "n1") + pod("same", {"a", "b"}) + pod("more", {"c"}));
    EXPECT_EQ(table.feasible("same"), (Names{"n1", "n2"}));
    EXPECT_EQ(table.feasible("more"), Names{"n2"});
    EXPECT_EQ(table.why("more"), "0/2 nodes are available: 1 node(s) exceed max volume count.");
    limit(3);
    EXPECT_EQ(table.feasible("more"), (Names{"n1", "n2"}));
}

// Node limit 2; b is listed as attached. A pod with a and b: 1 listed + 2 new = 3.
TEST_F(LimitsTest, AnAttachmentThatNoPodUsesCountsBesideTheNewUse) {
    for (const auto* name : {"a", "b"}) add(name);
    table.put(
        "kind: VolumeAttachment\nmetadata: {name: va}\nspec: {attacher: csi.example.com, nodeName: n1, source: "
        "{persistentVolumeName: pv-b}}\n");
    table.put(pod("one", {"a"}) + pod("both", {"a", "b"}));
    EXPECT_EQ(table.feasible("one"), (Names{"n1", "n2"}));
    EXPECT_EQ(table.feasible("both"), Names{"n2"});
    table.put(pod("user", {"b"}, "n1"));  // now a pod there uses it: counted once
    EXPECT_EQ(table.feasible("both"), (Names{"n1", "n2"}));
}

TEST_F(LimitsTest, UnboundClaimsCountForTheirClass) {
    limit(1);
    table.put(claim("u1", "{storageClassName: csi}") + claim("u2", "{storageClassName: csi}") +
              pod("p1", {"u1"}, "n1") + pod("p2", {"u2"}));
    EXPECT_EQ(table.feasible("p2"), Names{"n2"});
}

TEST_F(LimitsTest, AReservationHoldsItsPlaceForItsOwner) {
    limit(1);
    for (const auto* name : {"a", "b"}) add(name);
    table.put(
        "kind: Reservation\nmetadata: {name: r}\nspec: {owners: [{labelSelector: {matchLabels: {app: owner}}}], "
        "template: {spec: {containers: [{name: c}], volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: "
        "{storageClassName: csi}}}}]}}}\nstatus: {phase: Available, nodeName: n1}\n");
    table.put(pod("owner", {"a"}) + pod("other", {"b"}));
    EXPECT_EQ(table.feasible("other"), Names{"n2"});
    EXPECT_EQ(table.feasible("owner"), (Names{"n1", "n2"}));
}

TEST_F(VolumesTest, ZonesOfBoundVolumes) {
    table.put(node_yaml("z1", "{topology.kubernetes.io/zone: z1}") +
              node_yaml("z2", "{topology.kubernetes.io/zone: z2}"));
    table.put(volume("pv-1", "1Gi", "", "{failure-domain.beta.kubernetes.io/zone: z0__z1}") + bound_claim("c", "pv-1") +
              pod("p", {"c"}));
    EXPECT_EQ(table.feasible("p"), (Names{"n1", "n2", "z1"}));  // n1 and n2 say nothing about their zone
    EXPECT_EQ(table.why("p"), "0/4 nodes are available: 1 node(s) had no available volume zone.");
}

TEST_F(VolumesTest, EventsInAnyOrder) {
    table.put(pod("first", {"c"}, "later") + pod("second", {"c"}));  // its node, claim and volume are not known yet
    table.put(bound_claim("c", "pv-1", "ReadWriteOncePod"));
    table.put(volume("pv-1", "1Gi"));
    const std::string in_use =
        " node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another "
        "pod.";
    EXPECT_EQ(table.why("second"), "0/2 nodes are available: 2" + in_use);
    table.put(node_yaml("later"));
    EXPECT_EQ(table.why("second"), "0/3 nodes are available: 3" + in_use);
    table.ledger.remove_node("later");  // and nobody knows whether the pod still runs there
    EXPECT_EQ(table.why("second"), "0/2 nodes are available: 2" + in_use);
    table.ledger.volumes().remove_claim("default/c", "another-uid");  // late, of an earlier claim of that name
    EXPECT_EQ(table.why("second"), "0/2 nodes are available: 2" + in_use);
    table.ledger.volumes().remove_claim("default/c", "uid-c");
    EXPECT_EQ(table.why("second"), "0/2 nodes are available: persistentvolumeclaim \"c\" not found.");
}

}  // namespace
}  // namespace berth::sched
