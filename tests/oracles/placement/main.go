// What kube-scheduler's PodTopologySpread and InterPodAffinity plugins answer on random clusters: one JSON object a line,
// {"objects": the cluster, "asks": [{"pod", "spread", "affinity", "scored", "spreadScores", "affinityScores"}]}.
// A strike is the plugin's reason, with "!" before it when no eviction could help; the scores are over the nodes in
// "scored".
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/util/workqueue"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
)

const (
	clusters = 30
	asks     = 12
)

var random = rand.New(rand.NewSource(1))

func pick(texts ...string) string { return texts[random.Intn(len(texts))] }
func chance(part, whole int) bool { return random.Intn(whole) < part }
func between(low, high int) int   { return low + random.Intn(high-low+1) }
func pointer[T any](value T) *T   { return &value }
func meta(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + name)}
}

func topologyKey() string {
	return pick(v1.LabelTopologyZone, v1.LabelTopologyZone, v1.LabelHostname, v1.LabelHostname, "rack")
}
func namespace() string { return pick("default", "default", "default", "default", "prod", "test") }

func node(i int) *v1.Node {
	out := &v1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: meta("", fmt.Sprintf("n%d", i))}
	out.Labels = map[string]string{}
	if chance(11, 12) {
		out.Labels[v1.LabelHostname] = out.Name
		if chance(1, 10) {
			out.Labels[v1.LabelHostname] = "shared"
		}
	}
	if chance(11, 12) {
		out.Labels[v1.LabelTopologyZone] = pick("a", "b", "c", "")
	}
	if chance(1, 2) {
		out.Labels["rack"] = pick("r1", "r2")
	}
	if chance(1, 2) {
		out.Labels["disk"] = pick("ssd", "hdd")
	}
	if chance(1, 4) {
		out.Spec.Taints = []v1.Taint{{Key: "gpu", Effect: v1.TaintEffect(pick("NoSchedule", "PreferNoSchedule", "NoExecute"))}}
	}
	return out
}

func expression(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func selector() *metav1.LabelSelector {
	switch random.Intn(14) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return expression("app", metav1.LabelSelectorOpIn, "a", "c")
	case 3:
		return expression("app", metav1.LabelSelectorOpNotIn, "a")
	case 4:
		return expression("tier", metav1.LabelSelectorOpExists)
	case 5:
		return expression("tier", metav1.LabelSelectorOpDoesNotExist)
	case 6:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a", "tier": "x"}}
	default:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick("a", "a", "b", "c")}}
	}
}

func namespaceSelector() *metav1.LabelSelector {
	switch random.Intn(12) {
	case 0:
		return &metav1.LabelSelector{}
	case 1:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"env": "x"}}
	case 2:
		return expression("env", metav1.LabelSelectorOpNotIn, "x")
	case 3:
		return expression("env", metav1.LabelSelectorOpExists)
	case 4:
		return expression("env", metav1.LabelSelectorOpDoesNotExist)
	default:
		return nil
	}
}

func term() v1.PodAffinityTerm {
	out := v1.PodAffinityTerm{LabelSelector: selector(), TopologyKey: topologyKey(), NamespaceSelector: namespaceSelector()}
	if chance(1, 4) {
		out.Namespaces = []string{"default", "prod"}
	}
	return out
}

func some[T any](make func() T) (out []T) {
	if chance(1, 3) {
		for i := between(1, 2); i > 0; i-- {
			out = append(out, make())
		}
	}
	return out
}

func weighted() v1.WeightedPodAffinityTerm {
	return v1.WeightedPodAffinityTerm{Weight: int32(between(1, 100)), PodAffinityTerm: term()}
}

func constraint() v1.TopologySpreadConstraint {
	out := v1.TopologySpreadConstraint{MaxSkew: int32(between(1, 2)), TopologyKey: topologyKey(), LabelSelector: selector(),
		WhenUnsatisfiable: v1.UnsatisfiableConstraintAction(pick("DoNotSchedule", "ScheduleAnyway"))}
	if chance(1, 4) && out.WhenUnsatisfiable == v1.DoNotSchedule {
		out.MinDomains = pointer(int32(between(1, 4)))
	}
	if chance(1, 3) {
		out.NodeAffinityPolicy = pointer(v1.NodeInclusionPolicy(pick("Honor", "Ignore")))
	}
	if chance(1, 3) {
		out.NodeTaintsPolicy = pointer(v1.NodeInclusionPolicy(pick("Honor", "Ignore")))
	}
	if chance(1, 4) && out.LabelSelector != nil {
		out.MatchLabelKeys = []string{"version"}
	}
	return out
}

