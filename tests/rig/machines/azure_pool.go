package main

import (
	"fmt"
	"slices"
	"time"
)

// agentPool is what AKS's resource provider believes of a group, beside the machines that there really are.
// It changes by operations, one at a time. Exported fields are what --state keeps.
type agentPool struct {
	Properties tree            `json:"properties"` // as put last, without count and what only AKS writes
	Count      int             `json:"count"`
	State      string          `json:"state"` // provisioningState
	Error      *armError       `json:"error"` // of the last operation
	Version    int             `json:"version"`
	Operations []*armOperation `json:"operations"`
	Serial     int             `json:"serial"` // of operations
	Upgrade    *poolUpgrade    `json:"upgrade"`
}

// armOperation is a long-running one. Times are real milliseconds.
type armOperation struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"` // put, deleteMachines, abort
	Status  string    `json:"status"`
	Started int64     `json:"started"`
	Ended   int64     `json:"ended"`
	Due     int64     `json:"due"` // not over before
	Stuck   bool      `json:"stuck"`
	Refused []refusal `json:"refused"` // launches that failed
	Doomed  []string  `json:"doomed"`  // machines whose end lowers the count
	Spared  []string  `json:"spared"`  // machines that could not be deleted
	Error   *armError `json:"error"`

	cordoned map[string]bool // machines whose nodes take no more pods
}

const (
	inProgress = "InProgress"
	succeeded  = "Succeeded"
	failedWord = "Failed"
	canceled   = "Canceled"
)

func newAgentPool(g *groupConfig) *agentPool {
	return &agentPool{Properties: g.AKS.Properties, Count: g.Initial, State: succeeded, Version: 1}
}

// live are the machines that the scale set runs or brings up, oldest first.
func (g *group) live() (list []*machine) {
	for _, m := range g.Machines {
		if m.Goal == toRun && m.State != terminating {
			list = append(list, m)
		}
	}
	return list
}

func (p *agentPool) current() *armOperation {
	for _, o := range p.Operations {
		if o.Status == inProgress {
			return o
		}
	}
	return nil
}

