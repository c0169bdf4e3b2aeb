package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// A cluster from a file as `kubectl get ... -o yaml` writes it: several documents, lists. Kinds that the scheduler does not
// look at are left out.
type reader struct {
	out        *cluster
	priorities map[string]*schedulingv1.PriorityClass
	pods       []*v1.Pod
}

func (r *reader) take(raw []byte) error {
	kind := metav1.TypeMeta{}
	if err := yaml.Unmarshal(raw, &kind); err != nil {
		return err
	}
	if kind.Kind == "List" {
		list := v1.List{}
		if err := yaml.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, item := range list.Items {
			if err := r.take(item.Raw); err != nil {
				return err
			}
		}
		return nil
	}
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kind.Kind, err)
	}
	r.put(object)
	return nil
}

func (r *reader) put(object runtime.Object) {
	legacyscheme.Scheme.Default(object)
	out := r.out
	switch entry := object.(type) {
	case *v1.Pod:
		r.pods = append(r.pods, entry)
	case *v1.Node:
		out.nodes = append(out.nodes, entry)
	case *v1.Namespace:
		out.namespaces = append(out.namespaces, entry)
	case *v1.Service:
		out.services = append(out.services, entry)
	case *v1.ReplicationController:
		out.controllers = append(out.controllers, entry)
	case *appsv1.ReplicaSet:
		out.replicaSets = append(out.replicaSets, entry)
	case *appsv1.StatefulSet:
		out.statefulSets = append(out.statefulSets, entry)
	case *v1.PersistentVolume:
		out.storage.volumes = append(out.storage.volumes, entry)
	case *v1.PersistentVolumeClaim:
		out.storage.claims = append(out.storage.claims, entry)
	case *storagev1.StorageClass:
		out.storage.classes = append(out.storage.classes, entry)
	case *storagev1.CSINode:
		out.storage.nodes = append(out.storage.nodes, entry)
	case *storagev1.CSIDriver:
		out.storage.drivers = append(out.storage.drivers, entry)
	case *storagev1.CSIStorageCapacity:
		out.storage.capacities = append(out.storage.capacities, entry)
	case *storagev1.VolumeAttachment:
		out.storage.attachments = append(out.storage.attachments, entry)
	case *policyv1.PodDisruptionBudget:
		out.budgets = append(out.budgets, entry)
	case *schedulingv1.PriorityClass:
		r.priorities[entry.Name] = entry
	}
}

// As the API server's admission would, for a pod that has no priority yet.
func (r *reader) prioritize(pod *v1.Pod) {
	if pod.Spec.Priority != nil {
		return
	}
	class := r.priorities[pod.Spec.PriorityClassName]
	for _, other := range r.priorities {
		if pod.Spec.PriorityClassName == "" && other.GlobalDefault {
			class = other
		}
	}
	if class == nil {
		return
	}
	pod.Spec.Priority = &class.Value
	if class.PreemptionPolicy != nil && pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = class.PreemptionPolicy
	}
}

func (r *reader) settlePods() {
	for i, pod := range r.pods {
		if pod.Namespace == "" {
			pod.Namespace = "default"
		}
		if pod.UID == "" {
			pod.UID = types.UID(fmt.Sprintf("pod-%d", i))
		}
		r.prioritize(pod)
		stored, err := admitted(pod)
		if err != nil {
			fmt.Printf("%s/%s: the API server would refuse it: %v\n", pod.Namespace, pod.Name, err)
			stored = pod
		}
		switch {
		case pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		case pod.Spec.NodeName != "":
			r.out.placed = append(r.out.placed, stored)
		case pod.DeletionTimestamp == nil:
			r.out.pending = append(r.out.pending, stored)
		}
	}
}

func readCluster(text []byte) (*cluster, error) {
	r := reader{out: &cluster{profile: defaultProfile(), storage: &storage{}}, priorities: map[string]*schedulingv1.PriorityClass{}}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && len(bytes.TrimSpace(raw)) > 0 {
			raw, err = yaml.ToJSON(raw)
		}
		if err == nil && len(bytes.TrimSpace(raw)) > 0 && string(raw) != "null" {
			err = r.take(raw)
		}
		if err != nil {
			return nil, err
		}
	}
	r.settlePods()
	return r.out, nil
}

func compareFile(path string) (asked int, found []string) {
	text := must(os.ReadFile(path))
	world, err := readCluster(text)
	if err != nil {
		return 0, []string{err.Error()}
	}
	return compareClusters(world, text)
}

func compareFiles(paths []string) (code int) {
	for _, path := range paths {
		asked, found := compareFile(path)
		for _, line := range found {
			fmt.Printf("%s: %s\n", path, line)
			code = 1
		}
		fmt.Printf("%s: %d decisions, %d differences\n", path, asked, len(found))
	}
	return code
}
