package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// listed is traffic that a test writes down.
type listed []*request

func (l *listed) peek() *request {
	if len(*l) == 0 {
		return nil
	}
	return (*l)[0]
}
func (l *listed) take() { *l = (*l)[1:] }

// arrivals come at these times, each of 1000 prompt and 100 output tokens: 0.1 s of prefill, 14 s in a slot of 2.
func arrivals(times ...float64) *pool {
	p := &pool{conf: &poolConfig{Name: "p", Selector: map[string]string{"app": "p"}, MaxSequences: 2, PrefillRate: 10000,
		InterTokenLatency: duration(138 * time.Millisecond), Objective: duration(2 * time.Second)}}
	p.conf.complete(".")
	source := &listed{}
	for _, at := range times {
		*source = append(*source, &request{arrived: at, prompt: 1000, output: 100})
	}
	p.sources = append(p.sources, source)
	return p
}

func TestEngineTakesSlots(t *testing.T) {
	p := arrivals(1, 1, 1, 1)
	e := p.join("pod", 0)
	p.advance(2)
	if len(e.running) != 2 || len(e.waiting) != 2 {
		t.Fatalf("%d run, %d wait", len(e.running), len(e.waiting))
	}
	p.advance(14.9)
	if s := p.result(); s.Completed != 0 || s.Late != 2 {
		t.Errorf("before the slots end: %+v", s)
	}
	p.advance(15.1)
	if s := p.result(); s.Completed != 2 || s.Started != 4 || s.Late != 2 || s.Waiting != 0 {
		t.Errorf("after: %+v", s)
	}
	p.advance(60)
	s := p.result()
	if s.Completed != 4 || e.counters.generation != 400 || e.counters.prompt != 4000 || s.LateShare != 0.5 {
		t.Errorf("at the end: %+v, %+v", s, e.counters)
	}
	if math.Abs(s.WaitP99-14) > 1e-9 || math.Abs(e.counters.queueTime.sum-28) > 1e-9 {
		t.Errorf("waits: p99 %v, sum %v", s.WaitP99, e.counters.queueTime.sum)
	}
}

func TestGatewayChoosesTheFewestInFlight(t *testing.T) {
	p := arrivals(1, 2, 3, 4, 5)
	a, b := p.join("a", 0), p.join("b", 0)
	p.advance(4.5)
	if a.inFlight() != 2 || b.inFlight() != 2 {
		t.Errorf("%d and %d", a.inFlight(), b.inFlight())
	}
}

func TestGatewayHoldsWhileNoneIsReady(t *testing.T) {
	p := arrivals(1, 2)
	p.advance(10)
	if s := p.result(); s.Waiting != 2 || s.Started != 0 || s.Late != 2 {
		t.Errorf("none ready: %+v", s)
	}
	p.join("pod", 10)
	if s := p.result(); s.Started != 2 || s.WaitP50 != 9 || s.Late != 2 {
		t.Errorf("one ready: %+v", s)
	}
}

func TestNewPodHelpsAtOnce(t *testing.T) {
	p := arrivals(1, 1, 1, 1, 1)
	p.join("a", 0)
	p.advance(2)
	p.join("b", 3)
	if s := p.result(); s.Started != 4 || s.Waiting != 1 {
		t.Errorf("%+v", s)
	}
}

func TestDrainFinishesWhatRuns(t *testing.T) {
	p := arrivals(1, 1, 1)
	a := p.join("a", 0)
	p.advance(2)
	p.join("b", 2)
	p.drain(a, 2)
	if s := p.result(); s.Ready != 1 || s.Running != 3 || s.Waiting != 0 {
		t.Errorf("draining: %+v", s)
	}
	if p.idle(a, 14.9) || !p.idle(a, 15.1) {
		t.Error("the engine has to be idle when its slots end, not before")
	}
	p.leave(a, 15.1)
	if s := p.result(); s.Interrupted != 0 || s.Completed != 2 {
		t.Errorf("after: %+v", s)
	}
}

func TestLeaveInterrupts(t *testing.T) {
	p := arrivals(1, 1)
	a := p.join("a", 0)
	p.advance(5)
	p.leave(a, 5)
	if s := p.result(); s.Interrupted != 2 || s.Waiting != 2 || s.Ready != 0 || s.Late != 0 {
		t.Errorf("%+v", s)
	}
	p.join("b", 6)
	p.advance(21)
	if s := p.result(); s.Completed != 2 || s.Started != 2 {
		t.Errorf("%+v", s)
	}
}

func TestGeneratedGrowsSteadily(t *testing.T) {
	p := arrivals(1)
	e := p.join("a", 0)
	before := 0
	for now := 0.0; now < 20; now += 0.25 {
		p.advance(now)
		running, kv := e.generated(now), e.kv(now)
		if all := e.counters.generation + running; all < before || all > 100 || (kv > 0) != (len(e.running) > 0) {
			t.Fatalf("at %v: %d generated, %d before, %d in the cache", now, all, before, kv)
		} else {
			before = all
		}
	}
	if before != 100 {
		t.Errorf("%d generated at the end", before)
	}
}

