package main

import (
	"fmt"
	"math/rand"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Random objects. Few names and values, so that things meet.
type dice struct{ *rand.Rand }

func (d dice) pick(texts ...string) string { return texts[d.Intn(len(texts))] }
func (d dice) chance(part, whole int) bool { return d.Intn(whole) < part }
func (d dice) between(low, high int) int   { return low + d.Intn(high-low+1) }

func pointer[T any](value T) *T { return &value }

var created = metav1.Unix(1_700_000_000, 0)

func meta(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + ns + "-" + name), CreationTimestamp: created}
}

func amount(format string, n int) resource.Quantity {
	return resource.MustParse(fmt.Sprintf(format, n))
}

const (
	gpu       = v1.ResourceName("example.com/gpu")
	hugePages = v1.ResourceName("hugepages-2Mi")
)

func (d dice) namespace() string { return d.pick("default", "default", "default", "prod", "test") }

func (d dice) topologyKey() string {
	return d.pick(v1.LabelTopologyZone, v1.LabelTopologyZone, v1.LabelHostname, v1.LabelHostname, "rack")
}

func (d dice) node(i int) *v1.Node {
	out := &v1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: meta("", fmt.Sprintf("n%d", i))}
	out.Labels = map[string]string{}
	if d.chance(14, 15) {
		out.Labels[v1.LabelHostname] = out.Name
	}
	if d.chance(11, 12) {
		out.Labels[v1.LabelTopologyZone] = d.pick("a", "b", "c")
		out.Labels[v1.LabelTopologyRegion] = "r"
	}
	if d.chance(1, 2) {
		out.Labels["rack"] = d.pick("r1", "r2")
	}
	if d.chance(1, 2) {
		out.Labels["disk"] = d.pick("ssd", "hdd")
	}
	if d.chance(1, 2) {
		out.Labels["gen"] = d.pick("1", "2", "5", "10", "x")
	}
	for i := d.Intn(3); i > 0 && d.chance(1, 2); i-- {
		out.Spec.Taints = append(out.Spec.Taints, d.taint(i))
	}
	out.Spec.Unschedulable = d.chance(1, 25)
	out.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU:    amount("%d", d.between(1, 16)),
		v1.ResourceMemory: amount("%dMi", 256*d.between(4, 128)),
		v1.ResourcePods:   amount("%d", d.pickInt(110, 110, 110, 8, 3)),
	}
	if d.chance(2, 3) {
		out.Status.Allocatable[v1.ResourceEphemeralStorage] = amount("%dGi", d.between(1, 100))
	}
	if d.chance(1, 3) {
		out.Status.Allocatable[gpu] = amount("%d", d.between(0, 4))
	}
	if d.chance(1, 4) {
		out.Status.Allocatable[hugePages] = amount("%dMi", 2*d.between(1, 200))
	}
	if d.chance(1, 40) {
		delete(out.Status.Allocatable, v1.ResourceName(d.pick("cpu", "memory")))
	}
	out.Status.Capacity = out.Status.Allocatable.DeepCopy()
	for _, image := range []string{"web", "db", "big", "tool"} {
		if d.chance(1, 3) {
			names := []string{image + ":latest"}
			if d.chance(1, 2) {
				names = append(names, "example.com/"+image+":v1")
			}
			size := int64(d.pickInt(1, 30, 100, 400, 900, 2500)) << 20
			out.Status.Images = append(out.Status.Images, v1.ContainerImage{Names: names, SizeBytes: size})
		}
	}
	return out
}

func (d dice) pickInt(numbers ...int) int { return numbers[d.Intn(len(numbers))] }

func (d dice) taint(i int) v1.Taint {
	return v1.Taint{Key: fmt.Sprintf("t%d", i), Value: d.pick("", "x", "y"),
		Effect: v1.TaintEffect(d.pick("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"))}
}

func (d dice) toleration() v1.Toleration {
	out := v1.Toleration{Key: d.pick("t0", "t1", "t2", "t1"), Effect: v1.TaintEffect(d.pick("", "NoSchedule", "PreferNoSchedule", "NoExecute"))}
	switch d.Intn(5) {
	case 0:
		out.Operator = v1.TolerationOpExists
		if d.chance(1, 4) {
			out.Key = ""
		}
	case 1, 2:
		out.Operator = v1.TolerationOpEqual
		out.Value = d.pick("", "x", "y")
	case 3:
		out.Value = d.pick("", "x", "y")
	default:
		out.Operator = v1.TolerationOpExists
	}
	return out
}

