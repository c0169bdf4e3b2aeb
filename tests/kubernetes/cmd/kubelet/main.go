// Simulated nodes for a real API server: creates them, renews their leases, keeps them Ready, makes pods that are bound to them Running and
// finishes those that are being deleted. Prints "ready" when every node is Ready. Ends, with the nodes left behind, when
// its standard input closes, so that it never outlives the test that started it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the API server")
	count      = flag.Int("nodes", 3, "how many nodes")
	prefix     = flag.String("prefix", "node-", "names are PREFIX0, PREFIX1, ...")
	capacity   = flag.String("capacity", "cpu=4,memory=32Gi,pods=110", "what each node has")
	labels     = flag.String("labels", "", "labels of every node: key=value,...; {i} is the node's number")
	zones      = flag.Int("zones", 3, "zones that the nodes take turns in; 0: none")
	lease      = flag.Duration("lease", 10*time.Second, "how often leases are renewed; 0: never")
	run        = flag.Bool("run", true, "make bound pods Running and finish deleted ones")
	workers    = flag.Int("workers", 8, "requests at a time")
)

func pairs(text string) map[string]string {
	out := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		if key, value, found := strings.Cut(pair, "="); found {
			out[key] = value
		}
	}
	return out
}

func ready() v1.NodeCondition {
	now := metav1.Now()
	return v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "simulated",
		LastHeartbeatTime: now, LastTransitionTime: now}
}

func node(i int) *v1.Node {
	out := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", *prefix, i), Labels: map[string]string{}}}
	out.Labels[v1.LabelHostname] = out.Name
	out.Labels[v1.LabelOSStable] = "linux"
	if *zones > 0 {
		out.Labels[v1.LabelTopologyZone] = fmt.Sprintf("zone-%d", i%*zones)
	}
	for key, value := range pairs(*labels) {
		out.Labels[key] = strings.ReplaceAll(value, "{i}", fmt.Sprint(i))
	}
	out.Status.Capacity = v1.ResourceList{}
	for name, amount := range pairs(*capacity) {
		out.Status.Capacity[v1.ResourceName(name)] = resource.MustParse(amount)
	}
	out.Status.Allocatable = out.Status.Capacity
	out.Status.Conditions = []v1.NodeCondition{ready()}
	out.Status.NodeInfo.KubeletVersion = "v1.35.4"
	return out
}

// Does work(0), ..., work(n - 1), several at a time.
func each(n int, work func(int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for w := 0; w < *workers; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				work(i)
			}
		}()
	}
	for i := 0; i < n; i++ {
		next <- i
	}
	close(next)
	group.Wait()
}

// Tries until the server answers: it may be restarting. A conflict or a vanished object is an answer.
func insist(what string, do func(context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := do(ctx)
		cancel()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) ||
			apierrors.IsInvalid(err) {
			return
		}
		log.Printf("%s: %v", what, err)
		time.Sleep(200 * time.Millisecond)
	}
}

func createNodes(client *kubernetes.Clientset) {
	// Admission taints a new node as not ready; a node that is Ready has no such taint.
	untaint := []byte(`{"spec":{"taints":null}}`)
	each(*count, func(i int) {
		made := node(i)
		insist("create node", func(ctx context.Context) error {
			_, err := client.CoreV1().Nodes().Create(ctx, made, metav1.CreateOptions{})
			return err
		})
		insist("untaint node", func(ctx context.Context) error {
			_, err := client.CoreV1().Nodes().Patch(ctx, made.Name, types.MergePatchType, untaint, metav1.PatchOptions{})
			return err
		})
	})
}

func renewLeases(client *kubernetes.Clientset) {
	for {
		each(*count, func(i int) {
			name, now := fmt.Sprintf("%s%d", *prefix, i), metav1.NowMicro()
			seconds := int32(40)
			want := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceNodeLease}}
			want.Spec.HolderIdentity, want.Spec.LeaseDurationSeconds, want.Spec.RenewTime = &name, &seconds, &now
			insist("lease", func(ctx context.Context) error {
				api := client.CoordinationV1().Leases(v1.NamespaceNodeLease)
				patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now.UTC().Format("2006-01-02T15:04:05.000000Z"))
				_, err := api.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				if apierrors.IsNotFound(err) {
					_, err = api.Create(ctx, want, metav1.CreateOptions{})
				}
				return err
			})
		})
		stayReady(client)
		time.Sleep(*lease)
	}
}

// When leases came late (a slow machine, a server that was away) the node controller takes a node for lost; as a real
// kubelet does, ours says that it is there.
func stayReady(client *kubernetes.Clientset) {
	var nodes *v1.NodeList
	insist("nodes", func(ctx context.Context) (err error) {
		nodes, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err
	})
	for _, found := range nodes.Items {
		for i, condition := range found.Status.Conditions {
			lost := condition.Type == v1.NodeReady && condition.Status != v1.ConditionTrue
			if !lost || !strings.HasPrefix(found.Name, *prefix) {
				continue
			}
			log.Printf("%s was taken for lost", found.Name)
			found.Status.Conditions[i] = ready()
			insist("ready node", func(ctx context.Context) error {
				_, err := client.CoreV1().Nodes().UpdateStatus(ctx, &found, metav1.UpdateOptions{})
				return err
			})
		}
	}
}

func start(client *kubernetes.Clientset, pod *v1.Pod) {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Running","startTime":%q,"conditions":[`+
		`{"type":"Ready","status":"True","lastTransitionTime":%q},`+
		`{"type":"ContainersReady","status":"True","lastTransitionTime":%q},`+
		`{"type":"Initialized","status":"True","lastTransitionTime":%q}]}}`, pod.UID, now, now, now, now)
	insist("status of pod", func(ctx context.Context) error {
		_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{}, "status")
		return err
	})
}

func finish(client *kubernetes.Clientset, pod *v1.Pod) {
	zero := int64(0)
	insist("delete pod", func(ctx context.Context) error {
		return client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	})
}

func tend(client *kubernetes.Clientset, pods <-chan *v1.Pod) {
	for pod := range pods {
		if pod.DeletionTimestamp != nil {
			finish(client, pod)
		} else if pod.Status.Phase == v1.PodPending {
			start(client, pod)
		}
	}
}

// Lists and watches the bound pods for ever; a cut watch or an expired version means to list again.
func watchPods(client *kubernetes.Clientset) {
	queue := make(chan *v1.Pod, 1000)
	for w := 0; w < *workers; w++ {
		go tend(client, queue)
	}
	bound := metav1.ListOptions{FieldSelector: "spec.nodeName!="}
	for {
		if err := followPods(client, bound, queue); err != nil {
			log.Printf("pods: %v", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

func followPods(client *kubernetes.Clientset, bound metav1.ListOptions, queue chan<- *v1.Pod) error {
	list, err := client.CoreV1().Pods("").List(context.Background(), bound)
	if err != nil {
		return err
	}
	for i := range list.Items {
		queue <- &list.Items[i]
	}
	bound.ResourceVersion = list.ResourceVersion
	watch, err := client.CoreV1().Pods("").Watch(context.Background(), bound)
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		pod, isPod := event.Object.(*v1.Pod)
		if !isPod {
			return apierrors.FromObject(event.Object)
		}
		if event.Type == "ADDED" || event.Type == "MODIFIED" {
			queue <- pod
		}
	}
	return nil
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("kubelet: ")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = -1, -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client := kubernetes.NewForConfigOrDie(config)
	createNodes(client)
	if *lease > 0 {
		go renewLeases(client)
	}
	if *run {
		go watchPods(client)
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
}