func pod(name string) *v1.Pod {
	out := &v1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: meta(namespace(), name)}
	out.Labels = map[string]string{"app": pick("a", "a", "b", "c")}
	if chance(1, 2) {
		out.Labels["tier"] = pick("x", "y")
	}
	if chance(1, 2) {
		out.Labels["version"] = pick("1", "2")
	}
	out.Spec.Containers = []v1.Container{{Name: "c", Image: "i"}}
	out.Spec.Affinity = &v1.Affinity{
		PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: some(term),
			PreferredDuringSchedulingIgnoredDuringExecution: some(weighted)},
		PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: some(term),
			PreferredDuringSchedulingIgnoredDuringExecution: some(weighted)}}
	for i := between(0, 3); i > 0; i-- {
		out.Spec.TopologySpreadConstraints = append(out.Spec.TopologySpreadConstraints, constraint())
	}
	if chance(1, 4) {
		out.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if chance(1, 5) {
		out.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: "disk", Operator: v1.NodeSelectorOperator(pick("Exists", "DoesNotExist"))}}}}}}
	}
	if chance(1, 3) {
		out.Spec.Tolerations = []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}}
	}
	if chance(1, 3) {
		kind := pick("ReplicaSet", "StatefulSet", "ReplicationController")
		version := "apps/v1"
		if kind == "ReplicationController" {
			version = "v1"
		}
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "w", UID: "w", Controller: pointer(true)}}
	}
	return out
}

type oneByOne struct{}

func (oneByOne) Until(_ context.Context, pieces int, do workqueue.DoWorkPieceFunc, _ string) {
	for i := 0; i < pieces; i++ {
		do(i)
	}
}

// Everything the plugins ask of the framework.
type handle struct {
	fwk.Handle
	snapshot  fwk.SharedLister
	informers informers.SharedInformerFactory
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.snapshot }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *handle) Parallelizer() fwk.Parallelizer                         { return oneByOne{} }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

type ask struct {
	Pod            *v1.Pod           `json:"pod"`
	Spread         map[string]string `json:"spread"`
	Affinity       map[string]string `json:"affinity"`
	Scored         []string          `json:"scored"`
	SpreadScores   map[string]int64  `json:"spreadScores"`
	AffinityScores map[string]int64  `json:"affinityScores"`
}

func strikes(plugin fwk.Plugin, pod *v1.Pod, nodes []fwk.NodeInfo) map[string]string {
	ctx := context.Background()
	state := framework.NewCycleState()
	_, status := plugin.(fwk.PreFilterPlugin).PreFilter(ctx, state, pod, nodes)
	out := map[string]string{}
	for _, node := range nodes {
		out[node.Node().Name] = ""
		if status.IsSkip() {
			continue
		}
		if refused := plugin.(fwk.FilterPlugin).Filter(ctx, state, pod, node); !refused.IsSuccess() {
			reason := refused.Message()
			if refused.Code() == fwk.UnschedulableAndUnresolvable {
				reason = "!" + reason
			}
			out[node.Node().Name] = reason
		}
	}
	return out
}

func scores(plugin fwk.Plugin, pod *v1.Pod, nodes []fwk.NodeInfo) map[string]int64 {
	ctx := context.Background()
	state := framework.NewCycleState()
	status := plugin.(fwk.PreScorePlugin).PreScore(ctx, state, pod, nodes)
	out := map[string]int64{}
	list := fwk.NodeScoreList{}
	for _, node := range nodes {
		out[node.Node().Name] = 0
		if status.IsSkip() {
			continue
		}
		score, _ := plugin.(fwk.ScorePlugin).Score(ctx, state, pod, node)
		list = append(list, fwk.NodeScore{Name: node.Node().Name, Score: score})
	}
	if len(list) > 0 {
		plugin.(fwk.ScorePlugin).ScoreExtensions().NormalizeScore(ctx, state, pod, list)
	}
	for _, entry := range list {
		out[entry.Name] = entry.Score
	}
	return out
}

