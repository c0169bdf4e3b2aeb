// Compares Berth with kube-scheduler: random clusters and pods go to kube-scheduler's framework (default profile, every
// node filtered and scored) and to `berth whatif --scores -o json`, and their feasible nodes, scores, reasons, messages and
// victims are held against each other. The last line is "N decisions, N differences"; the exit code is 1 when there are
// any. With files as arguments, these dumps are compared instead.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

var (
	berth     = flag.String("berth", "berth", "the program to compare")
	decisions = flag.Int("decisions", 20000, "how many pods to place at least")
	seed      = flag.Int64("seed", 1, "cluster i is made from seed + i")
	most      = flag.Int("most", 20, "differences to print; the rest are counted")
	keep      = flag.String("keep", "", "a folder for the clusters that differ")
)

type cluster struct {
	profile      *config.KubeSchedulerProfile
	nodes        []*v1.Node
	namespaces   []*v1.Namespace
	services     []*v1.Service
	controllers  []*v1.ReplicationController
	replicaSets  []*appsv1.ReplicaSet
	statefulSets []*appsv1.StatefulSet
	storage      *storage
	budgets      []*policyv1.PodDisruptionBudget
	placed       []*v1.Pod // as the API server has them
	given        []*v1.Pod // the same, as they were written
	pending      []*v1.Pod // as the API server has them
	wanted       []*v1.Pod // the same, as they were written
}

// They want no pods beyond those that are there: whatif would make them.
var none = new(int32)

func (d dice) workloads(out *cluster) {
	for _, name := range []string{"s1", "s2"} {
		if d.chance(1, 2) {
			entry := &v1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, ObjectMeta: meta(d.namespace(), name)}
			entry.Spec.Selector = map[string]string{"app": d.pick("a", "b")}
			out.services = append(out.services, entry)
		}
	}
	if d.chance(1, 2) {
		entry := &appsv1.ReplicaSet{TypeMeta: metav1.TypeMeta{Kind: "ReplicaSet", APIVersion: "apps/v1"}, ObjectMeta: meta("default", "w")}
		entry.Spec.Replicas = none
		entry.Spec.Selector = expression("app", metav1.LabelSelectorOpIn, "a", "b")
		out.replicaSets = append(out.replicaSets, entry)
	}
	if d.chance(1, 2) {
		entry := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{Kind: "StatefulSet", APIVersion: "apps/v1"}, ObjectMeta: meta("default", "w")}
		entry.Spec.Replicas = none
		entry.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "x"}}
		out.statefulSets = append(out.statefulSets, entry)
	}
	if d.chance(1, 2) {
		entry := &v1.ReplicationController{TypeMeta: metav1.TypeMeta{Kind: "ReplicationController", APIVersion: "v1"}, ObjectMeta: meta("default", "w")}
		entry.Spec.Replicas = none
		entry.Spec.Selector = map[string]string{"app": d.pick("a", "b")}
		out.controllers = append(out.controllers, entry)
	}
	for _, name := range []string{"default", "prod", "test"} {
		entry := &v1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, ObjectMeta: meta("", name)}
		if d.chance(2, 3) {
			entry.Labels = map[string]string{"env": d.pick("x", "y")}
		}
		out.namespaces = append(out.namespaces, entry)
	}
}

// A pod that the API server takes.
func (d dice) validPod(name string, change func(*v1.Pod)) (given, stored *v1.Pod) {
	var last error
	for i := 0; i < 200; i++ {
		given = d.pod(name)
		change(given)
		stored, last = admitted(given)
		if last == nil {
			return given, stored
		}
	}
	panic(fmt.Sprintf("no valid pod in 200 attempts: %v", last))
}

