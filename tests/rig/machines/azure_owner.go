package main

import (
	"time"
)

// poolUpgrade is a new node image for each machine of a pool: AKS adds one machine beside the count, then cordons, empties and
// reimages one after the other, under the same names, and takes the added one away again.
type poolUpgrade struct {
	Old   []string `json:"old"`   // still to be reimaged
	Surge string   `json:"surge"` // the machine beside the count
	Since int64    `json:"since"` // pods are evicted
}

const (
	upgradeEvicts = 30 * time.Minute // AKS's default of drainTimeoutInMinutes
	upgrading     = "UpgradingNodeImageVersion"
)

// beginUpgrade starts what is due, where nothing else is in progress. True if it did.
func (k *cloud) beginUpgrade(g *group, now int64) bool {
	f := k.faults.find("image-upgrade", g.Name, k.nowS(now))
	if f == nil || f.Applied || len(g.live()) == 0 {
		return false
	}
	f.Applied = true
	u := &poolUpgrade{}
	for _, m := range g.live() {
		u.Old = append(u.Old, m.ID)
	}
	o := k.begin(g, "upgrade", upgrading, now)
	o.Stuck = false
	g.Desired++
	u.Surge = k.launch(g, toRun, o.ID, now).ID
	g.AKS.Upgrade = u
	return true
}

// empties a machine; "" while it goes on, else how it ended.
func (k *cloud) empties(u *poolUpgrade, m *machine, now int64) string {
	switch {
	case !m.Evicting:
		m.Cordoned, m.Evicting, u.Since = true, true, now
	case m.Evicted:
		return succeeded
	case now-u.Since >= k.clock.millis(upgradeEvicts):
		return failedWord
	}
	return ""
}

// upgrade takes the one in progress a step further; a machine that does not get empty ends it.
func (k *cloud) upgrade(g *group, o *armOperation, now int64) bool {
	u := g.AKS.Upgrade
	m := g.machine(u.Surge)
	if len(u.Old) > 0 {
		m = g.machine(u.Old[0])
	}
	how := succeeded
	if m != nil && m.State == running {
		how = k.empties(u, m, now)
	}
	switch {
	case how == "":
		return false
	case how == failedWord:
		g.AKS.ends(o, failedWord, now, plainError("UpgradeFailed", "Drain of %s did not complete: pods could not be evicted in %s.",
			m.node(), upgradeEvicts))
	case len(u.Old) == 0:
		if m != nil && m.State == running {
			k.terminate(g, m, o.ID, now)
		}
		g.AKS.ends(o, succeeded, now, nil)
	default:
		u.Old = u.Old[1:]
		if m != nil && m.State == running {
			m.Cordoned, m.Evicting, m.Evicted, m.Instant, m.Token = false, false, false, false, o.ID
			m.enter(pending, now, now+k.clock.millis(m.stage(g.conf.Stages.Provision, k.seed, "reimage")))
		}
	}
	return true
}

func (p *agentPool) ends(o *armOperation, status string, now int64, e *armError) {
	o.end(status, now, e)
	p.State, p.Error, p.Upgrade = status, e, nil
	p.changed()
}
