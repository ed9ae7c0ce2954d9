package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// fleet runs a kubelet for each machine of the cloud, and the pods that are bound to them.
type fleet struct {
	ctx     context.Context
	client  kubernetes.Interface
	cloud   *cloud
	traffic *traffic
	pods    cache.SharedIndexInformer
	net     addresses

	mu     sync.Mutex
	nodes  map[string]*node
	agents map[types.UID]*agent
}

func connect(kubeconfig string) (kubernetes.Interface, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	rest.QPS, rest.Burst = 2000, 4000
	rest.UserAgent = "rig-machines"
	rest.ContentType = "application/vnd.kubernetes.protobuf"
	rest.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return kubernetes.NewForConfig(rest)
}

func startFleet(ctx context.Context, k *cloud, t *traffic, o options, port int) (*fleet, error) {
	client, err := connect(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	f := newFleet(ctx, client, k, t, port)
	return f, f.run()
}

func (f *fleet) run() error {
	go f.pods.Run(f.ctx.Done())
	if !cache.WaitForCacheSync(f.ctx.Done(), f.pods.HasSynced) {
		return fmt.Errorf("the API server's pods cannot be listed")
	}
	if err := f.adopt(); err != nil {
		return err
	}
	go func() {
		for sleepReal(f.ctx, 50*time.Millisecond) {
			f.sync()
		}
	}()
	return nil
}

func newFleet(ctx context.Context, client kubernetes.Interface, k *cloud, t *traffic, port int) *fleet {
	k.hasNodes = true
	f := &fleet{ctx: ctx, client: client, cloud: k, traffic: t, nodes: map[string]*node{},
		agents: map[types.UID]*agent{}, net: newAddresses(port)}
	bound := informers.WithTweakListOptions(func(o *meta.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	})
	f.pods = informers.NewSharedInformerFactoryWithOptions(client, 0, bound).Core().V1().Pods().Informer()
	f.pods.AddIndexers(cache.Indexers{"node": func(object any) ([]string, error) {
		return []string{object.(*core.Pod).Spec.NodeName}, nil
	}})
	f.pods.SetTransform(func(object any) (any, error) {
		if pod, ok := object.(*core.Pod); ok {
			pod.ManagedFields = nil
		}
		return object, nil
	})
	f.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.podSeen(object.(*core.Pod)) },
		UpdateFunc: func(_, object any) { f.podSeen(object.(*core.Pod)) },
		DeleteFunc: f.podGone,
	})
	return f
}

// adopt takes over the nodes of an earlier run: those whose machine is gone will be removed by sync.
func (f *fleet) adopt() error {
	list, err := f.client.CoreV1().Nodes().List(f.ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if group, ok := list.Items[i].Annotations[groupAnnotation]; ok && f.cloud.group(group) != nil {
			f.mu.Lock()
			f.node(list.Items[i].Name)
			f.mu.Unlock()
		}
	}
	return nil
}

// node is that of a name, made where there is none. The caller locks.
func (f *fleet) node(name string) *node {
	n := f.nodes[name]
	if n == nil {
		n = newNode(f, name)
		f.nodes[name] = n
		go n.loop()
	}
	return n
}

// sync tells each node what its machine wants of it.
func (f *fleet) sync() {
	machines := f.cloud.snapshot()
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[string]bool{}
	for _, m := range machines {
		seen[m.node()] = true
		n := f.nodes[m.node()]
		if n == nil && m.State != running {
			continue
		}
		f.node(m.node()).want(wantOf(&m), m)
	}
	for name, n := range f.nodes {
		if !seen[name] {
			n.want(wantGone, snapshot{})
			delete(f.nodes, name)
		}
	}
}

func wantOf(m *snapshot) want {
	switch {
	case (m.State == running || m.Waiting) && !m.NeverRegisters:
		return wantUp
	case m.State == stopped && m.conf.StoppedNode == "delete":
		return wantAbsent
	case m.State == stopped:
		return wantEmpty
	}
	return wantDown
}

func (f *fleet) podSeen(pod *core.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.agents[pod.UID]
	n := f.nodes[pod.Spec.NodeName]
	if a == nil && n != nil && n.isUp && pod.Status.Phase != core.PodSucceeded && pod.Status.Phase != core.PodFailed {
		a = newAgent(f, n, pod)
		f.agents[pod.UID] = a
		go a.live()
	}
	if a != nil && pod.DeletionTimestamp != nil {
		a.end(pod)
	} else if a == nil && n != nil && n.isUp && pod.DeletionTimestamp != nil {
		go f.forget(pod)
	}
}

func (f *fleet) podGone(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if pod, ok := object.(*core.Pod); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		if a := f.agents[pod.UID]; a != nil {
			delete(f.agents, pod.UID)
			a.cancel()
		}
	}
}

func (f *fleet) podsOf(name string) []*core.Pod {
	objects, _ := f.pods.GetIndexer().ByIndex("node", name)
	pods := make([]*core.Pod, 0, len(objects))
	for _, object := range objects {
		pods = append(pods, object.(*core.Pod))
	}
	return pods
}

// addresses are loopback ones, each of which one pod has.
type addresses struct {
	mu     sync.Mutex
	second int
	next   int
	used   map[string]bool
}

// newAddresses begins a range that depends on the port, so that two rigs do not meet.
func newAddresses(port int) addresses {
	return addresses{second: 16 + port%200, used: map[string]bool{}}
}

func (a *addresses) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		a.next = a.next%65000 + 1
		ip := fmt.Sprintf("127.%d.%d.%d", a.second, a.next/250, a.next%250+1)
		if !a.used[ip] {
			a.used[ip] = true
			return ip
		}
	}
}

func (a *addresses) keep(ip string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used[ip] = true
}

func (a *addresses) free(ip string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, ip)
}
