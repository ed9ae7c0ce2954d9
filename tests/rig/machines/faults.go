package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fault is something that goes wrong on purpose, for a group (or pool) and a time, or so many times.
type fault struct {
	ID      int      `json:"id"`
	Group   string   `json:"group"`
	Zone    string   `json:"zone,omitempty"` // of stock-out; empty: all
	Pool    string   `json:"pool,omitempty"`
	Fault   string   `json:"fault"`
	AfterS  float64  `json:"after_s,omitempty"` // from the start; config file only
	ForS    float64  `json:"for_s"`
	Count   int      `json:"count"`
	Value   any      `json:"value,omitempty"`
	Share   float64  `json:"share,omitempty"` // of pods, for metrics-*
	Pods    []string `json:"pods,omitempty"`  // for metrics-*, instead: exactly these
	Used    int      `json:"used"`
	FromS   float64  `json:"from_s"` // simulated time at which it began
	Applied bool     `json:"applied,omitempty"`
	Victims []string `json:"victims,omitempty"`
}

// launchFaults: those that refuse machines; callFaults: those that answer calls; the rest strike machines and pods.
var (
	launchFaults = []string{"stock-out", "quota", "partial"}
	callFaults   = []string{"auth", "throttle", "server-error", "hang", "slow-answer", "lost-answer", "deny", "conflict",
		"contention", "expired"}
	otherFaults = []string{"never-registers", "never-ready", "gpu-never-appears", "image-pull-fails",
		"launch-hook", "hook-abandons", "terminate-hook", "az-rebalance", "model-never-ready", "model-restarts", "late-device", "slow-start", "late-list", "spot-loss",
		"metrics-hang", "metrics-nan", "metrics-absent", "metrics-http500"}
)

func (f *fault) check() error {
	known := slices.Concat(launchFaults, callFaults, otherFaults, azureFaults, ownerFaults, lieFaults)
	if !slices.Contains(known, f.Fault) {
		return fmt.Errorf("fault %q is not known; known are %s", f.Fault, strings.Join(known, ", "))
	}
	if f.ForS < 0 || f.AfterS < 0 || f.Count < 0 || f.Share < 0 || f.Share > 1 {
		return fmt.Errorf("for_s, after_s and count are not negative, share is from 0 to 1")
	}
	if strings.HasPrefix(f.Fault, "metrics-") {
		f.Pool, f.Share = or(f.Pool, "*"), orNumber(f.Share, 1)
	} else {
		f.Group = or(f.Group, "*")
	}
	return nil
}

// number is the value as one, or otherwise.
func (f *fault) number(otherwise float64) float64 {
	if n, ok := f.Value.(float64); ok {
		return n
	}
	return otherwise
}

// faults are those in force. Its owner locks.
type faults struct {
	List []*fault `json:"list"`
	Next int      `json:"next"`
}

func (fs *faults) add(f fault, nowS float64) *fault {
	fs.Next++
	f.ID, f.Used, f.FromS = fs.Next, 0, max(nowS, f.AfterS)
	fs.List = append(fs.List, &f)
	return &f
}

// remove one, or all with id 0; false if there was none.
func (fs *faults) remove(id int) bool {
	before := len(fs.List)
	fs.List = slices.DeleteFunc(fs.List, func(f *fault) bool { return id == 0 || f.ID == id })
	return len(fs.List) < before
}

func (f *fault) active(nowS float64) bool {
	return nowS >= f.FromS && (f.ForS == 0 || nowS < f.FromS+f.ForS) && (f.Count == 0 || f.Used < f.Count)
}

// find is the first in force of that name for a group, or nil.
func (fs *faults) find(name, group string, nowS float64) *fault {
	for _, f := range fs.List {
		if f.Fault == name && f.active(nowS) && (f.Group == "*" || f.Group == group) {
			return f
		}
	}
	return nil
}

// use is find, counted.
func (fs *faults) use(name, group string, nowS float64) *fault {
	f := fs.find(name, group, nowS)
	if f != nil {
		f.Used++
	}
	return f
}

func (f *fault) strikes(pod string) bool {
	if len(f.Pods) > 0 {
		return slices.Contains(f.Pods, pod)
	}
	return uniform(uint64(f.ID), pod) < f.Share
}

// scrape is the fault of a pod's metrics, or "".
func (fs *faults) scrape(pool, pod string, nowS float64) string {
	for _, f := range fs.List {
		if name, ok := strings.CutPrefix(f.Fault, "metrics-"); ok && f.active(nowS) &&
			(f.Pool == "*" || f.Pool == pool) && f.strikes(pod) {
			return name
		}
	}
	return ""
}

// afflicts tells whether a fault strikes something named victim; who was struck once stays so while it lasts.
func (k *cloud) afflicts(name, group, victim string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	nowS := k.clock.seconds(time.Now())
	for _, f := range k.faults.List {
		if f.Fault != name || (f.Group != "*" && f.Group != group) ||
			nowS < f.FromS || (f.ForS > 0 && nowS >= f.FromS+f.ForS) {
			continue
		}
		if slices.Contains(f.Victims, victim) {
			return true
		}
		if f.active(nowS) {
			f.Used++
			f.Victims = append(f.Victims, victim)
			return true
		}
	}
	return false
}
