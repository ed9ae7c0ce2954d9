package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// ownerFaults are what the owner of a node group begins: each once, as the vendor documents it.
var ownerFaults = []string{"nodegroup-update", "scheduled-action", "instance-refresh", "capacity-rebalance", "health-check",
	"unprotected"}

// ownerAct goes on until the old machines are replaced.
type ownerAct struct {
	Kind   string   `json:"kind"`
	Old    []string `json:"old"`    // still to be replaced
	Min    int      `json:"min"`    // sizes of before
	Max    int      `json:"max"`    //
	Size   int      `json:"size"`   //
	Next   int64    `json:"next"`   // nothing happens before it
	Waits  int64    `json:"waits"`  // since when, for machines that are protected or whose pods are evicted
	Update string   `json:"update"` // its id
}

type instanceRefresh struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	All    int    `json:"all"`  // machines
	Left   int    `json:"left"` // of them, when it ended
}

const (
	ownerSettles = time.Minute // EKS waits so long after the last eviction, and until new nodes are Ready
	ownerWaits   = time.Hour   // an instance refresh, for protected machines; then it fails
	ownerEvicts  = 15 * time.Minute
	serverTakes  = 2 * time.Minute // of ours, that an eviction may need however fast the clock is
)

// own begins what is due, and takes what goes on a step further. True if anything happened.
func (k *cloud) own(g *group, now int64) bool {
	changed := false
	for _, f := range k.faults.List {
		due := slices.Contains(ownerFaults, f.Fault) && !f.Applied && k.nowS(now) >= f.FromS
		if due && (f.Group == "*" || f.Group == g.Name) && g.Auto.Owner == nil {
			f.Applied, changed = true, true
			k.ownBegins(g, f, now)
			k.journal.began(g, f.Fault, now)
		}
	}
	o := g.Auto.Owner
	if o == nil || now < o.Next {
		return changed
	}
	switch {
	case !g.allRunning() || o.Kind == "nodegroup-update" && !k.areReady(g.launchedBy(o)):
	case o.Kind == "nodegroup-update" && g.conf.EKS.Strategy != "MINIMAL" && g.ownCordons():
		o.Next, changed = now+k.clock.millis(ownerSettles), true
	case len(o.Old) > 0:
		changed = k.ownReplaces(g, now) || changed
	case o.Kind == "nodegroup-update" && g.Auto.Desired > o.Size && g.Auto.Max > o.Max:
		g.Auto.Max--
		g.Auto.resize(g.Auto.Desired-1, now)
		o.Next = now + k.clock.millis(10*time.Second)
		changed = true
	default:
		g.Auto.ownEnds("Successful", now)
		changed = true
	}
	if g.Auto.Owner == nil {
		k.journal.ended(g.Name, now)
	}
	return changed
}

func (k *cloud) ownBegins(g *group, f *fault, now int64) {
	a := g.Auto
	switch f.Fault {
	case "scheduled-action":
		k.schedule(g, int(f.number(0)), now)
		return
	case "health-check":
		k.failCheck(g, now)
		return
	case "capacity-rebalance":
		k.rebalanceSpot(g, now)
		return
	case "unprotected":
		g.unprotect()
		return
	}
	a.Owner = &ownerAct{Kind: f.Fault, Min: a.Min, Max: a.Max, Size: a.Desired, Next: now + k.clock.millis(ownerSettles)}
	for _, m := range g.members() {
		a.Owner.Old = append(a.Owner.Old, m.ID)
	}
	a.Serial++
	a.Owner.Update = dashed(fmt.Sprint("update", g.conf.EKS.ASG, a.CreatedAt, a.Serial))
	if f.Fault == "instance-refresh" {
		a.Refreshes = last(append(a.Refreshes, instanceRefresh{ID: a.Owner.Update, Status: "InProgress", Start: now,
			All: len(a.Owner.Old)}), 100)
		return
	}
	a.Updates = last(append(a.Updates, nodegroupUpdate{ID: a.Owner.Update, Type: "VersionUpdate", Status: "InProgress", At: now,
		Due: math.MaxInt64, Params: map[string]string{"ReleaseVersion": "1.36.2-20261120", "Version": "1.36"}}), 100)
	if g.conf.EKS.Strategy == "MINIMAL" {
		return
	}
	surge := max(2*len(g.conf.Zones), g.conf.EKS.Unavailable)
	a.Max += surge
	a.resize(a.Desired+surge, now)
}

// unprotect lifts the scale-in protection of the oldest machine in the fullest zone, as somebody does in the console.
func (g *group) unprotect() {
	full, _ := g.extremes()
	for _, m := range g.members() {
		if m.Zone == full && m.inService() {
			m.Protected = false
			return
		}
	}
}

