package main

import (
	"math"
	"slices"
)

// truth is what a pool's servers really had, for others to be compared with: integrals over simulated time, in seconds.
type truth struct {
	ElapsedS   float64 `json:"elapsed_s"`
	RunningS   float64 `json:"running_s"`   // of sequences
	WaitingS   float64 `json:"waiting_s"`   // of requests
	ReadyS     float64 `json:"ready_s"`     // of servers
	OfferedS   float64 `json:"offered_s"`   // of slots that what arrived needs
	SaturatedS float64 `json:"saturated_s"` // of servers with a queue
	SaturatedR float64 `json:"saturated_running_s"`

	Preemptions int `json:"preemptions"`
	Restarts    int `json:"restarts"`

	preempted int // on engines that are gone
}

func (p *pool) restarted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.truth.Restarts++
}

// slot is how long so many tokens hold a slot.
func (p *pool) slot(prompt, output int) float64 {
	return float64(prompt)/p.conf.PrefillRate*float64(p.conf.MaxSequences) + float64(output)*p.itl()
}

// passTo accounts for the time until then.
func (p *pool) passTo(now float64) {
	passed := now - p.truth.ElapsedS
	if passed <= 0 {
		return
	}
	t := &p.truth
	t.ElapsedS = now
	t.WaitingS += passed * float64(len(p.queue))
	t.ReadyS += passed * float64(len(p.engines))
	for _, e := range p.engines {
		t.add(e, passed)
	}
	for _, e := range p.leaving {
		t.add(e, passed)
	}
}

func (t *truth) add(e *engine, passed float64) {
	t.RunningS += passed * float64(len(e.running))
	t.WaitingS += passed * float64(len(e.waiting))
	if len(e.waiting) > 0 && !e.draining {
		t.SaturatedS += passed
		t.SaturatedR += passed * float64(len(e.running))
	}
}

// nextStep is when engines next look whether their cache has room: once a simulated second while anything runs.
func (p *pool) nextStep() float64 {
	if len(p.due) == 0 {
		return math.Inf(1)
	}
	return math.Floor(p.truth.ElapsedS) + 1
}

func (p *pool) step(now float64) {
	p.passTo(now)
	for _, e := range slices.Concat(p.engines, p.leaving) {
		e.makeRoom(now)
		e.admit(now)
	}
}

// cachedOf draws what the prefix cache has of a prompt, in whole blocks of 16.
func (p *pool) cachedOf(r *request) int {
	if p.conf.PrefixHits == 0 {
		return 0
	}
	p.prefixes++
	share := 2 * p.conf.PrefixHits * uniform(uint64(p.prefixes), "prefix")
	return int(share*float64(r.prompt)) / 16 * 16
}

func (p *pool) preemptions() int {
	count := p.truth.preempted
	for _, e := range slices.Concat(p.engines, p.leaving) {
		count += e.counters.preemptions
	}
	return count
}