func makeCluster(seed int64) *cluster {
	d := dice{rand.New(rand.NewSource(seed))}
	out := &cluster{profile: defaultProfile()}
	for i, count := 0, d.between(2, 12); i < count; i++ {
		out.nodes = append(out.nodes, d.node(i))
	}
	out.storage = d.storage(out.nodes)
	d.workloads(out)
	ranked, ending := d.chance(1, 3), d.chance(1, 2)
	taken := map[string]bool{}
	if ranked {
		out.budgets = d.budgets()
	}
	for i, count := 0, d.between(0, 25); i < count; i++ {
		given, stored := d.validPod(fmt.Sprintf("p%d", i), func(pod *v1.Pod) {
			if ranked {
				d.rank(pod, i)
			}
			if d.chance(1, 2) {
				d.useVolumes(pod, out.storage)
			}
			d.settle(pod, out.nodes[d.Intn(len(out.nodes))].Name)
			if ranked && !ending {
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
			}
		})
		if ranked {
			tidy(given, taken)
			stored = must(admitted(given))
		}
		out.given, out.placed = append(out.given, given), append(out.placed, stored)
	}
	withVolumes := d.chance(1, 2)
	for i, count := 0, d.between(3, 10); i < count; i++ {
		given, stored := d.validPod(fmt.Sprintf("q%02d", i), func(pod *v1.Pod) {
			if withVolumes {
				d.useVolumes(pod, out.storage)
			}
			if ranked {
				d.aspire(pod, out.nodes)
				narrow(pod)
			}
			if ranked && ending {
				soften(pod)
			}
		})
		out.wanted, out.pending = append(out.wanted, given), append(out.pending, stored)
	}
	// Which volume a waiting claim gets is seen by later pods, and either of equals may be taken: so one, and the last.
	if withVolumes && len(out.storage.waiting) > 0 {
		given, stored := d.validPod("zlast", func(pod *v1.Pod) {
			first := out.storage.waiting[0]
			for _, claim := range out.storage.waiting {
				if claim.Namespace == first.Namespace && (claim == first || d.chance(1, 2)) {
					useClaim(pod, claim)
				}
			}
		})
		out.wanted, out.pending = append(out.wanted, given), append(out.pending, stored)
	}
	return out
}

func appendAll[T any](to []any, from []T) []any {
	for _, entry := range from {
		to = append(to, entry)
	}
	return to
}

func (c *cluster) document() []byte {
	var items []any
	items = appendAll(items, c.namespaces)
	items = appendAll(items, c.nodes)
	items = appendAll(items, c.services)
	items = appendAll(items, c.controllers)
	items = appendAll(items, c.replicaSets)
	items = appendAll(items, c.statefulSets)
	items = appendAll(items, c.storage.classes)
	items = appendAll(items, c.storage.volumes)
	items = appendAll(items, c.storage.claims)
	items = appendAll(items, c.storage.nodes)
	items = appendAll(items, c.storage.drivers)
	items = appendAll(items, c.storage.capacities)
	items = appendAll(items, c.storage.attachments)
	items = appendAll(items, c.budgets)
	items = appendAll(items, c.given)
	items = appendAll(items, c.wanted)
	return must(json.Marshal(map[string]any{"kind": "List", "apiVersion": "v1", "items": items}))
}

type result struct {
	answer
	Kind, Namespace, Name, Node, Message string
	Victims                              []string
	Error                                *string
}

func whatif(document []byte) ([]result, error) {
	command := exec.Command(*berth, "whatif", "-f", "-", "--scores", "-o", "json", "--now", "2024-01-01T00:00:00Z")
	command.Stdin = bytes.NewReader(document)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	text, err := command.Output()
	if err != nil || complaints.Len() > 0 {
		return nil, fmt.Errorf("berth whatif: %v %s", err, complaints.String())
	}
	var out struct{ Results []result }
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	return out.Results, nil
}

func sorted(reasons map[string][]string) map[string][]string {
	out := map[string][]string{}
	for node, list := range reasons {
		list = append([]string{}, list...)
		sort.Strings(list)
		out[node] = list
	}
	return out
}

// What differs, as lines; empty when nothing does.
func differences(theirs, ours answer) (out []string) {
	if !reflect.DeepEqual(theirs.Feasible, ours.Feasible) {
		out = append(out, fmt.Sprintf("feasible: kube-scheduler %v, berth %v", theirs.Feasible, ours.Feasible))
	} else if !reflect.DeepEqual(theirs.Scores, ours.Scores) {
		for _, node := range theirs.Feasible {
			if theirs.Scores[node] != ours.Scores[node] {
				out = append(out, fmt.Sprintf("score of %s: kube-scheduler %d (%s), berth %d", node, theirs.Scores[node], theirs.parts[node], ours.Scores[node]))
			}
		}
	}
	mine, other := sorted(ours.Rejected), sorted(theirs.Rejected)
	for node, reasons := range other {
		if !reflect.DeepEqual(mine[node], reasons) {
			out = append(out, fmt.Sprintf("reasons of %s: kube-scheduler %q, berth %q", node, reasons, mine[node]))
		}
	}
	sort.Strings(out)
	return out
}

