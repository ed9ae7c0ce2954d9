package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// load is what populate fills an API server with: objects of the size that real ones have.
type load struct {
	client    kubernetes.Interface
	namespace string
	etcd      string
	nodes     int
	pods      int
	workers   int
	isThere   bool
	events    float64
	lasting   time.Duration
}

func populate(ctx context.Context, arguments []string) error {
	l := &load{}
	var kubeconfig string
	flags := flag.NewFlagSet("machines populate", flag.ExitOnError)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "of the API server")
	flags.StringVar(&l.namespace, "namespace", "load", "of the pods")
	flags.StringVar(&l.etcd, "etcd", "", "URL of the server's etcd: one of each is made by the API, the others there, much faster")
	flags.IntVar(&l.nodes, "nodes", 0, "nodes to create")
	flags.IntVar(&l.pods, "pods", 0, "pods to create, bound and running")
	flags.BoolVar(&l.isThere, "there", false, "they are there already: only patch")
	flags.IntVar(&l.workers, "workers", 32, "requests at a time")
	flags.Float64Var(&l.events, "events-per-second", 0, "then patch the status of so many pods a second")
	flags.DurationVar(&l.lasting, "for", time.Minute, "how long to patch")
	flags.Parse(arguments)
	if kubeconfig == "" || flags.NArg() > 0 || l.nodes < 0 || l.pods < 0 || l.workers < 1 {
		fmt.Fprintln(os.Stderr, "machines populate: --kubeconfig FILE is needed, numbers are not negative, and there are "+
			"no other words")
		os.Exit(2)
	}
	var err error
	if l.client, err = connect(kubeconfig); err != nil {
		return err
	}
	if err := l.prepare(ctx); err != nil {
		return err
	}
	if !l.isThere {
		if err := l.fill(ctx); err != nil {
			return err
		}
	}
	return l.stir(ctx)
}

// prepare makes the namespace, and waits for the account that pods run as.
func (l *load) prepare(ctx context.Context) error {
	space := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: l.namespace}}
	if _, err := l.client.CoreV1().Namespaces().Create(ctx, space, meta.CreateOptions{}); err != nil &&
		!errs.IsAlreadyExists(err) {
		return err
	}
	for range 100 {
		if _, err := l.client.CoreV1().ServiceAccounts(l.namespace).Get(ctx, "default", meta.GetOptions{}); err == nil {
			return nil
		}
		sleepReal(ctx, 100*time.Millisecond)
	}
	account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "default"}}
	_, err := l.client.CoreV1().ServiceAccounts(l.namespace).Create(ctx, account, meta.CreateOptions{})
	return err
}

func (l *load) fill(ctx context.Context) error {
	if l.etcd != "" {
		return l.clone(ctx)
	}
	if err := l.each(ctx, "nodes", l.nodes, func(i int) error { return l.createNode(ctx, i) }); err != nil {
		return err
	}
	return l.each(ctx, "pods", l.pods, func(i int) error { return l.createPod(ctx, i) })
}

// createNode tells the status apart, as a kubelet does.
func (l *load) createNode(ctx context.Context, i int) error {
	node := loadNode(i)
	patch, err := json.Marshal(map[string]any{"status": node.Status})
	if err != nil {
		return err
	}
	node.Status = core.NodeStatus{}
	_, err = l.client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{})
	if err = present(err); err != nil {
		return err
	}
	_, err = l.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, meta.PatchOptions{},
		"status")
	return err
}

func (l *load) createPod(ctx context.Context, i int) error {
	pod := loadPod(i, l.nodes)
	_, err := l.client.CoreV1().Pods(l.namespace).Create(ctx, pod, meta.CreateOptions{})
	if err = present(err); err != nil {
		return err
	}
	_, err = l.client.CoreV1().Pods(l.namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType,
		statusPatch(pod, i, ""), meta.PatchOptions{}, "status")
	return err
}

func present(err error) error {
	if errs.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// each does count things, some at a time, and says how far it is.
func (l *load) each(ctx context.Context, what string, count int, do func(i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	start := time.Now()
	turns := make(chan int)
	var all sync.WaitGroup
	for range l.workers {
		all.Go(func() {
			for i := range turns {
				if err := do(i); err != nil {
					stop(fmt.Errorf("%s %d: %w", what, i, err))
				}
			}
		})
	}
	told := start
	for i := 0; i < count && ctx.Err() == nil; i++ {
		select {
		case turns <- i:
		case <-ctx.Done():
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Printf("%s: %d of %d\n", what, i, count)
		}
	}
	close(turns)
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if count > 0 {
		fmt.Printf("%s: %d in %.1f s\n", what, count, time.Since(start).Seconds())
	}
	return nil
}

// stir patches the status of pods picked at random, at a steady rate.
func (l *load) stir(ctx context.Context) error {
	if l.events <= 0 || l.pods == 0 {
		return nil
	}
	total := int(l.events * l.lasting.Seconds())
	start := time.Now()
	return l.each(ctx, "pod events", total, func(i int) error {
		sleepReal(ctx, time.Until(start.Add(time.Duration(float64(i)/l.events*float64(time.Second)))))
		n := rand.IntN(l.pods)
		pod := loadPod(n, l.nodes)
		_, err := l.client.CoreV1().Pods(l.namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType,
			statusPatch(pod, n, fmt.Sprintf("seen %d", i)), meta.PatchOptions{}, "status")
		return err
	})
}
