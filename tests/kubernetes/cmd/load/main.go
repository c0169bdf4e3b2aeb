// Makes pods and sees them being bound.
//
//	load -phase burst   creates the pods, prints "created", waits for a line on standard input (the scheduler is started
//	                    then), prints "first" with the first binding, and at the end one JSON object
//	load -phase paced   creates them at a steady rate beside a running scheduler; latencies are created -> seen bound
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the API server")
	phase      = flag.String("phase", "burst", "burst or paced")
	workload   = flag.String("workload", "SchedulingBasic", "SchedulingBasic or PodAffinity")
	count      = flag.Int("pods", 1000, "how many pods")
	placed     = flag.Int("placed", 0, "instead: so many pods that already are on nodes")
	prefix     = flag.String("prefix", "load-", "names of the pods")
	rate       = flag.Int("rate", 100, "paced: pods a second")
	scheduler  = flag.String("scheduler", "berth", "who places them")
	nodes      = flag.Int("nodes", 5000, "nodes that placed pods are dealt to")
	limit      = flag.Duration("limit", 10*time.Minute, "give up after")
)

func pod(i int) *v1.Pod {
	out := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", *prefix, i), Namespace: "default"}}
	out.Spec.SchedulerName = *scheduler
	out.Spec.TerminationGracePeriodSeconds = new(int64)
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("500Mi")}
	out.Spec.Containers = []v1.Container{{Name: "c", Image: "pause", Resources: v1.ResourceRequirements{Requests: requests}}}
	if *workload == "PodAffinity" {
		out.Labels = map[string]string{"color": "blue"}
		near := v1.PodAffinityTerm{TopologyKey: v1.LabelTopologyZone,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"color": "blue"}}}
		out.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{near}}}
	}
	if *placed > 0 {
		out.Spec.NodeName = fmt.Sprintf("node-%d", i%*nodes)
	}
	return out
}

// When each pod was asked for and seen bound.
type ledger struct {
	sync.Mutex
	asked, bound map[string]time.Time
	first        chan struct{}
	all          chan struct{}
}

func (l *ledger) ask(name string) {
	l.Lock()
	l.asked[name] = time.Now()
	l.Unlock()
}

func (l *ledger) see(name string, now time.Time) {
	l.Lock()
	defer l.Unlock()
	_, known := l.asked[name]
	if _, twice := l.bound[name]; !known || twice {
		return
	}
	l.bound[name] = now
	if len(l.bound) == 1 {
		close(l.first)
	}
	if len(l.bound) == *count {
		close(l.all)
	}
}

func create(client *kubernetes.Clientset, n int, book *ledger, pace <-chan time.Time) {
	var group sync.WaitGroup
	next := make(chan int)
	for w := 0; w < 16; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				made := pod(i)
				book.ask(made.Name)
				if _, err := client.CoreV1().Pods("default").Create(context.Background(), made, metav1.CreateOptions{}); err != nil {
					log.Fatal(err)
				}
			}
		}()
	}
	for i := 0; i < n; i++ {
		if pace != nil {
			<-pace
		}
		next <- i
	}
	close(next)
	group.Wait()
}

// Sees bindings for ever; a watch that the server ends is taken up where it ended.
func watch(client *kubernetes.Clientset, book *ledger) {
	list, err := client.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	version := list.ResourceVersion
	go func() {
		for {
			stream, err := client.CoreV1().Pods("default").Watch(context.Background(), metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				log.Fatal(err)
			}
			for event := range stream.ResultChan() {
				seen, isPod := event.Object.(*v1.Pod)
				if !isPod {
					log.Fatalf("the watch said %v", event.Object)
				}
				version = seen.ResourceVersion
				if seen.Spec.NodeName != "" {
					book.see(seen.Name, time.Now())
				}
			}
		}
	}()
}

func report(book *ledger) {
	book.Lock()
	defer book.Unlock()
	var times []time.Time
	var waits []float64
	for name, when := range book.bound {
		times = append(times, when)
		waits = append(waits, float64(when.Sub(book.asked[name]).Microseconds())/1000)
	}
	sort.Slice(times, func(i, j int) bool { return times[i].Before(times[j]) })
	sort.Float64s(waits)
	seconds := times[len(times)-1].Sub(times[0]).Seconds()
	json.NewEncoder(os.Stdout).Encode(map[string]any{"pods": len(times), "seconds": seconds,
		"pods_per_s": float64(len(times)-1) / seconds, "p50_ms": waits[len(waits)/2], "p99_ms": waits[len(waits)*99/100]})
}

func main() {
	log.SetPrefix("load: ")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst, config.ContentType = -1, -1, "application/vnd.kubernetes.protobuf"
	client := kubernetes.NewForConfigOrDie(config)
	book := &ledger{asked: map[string]time.Time{}, bound: map[string]time.Time{}, first: make(chan struct{}), all: make(chan struct{})}
	if *placed > 0 {
		create(client, *placed, book, nil)
		return
	}
	watch(client, book)
	if *phase == "paced" {
		create(client, *count, book, time.NewTicker(time.Second/time.Duration(*rate)).C)
	} else {
		create(client, *count, book, nil)
		fmt.Println("created")
		bufio.NewReader(os.Stdin).ReadString('\n')
	}
	deadline := time.After(*limit)
	for _, step := range []struct {
		seen chan struct{}
		say  string
	}{{book.first, "first"}, {book.all, "all"}} {
		select {
		case <-step.seen:
			fmt.Println(step.say)
		case <-deadline:
			log.Fatalf("only %d of %d pods were bound within %s", len(book.bound), *count, *limit)
		}
	}
	report(book)
}
