package main

import (
	"context"
	"fmt"
	"sort"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	core "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	podstrategy "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// What the API server stores for a pod: defaults, and keys merged into selectors. An error: it would refuse the pod.
func admitted(pod *v1.Pod) (*v1.Pod, error) {
	out := pod.DeepCopy()
	legacyscheme.Scheme.Default(out)
	internal := &core.Pod{}
	if err := legacyscheme.Scheme.Convert(out, internal, nil); err != nil {
		return nil, err
	}
	ctx := genericapirequest.WithNamespace(context.Background(), pod.Namespace)
	podstrategy.Strategy.PrepareForCreate(ctx, internal)
	bound := internal.Spec.NodeName
	internal.Spec.NodeName = ""
	if errs := podstrategy.Strategy.Validate(ctx, internal); len(errs) > 0 && pod.DeletionTimestamp == nil {
		return nil, errs.ToAggregate()
	}
	internal.Spec.NodeName = bound
	back := &v1.Pod{}
	if err := legacyscheme.Scheme.Convert(internal, back, nil); err != nil {
		return nil, err
	}
	back.Status, back.TypeMeta, back.ObjectMeta = out.Status, out.TypeMeta, out.ObjectMeta
	return back, nil
}

// kube-scheduler's default profile over one cluster.
type oracle struct {
	framework framework.Framework
	cache     schedulercache.Cache
	snapshot  *schedulercache.Snapshot
	nominated *nominator
	budgets   []*policyv1.PodDisruptionBudget
	stop      func()
}

func defaultProfile() *config.KubeSchedulerProfile {
	profile := must(latest.Default()).Profiles[0]
	// Claims on devices are not part of this comparison, and their plugin wants a cluster of its own.
	kept := profile.Plugins.MultiPoint.Enabled[:0]
	for _, plugin := range profile.Plugins.MultiPoint.Enabled {
		if plugin.Name != names.DynamicResources {
			kept = append(kept, plugin)
		}
	}
	profile.Plugins.MultiPoint.Enabled = kept
	return &profile
}

func newOracle(world *cluster) *oracle {
	ctx, stop := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	add := func(to cache.SharedIndexInformer, object any) { must(0, to.GetIndexer().Add(object)) }
	for _, entry := range world.services {
		add(factory.Core().V1().Services().Informer(), entry)
	}
	for _, entry := range world.controllers {
		add(factory.Core().V1().ReplicationControllers().Informer(), entry)
	}
	for _, entry := range world.replicaSets {
		add(factory.Apps().V1().ReplicaSets().Informer(), entry)
	}
	for _, entry := range world.statefulSets {
		add(factory.Apps().V1().StatefulSets().Informer(), entry)
	}
	for _, entry := range world.namespaces {
		add(factory.Core().V1().Namespaces().Informer(), entry)
	}
	addStorage(factory, world.storage, add)
	for _, node := range world.nodes {
		add(factory.Core().V1().Nodes().Informer(), node)
	}
	out := &oracle{stop: stop, cache: schedulercache.New(ctx, 0, nil), snapshot: schedulercache.NewEmptySnapshot(),
		nominated: newNominator(world.pending), budgets: world.budgets}
	for _, node := range world.nodes {
		out.cache.AddNode(klog.Background(), node)
	}
	for _, pod := range world.placed {
		must(0, out.cache.AddPod(klog.Background(), pod))
	}
	made := must(frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), world.profile,
		frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithSnapshotSharedLister(out.snapshot),
		frameworkruntime.WithPodNominator(out.nominated),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithClientSet(fake.NewSimpleClientset()), frameworkruntime.WithParallelism(1)))
	out.framework = made
	return out
}

