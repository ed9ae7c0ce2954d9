package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// pool is a gateway before the engines of one model: its traffic, its queue, its score.
type pool struct {
	mu       sync.Mutex
	conf     *poolConfig
	now      float64
	engines  []*engine // ready ones, by pod name
	leaving  []*engine // that finish what runs
	queue    []*request
	due      due
	sources  []source
	score    score
	truth    truth
	waits    []float64
	prefixes int // drawn so far
}

// source is where requests come from, in the order of arrival.
type source interface {
	// peek is the next request, or nil at the end.
	peek() *request
	take()
}

type score struct {
	Requests    int     `json:"requests"`
	Started     int     `json:"started"`
	Completed   int     `json:"completed"`
	Late        int     `json:"late"`
	LateShare   float64 `json:"late_share"`
	Waiting     int     `json:"waiting"`
	Running     int     `json:"running"`
	Ready       int     `json:"ready"`
	Peak        int     `json:"peak_ready"`
	Interrupted int     `json:"interrupted"`
	WaitP50     float64 `json:"wait_p50_s"`
	WaitP99     float64 `json:"wait_p99_s"`
	GPUSeconds  float64 `json:"gpu_seconds"` // billed, of the pool's groups, simulated
	Machines    int     `json:"machines"`
	MaxMachines int     `json:"max_machines"`
	truth
}

func (p *pool) itl() float64 { return time.Duration(p.conf.InterTokenLatency).Seconds() }

// advance serves until now.
func (p *pool) advance(now float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(now)
}

func (p *pool) advanceLocked(now float64) {
	for {
		arrival, from := p.arrival()
		switch {
		case p.nextStep() <= now && (arrival == nil || p.nextStep() <= arrival.arrived) &&
			(len(p.due) == 0 || p.nextStep() <= p.due[0].next()):
			p.step(p.nextStep())
		case len(p.due) > 0 && p.due[0].next() <= now && (arrival == nil || p.due[0].next() <= arrival.arrived):
			p.passTo(p.due[0].next())
			p.due[0].engine.happen(p.due[0])
		case arrival != nil && arrival.arrived <= now:
			from.take()
			p.passTo(arrival.arrived)
			p.score.Requests++
			arrival.cached = p.cachedOf(arrival)
			p.truth.OfferedS += p.slot(arrival.prompt-arrival.cached, arrival.output)
			p.dispatch(arrival, arrival.arrived)
		default:
			p.passTo(now)
			p.now = max(p.now, now)
			return
		}
	}
}

func (p *pool) arrival() (*request, source) {
	var first *request
	var from source
	for _, s := range p.sources {
		if r := s.peek(); r != nil && (first == nil || r.arrived < first.arrived) {
			first, from = r, s
		}
	}
	return first, from
}

// dispatch gives a request to the ready engine with the fewest in flight, or keeps it.
func (p *pool) dispatch(r *request, now float64) {
	var best *engine
	for _, e := range p.engines {
		if best == nil || e.inFlight() < best.inFlight() {
			best = e
		}
	}
	if best == nil {
		p.queue = append(p.queue, r)
		return
	}
	best.enqueue(r, now)
}

func (p *pool) startedOne(r *request, now float64) {
	if r.waitKnown {
		return
	}
	r.waitKnown = true
	p.score.Started++
	p.waits = append(p.waits, now-r.arrived)
	if now-r.arrived > time.Duration(p.conf.Objective).Seconds() {
		p.score.Late++
	}
}

// join makes a pod's engine ready at now.
func (p *pool) join(pod string, now float64) *engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(now)
	e := &engine{pool: p, pod: pod, counters: newCounters()}
	p.engines = append(p.engines, e)
	slices.SortFunc(p.engines, func(a, b *engine) int { return strings.Compare(a.pod, b.pod) })
	p.score.Peak = max(p.score.Peak, len(p.engines))
	p.redispatch(p.recalled(), now)
	return e
}

