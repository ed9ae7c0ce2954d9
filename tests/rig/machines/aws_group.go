package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// autoscaling is the Auto Scaling group over a group's machines. Its desired size stays when launches fail.
type autoscaling struct {
	Min        int               `json:"min"`
	Max        int               `json:"max"`
	Desired    int               `json:"desired"`
	RetryAt    int64             `json:"retry_at"`
	Failed     map[string]int64  `json:"failed"` // zone/type: until when it is not tried again
	ProtectNew bool              `json:"protect_new"`
	Suspended  []string          `json:"suspended"`
	Warm       *warmPool         `json:"warm"`
	Activities []activity        `json:"activities"` // newest last
	Serial     int               `json:"serial"`
	Updates    []nodegroupUpdate `json:"updates"`
	Refreshes  []instanceRefresh `json:"refreshes"`
	Owner      *ownerAct         `json:"owner"`
	Extra      string            `json:"extra"` // the machine that rebalancing launched beyond desired
	Launches   map[string]launch `json:"launches"`
	CreatedAt  int64             `json:"created_at"`
	Sized      int64             `json:"sized"`  // when desired was set last
	Closed     bool              `json:"closed"` // the schedule of a Capacity Block acted
}

type warmPool struct {
	Min      int    `json:"min"`
	Prepared int    `json:"prepared"` // -1: the group's maximum
	State    string `json:"state"`
	Reuse    bool   `json:"reuse"`
	Deleting bool   `json:"deleting"`
}

func newAutoscaling(g *group, now int64) *autoscaling {
	return &autoscaling{Min: g.conf.Min, Max: g.conf.Max, Desired: g.conf.Initial, CreatedAt: now}
}

func (a *autoscaling) suspends(process string) bool { return slices.Contains(a.Suspended, process) }

// warmSize is how many instances the pool shall hold.
func (a *autoscaling) warmSize() int {
	w := a.Warm
	if w == nil || w.Deleting {
		return 0
	}
	prepared := w.Prepared
	if prepared < 0 {
		prepared = a.Max
	}
	return max(w.Min, prepared-a.Desired, 0)
}

// members are the machines that serve or will; warm ones are those of the pool.
func (g *group) members() (list []*machine) {
	for _, m := range g.Machines {
		if m.Goal == toRun && m.State != terminating {
			list = append(list, m)
		}
	}
	return list
}

func (g *group) warm() (list []*machine) {
	for _, m := range g.Machines {
		if m.Goal == toStandby && m.State != terminating {
			list = append(list, m)
		}
	}
	return list
}

func (g *group) refusing(to goal) (count int) {
	for _, r := range g.Refusals {
		if r.Goal == to {
			count += r.Count
		}
	}
	return count
}

// reconcile is what Auto Scaling does by itself. True if it did anything.
func (k *cloud) reconcile(g *group, now int64) bool {
	a := g.Auto
	changed := k.follow(g, now)
	if extra := g.machine(a.Extra); extra == nil || extra.inService() {
		a.Extra = ""
	}
	wanted := a.Desired
	if a.Extra != "" {
		wanted++
	}
	gap := wanted - len(g.members()) - g.refusing(toRun)
	switch {
	case gap > 0 && now >= a.RetryAt && !a.suspends("Launch"):
		k.scaleOut(g, gap, now)
		changed = true
	case gap < 0 && !a.suspends("Terminate"):
		changed = k.scaleIn(g, -gap, now) || changed
	case gap == 0 && k.balances(g, now) && !a.suspends("AZRebalance"):
		changed = k.rebalance(g, now) || changed
	}
	return k.fillWarm(g, now) || changed
}

// scaleOut wakes warm instances, then launches one by one, each where it is likeliest to be had.
func (k *cloud) scaleOut(g *group, count int, now int64) {
	a := g.Auto
	cause := fmt.Sprintf("an instance was started in response to a difference between desired and actual capacity, "+
		"increasing the capacity from %d to %d.", len(g.members()), a.Desired)
	for _, m := range g.fromStandby(count) {
		k.recall(g, m, a.token(), now)
		g.Desired++
		m.Protected = a.ProtectNew
		a.begin(m, "Launching a new EC2 instance from warm pool: "+m.ID, cause, now)
		count--
	}
	k.purchase(g, count, toRun, cause, now)
}

