package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// newTestCloud has a group g of at most 10 machines that take 60 s, begun at 1,000,000 s, and one called other.
func newTestCloud(t *testing.T, initial int) (*cloud, *group) {
	t.Helper()
	standby := 5
	conf := &config{Groups: []*groupConfig{
		{Name: "g", Max: 10, Initial: initial, StandbyMax: &standby, Zones: []string{"z1", "z2"}, Stages: stagesConfig{
			Provision: fixed(60 * time.Second), Wake: fixed(20 * time.Second)}},
		{Name: "other", Max: 3}}}
	if err := conf.complete("."); err != nil {
		t.Fatal(err)
	}
	k := newCloud(conf, clock{start: time.Unix(1000000, 0), speed: 1}, 1)
	return k, k.group("g")
}

func at(s int) int64 { return int64(1000000+s) * 1000 }

// do calls at second s, and lets pass what is due before.
func do(t *testing.T, k *cloud, s int, name string, o order) (result, error) {
	t.Helper()
	k.advance(at(s))
	if o.Token == "" {
		o.Token = fmt.Sprintf("%s-%d", name, s)
	}
	g := k.group("g")
	g.operate(o.Token, name, at(s))
	r, err := calls[name](k, g, &o, at(s))
	k.advance(at(s))
	check(t, k)
	return r, err
}

func count(n int) *int { return &n }

// check are the laws of a cloud that hold at every moment.
func check(t *testing.T, k *cloud) {
	t.Helper()
	for _, g := range k.groups {
		run, standby := 0, 0
		for _, m := range g.Machines {
			switch {
			case m.State == terminating:
			case m.Goal == toRun:
				run++
			default:
				standby++
			}
			if m.State == stopped && m.Due != 0 || m.State == running && m.Due != 0 && !m.Taken {
				t.Errorf("%s is %s and yet has an end", m.ID, m.State)
			}
		}
		for _, r := range g.Refusals {
			if r.Goal == toRun {
				run += r.Count
			} else {
				standby += r.Count
			}
		}
		if g.Desired != run || g.Standby != standby {
			t.Errorf("group %s: desired %d and standby %d, but %d run or will and %d stand by", g.Name, g.Desired,
				g.Standby, run, standby)
		}
		if g.Desired > g.conf.Max || g.Standby > *g.conf.StandbyMax || g.Desired < 0 || g.Standby < 0 {
			t.Errorf("group %s: desired %d, standby %d are out of bounds", g.Name, g.Desired, g.Standby)
		}
	}
}

func states(g *group) string {
	var list []string
	for _, m := range g.Machines {
		list = append(list, string(m.State))
	}
	return strings.Join(list, " ")
}

func TestMachinesPassThroughStates(t *testing.T) {
	k, g := newTestCloud(t, 1)
	steps := []struct {
		second int
		call   string
		order  order
		effect string
		states string
	}{
		{0, "grow", order{Desired: count(3)}, "launched 2, woke 0, refused 0", "running pending pending"},
		{59, "grow", order{Desired: count(3)}, "launched 0, woke 0, refused 0", "running pending pending"},
		{60, "stop", order{Machines: []string{"g-000001", "g-000002"}}, "stopped 2", "stopping stopping running"},
		{99, "standby", order{Size: count(3)}, "launched 1 for standby, refused 0", "stopping stopping running pending"},
		{100, "grow", order{Desired: count(2)}, "launched 0, woke 1, refused 0", "waking stopped running pending"},
		{120, "grow", order{Desired: count(4)}, "launched 0, woke 2, refused 0", "running waking running pending"},
		{140, "remove", order{Machines: []string{"g-000003", "nobody"}}, "terminated 1",
			"running running terminating pending"},
		{158, "cancel", order{Machines: []string{"g-000001", "g-000004", "nobody"}}, "cancelled 1",
			"running running terminating terminating"},
		{160, "standby", order{Size: count(0)}, "terminated 0 of standby", "running running terminating"},
		{180, "grow", order{Desired: count(2)}, "launched 0, woke 0, refused 0", "running running"},
	}
	for _, s := range steps {
		r, err := do(t, k, s.second, s.call, s.order)
		if err != nil || r.effect != s.effect || states(g) != s.states {
			t.Errorf("%s at %d s: %q (%v), then %q; wanted %q, then %q", s.call, s.second, r.effect, err, states(g),
				s.effect, s.states)
		}
	}
	if k.journal.Purchases != 4 {
		t.Errorf("%d machines were bought, wanted 4", k.journal.Purchases)
	}
}

func TestRefusesWhatIsWrong(t *testing.T) {
	cases := []struct {
		call  string
		order order
		says  string
	}{
		{"grow", order{}, "desired is missing"},
		{"grow", order{Desired: count(11)}, "above the maximum 10"},
		{"grow", order{Desired: count(1)}, "below the present 2"},
		{"standby", order{}, "from 0 to 5"},
		{"standby", order{Size: count(6)}, "from 0 to 5"},
		{"standby", order{Size: count(-1)}, "from 0 to 5"},
	}
	for _, c := range cases {
		k, g := newTestCloud(t, 2)
		before := fmt.Sprint(g.view(nil).Machines, g.Desired, g.Standby)
		_, err := do(t, k, 5, c.call, c.order)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, wanted %q", c.call, err, c.says)
		}
		if after := fmt.Sprint(g.view(nil).Machines, g.Desired, g.Standby); after != before {
			t.Errorf("%s was refused and yet changed %s into %s", c.call, before, after)
		}
	}
}

