package main

import (
	"net/url"
	"testing"
)

func TestReadsShowWhatWas(t *testing.T) {
	k, g := newTestAccount(t, 1, nil)
	k.faults.add(fault{Group: "g", Fault: "old-reads", Value: 60.0}, 0)
	pass(t, k, 0)
	g.Auto.resize(3, at(10))
	for s := 10; s < 200; s += 10 {
		pass(t, k, s)
		shown := k.shown(g, at(s))
		if wanted := map[bool]int{true: 1, false: 3}[s < 70]; shown.Auto.Desired != wanted || len(shown.members()) != wanted {
			t.Errorf("at %d s: %d desired, %d machines, wanted %d", s, shown.Auto.Desired, len(shown.members()), wanted)
		}
	}
	k.faults.remove(0)
	g.Auto.resize(4, at(200))
	pass(t, k, 200)
	if k.shown(g, at(200)) != g {
		t.Error("without the fault a read shows what is")
	}
}

func TestReadsInAnyOrder(t *testing.T) {
	k, g := newTestPool(t, 1, nil)
	k.faults.add(fault{Group: "g", Fault: "mixed-reads", Value: 60.0}, 0)
	put(k, g, 0, 2)
	sizes, back, before := map[int]bool{}, 0, 0
	for s := 1; s < 60; s++ {
		if k.advance(at(s)); s == 30 {
			g.AKS.Count = 3
		}
		shown := k.shown(g, at(s)).AKS.Count
		if sizes[shown] = true; shown < before {
			back++
		}
		before = shown
	}
	if !sizes[2] || !sizes[3] || back == 0 {
		t.Errorf("sizes %v, %d times an older one after a newer one", sizes, back)
	}
}

func TestAYesThatMeansSomethingElse(t *testing.T) {
	for name, wanted := range map[string]int{"no-effect": 2, "one-less": 3, "one-more": 5} {
		k, g := newTestAccount(t, 2, nil)
		k.faults.add(fault{Group: "g", Fault: name, Count: 1}, 0)
		for i, desired := range []int{wanted, 6} { // it happens once
			c := awsCall{form: url.Values{"AutoScalingGroupName": {g.conf.EKS.ASG}, "DesiredCapacity": {[]string{"4", "6"}[i]}},
				nowMillis: at(i)}
			if _, refusal := setDesired(&awsDoor{cloud: k}, &c); refusal != nil || g.Auto.Desired != desired {
				t.Errorf("%s: desired is %d, wanted %d (%v)", name, g.Auto.Desired, desired, refusal)
			}
		}
	}
}