// purchase asks EC2 for count instances; what it has not will turn out as failed activities.
func (k *cloud) purchase(g *group, count int, to goal, cause string, now int64) {
	a := g.Auto
	if count <= 0 {
		return
	}
	short := 0
	if f := k.faults.find("partial", g.Name, k.nowS(now)); f != nil && count > 1 {
		f.Used++
		short = count / 2
	}
	for i := range count {
		zone, kind := k.offering(g, now)
		code, message, after := k.lacking(g, zone, kind, now)
		if code == "" && i >= count-short {
			code = "stock-out"
		}
		g.expect(to, 1)
		if code == "" {
			m := k.launch(g, to, a.token(), now)
			m.place(zone, kind)
			m.Protected = a.ProtectNew && to == toRun
			a.begin(m, "Launching a new EC2 instance: "+m.ID, cause, now)
			continue
		}
		if after == 0 {
			after = g.conf.Stages.Refuse.draw(k.seed, fmt.Sprint(a.Serial))
		}
		due := now + k.clock.millis(after)
		a.Failed[zone+"/"+kind] = due + k.clock.millis(time.Duration(g.conf.EKS.Retry))
		g.Refusals = append(g.Refusals, refusal{Due: due, Count: 1, Goal: to, Code: code, Token: a.token(),
			Zone: zone, Type: kind, Message: message, Cause: cause})
	}
}

// expect keeps the model's own count: it is of machines that run or will.
func (g *group) expect(to goal, count int) {
	if to == toRun {
		g.Desired += count
	} else {
		g.Standby += count
	}
}

func (m *machine) place(zone, kind string) {
	m.Zone, m.Type = zone, kind
	m.ProviderID = "aws:///" + zone + "/" + m.ID
}

// offering is the emptiest zone with the first type; those that failed a moment ago come last.
func (k *cloud) offering(g *group, now int64) (zone, kind string) {
	if g.Auto.Failed == nil {
		g.Auto.Failed = map[string]int64{}
	}
	load := g.load()
	zones := slices.Clone(g.conf.Zones)
	slices.SortStableFunc(zones, func(x, y string) int { return cmp.Compare(load[x], load[y]) })
	for _, kind := range g.conf.EKS.InstanceTypes {
		for _, zone := range zones {
			if g.Auto.Failed[zone+"/"+kind] <= now {
				return zone, kind
			}
		}
	}
	return zones[0], g.conf.EKS.InstanceTypes[0]
}

// lacking is why EC2 has no such instance now: the fault's name, its text, and after how long the launch is known to have
// failed, if the fault says so; or nothing.
func (k *cloud) lacking(g *group, zone, kind string, now int64) (code, message string, after time.Duration) {
	for _, f := range k.faults.List {
		if (f.Fault != "stock-out" && f.Fault != "quota") || !f.active(k.nowS(now)) ||
			(f.Group != "*" && f.Group != g.Name) || (f.Zone != "" && f.Zone != zone && f.Zone != kind) {
			continue
		}
		f.Used++
		text, _ := f.Value.(string)
		if text == "sync" {
			text = ""
		}
		return f.Fault, text, time.Duration(f.number(0) * float64(time.Second))
	}
	if k.isEnding(g, blockEnds, now) {
		return "stock-out", "The requested reservation does not have sufficient compatible and available capacity for this request.", 0
	}
	return "", "", 0
}

// scaleIn takes what was never had first, then instances by the termination policy, busy or not.
func (k *cloud) scaleIn(g *group, count int, now int64) bool {
	a := g.Auto
	before := count
	for i := range g.Refusals {
		if r := &g.Refusals[i]; count > 0 && r.Goal == toRun {
			g.Desired -= r.Count
			count -= r.Count
			r.Count = 0
		}
	}
	g.Refusals = slices.DeleteFunc(g.Refusals, func(r refusal) bool { return r.Count == 0 })
	for ; count > 0; count-- {
		m := g.victim()
		if m == nil {
			a.cannot(now)
			break
		}
		k.release(g, m, fmt.Sprintf("an instance was taken out of service in response to a difference between desired and "+
			"actual capacity, shrinking the capacity from %d to %d.", len(g.members()), len(g.members())-1), now)
	}
	return count < before
}

// victim is the oldest unprotected instance of the fullest zone.
func (g *group) victim() (chosen *machine) {
	load := g.load()
	for _, m := range g.members() {
		if m.Protected && m.inService() {
			continue
		}
		if chosen == nil || load[m.Zone] > load[chosen.Zone] ||
			(load[m.Zone] == load[chosen.Zone] && m.LaunchedAt < chosen.LaunchedAt) {
			chosen = m
		}
	}
	return chosen
}

// release is a scale-in: back to the warm pool where it takes instances back, else for good.
func (k *cloud) release(g *group, m *machine, cause string, now int64) {
	a := g.Auto
	if a.Warm != nil && a.Warm.Reuse && !a.Warm.Deleting && m.inService() && len(g.warm()) < a.warmSize() {
		a.begin(m, "Returning EC2 instance to warm pool: "+m.ID, cause, now)
		g.Desired--
		g.Standby++
		m.Goal, m.Protected, m.Instant = toStandby, false, false
		m.enter(stopping, now, now+k.clock.millis(m.stage(g.conf.Stages.Stop, k.seed, fmt.Sprint("stop", now))))
		return
	}
	k.end(g, m, cause, now)
}

