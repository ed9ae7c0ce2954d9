package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// cloud is the simulated cloud: groups of machines in states. Exported fields are what --state keeps.
type cloud struct {
	mu        sync.Mutex
	conf      *config
	clock     clock
	seed      uint64
	groups    []*group
	faults    faults
	answers   answers
	journal   journal
	starts    starts
	statePath string
	dirty     bool
	hasNodes  bool // machines become nodes of a cluster
}

// refused is a call's error, as the wire tells it.
type refusedCall struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusedCall) Error() string { return r.Code + ": " + r.Message }

func invalid(format string, arguments ...any) error {
	return &refusedCall{400, "InvalidParameter", fmt.Sprintf(format, arguments...)}
}

func newCloud(conf *config, c clock, seed uint64) *cloud {
	k := &cloud{conf: conf, clock: c, seed: seed}
	now := c.start.UnixMilli()
	for _, gc := range conf.Groups {
		g := &group{Name: gc.Name, conf: gc, Desired: gc.Initial}
		if gc.EKS != nil {
			g.Auto = newAutoscaling(g, now)
		}
		if gc.AKS != nil {
			g.AKS = newAgentPool(gc)
		}
		k.groups = append(k.groups, g)
		for range gc.Initial {
			m := k.launch(g, toRun, "initial", now)
			m.Instant = true
			m.enter(running, now, 0)
		}
	}
	for _, f := range conf.Faults {
		k.faults.add(f, 0)
	}
	return k
}

func (k *cloud) group(name string) *group {
	for _, g := range k.groups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// nowS is the simulated time of a real moment, which faults go by.
func (k *cloud) nowS(now int64) float64 { return k.clock.seconds(time.UnixMilli(now)) }

// launch buys a machine.
func (k *cloud) launch(g *group, to goal, token string, now int64) *machine {
	id := g.newID()
	nowS := k.nowS(now)
	m := &machine{ID: id, ProviderID: or(g.conf.Foreign, "simulated:///"+g.Name+"/") + id, State: pending, Goal: to,
		Zone: g.conf.Zones[g.Sequence%len(g.conf.Zones)], LaunchedAt: now, StateSince: now, Token: token}
	k.christen(g, m)
	m.NeverRegisters = k.faults.use("never-registers", g.Name, nowS) != nil
	m.NeverReady = k.faults.use("never-ready", g.Name, nowS) != nil
	m.NoDevice = k.faults.use("gpu-never-appears", g.Name, nowS) != nil
	if f := k.faults.use("late-device", g.Name, nowS); f != nil {
		m.LateDeviceS = f.number(300)
	}
	if f := k.faults.use("slow-start", g.Name, nowS); f != nil {
		m.Slow = f.number(3)
	}
	m.Due = now + k.clock.millis(m.stage(g.conf.Stages.Provision, k.seed, "provision"))
	g.Machines = append(g.Machines, m)
	k.journal.bought(token, g.Name)
	return m
}

// listed are the machines that a list of them shows: under a fault those bought a moment ago are missing.
func (k *cloud) listed(g *group, now int64) []*machine {
	f := k.faults.find("late-list", g.Name, k.nowS(now))
	if f == nil {
		return g.Machines
	}
	since := now - k.clock.millis(time.Duration(f.number(60)*float64(time.Second)))
	return slices.DeleteFunc(slices.Clone(g.Machines), func(m *machine) bool { return m.LaunchedAt > since })
}

// hasEvicted notes that no pod is left that the cloud wanted gone.
func (k *cloud) hasEvicted(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.groups {
		if m := g.machine(id); m != nil {
			m.Evicted, k.dirty = true, true
		}
	}
}

// hasJoined notes that the node of a machine is ready, unless the machine left that state meanwhile.
func (k *cloud) hasJoined(seen machine) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.groups {
		if m := g.machine(seen.ID); m != nil && m.State == running && m.StateSince == seen.StateSince {
			m.Joined, k.dirty = true, true
		}
	}
}

// areReady is whether those are ready nodes, where machines become some: what an update waits for before it empties the next.
func (k *cloud) areReady(list []*machine) bool {
	return !k.hasNodes || !slices.ContainsFunc(list, func(m *machine) bool { return !m.Joined })
}

