package main

import (
	"context"
	"log"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// want is what a machine's state asks of its node.
type want int

const (
	wantNothing want = iota
	wantUp           // the kubelet runs
	wantDown         // it does not; the objects stay as they are
	wantEmpty        // stopped, the Node stays, its pods go
	wantAbsent       // stopped, the Node goes
	wantGone         // the machine is gone
)

// snapshot is a machine as the cloud had it a moment ago.
type snapshot struct {
	machine
	conf *groupConfig
}

func (k *cloud) snapshot() (list []snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.groups {
		for _, m := range g.Machines {
			list = append(list, snapshot{*m, g.conf})
		}
	}
	return list
}

// node is a machine's kubelet and its Node object. One goroutine, loop, does all that it is asked, in order.
type node struct {
	fleet   *fleet
	name    string
	wanted  want // the last one asked; of sync
	wants   chan want
	isUp    bool // fleet.mu
	tainted bool
	owned   bool // cordoned by the cloud
	evicted bool // its pods are, by the cloud

	mu       sync.Mutex
	machine  snapshot
	stated   bool                 // ready, as the kubelet said last
	pulled   map[string]time.Time // image: when it is there
	sessions sync.WaitGroup
}

func newNode(f *fleet, name string) *node {
	return &node{fleet: f, name: name, wants: make(chan want, 64), pulled: map[string]time.Time{}}
}

// want asks for a state. The fleet is locked.
func (n *node) want(w want, m snapshot) {
	if w != wantGone {
		n.mu.Lock()
		n.machine = m
		n.mu.Unlock()
	}
	if w != n.wanted {
		n.wanted = w
		n.wants <- w
	}
	if m.Taken && !n.tainted {
		n.tainted = true
		go n.taint(n.fleet.ctx, m.conf.SpotTaint)
		if m.conf.AKS != nil {
			go n.announce(n.fleet.ctx)
		}
	}
	if m.Cordoned != n.owned && w != wantGone {
		n.owned = m.Cordoned
		go n.cordon(n.fleet.ctx, m.Cordoned)
	}
	if m.Evicting && !n.evicted {
		go n.evict(n.fleet.ctx, m.ID)
	}
	n.evicted = m.Evicting
}

func (n *node) now() snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine
}

func (n *node) loop() {
	ctx := n.fleet.ctx
	stop := func() {}
	for {
		var w want
		select {
		case <-ctx.Done():
			stop()
			return
		case w = <-n.wants:
		}
		stop()
		n.sessions.Wait()
		stop = func() {}
		if w == wantUp {
			var session context.Context
			session, stop = context.WithCancel(ctx)
			n.sessions.Add(2)
			go n.session(session)
			go n.heartbeat(session)
			continue
		}
		n.setUp(false)
		n.powerOff(ctx, w)
		if w == wantGone {
			return
		}
	}
}

func (n *node) powerOff(ctx context.Context, w want) {
	n.fleet.abandon(n.name)
	if w == wantDown || w == wantEmpty {
		n.report(ctx, false, "node is shutting down", nil)
	}
	if w == wantEmpty && n.now().conf.AKS != nil {
		n.taint(ctx, shutdownTaint)
	}
	if w != wantDown {
		for _, pod := range n.fleet.podsOf(n.name) {
			n.fleet.forget(pod)
		}
	}
	if w == wantAbsent || w == wantGone {
		persist(ctx, "delete node "+n.name, func() error {
			return gone(n.fleet.client.CoreV1().Nodes().Delete(ctx, n.name, meta.DeleteOptions{}))
		})
		gone(n.fleet.client.CoordinationV1().Leases(leaseNamespace).Delete(ctx, n.name, meta.DeleteOptions{}))
	}
}

// abandon ends the pods of a machine without power.
func (f *fleet) abandon(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, a := range f.agents {
		if a.node.name == name {
			delete(f.agents, uid)
			a.cancel()
		}
	}
}

func (n *node) setUp(up bool) {
	n.fleet.mu.Lock()
	n.isUp = up
	n.fleet.mu.Unlock()
	if up {
		for _, pod := range n.fleet.podsOf(n.name) {
			n.fleet.podSeen(pod)
		}
	}
}

// session is the kubelet from power on: registered, ready, the device plugin's resources.
func (n *node) session(ctx context.Context) {
	defer n.sessions.Done()
	m := n.now()
	st, seed, clock := &m.conf.Stages, n.fleet.cloud.seed, n.fleet.cloud.clock
	register, device := m.stage(st.Register, seed, "register"), m.stage(st.Device, seed, "device")
	if m.Used {
		register, device = m.stage(st.WakeRegister, seed, "wake register"), m.stage(st.WakeDevice, seed, "wake device")
	}
	device += time.Duration(m.LateDeviceS * float64(time.Second))
	registered := time.UnixMilli(m.StateSince).Add(clock.real(register))
	allocatable := registered.Add(clock.real(device))
	then := time.Now()
	if !n.ensure(ctx) {
		return
	}
	n.fleet.cloud.reach(&m, atNode, then)
	if m.Woken && m.conf.AKS != nil {
		n.untaint(ctx, shutdownTaint.Key)
	}
	none := core.ResourceList{}
	if time.Now().Before(registered) {
		n.report(ctx, false, "container runtime network not ready: cni plugin not initialized", none)
	}
	if !sleepReal(ctx, time.Until(registered)) || m.NeverReady {
		return
	}
	if time.Now().Before(allocatable) {
		then = time.Now()
		n.report(ctx, true, "", none)
		n.fleet.cloud.reach(&m, atReady, then)
	}
	n.setUp(true)
	if !sleepReal(ctx, time.Until(allocatable)) {
		return
	}
	if m.NoDevice {
		n.report(ctx, true, "", nil)
		return
	}
	then = time.Now()
	n.report(ctx, true, "", m.conf.devices())
	n.fleet.cloud.reach(&m, atReady, then)
	n.fleet.cloud.reach(&m, atDevice, then)
}

// persist repeats until it works or ctx ends, and says so once if it does not at first.
func persist(ctx context.Context, what string, do func() error) bool {
	pause := 100 * time.Millisecond
	for {
		err := do()
		if err == nil {
			return true
		}
		if pause == 100*time.Millisecond && ctx.Err() == nil {
			log.Printf("%s: %v", what, err)
		}
		if !sleepReal(ctx, pause) {
			return false
		}
		pause = min(2*pause, 2*time.Second)
	}
}

// gone takes an object that is not there for success.
func gone(err error) error {
	if errs.IsNotFound(err) {
		return nil
	}
	return err
}
