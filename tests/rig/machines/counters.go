package main

import "sort"

// counters are those that an engine's metrics are made of.
type counters struct {
	prompt, generation, success, aborted int
	preemptions                          int
	prefixQueries, prefixHits            int
	queueTime, firstTokenTime, itl, e2e  histogram
}

// Bucket limits as vLLM V1 has them.
var (
	requestBuckets = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920,
		7680}
	firstTokenBuckets = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
		20, 40, 80, 160, 640, 2560}
	tokenBuckets = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20,
		40, 80}
)

func newCounters() counters {
	return counters{queueTime: newHistogram(requestBuckets), e2e: newHistogram(requestBuckets),
		firstTokenTime: newHistogram(firstTokenBuckets), itl: newHistogram(tokenBuckets)}
}

func (c *counters) firstToken(r *request) {
	c.prompt += r.prompt
	c.prefixQueries += r.prompt
	c.prefixHits += r.cached
	c.firstTokenTime.observe(r.firstToken-r.queuedAt, 1)
}

// finished: vLLM observes the queue time only here.
func (c *counters) finished(r *request) {
	c.generation += r.output
	c.success++
	c.queueTime.observe(r.started-r.queuedAt, 1)
	c.e2e.observe(r.ends-r.queuedAt, 1)
	if r.output > 1 {
		c.itl.observe((r.ends-r.firstToken)/float64(r.output-1), r.output-1)
	}
}

type histogram struct {
	limits []float64
	counts []int // per bucket, not summed; the last is +Inf
	sum    float64
	total  int
}

func newHistogram(limits []float64) histogram {
	return histogram{limits: limits, counts: make([]int, len(limits)+1)}
}

func (h *histogram) observe(value float64, times int) {
	h.counts[sort.SearchFloat64s(h.limits, value)] += times
	h.sum += value * float64(times)
	h.total += times
}
