package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// savedState is the file of --state: all that a restart must not forget.
type savedState struct {
	StartedAt int64    `json:"started_at"`
	Groups    []*group `json:"groups"`
	Faults    faults   `json:"faults"`
	Answers   answers  `json:"answers"`
	Journal   journal  `json:"journal"`
}

// openCloud goes on where the file ended, or begins anew where there is none.
func openCloud(conf *config, speed float64, seed uint64, path string) (*cloud, error) {
	k := newCloud(conf, clock{start: time.Now().Truncate(time.Millisecond), speed: speed}, seed)
	k.statePath = path
	if path == "" {
		return k, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, k.save()
	}
	if err != nil {
		return nil, err
	}
	var saved savedState
	if err := json.Unmarshal(text, &saved); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	k.clock.start = time.UnixMilli(saved.StartedAt)
	k.faults, k.answers, k.journal = saved.Faults, saved.Answers, saved.Journal
	for _, g := range saved.Groups {
		if mine := k.group(g.Name); mine != nil {
			conf := mine.conf
			*mine = *g
			mine.conf = conf
		}
	}
	return k, nil
}

// save writes the state if anything changed; the old file or the new one is there, never half of one.
func (k *cloud) save() error {
	k.dirty = false
	if k.statePath == "" {
		return nil
	}
	text, err := json.Marshal(savedState{k.clock.start.UnixMilli(), k.groups, k.faults, k.answers, k.journal})
	if err != nil {
		return err
	}
	if err := os.WriteFile(k.statePath+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(k.statePath+".new", k.statePath)
}