// endHook is how long a machine that ends is held: by the hook that EKS puts there, or by somebody's.
func (k *cloud) endHook(g *group, now int64) time.Duration {
	if f := k.faults.find("terminate-hook", g.Name, k.nowS(now)); f != nil {
		return time.Duration(f.number(1800) * float64(time.Second))
	}
	return time.Duration(g.conf.EKS.Hook)
}

// end terminates an instance, after the hook.
func (k *cloud) end(g *group, m *machine, cause string, now int64) {
	g.Auto.begin(m, "Terminating EC2 instance: "+m.ID, cause, now)
	hook := k.clock.millis(k.endHook(g, now))
	waits := hook > 0 && m.State == running
	m.Held = false
	k.terminate(g, m, g.Auto.token(), now)
	if waits {
		m.Waiting, m.Due = true, now+hook
	}
}

// hold keeps a machine that runs from service, as a launch hook of somebody's does: it boots meanwhile, its node joins.
func (k *cloud) hold(g *group, m *machine) {
	if f := k.faults.use("launch-hook", g.Name, k.nowS(m.StateSince)); f != nil && g.Auto != nil {
		m.Held, m.Due = true, m.StateSince+k.clock.millis(time.Duration(f.number(600)*float64(time.Second)))
		m.Abandoned = k.faults.use("hook-abandons", g.Name, k.nowS(m.StateSince)) != nil
	}
}

// letGo ends the hook: the machine is in service, or ends and is launched anew.
func (k *cloud) letGo(g *group, m *machine, at int64) {
	m.Held, m.Due = false, 0
	if m.Abandoned {
		g.Auto.abandon(m, at)
		k.end(g, m, "instance "+m.ID+" was taken out of service because its launch lifecycle action was abandoned.", at)
	}
}

func (k *cloud) balances(g *group, now int64) bool {
	return g.conf.EKS.AZRebalance || k.faults.find("az-rebalance", g.Name, k.nowS(now)) != nil
}

func (g *group) load() map[string]int {
	load := map[string]int{}
	for _, m := range g.members() {
		load[m.Zone]++
	}
	return load
}

// extremes are the zones with the most and the fewest machines.
func (g *group) extremes() (full, empty string) {
	load := g.load()
	full, empty = g.conf.Zones[0], g.conf.Zones[0]
	for _, zone := range g.conf.Zones {
		if load[zone] > load[full] {
			full = zone
		}
		if load[zone] < load[empty] {
			empty = zone
		}
	}
	return full, empty
}

// rebalance launches in the emptiest zone before it ends one in the fullest, unless all of those are protected.
func (k *cloud) rebalance(g *group, now int64) bool {
	a := g.Auto
	if slices.ContainsFunc(g.members(), func(m *machine) bool { return !m.inService() }) {
		return false
	}
	full, empty := g.extremes()
	load := g.load()
	victim := g.victim()
	kind := g.conf.EKS.InstanceTypes[0]
	if load[full]-load[empty] < 2 || victim == nil || victim.Zone != full || a.Failed[empty+"/"+kind] > now {
		return false
	}
	if code, _, _ := k.lacking(g, empty, kind, now); code != "" {
		a.Failed[empty+"/"+kind] = now + k.clock.millis(time.Duration(g.conf.EKS.Retry))
		return false
	}
	g.expect(toRun, 1)
	m := k.launch(g, toRun, a.token(), now)
	m.place(empty, kind)
	a.Extra = m.ID
	a.begin(m, "Launching a new EC2 instance: "+m.ID, "an instance was launched to aid in balancing the group's zones.", now)
	return true
}

// fillWarm brings the pool to its size.
func (k *cloud) fillWarm(g *group, now int64) bool {
	a := g.Auto
	present := g.warm()
	size := a.warmSize()
	gone := !slices.ContainsFunc(g.Machines, func(m *machine) bool { return m.Goal == toStandby })
	if a.Warm != nil && a.Warm.Deleting && gone {
		a.Warm = nil
		return true
	}
	missing := size - len(present) - g.refusing(toStandby)
	if missing > 0 && now >= a.RetryAt {
		k.purchase(g, missing, toStandby, "the warm pool is smaller than its size.", now)
		return true
	}
	for _, m := range present[:max(0, min(len(present), len(present)-size))] {
		k.end(g, m, "the warm pool is larger than its size.", now)
	}
	return len(present) > size
}

// token is what the journal counts this round's launches under.
func (a *autoscaling) token() string { return fmt.Sprintf("desired-%d-at-%d", a.Desired, a.Sized) }
