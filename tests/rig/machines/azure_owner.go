package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// poolUpgrade is another node image, or another version, for each machine of a pool: AKS adds as many machines beside the count
// as the pool's maxSurge says, then cordons, empties and reimages as many at once, under the same names, and takes the added ones
// away again.
type poolUpgrade struct {
	Old     []string `json:"old"`     // still to be reimaged
	Surge   []string `json:"surge"`   // the machines beside the count
	Since   int64    `json:"since"`   // pods are evicted
	Version string   `json:"version"` // of Kubernetes; "": it stays
}

const upgrading = "UpgradingNodeImageVersion"

// poolUpgrades are the faults that begin one, and what the pool is called meanwhile.
var poolUpgrades = []struct{ fault, state string }{{"image-upgrade", upgrading}, {"version-upgrade", "Upgrading"}}

// upgradeSetting is what the pool's owner wrote for upgrades.
func (p *agentPool) upgradeSetting(key string) any {
	settings, _ := p.Properties["upgradeSettings"].(map[string]any)
	return settings[key]
}

// surge is a number, or a share of the machines, rounded up: a tenth unless it is set.
func (g *group) surge() int {
	text, _ := g.AKS.upgradeSetting("maxSurge").(string)
	digits, isShare := strings.CutSuffix(or(text, "10%"), "%")
	count, _ := strconv.Atoi(digits)
	if isShare {
		count = (len(g.live())*count + 99) / 100
	}
	return max(1, count)
}

// drainTimeout is half an hour unless it is set.
func (p *agentPool) drainTimeout() time.Duration {
	number, _ := p.upgradeSetting("drainTimeoutInMinutes").(json.Number)
	minutes, err := number.Int64()
	if err != nil {
		minutes = 30
	}
	return time.Duration(minutes) * time.Minute
}

// beginUpgrade starts what is due, where nothing else is in progress. True if it did.
func (k *cloud) beginUpgrade(g *group, now int64) bool {
	for _, kind := range poolUpgrades {
		f := k.faults.find(kind.fault, g.Name, k.nowS(now))
		if f == nil || f.Applied || len(g.live()) == 0 {
			continue
		}
		f.Applied = true
		u := &poolUpgrade{}
		if kind.state != upgrading {
			version, _ := f.Value.(string)
			u.Version = or(version, "1.35.1")
		}
		for _, m := range g.live() {
			u.Old = append(u.Old, m.ID)
		}
		o := k.begin(g, "upgrade", kind.state, now)
		o.Stuck = false
		for range g.surge() {
			g.Desired++
			u.Surge = append(u.Surge, k.launch(g, toRun, o.ID, now).ID)
		}
		g.AKS.Upgrade = u
		k.journal.began(g, kind.fault, now)
		return true
	}
	return false
}

// empties some machines at once; "" while it goes on, else how it ended.
func (k *cloud) empties(u *poolUpgrade, batch []*machine, patience time.Duration, now int64) string {
	begins, stays := false, false
	for _, m := range batch {
		begins = begins || !m.Evicting
		m.Cordoned, m.Evicting = true, true
		stays = stays || !m.Evicted
	}
	switch {
	case begins:
		u.Since = now
	case !stays:
		return succeeded
	case now-u.Since >= k.clock.millis(patience):
		return failedWord
	}
	return ""
}

// batch are those that are emptied now: as many of the old as there are more, at last those more.
func (u *poolUpgrade) batch(g *group) (names []string, running []*machine) {
	names = u.Surge
	if len(u.Old) > 0 {
		names = u.Old[:min(len(u.Surge), len(u.Old))]
	}
	for _, name := range names {
		if m := g.machine(name); m != nil && m.isRunning() {
			running = append(running, m)
		}
	}
	return names, running
}

func (m *machine) isRunning() bool { return m.State == running }

// upgrade takes the one in progress a step further; a machine that does not get empty ends it. Such machines take pods again
// unless the pool is set to keep them cordoned; those of the surge stay.
func (k *cloud) upgrade(g *group, o *armOperation, now int64) bool {
	u := g.AKS.Upgrade
	names, batch := u.batch(g)
	patience := g.AKS.drainTimeout()
	switch how := k.empties(u, batch, patience, now); {
	case how == "":
		return false
	case how == failedWord:
		full := batch[slices.IndexFunc(batch, func(m *machine) bool { return !m.Evicted })]
		for _, m := range batch {
			m.Evicting, m.Cordoned = false, g.AKS.upgradeSetting("undrainableNodeBehavior") == "Cordon"
		}
		g.AKS.ends(o, failedWord, now, plainError("UpgradeFailed", "Drain of %s did not complete: pods could not be evicted in %s.",
			full.node(), patience))
	case len(u.Old) == 0:
		for _, m := range batch {
			k.terminate(g, m, o.ID, now)
		}
		if u.Version != "" {
			g.AKS.Properties = merged(g.AKS.Properties, map[string]any{"orchestratorVersion": u.Version})
		}
		g.AKS.ends(o, succeeded, now, nil)
	default:
		u.Old = u.Old[len(names):]
		for _, m := range batch {
			m.Cordoned, m.Evicting, m.Evicted, m.Instant, m.Token = false, false, false, false, o.ID
			m.enter(pending, now, now+k.clock.millis(m.stage(g.conf.Stages.Provision, k.seed, "reimage")))
		}
	}
	if g.AKS.Upgrade == nil {
		k.journal.ended(g.Name, now)
	}
	return true
}

func (p *agentPool) ends(o *armOperation, status string, now int64, e *armError) {
	o.end(status, now, e)
	p.State, p.Error, p.Upgrade = status, e, nil
	p.changed()
}