// failCheck ends the oldest machine, whose hardware is broken; what is missing then is launched.
func (k *cloud) failCheck(g *group, now int64) {
	for _, m := range g.members() {
		if m.inService() && !g.Auto.suspends("ReplaceUnhealthy") {
			m.Unhealthy = true
			k.end(g, m, "an instance was taken out of service in response to an EC2 instance status checks failure.", now)
			return
		}
	}
}

// rebalanceSpot launches one beyond desired before the oldest, which EC2 will want back, ends; protection does not keep it.
func (k *cloud) rebalanceSpot(g *group, now int64) {
	a := g.Auto
	for _, old := range g.members() {
		if !old.inService() {
			continue
		}
		g.expect(toRun, 1)
		m := k.launch(g, toRun, a.token(), now)
		a.Extra = m.ID
		a.begin(m, "Launching a new EC2 instance: "+m.ID,
			"an instance was launched in response to an EC2 instance rebalance recommendation for "+old.ID+".", now)
		a.Owner = &ownerAct{Kind: "capacity-rebalance", Old: []string{old.ID}, Min: a.Min, Max: a.Max, Size: a.Desired, Next: now}
		return
	}
}

// schedule is a scheduled action that sets the size; where it is so already, no activity tells of it.
func (k *cloud) schedule(g *group, size int, now int64) {
	a := g.Auto
	if size != a.Desired {
		a.add(activity{Description: "Executing scheduled action", Status: "Successful", Start: now, End: now, Progress: 100,
			Cause: fmt.Sprintf("At %s a scheduled action update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d "+
				"changing the desired capacity from %d to %d.", stamp(now), min(a.Min, size), a.Max, size, a.Desired, size)})
	}
	a.Min = min(a.Min, size)
	a.resize(size, now)
}

// ownCordons marks all of the old, once the new ones run. True if any was not.
func (g *group) ownCordons() bool {
	changed := false
	for _, id := range g.Auto.Owner.Old {
		if m := g.machine(id); m != nil && !m.Cordoned {
			m.Cordoned, changed = true, true
		}
	}
	return changed
}

// ownEmpties empties those of the old. True if they are empty; where a budget or a pod that does not end is in the way the update
// fails, and leaves sizes, machines and cordons as they are.
func (k *cloud) ownEmpties(g *group, batch []*machine, now int64) bool {
	o := g.Auto.Owner
	stays := false
	for _, m := range batch {
		if !m.Evicting {
			m.Cordoned, m.Evicting, o.Waits = true, true, now
		}
		stays = stays || !m.Evicted
	}
	if stays && now-o.Waits >= max(k.clock.millis(ownerEvicts), serverTakes.Milliseconds()) {
		g.Auto.ownEnds("Failed", now)
	}
	return !stays
}

// ownReplaces ends the next of the old: by name, which protection does not prevent. An update empties as many as may be unavailable
// first, a refresh waits for the protection to be lifted.
func (k *cloud) ownReplaces(g *group, now int64) bool {
	o := g.Auto.Owner
	there := len(o.Old)
	o.Old = slices.DeleteFunc(o.Old, func(id string) bool {
		m := g.machine(id)
		return m == nil || m.State == terminating || m.Goal != toRun
	})
	if len(o.Old) < there {
		return true
	}
	batch := []*machine{g.machine(o.Old[0])}
	if o.Kind == "instance-refresh" && batch[0].Protected {
		if o.Waits == 0 {
			o.Waits = now
		}
		if now-o.Waits >= k.clock.millis(ownerWaits) {
			g.Auto.ownEnds("Failed", now)
			return true
		}
		return false
	}
	if o.Kind == "nodegroup-update" {
		for _, id := range o.Old[1:min(g.conf.EKS.Unavailable, len(o.Old))] {
			batch = append(batch, g.machine(id))
		}
		if !k.ownEmpties(g, batch, now) {
			return false
		}
	}
	for _, m := range batch {
		k.end(g, m, fmt.Sprintf("instance %s was taken out of service in response to a user request.", m.ID), now)
	}
	o.Old, o.Waits, o.Next = o.Old[len(batch):], 0, now+k.clock.millis(ownerSettles)
	return true
}

func (a *autoscaling) ownEnds(status string, now int64) {
	for i := range a.Refreshes {
		if r := &a.Refreshes[i]; r.ID == a.Owner.Update {
			r.Status, r.End, r.Left = status, now, len(a.Owner.Old)
		}
	}
	for i := range a.Updates {
		if a.Updates[i].ID == a.Owner.Update {
			a.Updates[i].Status = status
		}
	}
	a.Owner = nil
}

// launchedBy are those that came in the course of it.
func (g *group) launchedBy(o *ownerAct) []*machine {
	return slices.DeleteFunc(g.members(), func(m *machine) bool { return slices.Contains(o.Old, m.ID) })
}

// allRunning is whether all that are asked for are there.
func (g *group) allRunning() bool {
	members := g.members()
	return len(members) >= g.Auto.Desired && !slices.ContainsFunc(members, func(m *machine) bool { return !m.inService() })
}
