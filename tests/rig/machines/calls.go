package main

import (
	"fmt"
	"slices"
)

// order is the body of the calls that change a group.
type order struct {
	Token    string   `json:"token"`
	Desired  *int     `json:"desired,omitempty"`
	Size     *int     `json:"size,omitempty"`
	Machines []string `json:"machines,omitempty"`
}

// result is what a call did: a sentence for the log, and the machines that it left alone.
type result struct {
	effect  string
	refused []string
}

// call is one of the five that change a group.
type call func(k *cloud, g *group, o *order, now int64) (result, error)

var calls = map[string]call{
	"grow":    (*cloud).grow,
	"remove":  (*cloud).remove,
	"stop":    (*cloud).stop,
	"standby": (*cloud).standby,
	"cancel":  (*cloud).cancel,
}

func (k *cloud) grow(g *group, o *order, now int64) (result, error) {
	if o.Desired == nil {
		return result{}, invalid("desired is missing")
	}
	wanted := *o.Desired
	if wanted > g.conf.Max {
		return result{}, invalid("desired %d is above the maximum %d of group %s", wanted, g.conf.Max, g.Name)
	}
	if wanted < g.Desired {
		return result{}, invalid("desired %d is below the present %d: remove names machines", wanted, g.Desired)
	}
	if g.Auto != nil { // as in the console: Auto Scaling launches where it will
		g.Auto.resize(g.Auto.Desired+wanted-g.Desired, now)
		return result{effect: fmt.Sprintf("desired is %d", g.Auto.Desired)}, nil
	}
	missing := wanted - g.Desired
	if g.conf.Foreign != "" {
		if len(o.Machines) != missing {
			return result{}, invalid("machines names the %d that group %s grows by", missing, g.Name)
		}
		g.named = o.Machines
	}
	fresh := missing - len(g.fromStandby(missing))
	if fresh > 0 {
		if err := k.refusedAtOnce(g, now); err != nil {
			return result{}, err
		}
	}
	woken := g.fromStandby(missing)
	for _, m := range woken {
		k.recall(g, m, o.Token, now)
	}
	g.Desired = wanted
	launched := k.buy(g, fresh, toRun, o.Token, now)
	return result{effect: fmt.Sprintf("launched %d, woke %d, refused %d", launched, len(woken), fresh-launched)}, nil
}

// fromStandby are up to count machines to serve again: stopped ones first, then those on their way there.
func (g *group) fromStandby(count int) (list []*machine) {
	for _, states := range [][2]machineState{{stopped, stopped}, {stopping, pending}} {
		for _, m := range g.Machines {
			if len(list) < count && m.Goal == toStandby && (m.State == states[0] || m.State == states[1]) {
				list = append(list, m)
			}
		}
	}
	return list
}

// recall turns a standby machine into one that runs; standby shrinks by it.
func (k *cloud) recall(g *group, m *machine, token string, now int64) {
	g.Standby--
	m.Goal, m.Token = toRun, token
	if m.State == stopped {
		k.wake(g, m, token, now)
	}
}

func (k *cloud) remove(g *group, o *order, now int64) (result, error) {
	count := 0
	for _, id := range o.Machines {
		if m := g.machine(id); m != nil && m.State != terminating {
			k.terminate(g, m, o.Token, now)
			count++
		}
	}
	return result{effect: fmt.Sprintf("terminated %d", count)}, nil
}

func (k *cloud) terminate(g *group, m *machine, token string, now int64) {
	if m.Goal == toRun {
		g.Desired--
	} else {
		g.Standby--
	}
	m.Token = token
	m.enter(terminating, now, now+k.clock.millis(g.conf.Stages.Terminate.draw(k.seed, m.ID+"/terminate")))
}

func (k *cloud) stop(g *group, o *order, now int64) (result, error) {
	var refused []string
	var chosen []*machine
	for _, id := range o.Machines {
		m := g.machine(id)
		switch {
		case m == nil || m.State == terminating || m.Goal == toStandby:
		case m.State != running || m.Taken:
			refused = append(refused, id)
		default:
			chosen = append(chosen, m)
		}
	}
	if g.Standby+len(chosen) > *g.conf.StandbyMax {
		return result{}, invalid("%d standby machines are above the maximum %d of group %s",
			g.Standby+len(chosen), *g.conf.StandbyMax, g.Name)
	}
	for _, m := range chosen {
		g.Desired--
		g.Standby++
		m.Goal, m.Token, m.Instant = toStandby, o.Token, false
		m.enter(stopping, now, now+k.clock.millis(m.stage(g.conf.Stages.Stop, k.seed, "stop")))
	}
	return result{fmt.Sprintf("stopped %d", len(chosen)), refused}, nil
}

func (k *cloud) standby(g *group, o *order, now int64) (result, error) {
	if o.Size == nil || *o.Size < 0 || *o.Size > *g.conf.StandbyMax {
		return result{}, invalid("size is a number from 0 to %d", *g.conf.StandbyMax)
	}
	if more := *o.Size - g.Standby; more > 0 {
		if err := k.refusedAtOnce(g, now); err != nil {
			return result{}, err
		}
		g.Standby = *o.Size
		launched := k.buy(g, more, toStandby, o.Token, now)
		return result{effect: fmt.Sprintf("launched %d for standby, refused %d", launched, more-launched)}, nil
	}
	surplus := g.fromStandby(g.Standby - *o.Size)
	for _, m := range surplus {
		k.terminate(g, m, o.Token, now)
	}
	return result{effect: fmt.Sprintf("terminated %d of standby", len(surplus))}, nil
}

func (k *cloud) cancel(g *group, o *order, now int64) (result, error) {
	var refused []string
	count := 0
	for _, id := range o.Machines {
		m := g.machine(id)
		switch {
		case m == nil || m.State == terminating:
		case m.State == running:
			refused = append(refused, id)
		default:
			k.terminate(g, m, o.Token, now)
			count++
		}
	}
	if o.Desired != nil {
		g.giveUp(*o.Desired)
	}
	return result{fmt.Sprintf("cancelled %d", count), refused}, nil
}

// giveUp drops what was asked for beyond desired and cannot come.
func (g *group) giveUp(desired int) {
	for i := range g.Refusals {
		r := &g.Refusals[i]
		if dropped := min(r.Count, g.Desired-desired); r.Goal == toRun && dropped > 0 {
			r.Count -= dropped
			g.Desired -= dropped
		}
	}
	g.Refusals = slices.DeleteFunc(g.Refusals, func(r refusal) bool { return r.Count == 0 })
}
