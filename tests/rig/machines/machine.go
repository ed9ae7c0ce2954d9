package main

import (
	"fmt"
	"time"
)

type machineState string

const (
	pending     machineState = "pending"
	running     machineState = "running"
	stopping    machineState = "stopping"
	stopped     machineState = "stopped"
	waking      machineState = "waking"
	terminating machineState = "terminating"
)

type goal string

const (
	toRun     goal = "run"
	toStandby goal = "standby"
)

// machine is one simulated virtual machine. Times are real milliseconds since the epoch.
type machine struct {
	ID         string       `json:"id"`
	ProviderID string       `json:"provider_id"`
	Node       string       `json:"node,omitempty"` // its name in Kubernetes; empty: ID
	Zone       string       `json:"zone"`
	Type       string       `json:"type,omitempty"` // empty: the group's
	State      machineState `json:"state"`
	Goal       goal         `json:"goal"`
	LaunchedAt int64        `json:"launched_at"`
	StateSince int64        `json:"state_since"`
	Due        int64        `json:"due"` // when the state ends by itself; 0: never
	Token      string       `json:"token"`
	Woken      bool         `json:"woken"`               // was stopped before it ran
	Used       bool         `json:"used"`                // was stopped after it ran: its disk has images, unless a stop empties it
	Instant    bool         `json:"instant"`             // of the initial fleet: no delays
	Taken      bool         `json:"taken"`               // a spot machine that got its notice
	Waiting    bool         `json:"waiting,omitempty"`   // terminating, but with power until a hook is over
	Held       bool         `json:"held,omitempty"`      // runs, but is not in service until a hook is over
	Abandoned  bool         `json:"abandoned,omitempty"` // that hook will say no
	Protected  bool         `json:"protected,omitempty"` // from scale-in
	Unhealthy  bool         `json:"unhealthy,omitempty"`
	Cordoned   bool         `json:"cordoned,omitempty"` // by the cloud, whose update replaces it
	Evicting   bool         `json:"evicting,omitempty"` // the cloud evicts its pods
	Evicted    bool         `json:"evicted,omitempty"`  // they are gone
	Joined     bool         `json:"joined,omitempty"`   // its node is ready, since it runs

	NeverRegisters bool    `json:"never_registers,omitempty"`
	NeverReady     bool    `json:"never_ready,omitempty"`
	NoDevice       bool    `json:"no_device,omitempty"`
	LateDeviceS    float64 `json:"late_device_s,omitempty"`
	Slow           float64 `json:"slow,omitempty"` // factor on every stage; 0: none

	BilledMillis int64 `json:"billed_millis"` // before StateSince
}

// inService is what Auto Scaling calls so.
func (m *machine) inService() bool { return m.State == running && !m.Held }

// node is the name of its Node object.
func (m *machine) node() string { return or(m.Node, m.ID) }

func (m *machine) enter(state machineState, at int64, due int64) {
	if m.State != stopped {
		m.BilledMillis += max(0, at-m.StateSince)
	}
	m.Used = m.Used || m.State == running && state == stopping
	m.State, m.StateSince, m.Due, m.Joined = state, at, due, false
}

// billed milliseconds until now: all that it exists and is not stopped.
func (m *machine) billed(now int64) int64 {
	if m.State == stopped {
		return m.BilledMillis
	}
	return m.BilledMillis + max(0, now-m.StateSince)
}

// stage draws one of the machine's delays.
func (m *machine) stage(d delay, seed uint64, name string) time.Duration {
	if m.Instant {
		return 0
	}
	drawn := d.draw(seed, m.ID+"/"+name)
	if m.Slow > 0 {
		drawn = time.Duration(float64(drawn) * m.Slow)
	}
	return drawn
}

// group is one node group of the cloud. Always: desired = machines that run or will + refusals not yet known.
type group struct {
	Name         string      `json:"name"`
	Desired      int         `json:"desired"`
	Standby      int         `json:"standby_desired"`
	Machines     []*machine  `json:"machines"`
	Failures     []failure   `json:"failures"`
	Operations   []operation `json:"operations"`
	Refusals     []refusal   `json:"refusals"`
	Sequence     int         `json:"sequence"`
	FailureCount int         `json:"failure_count"`
	BilledMillis int64       `json:"billed_millis"` // of machines that are gone
	Peak         int         `json:"peak"`

	Auto *autoscaling `json:"autoscaling,omitempty"` // of a group of EKS
	AKS  *agentPool   `json:"agent_pool,omitempty"`  // of one of AKS

	conf  *groupConfig
	named []string // the next machines' names, where somebody else gives them
	past  []moment // oldest first, while reads of it are old
}

