package main

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The stages of a start in their order, by what ends them.
const (
	atAsk = iota
	atNode
	atReady
	atDevice
	atImage
	atServing
	moments
)

// starts is when each machine, and its first pod with a model server, came how far: what others measure from outside.
type starts struct {
	mu   sync.Mutex
	list map[string]*start
}

type start struct {
	Machine string             `json:"machine"`
	Group   string             `json:"group"`
	Woken   bool               `json:"woken"`
	Pods    int                `json:"pods"` // model servers that got as far as to load
	AtS     [moments]float64   `json:"at_s"` // simulated; 0: not yet
	Stages  map[string]float64 `json:"stages,omitempty"`
}

var stageNames = [moments]string{"", "provision", "register", "device", "image", "load"}

// reach notes a moment that has come, the first time: the API server knew of it between then and now.
func (k *cloud) reach(m *snapshot, moment int, then time.Time) {
	if m.Instant {
		return
	}
	k.starts.mu.Lock()
	defer k.starts.mu.Unlock()
	if k.starts.list == nil {
		k.starts.list = map[string]*start{}
	}
	s := k.starts.list[m.ID]
	if s == nil {
		s = &start{Machine: m.ID, Group: m.conf.Name, Woken: m.Woken}
		s.AtS[atAsk] = k.clock.seconds(time.UnixMilli(m.LaunchedAt))
		k.starts.list[m.ID] = s
	}
	if moment == atImage {
		s.Pods++
	}
	if s.AtS[moment] == 0 && !s.Woken {
		s.AtS[moment] = k.clock.seconds(then.Add(time.Since(then) / 2))
	}
}

// told is all of them, the stages that have ended as durations.
func (s *starts) told() []start {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []start{}
	for _, one := range s.list {
		told := *one
		told.Stages = map[string]float64{}
		for i := atNode; i < moments && told.AtS[i] > 0; i++ {
			told.Stages[stageNames[i]] = told.AtS[i] - told.AtS[i-1]
		}
		list = append(list, told)
	}
	slices.SortFunc(list, func(a, b start) int { return strings.Compare(a.Machine, b.Machine) })
	return list
}

func (f *front) listStarts(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, 200, map[string]any{"starts": f.cloud.starts.told()})
}