func (p *agentPool) operation(id string) *armOperation {
	for _, o := range p.Operations {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// changed gives the pool a new eTag.
func (p *agentPool) changed() { p.Version++ }

// begin starts an operation, the only one in progress.
func (k *cloud) begin(g *group, kind, state string, now int64) *armOperation {
	p := g.AKS
	p.Serial++
	o := &armOperation{ID: guid(fmt.Sprint(k.seed, "/", k.clock.start.UnixMilli(), "/", g.Name, "/", p.Serial)), Kind: kind,
		Status: inProgress, Started: now, Due: now + k.clock.millis(5*time.Second)}
	o.Stuck = k.faults.find("stuck-operation", g.Name, k.nowS(now)) != nil
	p.Operations = last(append(p.Operations, o), 50)
	p.State, p.Error = state, nil
	p.changed()
	return o
}

// scale lets the scale set follow a new count, as a PUT asks for it.
func (k *cloud) scale(g *group, o *armOperation, count int, now int64) string {
	p := g.AKS
	p.Count = count
	live := g.live()
	if surplus := len(live) - count; surplus > 0 {
		k.shrink(g, o, live, surplus, now)
		return fmt.Sprintf("gave up %d machines that nobody named", surplus)
	}
	missing := count - len(live)
	woken := g.fromStandby(missing)
	for _, m := range woken {
		k.recall(g, m, o.ID, now)
	}
	g.Desired += missing
	fresh := missing - len(woken)
	launched := fresh
	if o.Stuck { // as if Azure searched for ever: half of them never comes
		launched = fresh / 2
		g.Desired -= fresh - launched
	}
	bought := k.buy(g, launched, toRun, o.ID, now)
	return fmt.Sprintf("launched %d, woke %d, refused %d", bought, len(woken), fresh-bought)
}

// shrink takes machines that nobody named: cordoned ones first, then those with the highest numbers, as AKS was seen to do.
// AKS drains by itself; this cloud does not.
func (k *cloud) shrink(g *group, o *armOperation, live []*machine, surplus int, now int64) {
	slices.SortStableFunc(live, func(a, b *machine) int {
		if o.cordoned[a.ID] != o.cordoned[b.ID] {
			return map[bool]int{false: -1, true: 1}[o.cordoned[a.ID]]
		}
		return a.index() - b.index()
	})
	for _, m := range live[len(live)-surplus:] {
		if g.conf.AKS.isDeallocating(g.AKS) {
			k.deallocate(g, o, m, now)
			continue
		}
		k.terminate(g, m, o.ID, now)
	}
}

func (k *cloud) deallocate(g *group, o *armOperation, m *machine, now int64) {
	g.Desired--
	g.Standby++
	m.Goal, m.Token, m.Instant = toStandby, o.ID, false
	if m.State != pending {
		m.enter(stopping, now, now+k.clock.millis(m.stage(g.conf.Stages.Stop, k.seed, "stop")))
	}
}

func (a *aksConfig) isDeallocating(p *agentPool) bool {
	return p.Properties["scaleDownMode"] == "Deallocate"
}

// deleteMachines ends exactly the named ones, drained or not; the count falls by those that ran. Where stopped machines
// are kept, documents and Cluster Autoscaler's code disagree whether it deletes: it does what the configuration says.
func (k *cloud) deleteMachines(g *group, o *armOperation, names []string, now int64) string {
	if f := k.faults.use("partial-delete", g.Name, k.nowS(now)); f != nil {
		spare := min(len(names), int(f.number(float64((len(names)+1)/2))))
		o.Spared, names = names[:spare], names[spare:]
	}
	stopped := g.conf.AKS.Deletes == "deallocate" || k.faults.find("delete-deallocates", g.Name, k.nowS(now)) != nil
	count, stops := 0, 0
	for _, name := range names {
		m := g.machine(name)
		if m == nil || m.State == terminating {
			continue
		}
		if stopped && g.conf.AKS.isDeallocating(g.AKS) {
			if m.Goal == toRun {
				k.deallocate(g, o, m, now)
				g.AKS.Count = max(0, g.AKS.Count-1)
				stops++
			}
			continue
		}
		if m.Goal == toRun {
			o.Doomed = append(o.Doomed, name)
		}
		k.terminate(g, m, o.ID, now)
		count++
	}
	if stops > 0 {
		return fmt.Sprintf("deallocated %d, failed on %d", stops, len(o.Spared))
	}
	return fmt.Sprintf("terminated %d, failed on %d", count, len(o.Spared))
}

// abort ends what is in progress; machines that are on their way come all the same.
func (k *cloud) abort(g *group, o *armOperation, now int64) *armOperation {
	p := g.AKS
	k.forget(g, o)
	o.end(canceled, now, plainError("OperationPreempted", "The operation was canceled by an abort request."))
	a := k.begin(g, "abort", "Canceling", now)
	a.Stuck = false
	p.Error = nil
	return a
}

// forget gives up what an operation has asked for and that cannot come.
func (k *cloud) forget(g *group, o *armOperation) {
	g.Refusals = slices.DeleteFunc(g.Refusals, func(r refusal) bool {
		if r.Token == o.ID && r.Goal == toRun {
			g.Desired -= r.Count
		}
		return r.Token == o.ID
	})
}

// preempt lets a later operation end the one in progress, as Azure sometimes does.
func (k *cloud) preempt(g *group, o *armOperation, later string, how any, now int64) {
	k.forget(g, o)
	if how == "etag" {
		o.end(failedWord, now, &armError{Code: "ResourceOperationFailure", Message: "Failed to save agent pool " + g.conf.AKS.Pool +
			". This operation has been preempted by Updating operation.", Details: []*armError{{Code: "OriginalEtagNotExpect",
			Message: "rpc error: code = FailedPrecondition desc = Original etag not expected"}}})
		return
	}
	o.end(canceled, now, plainError("OperationPreempted",
		"The operation was overriden and canceled by a later operation %s.", later))
}

func (o *armOperation) end(status string, now int64, e *armError) {
	o.Status, o.Ended, o.Error = status, now, e
}

// refused remembers a launch that failed for the operation that asked for it. The count stays.
func (p *agentPool) refused(r refusal) {
	if p == nil {
		return
	}
	if o := p.operation(r.Token); o != nil {
		o.Refused = append(o.Refused, r)
	}
}

// evicted is a spot machine that was taken: the pool shrinks with it.
func (p *agentPool) evicted() {
	if p != nil && p.Count > 0 {
		p.Count--
		p.changed()
	}
}

// advancePool ends the operation in progress when nothing is under way for it any more.
func (k *cloud) advancePool(g *group, now int64) bool {
	p := g.AKS
	o := p.current()
	if o == nil {
		return k.beginUpgrade(g, now)
	}
	changed := p.recount(g, o)
	if o.Due > now || g.isBusyFor(o.ID) || o.Stuck && k.isStuck(g, now) || o.Kind == "upgrade" && !k.areReady(g.madeFor(o.ID)) {
		return changed
	}
	if o.Kind == "upgrade" {
		return k.upgrade(g, o, now) || changed
	}
	p.changed()
	switch {
	case o.Kind == "abort":
		o.end(succeeded, now, nil)
		p.State = canceled
	case len(o.Refused) > 0 || o.Stuck:
		o.end(failedWord, now, k.launchError(g, o))
		p.State, p.Error = failedWord, o.Error
	case len(o.Spared) > 0:
		o.end(failedWord, now, deletionError(g, o))
		p.State, p.Error = failedWord, o.Error
	default:
		o.end(succeeded, now, nil)
		p.State = succeeded
	}
	return true
}

func (k *cloud) isStuck(g *group, now int64) bool {
	return k.faults.find("stuck-operation", g.Name, k.nowS(now)) != nil
}

// recount lowers the count by the doomed machines that are gone.
func (p *agentPool) recount(g *group, o *armOperation) bool {
	before := len(o.Doomed)
	o.Doomed = slices.DeleteFunc(o.Doomed, func(name string) bool { return g.machine(name) == nil })
	p.Count = max(0, p.Count-(before-len(o.Doomed)))
	return len(o.Doomed) < before
}

func (g *group) madeFor(token string) []*machine {
	return slices.DeleteFunc(g.live(), func(m *machine) bool { return m.Token != token })
}

func (g *group) isBusyFor(token string) bool {
	for _, m := range g.Machines {
		if m.Token == token && m.State != running && m.State != stopped {
			return true
		}
	}
	return slices.ContainsFunc(g.Refusals, func(r refusal) bool { return r.Token == token })
}