func TestExposition(t *testing.T) {
	p := arrivals(1, 1, 1)
	s := &modelServer{pool: p, engine: p.join("a", 0), started: time.Unix(1, 0)}
	text := s.exposition(5, "")
	for _, line := range []string{
		"# TYPE vllm:num_requests_running gauge",
		`vllm:num_requests_running{engine="0",model_name="p"} 2.0`,
		`vllm:num_requests_waiting{engine="0",model_name="p"} 1.0`,
		"# TYPE vllm:prompt_tokens_total counter",
		`vllm:prompt_tokens_total{engine="0",model_name="p"} 2000.0`,
		`vllm:request_success_total{engine="0",finished_reason="stop",model_name="p"} 0.0`,
		`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="p",le="0.25"} 2.0`,
		`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="p",le="+Inf"} 2.0`,
		`vllm:request_queue_time_seconds_count{engine="0",model_name="p"} 0.0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	if broken := s.exposition(5, "nan"); !strings.Contains(broken, `vllm:num_requests_running{engine="0",model_name="p"} NaN`) {
		t.Error("no NaN")
	}
	if none := s.exposition(5, "absent"); strings.Contains(none, "vllm:") || !strings.Contains(none, "python_info") {
		t.Error("absent metrics are there")
	}
}

func TestMetricsFaultsTakeAShareOfPods(t *testing.T) {
	var fs faults
	fs.add(fault{Fault: "metrics-nan", Pool: "p", Share: 0.5}, 10)
	struck := 0
	for i := range 1000 {
		if fs.scrape("p", fmt.Sprint("pod", i), 11) == "nan" {
			struck++
		}
	}
	if struck < 400 || struck > 600 {
		t.Errorf("%d of 1000", struck)
	}
	fs.add(fault{Fault: "metrics-hang", Pool: "r", Pods: []string{"pod7"}}, 10)
	if fs.scrape("r", "pod7", 11) != "hang" || fs.scrape("r", "pod6", 11) != "" {
		t.Error("one by name")
	}
	if fs.scrape("q", "pod1", 11) != "" || fs.scrape("p", "pod1", 9) != "" {
		t.Error("another pool, or another time")
	}
}

// Two slots, but a cache for hardly more than one request: the second is admitted, grows, and has to go.
func TestPreemption(t *testing.T) {
	p := arrivals(1, 1)
	p.conf.KVTokens = 2150
	e := p.join("a", 0)
	before := 0
	for now := 0.0; now < 60; now += 0.25 {
		p.advance(now)
		if all := e.counters.generation + e.generated(now); all < before {
			t.Fatalf("at %v: %d generated, %d before", now, all, before)
		} else {
			before = all
		}
		if e.kv(now) > p.conf.KVTokens+2*8 { // of a second
			t.Fatalf("at %v: %d tokens in the cache", now, e.kv(now))
		}
	}
	s := p.result()
	if e.counters.preemptions != 1 || s.Preemptions != 1 || s.Completed != 2 || e.counters.generation != 200 {
		t.Errorf("%+v, %+v", s, e.counters)
	}
	if s.Started != 2 || e.counters.prompt != 2000 || e.counters.queueTime.sum != 0 || e.counters.firstTokenTime.total != 2 {
		t.Errorf("a preempted request starts once: %+v, %+v", s, e.counters)
	}
	p.leave(e, 60)
	if s := p.result(); s.Preemptions != 1 {
		t.Errorf("an engine that is gone: %+v", s)
	}
}

func TestTruth(t *testing.T) {
	p := arrivals(1, 1, 1)
	p.join("a", 0)
	p.advance(50)
	s := p.result()
	for _, c := range []struct {
		name       string
		is, wanted float64
	}{
		{"elapsed", s.ElapsedS, 50}, {"running", s.RunningS, 3 * 14}, {"waiting", s.WaitingS, 14}, {"ready", s.ReadyS, 50},
		{"offered", s.OfferedS, 3 * 14}, {"saturated", s.SaturatedS, 14}, {"running then", s.SaturatedR, 28},
	} {
		if math.Abs(c.is-c.wanted) > 0.03 {
			t.Errorf("%s: %v, wanted %v", c.name, c.is, c.wanted)
		}
	}
}

func TestPrefixCacheSparesPrompts(t *testing.T) {
	p := arrivals(1, 20, 40, 60, 80, 100)
	p.conf.PrefixHits = 0.5
	e := p.join("a", 0)
	p.advance(200)
	c := e.counters
	if c.prefixQueries != 6000 || c.prefixHits < 1500 || c.prefixHits > 4500 || c.prompt != 6000 {
		t.Errorf("%+v", c)
	}
	if s := p.result(); s.RunningS > 6*14-0.1 || math.Abs(s.RunningS-s.OfferedS) > 0.02 {
		t.Errorf("cached prompts take no time: %v of %v", s.RunningS, s.OfferedS)
	}
}
