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
	started        float64 // for the first time there
	firstToken     float64
	resumed        float64 // generates since
	ends           float64
	engine         *engine
	index          int  // in the pool's heap
	scheduled      bool // has started there
	told           bool // first token is counted
	waitKnown      bool // started once before: its wait is scored
	done           int  // output tokens that it had when it was preempted
	cached         int  // prompt tokens that the prefix cache spares
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
	running  []*request // in the order of admission
	waiting  []*request
	draining bool
	counters counters
}

func (e *engine) inFlight() int { return len(e.running) + len(e.waiting) }

func (e *engine) enqueue(r *request, now float64) {
	r.engine, r.queuedAt, r.told, r.scheduled, r.done = e, now, false, false, 0
	e.waiting = append(e.waiting, r)
	e.admit(now)
}

// admit starts what has room: a place in the batch, and in the cache for its prompt. Running requests hold a slot for
// maxSequences * prompt / prefillRate + output * interTokenLatency; one that was preempted computes again what it had.
func (e *engine) admit(now float64) {
	p := e.pool
	for len(e.running) < p.conf.MaxSequences && len(e.waiting) > 0 && !e.draining {
		r := e.waiting[0]
		if len(e.running) > 0 && e.kv(now)+r.prompt+r.done > p.conf.KVTokens {
			return
		}
		e.waiting = e.waiting[1:]
		prefill := float64(r.prompt-r.cached+r.done) / p.conf.PrefillRate
		r.resumed = now + prefill + p.itl()
		if !r.scheduled {
			r.scheduled, r.started = true, now
		}
		if !r.told {
			r.firstToken = r.resumed
		}
		r.ends = max(r.resumed, now+p.slot(r.prompt-r.cached+r.done, r.output-r.done))
		e.running = append(e.running, r)
		heap.Push(&p.due, r)
		p.startedOne(r, now)
	}
}

// makeRoom preempts the youngest requests while the cache is over-full; they wait before all others.
func (e *engine) makeRoom(now float64) {
	for len(e.running) > 1 && e.kv(now) > e.pool.conf.KVTokens {
		r := e.running[len(e.running)-1]
		e.running = e.running[:len(e.running)-1]
		heap.Remove(&e.pool.due, r.index)
		r.done = r.generatedAt(now)
		e.waiting = append([]*request{r}, e.waiting...)
		e.counters.preemptions++
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

// generatedAt are the output tokens of a running request so far.
func (r *request) generatedAt(now float64) int {
	if now < r.resumed {
		return r.done
	}
	if r.ends <= r.resumed || now >= r.ends {
		return r.output
	}
	return min(r.output, r.done+1+int(float64(r.output-r.done-1)*(now-r.resumed)/(r.ends-r.resumed)))
}

// generated are the output tokens of all requests that have not ended.
func (e *engine) generated(now float64) (generated int) {
	for _, r := range e.running {
		generated += r.generatedAt(now)
	}
	for _, r := range e.waiting {
		generated += r.done
	}
	return generated
}

// kv are the tokens that running requests hold in the cache.
func (e *engine) kv(now float64) (kv int) {
	for _, r := range e.running {
		kv += r.prompt + r.generatedAt(now)
	}
	return kv
}