// recalled are all that wait, taken back from the engines: a gateway with flow control lets a new pod help at once.
func (p *pool) recalled() []*request {
	waiting := p.queue
	for _, e := range p.engines {
		waiting = append(waiting, e.waiting...)
		e.waiting = nil
	}
	return waiting
}

func (p *pool) redispatch(requests []*request, now float64) {
	p.queue = nil
	slices.SortStableFunc(requests, func(a, b *request) int { return int(a.arrived*1000) - int(b.arrived*1000) })
	for _, r := range requests {
		p.dispatch(r, now)
	}
}

// drain lets an engine finish what runs; what waits there goes elsewhere.
func (p *pool) drain(e *engine, now float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(now)
	if e.draining {
		return
	}
	e.draining = true
	p.engines = without(p.engines, e)
	p.leaving = append(p.leaving, e)
	left := e.waiting
	e.waiting = nil
	p.redispatch(append(left, p.queue...), now)
}

// leave ends an engine at once; what ran there starts anew elsewhere.
func (p *pool) leave(e *engine, now float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(now)
	e.draining = true
	p.truth.preempted += e.counters.preemptions
	p.engines, p.leaving = without(p.engines, e), without(p.leaving, e)
	p.redispatch(append(e.abandon(), p.queue...), now)
}

func (p *pool) idle(e *engine, now float64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked(now)
	return e.inFlight() == 0
}

func without(list []*engine, e *engine) []*engine {
	return slices.DeleteFunc(list, func(other *engine) bool { return other == e })
}

// result is the score at now, without what the cloud knows.
func (p *pool) result() score {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.score
	s.Waiting, s.Ready = len(p.queue), len(p.engines)
	objective := time.Duration(p.conf.Objective).Seconds()
	overdue := 0
	count := func(waiting []*request) {
		for _, r := range waiting {
			if !r.waitKnown && p.now-r.arrived > objective {
				overdue++
			}
		}
	}
	count(p.queue)
	for _, e := range slices.Concat(p.engines, p.leaving) {
		s.Waiting += len(e.waiting)
		s.Running += len(e.running)
		count(e.waiting)
	}
	s.Late += overdue
	s.truth = p.truth
	s.Preemptions = p.preemptions()
	if s.Requests > 0 {
		s.LateShare = float64(s.Late) / float64(s.Requests)
	}
	sorted := append([]float64(nil), p.waits...)
	sort.Float64s(sorted)
	s.WaitP50, s.WaitP99 = quantile(sorted, 0.5), quantile(sorted, 0.99)
	return s
}

func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// synthetic traffic: a Poisson stream for a while.
type synthetic struct {
	Rate   float64 `json:"rate"`
	ForS   float64 `json:"for_s"`
	Prompt int     `json:"prompt_tokens"`
	Output int     `json:"output_tokens"`
}

func (s *synthetic) check() error {
	if s.Rate <= 0 || s.Rate > 100000 || s.ForS <= 0 || s.Prompt < 0 || s.Output < 0 {
		return fmt.Errorf("rate (requests a second, up to 100000) and for_s are above 0, token counts not negative")
	}
	s.Prompt, s.Output = orNumber(s.Prompt, 1000), orNumber(s.Output, 200)
	return nil
}

type stream struct {
	synthetic
	rng   *rand.Rand
	next  *request
	until float64
}

func newStream(s synthetic, from float64, seed uint64) *stream {
	st := &stream{synthetic: s, rng: rand.New(rand.NewPCG(seed, 1)), until: from + s.ForS}
	st.next = &request{arrived: from}
	st.take()
	return st
}

// endStreams lets no synthetic request arrive any more; the trace goes on.
func (p *pool) endStreams() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sources = slices.DeleteFunc(p.sources, func(s source) bool {
		_, isStream := s.(*stream)
		return isStream
	})
}

func (s *stream) peek() *request { return s.next }

func (s *stream) take() {
	at := s.next.arrived + s.rng.ExpFloat64()/s.Rate
	if at > s.until {
		s.next = nil
		return
	}
	s.next = &request{arrived: at, prompt: s.Prompt, output: s.Output}
}