func (d dice) requests(scale int) v1.ResourceList {
	out := v1.ResourceList{}
	if d.chance(4, 5) {
		out[v1.ResourceCPU] = amount("%dm", d.pickInt(0, 1, 100, 250, 333, 500, 1000, 2500)*scale)
	}
	if d.chance(4, 5) {
		out[v1.ResourceMemory] = resource.MustParse(d.pick("0", "1", "64Mi", "200Mi", "333M", "1Gi", "3Gi", "7.5Gi"))
	}
	if d.chance(1, 6) {
		out[v1.ResourceEphemeralStorage] = amount("%dGi", d.between(0, 20))
	}
	return out
}

func (d dice) container(name string) v1.Container {
	out := v1.Container{Name: name, Image: d.pick("web", "db:latest", "big", "example.com/tool:v1", "other:v2"),
		TerminationMessagePolicy: v1.TerminationMessageReadFile, ImagePullPolicy: v1.PullIfNotPresent}
	out.Resources.Requests = d.requests(1)
	switch d.Intn(8) {
	case 0: // limits alone: the API server makes them requests
		out.Resources.Limits, out.Resources.Requests = out.Resources.Requests, nil
	case 1:
		count := amount("%d", d.between(0, 2))
		out.Resources.Requests[gpu] = count
		out.Resources.Limits = v1.ResourceList{gpu: count}
	case 2:
		size := amount("%dMi", 2*d.between(0, 50))
		out.Resources.Requests[hugePages] = size
		out.Resources.Limits = v1.ResourceList{hugePages: size}
		out.Resources.Requests[v1.ResourceMemory] = resource.MustParse("64Mi")
	}
	for i := d.Intn(3); i > 0 && d.chance(1, 4); i-- {
		port := v1.ContainerPort{ContainerPort: int32(d.pickInt(80, 443, 8080) + i), Protocol: v1.Protocol(d.pick("", "TCP", "UDP"))}
		port.HostPort = port.ContainerPort
		port.HostIP = d.pick("", "", "0.0.0.0", "127.0.0.1", "10.0.0.1")
		out.Ports = append(out.Ports, port)
	}
	return out
}

func expression(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func (d dice) selector() *metav1.LabelSelector {
	switch d.Intn(14) {
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
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": d.pick("a", "a", "b", "c")}}
	}
}

func (d dice) podTerm() v1.PodAffinityTerm {
	out := v1.PodAffinityTerm{LabelSelector: d.selector(), TopologyKey: d.topologyKey()}
	switch d.Intn(12) {
	case 0:
		out.NamespaceSelector = &metav1.LabelSelector{}
	case 1:
		out.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "x"}}
	case 2:
		out.NamespaceSelector = expression("env", metav1.LabelSelectorOpNotIn, "x")
	case 3, 4:
		out.Namespaces = []string{"default", "prod"}
	case 5:
		if out.LabelSelector != nil {
			out.MatchLabelKeys = []string{"version"}
		}
	case 6:
		if out.LabelSelector != nil {
			out.MismatchLabelKeys = []string{"version"}
		}
	}
	return out
}

func some[T any](d dice, part, whole int, make func() T) (out []T) {
	if d.chance(part, whole) {
		for i := d.between(1, 2); i > 0; i-- {
			out = append(out, make())
		}
	}
	return out
}

func (d dice) weightedPodTerm() v1.WeightedPodAffinityTerm {
	return v1.WeightedPodAffinityTerm{Weight: int32(d.between(1, 100)), PodAffinityTerm: d.podTerm()}
}

func (d dice) nodeRequirement() v1.NodeSelectorRequirement {
	out := v1.NodeSelectorRequirement{Key: d.pick("disk", "rack", "gen", v1.LabelTopologyZone)}
	switch d.Intn(7) {
	case 0, 1:
		out.Operator, out.Values = v1.NodeSelectorOpIn, []string{d.pick("ssd", "r1", "a"), d.pick("hdd", "r2", "5")}
	case 2:
		out.Operator, out.Values = v1.NodeSelectorOpNotIn, []string{d.pick("ssd", "r1", "a", "1")}
	case 3:
		out.Operator = v1.NodeSelectorOpExists
	case 4:
		out.Operator = v1.NodeSelectorOpDoesNotExist
	default:
		out.Key, out.Operator, out.Values = "gen", v1.NodeSelectorOperator(d.pick("Gt", "Lt")), []string{d.pick("0", "1", "4", "9")}
	}
	return out
}