// christen names a machine as the cloud whose group it is does.
func (k *cloud) christen(g *group, m *machine) {
	switch {
	case g.conf.EKS != nil:
		christenInstance(g, m)
	case g.conf.AKS != nil:
		christenVirtualMachine(g, m)
	}
}

// buy launches as many of count as the cloud has; the rest will be found to have failed.
func (k *cloud) buy(g *group, count int, to goal, token string, now int64) (launched int) {
	refusals := k.refusals(g, count, k.nowS(now))
	for _, r := range refusals {
		r.Goal, r.Token, r.Due = to, token, now+k.clock.millis(g.conf.Stages.Refuse.draw(k.seed, token))
		if g.AKS != nil {
			r.Zone = or(r.Zone, g.conf.Zones[(g.Sequence+1)%len(g.conf.Zones)])
			g.Sequence += r.Count // a scale set's numbers are used up all the same
		}
		g.Refusals = append(g.Refusals, r)
		count -= r.Count
	}
	for range count {
		k.skipZones(g, k.nowS(now))
		k.launch(g, to, token, now)
	}
	return count
}

// skipZones lets the next launch go to a zone that is not out of stock.
func (k *cloud) skipZones(g *group, nowS float64) {
	for range g.conf.Zones {
		next := g.conf.Zones[(g.Sequence+1)%len(g.conf.Zones)]
		if f := k.faults.find("stock-out", g.Name, nowS); f == nil || f.Zone != next {
			return
		}
		g.Sequence++
	}
}

// refusals are those among count launches that faults let fail.
func (k *cloud) refusals(g *group, count int, nowS float64) (list []refusal) {
	if f := k.faults.find("partial", g.Name, nowS); f != nil && count > 1 {
		f.Used++
		list = append(list, refusal{Count: count / 2, Code: "stock-out"})
		count -= count / 2
	}
	for _, name := range []string{"stock-out", "quota"} {
		f := k.faults.find(name, g.Name, nowS)
		if f == nil {
			continue
		}
		hit := g.landing(f.Zone, count)
		if f.Count > 0 {
			hit = min(hit, f.Count-f.Used)
		}
		f.Used += hit
		count -= hit
		cause, _ := f.Value.(string)
		if cause == "sync" {
			cause = ""
		}
		if hit > 0 {
			list = append(list, refusal{Count: hit, Code: name, Zone: f.Zone, Cause: cause})
		}
	}
	return list
}

// landing is how many of the next launches would go to a zone; all of them to "".
func (g *group) landing(zone string, count int) (hit int) {
	for i := range count {
		if zone == "" || g.conf.Zones[(g.Sequence+1+i)%len(g.conf.Zones)] == zone {
			hit++
		}
	}
	return hit
}

// refusedAtOnce is the error of a launch under a fault with the value "sync".
func (k *cloud) refusedAtOnce(g *group, now int64) error {
	for name, code := range map[string]string{"stock-out": "InsufficientCapacity", "quota": "QuotaExceeded"} {
		if f := k.faults.find(name, g.Name, k.nowS(now)); f != nil && f.Value == "sync" {
			f.Used++
			return &refusedCall{409, code, "group " + g.Name + ": " + refusalMessage(name)}
		}
	}
	return nil
}

func refusalMessage(code string) string {
	if code == "quota" {
		return "the quota of this instance type is exhausted"
	}
	return "there is no capacity of this instance type in these zones now"
}

// advance lets all happen that is due. True if anything did.
func (k *cloud) advance(now int64) bool {
	changed := k.strike(now)
	for _, g := range k.groups {
		changed = k.advanceGroup(g, now) || changed
	}
	k.dirty = k.dirty || changed
	k.remember(now)
	return changed
}

