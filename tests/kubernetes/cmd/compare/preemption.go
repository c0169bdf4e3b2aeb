package main

import (
	"context"
	"fmt"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// Pending pods with a nominated node.
type nominator struct{ pods map[string][]fwk.PodInfo }

func (n *nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (n *nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n *nominator) NominatedPodsForNode(node string) []fwk.PodInfo                { return n.pods[node] }
func (n *nominator) DeleteNominatedPodIfExists(pod *v1.Pod) {
	for node, pods := range n.pods {
		n.pods[node] = slices.DeleteFunc(pods, func(entry fwk.PodInfo) bool { return entry.GetPod().UID == pod.UID })
	}
}

// Who waits for a node where somebody more important makes room waits no longer.
func (n *nominator) yield(node string, to *v1.Pod) {
	n.pods[node] = slices.DeleteFunc(n.pods[node], func(entry fwk.PodInfo) bool {
		return corev1helpers.PodPriority(entry.GetPod()) < corev1helpers.PodPriority(to)
	})
}

func newNominator(pending []*v1.Pod) *nominator {
	out := &nominator{pods: map[string][]fwk.PodInfo{}}
	for _, pod := range pending {
		if node := pod.Status.NominatedNodeName; node != "" && len(pod.Spec.SchedulingGates) == 0 {
			out.pods[node] = append(out.pods[node], must(framework.NewPodInfo(pod)))
		}
	}
	return out
}

// Whom kube-scheduler would evict on each node, and what it says when that helps nowhere.
type evictions struct {
	victims map[string]*extenderv1.Victims
	message string
}

const noClaims = "no new claims to deallocate, preemption: " // DynamicResources is asked first

func (o *oracle) evictions(pod *v1.Pod, state fwk.CycleState, statuses *framework.NodeToStatus, budgets []*policyv1.PodDisruptionBudget) evictions {
	ctx := context.Background()
	args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 100, MinCandidateNodesAbsolute: 1000}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	plugin := must(defaultpreemption.New(ctx, args, o.framework, features))
	out := evictions{victims: map[string]*extenderv1.Victims{}}
	if ok, why := plugin.PodEligibleToPreemptOthers(ctx, pod, statuses.Get(pod.Status.NominatedNodeName)); !ok {
		out.message = noClaims + why
		return out
	}
	nodes := must(statuses.NodesForStatusCode(o.snapshot.NodeInfos(), fwk.Unschedulable))
	var candidates []preemption.Candidate
	left := framework.NewDefaultNodeToStatus()
	if len(nodes) > 0 {
		var err error
		candidates, left, err = plugin.Evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes)))
		if err != nil {
			fmt.Printf("%s/%s: preemption: %v\n", pod.Namespace, pod.Name, err)
		}
	}
	for _, candidate := range candidates {
		out.victims[candidate.Name()] = candidate.Victims()
	}
	if len(candidates) == 0 {
		o.nominated.DeleteNominatedPodIfExists(pod)
		left.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "Preemption is not helpful for scheduling"))
		count := len(must(o.snapshot.NodeInfos().List()))
		out.message = noClaims + (&framework.FitError{Pod: pod, NumAllNodes: count, Diagnosis: framework.Diagnosis{NodeToStatus: left}}).Error()
	}
	return out
}

// What a node's victims cost, the first difference decides; the least is chosen.
func cost(victims *extenderv1.Victims) []int64 {
	sum := int64(0)
	for _, pod := range victims.Pods {
		sum += int64(corev1helpers.PodPriority(pod)) + 1<<31
	}
	return []int64{victims.NumPDBViolations, int64(corev1helpers.PodPriority(victims.Pods[0])), sum, int64(len(victims.Pods)),
		-util.GetEarliestPodStartTime(victims).UnixNano()}
}

func namesOf(victims *extenderv1.Victims) (out []string) {
	for _, pod := range victims.Pods {
		out = append(out, pod.Namespace+"/"+pod.Name)
	}
	sort.Strings(out)
	return out
}

func (e evictions) differences(ours result) (out []string) {
	sort.Strings(ours.Victims)
	if len(ours.Victims) == 0 {
		for node, victims := range e.victims {
			out = append(out, fmt.Sprintf("preemption: kube-scheduler could evict %v on %s, berth evicts nobody (%s)", namesOf(victims), node, ours.Message))
		}
		return out
	}
	chosen := e.victims[ours.Node]
	if chosen == nil {
		return []string{fmt.Sprintf("preemption: berth evicts %v on %s, kube-scheduler nobody there: %s", ours.Victims, ours.Node, e.message)}
	}
	if names := namesOf(chosen); !slices.Equal(names, ours.Victims) {
		out = append(out, fmt.Sprintf("victims on %s: kube-scheduler %v, berth %v", ours.Node, names, ours.Victims))
	}
	for node, victims := range e.victims {
		if slices.Compare(cost(victims), cost(chosen)) < 0 {
			out = append(out, fmt.Sprintf("preemption: %s %v is cheaper than %s %v", node, cost(victims), ours.Node, cost(chosen)))
		}
	}
	return out
}