func TestLaunchFaults(t *testing.T) {
	cases := []struct {
		fault    fault
		launched int
		failed   int
		code     string
	}{
		{fault{Fault: "stock-out"}, 0, 6, "stock-out"},
		{fault{Fault: "quota", Group: "g"}, 0, 6, "quota"},
		{fault{Fault: "stock-out", Count: 2}, 4, 2, "stock-out"},
		{fault{Fault: "partial"}, 3, 3, "stock-out"},
		{fault{Fault: "stock-out", Group: "other"}, 6, 0, ""},
		{fault{Fault: "stock-out", ForS: 4}, 6, 0, ""},
		{fault{Fault: "stock-out", AfterS: 6}, 6, 0, ""},
	}
	for _, c := range cases {
		k, g := newTestCloud(t, 0)
		if err := c.fault.check(); err != nil {
			t.Fatal(err)
		}
		k.faults.add(c.fault, 0)
		if _, err := do(t, k, 5, "grow", order{Desired: count(6)}); err != nil {
			t.Fatal(err)
		}
		if g.Desired != 6 || len(g.Machines) != c.launched {
			t.Errorf("%v: desired %d, %d machines", c.fault, g.Desired, len(g.Machines))
		}
		k.advance(at(15))
		check(t, k)
		if g.Desired != c.launched || len(g.Failures) != min(c.failed, 1) {
			t.Errorf("%v: then desired %d, failures %v", c.fault, g.Desired, g.Failures)
		} else if c.failed > 0 && (g.Failures[0].Code != c.code || g.Failures[0].Count != c.failed ||
			g.Operations[0].State != "failed") {
			t.Errorf("%v: failure %v, operation %v", c.fault, g.Failures[0], g.Operations[0])
		}
	}
}

func TestStockOutAtOnceChangesNothing(t *testing.T) {
	k, g := newTestCloud(t, 1)
	k.faults.add(fault{Fault: "stock-out", Group: "*", Value: "sync"}, 0)
	_, err := do(t, k, 1, "grow", order{Desired: count(2)})
	if err == nil || !strings.Contains(err.Error(), "InsufficientCapacity") || g.Desired != 1 {
		t.Errorf("%v, desired %d", err, g.Desired)
	}
}

func TestSpotLoss(t *testing.T) {
	k, g := newTestCloud(t, 3)
	k.faults.add(fault{Fault: "spot-loss", Group: "g", Value: 2.0}, 10)
	k.advance(at(10))
	if !g.Machines[0].Taken || !g.Machines[1].Taken || g.Machines[2].Taken || g.Desired != 3 {
		t.Errorf("notice: %v", states(g))
	}
	k.advance(at(130))
	check(t, k)
	if g.Desired != 1 || len(g.Machines) != 1 || len(g.Failures) != 1 || g.Failures[0].Code != "spot-loss" {
		t.Errorf("desired %d, %v, %v", g.Desired, states(g), g.Failures)
	}
}

func TestCancelGivesUpWhatCannotCome(t *testing.T) {
	k, g := newTestCloud(t, 1)
	k.faults.add(fault{Fault: "stock-out", Group: "*"}, 0)
	do(t, k, 1, "grow", order{Desired: count(5)})
	do(t, k, 2, "cancel", order{Desired: count(2)})
	if g.Desired != 2 {
		t.Errorf("desired %d, wanted 2", g.Desired)
	}
}

func TestBilledWhileNotStopped(t *testing.T) {
	k, g := newTestCloud(t, 1)
	do(t, k, 100, "stop", order{Machines: []string{"g-000001"}}) // 40 s until stopped
	do(t, k, 1140, "grow", order{Desired: count(1)})
	k.advance(at(1200))
	if billed := g.Machines[0].billed(at(1200)); billed != 140000+60000 {
		t.Errorf("billed %d ms", billed)
	}
}

// What is asked of the cloud in random order, with random faults, breaks no law.
func TestRandomCallsKeepTheLaws(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		k, g := newTestCloud(t, rng.IntN(4))
		for second := 0; second < 2000 && !t.Failed(); second += rng.IntN(30) {
			o := order{Token: fmt.Sprint(second), Desired: count(rng.IntN(12)), Size: count(rng.IntN(7))}
			for _, m := range g.Machines {
				if rng.IntN(3) == 0 {
					o.Machines = append(o.Machines, m.ID)
				}
			}
			names := []string{"grow", "grow", "remove", "stop", "standby", "cancel"}
			do(t, k, second, names[rng.IntN(len(names))], o)
			if rng.IntN(5) == 0 {
				struck := []string{"stock-out", "partial", "spot-loss", "quota"}[rng.IntN(4)]
				k.faults.add(fault{Fault: struck, Group: "*", ForS: 20, Value: 1.0}, k.nowS(at(second)))
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Where somebody else makes the nodes, each machine is named as its node is.
func TestForeignMachinesAreNamed(t *testing.T) {
	k, g := newTestCloud(t, 0)
	g.conf.Foreign = "kwok://"
	if _, err := do(t, k, 1, "grow", order{Desired: count(2), Machines: []string{"a"}}); err == nil || g.Desired != 0 {
		t.Errorf("two machines by one name: desired is %d, error %v", g.Desired, err)
	}
	if _, err := do(t, k, 2, "grow", order{Desired: count(2), Machines: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	if m := g.machine("b"); m == nil || m.ProviderID != "kwok://b" || m.node() != "b" || len(g.Machines) != 2 {
		t.Errorf("machines of a and b: %v", g.Machines)
	}
}
