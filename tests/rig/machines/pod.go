package main

import (
	"context"
	"log"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations that tell the rig what a pod does.
const (
	serveAnnotation  = "rig.preheat.dev/serve"   // "vllm": a model server
	runForAnnotation = "rig.preheat.dev/run-for" // ends by itself after this simulated time, as the pod of a job
)

// agent is what a kubelet does for one pod, from binding to removal.
type agent struct {
	fleet  *fleet
	node   *node
	pod    *core.Pod
	ctx    context.Context // ends with the pod's object or the machine
	cancel context.CancelFunc
	ending context.Context // ends when the pod is to be terminated
	ask    context.CancelFunc
	grace  time.Duration               // simulated; set before ending
	server atomic.Pointer[modelServer] // nil: none answers
	ip     string
	ended  atomic.Bool // its containers have

	restarts int32 // of its container
}

func newAgent(f *fleet, n *node, pod *core.Pod) *agent {
	a := &agent{fleet: f, node: n, pod: pod}
	a.ctx, a.cancel = context.WithCancel(f.ctx)
	a.ending, a.ask = context.WithCancel(a.ctx)
	return a
}

// end asks for termination. The fleet is locked.
func (a *agent) end(pod *core.Pod) {
	if a.ending.Err() == nil {
		if pod.DeletionGracePeriodSeconds != nil {
			a.grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		}
		a.ask()
	}
}

func (a *agent) live() {
	defer a.cancel()
	a.start()
	a.attend()
	if a.ctx.Err() == nil {
		a.drain()
		a.ended.Store(true)
		a.fleet.forget(a.pod)
	}
	if server := a.server.Load(); server != nil {
		server.close(a.fleet.now())
	}
	if a.ip != "" {
		a.fleet.net.free(a.ip)
	}
}

func (f *fleet) now() float64 { return f.cloud.clock.seconds(time.Now()) }

// start brings the pod up to ready, or as far as faults and the end let it.
func (a *agent) start() {
	clock := a.fleet.cloud.clock
	if a.pod.Status.PodIP != "" && a.pod.Status.Phase == core.PodRunning {
		a.ip = a.pod.Status.PodIP // of an earlier run of this program
		a.fleet.net.keep(a.ip)
		a.node.hasImage(a.image())
	} else {
		a.report(creating())
		if !a.pull() {
			return
		}
		a.ip = a.fleet.net.take()
		then := time.Now()
		a.report(a.up(false))
		a.reach(atImage, then)
	}
	if !a.isReady() && !clock.sleep(a.ending, a.loadTime()) || a.neverLoads() {
		return
	}
	if !a.serve() {
		return
	}
	then := time.Now()
	a.report(a.up(true))
	a.reach(atServing, then)
	if runFor, err := time.ParseDuration(a.pod.Annotations[runForAnnotation]); err == nil {
		if clock.sleep(a.ending, runFor) {
			a.report(a.succeeded())
		}
	}
}

func (a *agent) reach(moment int, then time.Time) {
	if a.servesModel() {
		m := a.node.now()
		a.fleet.cloud.reach(&m, moment, then)
	}
}

func (a *agent) servesModel() bool { return a.pod.Annotations[serveAnnotation] != "" }

// attend waits for the end, and starts a model server again that crashes.
func (a *agent) attend() {
	clock, struck := a.fleet.cloud.clock, false
	for clock.sleep(a.ending, 5*time.Second) {
		was := struck
		struck = a.server.Load() != nil &&
			a.fleet.cloud.afflicts("model-restarts", a.node.now().conf.Name, a.pod.Name)
		if struck && !was {
			a.restart()
		}
	}
}

// restart is a container's: what it worked on is lost, its counters begin anew, the model loads again.
func (a *agent) restart() {
	server := a.server.Swap(nil)
	server.close(a.fleet.now())
	server.pool.restarted()
	a.restarts++
	a.report(a.up(false))
	if a.fleet.cloud.clock.sleep(a.ending, a.loadTime()) && a.serve() {
		a.report(a.up(true))
	}
}

func (a *agent) image() string { return a.pod.Spec.Containers[0].Image }

func (a *agent) isReady() bool {
	for _, c := range a.pod.Status.Conditions {
		if c.Type == core.PodReady {
			return c.Status == core.ConditionTrue
		}
	}
	return false
}

// loadTime is that of the model; pods that serve none are ready at once.
func (a *agent) loadTime() time.Duration {
	if !a.servesModel() {
		return 0
	}
	m := a.node.now()
	return m.stage(m.conf.Stages.Load, a.fleet.cloud.seed, "load/"+a.pod.Name)
}

func (a *agent) neverLoads() bool {
	return a.servesModel() &&
		a.fleet.cloud.afflicts("model-never-ready", a.node.now().conf.Name, a.pod.Name)
}

// pull waits for the image; false when the pod ended before.
func (a *agent) pull() bool {
	group := a.node.now().conf.Name
	failed := 0
	for a.fleet.cloud.afflicts("image-pull-fails", group, a.node.name+"/"+a.image()) {
		failed++
		a.report(pullFailed(a.image(), failed))
		pause := time.Duration(min(10<<min(failed, 5), 300)) * time.Second
		if !a.fleet.cloud.clock.sleep(a.ending, pause/2) {
			return false
		}
	}
	return sleepReal(a.ending, time.Until(a.node.imageAt(a.image())))
}

// imageAt is when the image is on the machine's disk; the first to ask starts the pull.
func (n *node) imageAt(image string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, ok := n.pulled[image]
	if !ok {
		at = time.Now()
		if e := n.machine.conf.EKS; !n.machine.Used || e != nil && e.InstanceStore {
			drawn := n.machine.stage(n.machine.conf.Stages.Image, n.fleet.cloud.seed, "image/"+image)
			at = at.Add(n.fleet.cloud.clock.real(drawn))
		}
		n.pulled[image] = at
	}
	return at
}

func (n *node) hasImage(image string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pulled[image] = time.Time{}
}

// serve starts what answers at the pod's address; false when the pod ended before it could.
func (a *agent) serve() bool {
	if !a.servesModel() {
		return a.ending.Err() == nil
	}
	p := a.fleet.traffic.pool(a.pod.Namespace, a.pod.Labels)
	if p == nil {
		log.Printf("pod %s/%s: no pool of --config selects it, so it serves nothing", a.pod.Namespace, a.pod.Name)
		return a.ending.Err() == nil
	}
	return persist(a.ending, "listen for pod "+a.pod.Name, func() error {
		server, err := openModelServer(a.fleet, p, a.pod, a.ip)
		if err == nil {
			a.server.Store(server)
		}
		return err
	})
}

// drain lets requests finish, for the grace period at most.
func (a *agent) drain() {
	server := a.server.Load()
	if server == nil {
		return
	}
	clock := a.fleet.cloud.clock
	until := time.Now().Add(clock.real(a.grace))
	server.pool.drain(server.engine, a.fleet.now())
	for time.Now().Before(until) && !server.pool.idle(server.engine, a.fleet.now()) {
		if !sleepReal(a.ctx, 20*time.Millisecond) {
			return
		}
	}
}

// forget removes a pod's object, as a kubelet does when its containers have ended.
func (f *fleet) forget(pod *core.Pod) {
	now := int64(0)
	options := meta.DeleteOptions{GracePeriodSeconds: &now, Preconditions: meta.NewUIDPreconditions(string(pod.UID))}
	persist(f.ctx, "delete pod "+pod.Name, func() error {
		return gone(f.client.CoreV1().Pods(pod.Namespace).Delete(f.ctx, pod.Name, options))
	})
}