func (d dice) nodeTerm() v1.NodeSelectorTerm {
	out := v1.NodeSelectorTerm{MatchExpressions: some(d, 4, 5, d.nodeRequirement)}
	if d.chance(1, 6) {
		out.MatchFields = []v1.NodeSelectorRequirement{{Key: "metadata.name",
			Operator: v1.NodeSelectorOperator(d.pick("In", "In", "NotIn")), Values: []string{fmt.Sprintf("n%d", d.Intn(6))}}}
	}
	return out
}

func (d dice) preferredNode() v1.PreferredSchedulingTerm {
	return v1.PreferredSchedulingTerm{Weight: int32(d.between(1, 100)), Preference: d.nodeTerm()}
}

func (d dice) affinity() *v1.Affinity {
	out := &v1.Affinity{}
	if d.chance(1, 3) {
		out.NodeAffinity = &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: some(d, 2, 3, d.preferredNode)}
		if terms := some(d, 2, 3, d.nodeTerm); terms != nil {
			out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: terms}
		}
	}
	if d.chance(1, 3) {
		out.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: some(d, 1, 3, d.podTerm),
			PreferredDuringSchedulingIgnoredDuringExecution: some(d, 1, 2, d.weightedPodTerm)}
	}
	if d.chance(1, 3) {
		out.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: some(d, 1, 3, d.podTerm),
			PreferredDuringSchedulingIgnoredDuringExecution: some(d, 1, 2, d.weightedPodTerm)}
	}
	return out
}

func (d dice) constraint() v1.TopologySpreadConstraint {
	out := v1.TopologySpreadConstraint{MaxSkew: int32(d.between(1, 3)), TopologyKey: d.topologyKey(), LabelSelector: d.selector(),
		WhenUnsatisfiable: v1.UnsatisfiableConstraintAction(d.pick("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"))}
	if d.chance(1, 4) && out.WhenUnsatisfiable == v1.DoNotSchedule {
		out.MinDomains = pointer(int32(d.between(1, 4)))
	}
	if d.chance(1, 3) {
		out.NodeAffinityPolicy = pointer(v1.NodeInclusionPolicy(d.pick("Honor", "Ignore")))
	}
	if d.chance(1, 3) {
		out.NodeTaintsPolicy = pointer(v1.NodeInclusionPolicy(d.pick("Honor", "Ignore")))
	}
	if d.chance(1, 4) && out.LabelSelector != nil {
		out.MatchLabelKeys = []string{"version"}
	}
	return out
}

func (d dice) pod(name string) *v1.Pod {
	out := &v1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: meta(d.namespace(), name)}
	out.Labels = map[string]string{"app": d.pick("a", "a", "b", "c")}
	if d.chance(1, 2) {
		out.Labels["tier"] = d.pick("x", "y")
	}
	if d.chance(1, 2) {
		out.Labels["version"] = d.pick("1", "2")
	}
	for i := d.between(1, 2); i > 0; i-- {
		out.Spec.Containers = append(out.Spec.Containers, d.container(fmt.Sprintf("c%d", i)))
	}
	for i := d.Intn(3); i > 0 && d.chance(1, 3); i-- {
		init := d.container(fmt.Sprintf("i%d", i))
		if d.chance(1, 2) {
			init.RestartPolicy = pointer(v1.ContainerRestartPolicyAlways)
		}
		out.Spec.InitContainers = append(out.Spec.InitContainers, init)
	}
	if d.chance(1, 10) {
		out.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: amount("%dm", d.between(0, 300)), v1.ResourceMemory: resource.MustParse("50Mi")}
	}
	if d.chance(1, 12) { // at least what its containers ask for together; kube-scheduler may add overhead to it again and again
		out.Spec.Overhead = nil
		out.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceCPU: amount("%d", d.between(10, 14)), v1.ResourceMemory: amount("%dGi", d.between(20, 32))}}
		if d.chance(1, 2) {
			delete(out.Spec.Resources.Requests, v1.ResourceName(d.pick("cpu", "memory")))
		}
		if d.chance(1, 3) {
			out.Spec.Resources.Limits, out.Spec.Resources.Requests = out.Spec.Resources.Requests, nil
		}
	}
	if d.chance(1, 2) {
		out.Spec.Affinity = d.affinity()
	}
	for i := d.Intn(3); i > 0 && d.chance(1, 2); i-- {
		out.Spec.TopologySpreadConstraints = append(out.Spec.TopologySpreadConstraints, d.constraint())
	}
	if d.chance(1, 8) {
		out.Spec.NodeSelector = map[string]string{"disk": d.pick("ssd", "hdd")}
	}
	out.Spec.Tolerations = some(d, 1, 3, d.toleration)
	if d.chance(1, 3) {
		kind := d.pick("ReplicaSet", "StatefulSet", "ReplicationController")
		version := "apps/v1"
		if kind == "ReplicationController" {
			version = "v1"
		}
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "w", UID: "w", Controller: pointer(true)}}
	}
	return out
}

