package main

import (
	"fmt"
	"sort"

	core "k8s.io/api/core/v1"
)

// occupants says what is alive on a machine: its pods that have not ended, and how many requests each holds.
func (f *fleet) occupants(name string) []string {
	list := []string{}
	for _, pod := range f.podsOf(name) {
		if pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed {
			continue
		}
		f.mu.Lock()
		a := f.agents[pod.UID]
		f.mu.Unlock()
		if a != nil && a.ended.Load() {
			continue // the API server may have forgotten it already, before our watch told us
		}
		list = append(list, fmt.Sprintf("%s/%s: %d requests", pod.Namespace, pod.Name, a.requests()))
	}
	sort.Strings(list)
	return list
}

// requests in flight on the agent's pod; 0 where nobody lives or serves.
func (a *agent) requests() int {
	if a == nil || a.server.Load() == nil {
		return 0
	}
	server := a.server.Load()
	server.pool.mu.Lock()
	defer server.pool.mu.Unlock()
	return server.engine.inFlight()
}

// occupied lists the occupants of the machines that a call names, as they are before it.
func (f *front) occupied(machines []string) map[string][]string {
	if f.fleet == nil {
		return nil
	}
	found := map[string][]string{}
	for _, id := range machines {
		if list := f.fleet.occupants(id); len(list) > 0 {
			found[id] = list
		}
	}
	return found
}