// The pods of one cluster, one after the other; each is placed where Berth put it.
func compare(seed int64) (asked int, found []string) {
	world := makeCluster(seed)
	return compareClusters(world, world.document())
}

func compareClusters(world *cluster, document []byte) (asked int, found []string) {
	results, err := whatif(document)
	if err != nil {
		return 0, []string{err.Error()}
	}
	oracle := newOracle(world)
	defer oracle.close()
	pods := map[string]*v1.Pod{}
	for _, pod := range world.pending {
		pods[pod.Namespace+"/"+pod.Name] = pod
	}
	for _, ours := range results {
		pod := pods[ours.Namespace+"/"+ours.Name]
		if pod == nil {
			found = append(found, fmt.Sprintf("%s/%s: an unexpected result", ours.Namespace, ours.Name))
			continue
		}
		asked++
		if ours.Error != nil && len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		theirs := oracle.ask(pod)
		if ours.Error != nil || theirs.fails != "" {
			if ours.Error == nil || theirs.fails == "" {
				found = append(found, fmt.Sprintf("%s/%s: kube-scheduler fails with %q, berth with %q", ours.Namespace, ours.Name, theirs.fails, textOf(ours.Error)))
			}
			continue
		}
		for _, line := range append(differences(theirs, ours.answer), refusalDifferences(theirs, ours)...) {
			found = append(found, fmt.Sprintf("%s/%s: %s", ours.Namespace, ours.Name, line))
		}
		if ours.Node != "" {
			if victims := theirs.victims[ours.Node]; victims != nil {
				oracle.evict(victims.Pods, ours.Node, pod)
			}
			if theirs.Scores[ours.Node] < highest(theirs.Scores) && pod.Status.NominatedNodeName != ours.Node {
				found = append(found, fmt.Sprintf("%s/%s: %s is not a best node", ours.Namespace, ours.Name, ours.Node))
			}
			oracle.place(pod, ours.Node)
		}
	}
	if asked != len(world.pending) {
		found = append(found, fmt.Sprintf("%d pods were pending, %d were answered", len(world.pending), asked))
	}
	return asked, found
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func refusalDifferences(theirs answer, ours result) []string {
	if len(theirs.Feasible) > 0 {
		return nil
	}
	out := theirs.evictions.differences(ours)
	if len(theirs.victims) == 0 && ours.Node == "" && theirs.message != ours.Message {
		out = append(out, fmt.Sprintf("message: kube-scheduler %q, berth %q", theirs.message, ours.Message))
	}
	return out
}

func highest(scores map[string]int64) (out int64) {
	for _, score := range scores {
		out = max(out, score)
	}
	return out
}

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		os.Exit(compareFiles(flag.Args()))
	}
	total, different := 0, 0
	said := 0
	for i := int64(0); total < *decisions; i++ {
		asked, found := compare(*seed + i)
		total += asked
		different += len(found)
		for _, line := range found {
			if said++; said <= *most {
				fmt.Printf("seed %d: %s\n", *seed+i, line)
			}
		}
		if len(found) > 0 && *keep != "" {
			os.MkdirAll(*keep, 0o755)
			name := filepath.Join(*keep, fmt.Sprintf("%d.json", *seed+i))
			os.WriteFile(name, makeCluster(*seed+i).document(), 0o644)
			os.WriteFile(strings.TrimSuffix(name, "json")+"txt", []byte(strings.Join(found, "\n")), 0o644)
		}
		if i%200 == 199 {
			fmt.Printf("%d clusters, %d decisions, %d differences\n", i+1, total, different)
		}
	}
	fmt.Printf("seed %d: %d decisions, %d differences\n", *seed, total, different)
	if different > 0 {
		os.Exit(1)
	}
}