func addStorage(factory informers.SharedInformerFactory, from *storage, add func(cache.SharedIndexInformer, any)) {
	for _, entry := range from.classes {
		add(factory.Storage().V1().StorageClasses().Informer(), entry)
	}
	for _, entry := range from.volumes {
		add(factory.Core().V1().PersistentVolumes().Informer(), entry)
	}
	for _, entry := range from.claims {
		add(factory.Core().V1().PersistentVolumeClaims().Informer(), entry)
	}
	for _, entry := range from.nodes {
		add(factory.Storage().V1().CSINodes().Informer(), entry)
	}
	for _, entry := range from.drivers {
		add(factory.Storage().V1().CSIDrivers().Informer(), entry)
	}
	for _, entry := range from.capacities {
		add(factory.Storage().V1().CSIStorageCapacities().Informer(), entry)
	}
	for _, entry := range from.attachments {
		add(factory.Storage().V1().VolumeAttachments().Informer(), entry)
	}
}

func (o *oracle) close() {
	o.framework.Close()
	o.stop()
}

func (o *oracle) place(pod *v1.Pod, node string) {
	placed := pod.DeepCopy()
	placed.Spec.NodeName = node
	o.nominated.DeleteNominatedPodIfExists(pod)
	must(0, o.cache.AddPod(klog.Background(), placed))
}

// Victims are gone for the next decisions.
func (o *oracle) evict(victims []*v1.Pod, node string, by *v1.Pod) {
	o.nominated.yield(node, by)
	for _, pod := range victims {
		must(0, o.cache.RemovePod(klog.Background(), pod))
	}
}

// The answer of one of the two schedulers about one pod.
type answer struct {
	Feasible []string            `json:"feasible"`
	Scores   map[string]int64    `json:"scores"`
	Rejected map[string][]string `json:"rejected"`
	parts    map[string]string   // node -> the plugins' parts of its score
	message  string
	fails    string // why it could not be scored
	evictions
}

func (o *oracle) ask(pod *v1.Pod) answer {
	ctx := context.Background()
	out := answer{Feasible: []string{}, Scores: map[string]int64{}, Rejected: map[string][]string{}, parts: map[string]string{}}
	state := framework.NewCycleState()
	must(0, o.cache.UpdateSnapshot(klog.Background(), o.snapshot))
	infos := must(o.snapshot.NodeInfos().List())
	if len(infos) == 0 {
		out.message = "no nodes available to schedule pods"
		return out
	}
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	narrowed, status, _ := o.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		for _, info := range infos {
			out.Rejected[info.Node().Name] = status.Reasons()
		}
		diagnosis.PreFilterMsg = status.Message()
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		o.refuse(pod, state, diagnosis, &out)
		return out
	}
	var feasible []fwk.NodeInfo
	for _, info := range infos {
		name := info.Node().Name
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			out.Rejected[name] = []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", names.NodeAffinity)}
			diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, out.Rejected[name]...))
			continue
		}
		if refused := o.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, info); !refused.IsSuccess() {
			out.Rejected[name] = refused.Reasons()
			diagnosis.NodeToStatus.Set(name, refused)
			continue
		}
		feasible = append(feasible, info)
		out.Feasible = append(out.Feasible, name)
	}
	sort.Strings(out.Feasible)
	if len(feasible) > 0 {
		o.score(ctx, state, pod, feasible, &out)
	} else {
		o.refuse(pod, state, diagnosis, &out)
	}
	return out
}

func (o *oracle) refuse(pod *v1.Pod, state fwk.CycleState, diagnosis framework.Diagnosis, out *answer) {
	out.evictions = o.evictions(pod, state, diagnosis.NodeToStatus, o.budgets)
	diagnosis.PostFilterMsg = out.evictions.message
	out.message = (&framework.FitError{Pod: pod, NumAllNodes: len(out.Rejected), Diagnosis: diagnosis}).Error()
}

func (o *oracle) score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, out *answer) {
	if status := o.framework.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		out.fails = status.Message()
		return
	}
	scores, status := o.framework.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		out.fails = status.Message()
		return
	}
	for _, entry := range scores {
		out.Scores[entry.Name] = entry.TotalScore
		text := ""
		for _, part := range entry.Scores {
			if part.Score != 0 {
				text += fmt.Sprintf(" %s=%d", part.Name, part.Score)
			}
		}
		out.parts[entry.Name] = text
	}
}

func init() { metrics.Register() }