func workloads(factory informers.SharedInformerFactory) (objects []any) {
	for _, name := range []string{"s1", "s2"} {
		if !chance(1, 2) {
			continue
		}
		service := &v1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, ObjectMeta: meta(namespace(), name)}
		service.Spec.Selector = map[string]string{"app": pick("a", "b")}
		if chance(1, 3) {
			service.Spec.Selector["tier"] = "x"
		}
		factory.Core().V1().Services().Informer().GetIndexer().Add(service)
		objects = append(objects, service)
	}
	if chance(1, 2) {
		set := &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{Kind: "ReplicaSet", APIVersion: "apps/v1"}, ObjectMeta: meta("default", "w")}
		set.Spec.Selector = expression("app", metav1.LabelSelectorOpIn, "a", "b")
		factory.Apps().V1().ReplicaSets().Informer().GetIndexer().Add(set)
		objects = append(objects, set)
	}
	if chance(1, 2) {
		set := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{Kind: "StatefulSet", APIVersion: "apps/v1"}, ObjectMeta: meta("default", "w")}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "x"}}
		factory.Apps().V1().StatefulSets().Informer().GetIndexer().Add(set)
		objects = append(objects, set)
	}
	if chance(1, 2) {
		rc := &v1.ReplicationController{TypeMeta: metav1.TypeMeta{Kind: "ReplicationController", APIVersion: "v1"}, ObjectMeta: meta("default", "w")}
		rc.Spec.Selector = map[string]string{"app": pick("a", "b")}
		factory.Core().V1().ReplicationControllers().Informer().GetIndexer().Add(rc)
		objects = append(objects, rc)
	}
	for _, name := range []string{"default", "prod", "test"} {
		if !chance(2, 3) {
			continue
		}
		space := &v1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, ObjectMeta: meta("", name)}
		if chance(2, 3) {
			space.Labels = map[string]string{"env": pick("x", "y")}
		}
		factory.Core().V1().Namespaces().Informer().GetIndexer().Add(space)
		objects = append(objects, space)
	}
	return objects
}

func cluster() map[string]any {
	factory := informers.NewSharedInformerFactory(nil, 0)
	objects := workloads(factory)
	var nodes []*v1.Node
	for i := 0; i < between(3, 9); i++ {
		nodes = append(nodes, node(i))
		objects = append(objects, nodes[i])
	}
	var pods []*v1.Pod
	for i := 0; i < between(5, 30); i++ {
		placed := pod(fmt.Sprintf("p%d", i))
		placed.Spec.TopologySpreadConstraints = nil // nobody asks what spread a placed pod wanted
		if chance(1, 2) {
			placed.Spec.Affinity = nil
		}
		placed.Spec.NodeName = nodes[random.Intn(len(nodes))].Name
		if chance(1, 5) {
			placed.DeletionTimestamp = pointer(metav1.Unix(1, 0))
		}
		pods = append(pods, placed)
		objects = append(objects, placed)
	}
	snapshot := cache.NewSnapshot(pods, nodes)
	h := &handle{snapshot: snapshot, informers: factory}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	spread := must(podtopologyspread.New(context.Background(), &config.PodTopologySpreadArgs{DefaultingType: config.SystemDefaulting}, h, features))
	affinity := must(interpodaffinity.New(context.Background(), &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, h, features))
	infos := must(snapshot.NodeInfos().List())
	var answers []ask
	for i := 0; i < asks; i++ {
		asking := pod("asking")
		var scored []fwk.NodeInfo
		names := []string{}
		for _, info := range infos {
			if chance(4, 5) || info == infos[0] {
				scored = append(scored, info)
				names = append(names, info.Node().Name)
			}
		}
		answers = append(answers, ask{asking, strikes(spread, asking, infos), strikes(affinity, asking, infos), names,
			scores(spread, asking, scored), scores(affinity, asking, scored)})
	}
	return map[string]any{"objects": objects, "asks": answers}
}

// The same without null and empty members of objects, except selectors: an empty one is not an absent one.
func tidy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			member = tidy(member)
			object, isObject := member.(map[string]any)
			empty := isObject && len(object) == 0 && key != "labelSelector" && key != "namespaceSelector"
			if member == nil || empty {
				delete(value, key)
			} else {
				value[key] = member
			}
		}
	case []any:
		for i := range value {
			value[i] = tidy(value[i])
		}
	}
	return value
}

func main() {
	for i := 0; i < clusters; i++ {
		var document map[string]any
		if err := json.Unmarshal(must(json.Marshal(cluster())), &document); err != nil {
			panic(err)
		}
		fmt.Println(string(must(json.Marshal(tidy(document)))))
	}
}