type failure struct {
	ID      int    `json:"id"`
	At      int64  `json:"at"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Count   int    `json:"count"`
}

type operation struct {
	Token string `json:"token"`
	Kind  string `json:"kind"`
	State string `json:"state"`
	At    int64  `json:"at"`
}

// refusal is a launch that will turn out to fail.
type refusal struct {
	Due   int64  `json:"due"`
	Count int    `json:"count"`
	Goal  goal   `json:"goal"`
	Code  string `json:"code"`
	Token string `json:"token"`

	Zone    string `json:"zone,omitempty"` // where the group spreads its launches itself
	Type    string `json:"type,omitempty"`
	Message string `json:"message,omitempty"`
	Cause   string `json:"cause,omitempty"` // in the cloud's own words
}

func (g *group) machine(id string) *machine {
	for _, m := range g.Machines {
		if m.ID == id {
			return m
		}
	}
	return nil
}

func (g *group) fail(at int64, code, message string, count int) {
	g.FailureCount++
	g.Failures = last(append(g.Failures, failure{g.FailureCount, at, code, message, count}), 50)
}

func (g *group) operate(token, kind string, at int64) {
	g.Operations = last(append(g.Operations, operation{token, kind, "running", at}), 100)
}

func (g *group) settle(token, state string, at int64) {
	for i := range g.Operations {
		if o := &g.Operations[i]; o.Token == token && o.State == "running" {
			o.State, o.At = state, at
		}
	}
}

// settleDone ends the operations that nothing is under way for any more.
func (g *group) settleDone(at int64) {
	busy := map[string]bool{}
	for _, m := range g.Machines {
		if m.State == pending || m.State == waking || m.State == stopping || m.State == terminating {
			busy[m.Token] = true
		}
	}
	for _, r := range g.Refusals {
		busy[r.Token] = true
	}
	for i := range g.Operations {
		if o := &g.Operations[i]; o.State == "running" && !busy[o.Token] {
			o.State, o.At = "done", at
		}
	}
}

func (g *group) newID() string {
	g.Sequence++
	if len(g.named) > 0 {
		id := g.named[0]
		g.named = g.named[1:]
		return id
	}
	return fmt.Sprintf("%s-%06d", g.Name, g.Sequence)
}

func last[T any](list []T, count int) []T {
	if len(list) > count {
		return append([]T(nil), list[len(list)-count:]...)
	}
	return list
}

// groupView is what GET /v1/groups/NAME says.
type groupView struct {
	Name       string        `json:"name"`
	Min        int           `json:"min"`
	Max        int           `json:"max"`
	Desired    int           `json:"desired"`
	Surge      int           `json:"surge"` // of desired: what its owner added beyond what it may have
	Standby    int           `json:"standby_desired"`
	Machines   []machineView `json:"machines"`
	Failures   []failure     `json:"failures"`
	Operations []operation   `json:"operations"`
	Refused    []string      `json:"refused,omitempty"`
}

type machineView struct {
	ID         string       `json:"id"`
	ProviderID string       `json:"provider_id"`
	Zone       string       `json:"zone"`
	State      machineState `json:"state"`
	Goal       goal         `json:"goal"`
	LaunchedAt int64        `json:"launched_at"`
	StateSince int64        `json:"state_since"`
}

// surged is by how many machines an update of its owner lets it be larger meanwhile.
func (g *group) surged() int {
	switch {
	case g.AKS != nil && g.AKS.Upgrade != nil:
		return len(g.AKS.Upgrade.Surge)
	case g.Auto != nil && g.Auto.Owner != nil:
		return max(0, g.Auto.Max-g.Auto.Owner.Max)
	}
	return 0
}

func (g *group) view(refused []string) groupView {
	v := groupView{Name: g.Name, Min: g.conf.Min, Max: g.conf.Max, Desired: g.Desired, Surge: g.surged(), Standby: g.Standby,
		Machines: []machineView{}, Failures: append([]failure{}, g.Failures...),
		Operations: append([]operation{}, g.Operations...), Refused: refused}
	for _, m := range g.Machines {
		v.Machines = append(v.Machines,
			machineView{m.ID, m.ProviderID, m.Zone, m.State, m.Goal, m.LaunchedAt, m.StateSince})
	}
	return v
}