func (k *cloud) advanceGroup(g *group, now int64) bool {
	changed := false
	kept := g.Machines[:0:0]
	for _, m := range g.Machines {
		gone := false
		for !gone && m.Due != 0 && m.Due <= now {
			changed = true
			gone = k.pass(g, m)
		}
		if gone {
			g.BilledMillis += m.billed(m.StateSince)
		} else {
			kept = append(kept, m)
		}
	}
	g.Machines = kept
	changed = k.refuse(g, now) || changed
	if g.Auto != nil {
		changed = k.own(g, now) || changed
		changed = k.update(g, now) || changed
		changed = k.endBlock(g, now) || changed
		changed = k.reconcile(g, now) || changed
	}
	if g.AKS != nil {
		changed = k.advancePool(g, now) || changed
	}
	if changed {
		g.settleDone(now)
	}
	g.Peak = max(g.Peak, g.awake())
	return changed
}

// pass takes a machine out of the state that is over. True if it is gone.
func (k *cloud) pass(g *group, m *machine) bool {
	at, stages := m.Due, &g.conf.Stages
	switch {
	case m.State == pending && m.Goal == toStandby:
		m.enter(stopping, at, at+k.clock.millis(m.stage(stages.Stop, k.seed, "stop")))
	case m.State == pending:
		m.enter(running, at, 0)
		k.hold(g, m)
	case m.State == waking:
		m.Woken = true
		m.enter(running, at, 0)
		k.hold(g, m)
	case m.Held:
		k.letGo(g, m, at)
	case m.State == stopping && m.Goal == toRun:
		k.wake(g, m, m.Token, at)
	case m.State == stopping:
		m.enter(stopped, at, 0)
	case m.Waiting:
		m.Waiting, m.Due = false, at+k.clock.millis(g.conf.Stages.Terminate.draw(k.seed, m.ID+"/terminate"))
	default: // terminating, or a spot machine whose notice is over
		if m.State == running && m.Goal == toRun {
			g.Desired--
			g.AKS.evicted()
			g.Auto.lost(m, at)
		}
		m.enter(terminating, at, 0)
		return true
	}
	return false
}

func (k *cloud) wake(g *group, m *machine, token string, at int64) {
	m.Goal, m.Token = toRun, token
	m.enter(waking, at, at+k.clock.millis(m.stage(g.conf.Stages.Wake, k.seed, fmt.Sprint("wake", at))))
}

// refuse makes known which launches failed; the size asked for falls back by them.
func (k *cloud) refuse(g *group, now int64) bool {
	kept := g.Refusals[:0:0]
	for _, r := range g.Refusals {
		if r.Due > now {
			kept = append(kept, r)
			continue
		}
		if r.Goal == toRun {
			g.Desired -= r.Count
		} else {
			g.Standby -= r.Count
		}
		g.fail(r.Due, r.Code, refusalMessage(r.Code), r.Count)
		if g.Auto != nil {
			k.launchFailed(g, &r, now)
		}
		g.settle(r.Token, "failed", r.Due)
		g.AKS.refused(r)
	}
	changed := len(kept) < len(g.Refusals)
	g.Refusals = kept
	return changed
}

// strike gives notice to the machines that a spot-loss takes.
func (k *cloud) strike(now int64) bool {
	changed := false
	nowS := k.nowS(now)
	for _, f := range k.faults.List {
		if f.Fault != "spot-loss" || f.Applied || nowS < f.FromS {
			continue
		}
		f.Applied, changed = true, true
		left := int(f.number(1))
		for _, g := range k.groups {
			if f.Group != "*" && f.Group != g.Name {
				continue
			}
			left -= k.take(g, left, now)
		}
	}
	return changed
}

// take gives notice to up to count running machines of a group, the oldest first.
func (k *cloud) take(g *group, count int, now int64) int {
	taken := 0
	for _, m := range g.Machines {
		if taken < count && m.State == running && !m.Taken && !m.Held {
			m.Taken, m.Due = true, now+k.clock.millis(time.Duration(g.conf.SpotNotice))
			taken++
		}
	}
	if taken > 0 {
		g.fail(now, "spot-loss", "machines were taken back", taken)
	}
	return taken
}

// awake counts the machines that cost the full price.
func (g *group) awake() int {
	count := 0
	for _, m := range g.Machines {
		if m.State != stopped {
			count++
		}
	}
	return count
}