// As a kubelet has it: running, sometimes ending, sometimes being resized.
func (d dice) settle(pod *v1.Pod, node string) {
	pod.Spec.NodeName = node
	pod.Status.Phase = v1.PodRunning
	pod.Spec.TopologySpreadConstraints = nil
	if d.chance(1, 6) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = pointer(metav1.Unix(1_700_000_100, 0)), pointer(int64(30))
	}
	if d.chance(1, 6) {
		first := pod.Spec.Containers[0]
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: first.Name, AllocatedResources: d.requests(1),
			Resources: &v1.ResourceRequirements{Requests: d.requests(2)}}}
	}
}

func (d dice) budgets() (out []*policyv1.PodDisruptionBudget) {
	for i := d.Intn(3); i > 0; i-- {
		entry := &policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{Kind: "PodDisruptionBudget", APIVersion: "policy/v1"},
			ObjectMeta: meta(d.namespace(), fmt.Sprintf("b%d", i))}
		entry.Spec.Selector = d.selector()
		entry.Status.DisruptionsAllowed = int32(d.Intn(3))
		if d.chance(1, 3) {
			entry.Status.DisruptedPods = map[string]metav1.Time{fmt.Sprintf("p%d", d.Intn(10)): created}
		}
		out = append(out, entry)
	}
	return out
}

// Takes from a pod what no cluster would have: a port or a ReadWriteOncePod claim that another pod on a node has. What
// kube-scheduler frees by evicting one of them is left to chance.
func tidy(pod *v1.Pod, taken map[string]bool) {
	mine := []string{}
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for _, port := range list[i].Ports {
				mine = append(mine, fmt.Sprintf("%s:%d", pod.Spec.NodeName, port.HostPort))
			}
		}
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			mine = append(mine, pod.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, thing := range mine {
		if taken[thing] {
			for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
				for i := range list {
					list[i].Ports = nil
				}
			}
			pod.Spec.Volumes = nil
			return
		}
	}
	for _, thing := range mine {
		taken[thing] = true
	}
}

// What docs/reference/differences.md has about evictions: terminating pods beside hard spreading.
func soften(pod *v1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		pod.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable = v1.ScheduleAnyway
		pod.Spec.TopologySpreadConstraints[i].MinDomains = nil
	}
}

// An empty selector counts nobody, but for a pod that is nominated.
func narrow(pod *v1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		selector := pod.Spec.TopologySpreadConstraints[i].LabelSelector
		if selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			selector.MatchLabels = map[string]string{"app": "a"}
		}
	}
}

// A pod on a node, whom others may evict; no two began at the same time, and one has not begun.
func (d dice) rank(pod *v1.Pod, i int) {
	pod.Spec.Priority = pointer(int32(d.pickInt(-5, 0, 0, 0, 10, 100)))
	if i > 0 { // of several that have not begun any may go
		pod.Status.StartTime = pointer(metav1.Unix(1_700_000_000+int64((i*7)%26), 0))
	}
}

// A pod that may evict others.
func (d dice) aspire(pod *v1.Pod, nodes []*v1.Node) {
	pod.Spec.Priority = pointer(int32(d.pickInt(0, 5, 50, 1000)))
	if d.chance(1, 8) {
		pod.Spec.PreemptionPolicy = pointer(v1.PreemptNever)
	}
	if d.chance(1, 6) {
		pod.Status.NominatedNodeName = nodes[d.Intn(len(nodes))].Name
		pod.Spec.Affinity, pod.Spec.Volumes = nil, nil // overlooked in a nominated pod where no other pod has such
	}
	if d.chance(1, 2) { // more than is free, on most nodes
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: amount("%d", d.between(1, 12))}
		pod.Spec.Containers[0].Resources.Limits = nil
	}
}
