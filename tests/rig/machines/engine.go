package main

import (
	"container/heap"
	"slices"
)

// request is one of a pool's traffic. Times are simulated seconds.
type request struct {
	arrived        float64
	prompt, output int
	queuedAt       float64 // at its engine
	started        float64
	firstToken     float64
	ends           float64
	engine         *engine
	index          int  // in the pool's heap
	told           bool // first token is counted
	waitKnown      bool // started once before: its wait is scored
}

// next is when something happens to a running request.
func (r *request) next() float64 {
	if r.told {
		return r.ends
	}
	return r.firstToken
}

// due is a heap of running requests by what happens next.
type due []*request

func (d due) Len() int           { return len(d) }
func (d due) Less(i, j int) bool { return d[i].next() < d[j].next() }
func (d due) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}
func (d *due) Push(x any) {
	r := x.(*request)
	r.index = len(*d)
	*d = append(*d, r)
}
func (d *due) Pop() any {
	old := *d
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return r
}

// engine is the model server of one pod: so many sequences at once, a queue of its own, counters. Its pool locks.
type engine struct {
	pool     *pool
	pod      string
	running  []*request
	waiting  []*request
	draining bool
	counters counters
}

func (e *engine) inFlight() int { return len(e.running) + len(e.waiting) }

func (e *engine) enqueue(r *request, now float64) {
	r.engine, r.queuedAt, r.told = e, now, false
	e.waiting = append(e.waiting, r)
	e.admit(now)
}

// admit starts what has room. Running requests hold a slot for
// maxSequences * prompt / prefillRate + output * interTokenLatency.
func (e *engine) admit(now float64) {
	p := e.pool
	for len(e.running) < p.conf.MaxSequences && len(e.waiting) > 0 && !e.draining {
		r := e.waiting[0]
		e.waiting = e.waiting[1:]
		prefill := float64(r.prompt) / p.conf.PrefillRate
		slot := prefill*float64(p.conf.MaxSequences) + float64(r.output)*p.itl()
		r.started, r.firstToken = now, now+prefill+p.itl()
		r.ends = max(r.firstToken, now+slot)
		e.running = append(e.running, r)
		heap.Push(&p.due, r)
		p.startedOne(r, now)
	}
}

// happen is a first token or an end.
func (e *engine) happen(r *request) {
	at := r.next()
	if !r.told {
		r.told = true
		e.counters.firstToken(r)
		heap.Fix(&e.pool.due, r.index)
		return
	}
	heap.Remove(&e.pool.due, r.index)
	e.running = slices.DeleteFunc(e.running, func(other *request) bool { return other == r })
	e.counters.finished(r)
	e.pool.score.Completed++
	e.admit(at)
}

// abandon takes all requests off the engine, for others to serve from the start.
func (e *engine) abandon() []*request {
	for _, r := range e.running {
		heap.Remove(&e.pool.due, r.index)
	}
	e.pool.score.Interrupted += len(e.running)
	left := append(e.running, e.waiting...)
	e.running, e.waiting = nil, nil
	return left
}

// generated are the output tokens of running requests so far, and kv the tokens that they hold in the cache.
func (e *engine) generated(now float64) (generated, kv int) {
	for _, r := range e.running {
		if now < r.firstToken {
			continue
		}
		done := r.output
		if r.ends > r.firstToken && now < r.ends {
			done = 1 + int(float64(r.output-1)*(now-r.firstToken)/(r.ends-r.firstToken))
		}
		generated += done
		kv += r.prompt + done
	}
	return generated, kv
}
