package main

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// lieFaults are those of a cloud that tells, or does, something else than it was asked for. Only AWS and Azure have them.
var lieFaults = []string{"old-reads", "mixed-reads", "no-effect", "one-less", "one-more", "twice"}

const momentsKept = 400

// moment is a group as it was.
type moment struct {
	at    int64
	group *group
}

func (g *group) copied() *group {
	c := *g
	c.Machines = nil
	for _, m := range g.Machines {
		one := *m
		c.Machines = append(c.Machines, &one)
	}
	if g.Auto != nil {
		auto := *g.Auto
		auto.Activities = slices.Clone(g.Auto.Activities)
		c.Auto = &auto
	}
	if g.AKS != nil {
		pool := *g.AKS
		c.AKS = &pool
	}
	return &c
}

// oldReads is the fault that makes reads of a group old, and how old at most; nil: none does.
func (k *cloud) oldReads(g *group, now int64) (f *fault, isMixed bool, oldest int64) {
	f = k.faults.find("old-reads", g.Name, k.nowS(now))
	if f == nil {
		f, isMixed = k.faults.find("mixed-reads", g.Name, k.nowS(now)), true
	}
	if f == nil {
		return nil, false, 0
	}
	return f, isMixed, k.clock.millis(time.Duration(f.number(60) * float64(time.Second)))
}

// remember keeps groups as they are for reads to come, each second; only while such reads are old.
func (k *cloud) remember(now int64) {
	for _, g := range k.groups {
		if f, _, _ := k.oldReads(g, now); f == nil {
			g.past = nil
		} else if n := len(g.past); n == 0 || now-g.past[n-1].at >= k.clock.millis(time.Second) {
			g.past = last(append(g.past, moment{now, g.copied()}), momentsKept)
		}
	}
}

// shown is a group as a read shows it.
func (k *cloud) shown(g *group, now int64) *group {
	f, isMixed, oldest := k.oldReads(g, now)
	if f == nil || len(g.past) == 0 {
		return g
	}
	f.Used++
	if isMixed {
		oldest = int64(float64(oldest) * uniform(k.seed, fmt.Sprint("reads/", f.ID, "/", f.Used)))
	}
	found := g.past[0].group
	for _, m := range g.past {
		if m.at <= now-oldest {
			found = m.group
		}
	}
	return found
}

// granted is the size that a growth really leads to.
func (k *cloud) granted(g *group, size, asked, most int, now int64) int {
	nowS := k.nowS(now)
	switch {
	case asked <= size:
	case k.faults.use("no-effect", g.Name, nowS) != nil:
		return size
	case k.faults.use("one-less", g.Name, nowS) != nil:
		return asked - 1
	case asked < most && k.faults.use("one-more", g.Name, nowS) != nil:
		return asked + 1
	}
	return asked
}

// again does what a call asked for a second time, a moment later, as if the network had delivered it twice.
func (k *cloud) again(name string, now int64, do func(now int64)) {
	f := k.faults.use("twice", name, k.nowS(now))
	if f == nil {
		return
	}
	pause := time.Duration(f.number(2) * float64(time.Second))
	time.AfterFunc(k.clock.real(pause), func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		later := time.Now().UnixMilli()
		k.advance(later)
		do(later)
		k.advance(later)
		k.dirty = true
	})
}

func (d *awsDoor) again(c *awsCall, r *http.Request) {
	copied := *c
	copied.changed, copied.isAgain, copied.before = false, true, nil
	d.cloud.again(c.name(), c.nowMillis, func(now int64) {
		copied.nowMillis = now
		d.note(&copied, r, copied.answer(d, newCaptured()))
	})
}

func (d *azureDoor) again(c *armCall, do func(d *azureDoor, c *armCall) *armRefusal) {
	copied := *c
	copied.w = newCaptured()
	d.cloud.again(groupName(c.g), c.now, func(now int64) {
		copied.now = now
		copied.entry = entry{At: now, Method: c.r.Method, Path: c.r.URL.Path, Token: c.entry.Token, Status: 200, Group: groupName(c.g)}
		if refusal := do(d, &copied); refusal != nil {
			copied.entry.Status, copied.entry.Effect = refusal.status, "refused: "+refusal.Code
		}
		copied.entry.Effect = "again: " + copied.entry.Effect
		d.cloud.journal.write(copied.entry)
	})
}
