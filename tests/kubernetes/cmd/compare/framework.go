package main

import (
	"context"
	"fmt"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	out := &oracle{stop: stop, cache: schedulercache.New(ctx, 0, nil), snapshot: schedulercache.NewEmptySnapshot()}
	for _, node := range world.nodes {
		out.cache.AddNode(klog.Background(), node)
	}
	for _, pod := range world.placed {
		must(0, out.cache.AddPod(klog.Background(), pod))
	}
	made := must(frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), world.profile,
		frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithSnapshotSharedLister(out.snapshot),
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
	must(0, o.cache.AddPod(klog.Background(), placed))
}

// The answer of one of the two schedulers about one pod.
type answer struct {
	Feasible []string            `json:"feasible"`
	Scores   map[string]int64    `json:"scores"`
	Rejected map[string][]string `json:"rejected"`
	parts    map[string]string   // node -> the plugins' parts of its score
}

func (o *oracle) ask(pod *v1.Pod) answer {
	ctx := context.Background()
	out := answer{Feasible: []string{}, Scores: map[string]int64{}, Rejected: map[string][]string{}, parts: map[string]string{}}
	state := framework.NewCycleState()
	must(0, o.cache.UpdateSnapshot(klog.Background(), o.snapshot))
	infos := must(o.snapshot.NodeInfos().List())
	narrowed, status, _ := o.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		for _, info := range infos {
			out.Rejected[info.Node().Name] = status.Reasons()
		}
		return out
	}
	var feasible []fwk.NodeInfo
	for _, info := range infos {
		name := info.Node().Name
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			out.Rejected[name] = []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", names.NodeAffinity)}
			continue
		}
		if refused := o.framework.RunFilterPlugins(ctx, state, pod, info); !refused.IsSuccess() {
			out.Rejected[name] = refused.Reasons()
			continue
		}
		feasible = append(feasible, info)
		out.Feasible = append(out.Feasible, name)
	}
	sort.Strings(out.Feasible)
	if len(feasible) > 0 {
		o.score(ctx, state, onContainer(pod), feasible, &out)
	}
	return out
}

// kube-scheduler's Fit score overlooks requests that the pod itself has (its filter and its balance score count them), as
// docs/reference/differences.md says; so such a pod is scored with the same requests on its first container.
func onContainer(pod *v1.Pod) *v1.Pod {
	if pod.Spec.Resources == nil {
		return pod
	}
	out := pod.DeepCopy()
	for i := range out.Spec.Containers {
		zero := v1.ResourceList{v1.ResourceCPU: resource.MustParse("0"), v1.ResourceMemory: resource.MustParse("0")}
		out.Spec.Containers[i].Resources = v1.ResourceRequirements{Requests: zero}
	}
	for i := range out.Spec.InitContainers {
		out.Spec.InitContainers[i].Resources = out.Spec.Containers[0].Resources
	}
	out.Spec.Containers[0].Resources.Requests = pod.Spec.Resources.Requests
	out.Spec.Resources = nil
	return out
}

func (o *oracle) score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, out *answer) {
	if status := o.framework.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		panic(status.AsError())
	}
	scores, status := o.framework.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		panic(status.AsError())
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
