package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
)

// trace replays a file in Preheat's trace format, requests or bins, row by row.
type trace struct {
	conf    *traceConfig
	lines   *bufio.Scanner
	rng     *rand.Rand
	bins    bool
	line    int
	ready   []*request // expanded from a row, in order
	pending *row
	width   float64
}

type row struct {
	at             float64
	count          int
	prompt, output int
}

func openTrace(conf *traceConfig, seed uint64) (*trace, error) {
	file, err := os.Open(conf.File)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(file, 1<<16)
	var text io.Reader = buffered
	if magic, _ := buffered.Peek(2); string(magic) == "\x1f\x8b" {
		if text, err = gzip.NewReader(buffered); err != nil {
			return nil, fmt.Errorf("%s: %w", conf.File, err)
		}
	}
	t := &trace{conf: conf, lines: bufio.NewScanner(text), rng: rand.New(rand.NewPCG(seed, 2)), width: 1}
	if !t.lines.Scan() {
		return nil, fmt.Errorf("%s: empty", conf.File)
	}
	t.line = 1
	switch header := strings.TrimSpace(t.lines.Text()); {
	case strings.HasPrefix(header, "arrival_s,prompt_tokens,output_tokens"):
	case header == "t_s,n_req,prompt_tokens,output_tokens":
		t.bins = true
	default:
		return nil, fmt.Errorf("%s:1: found columns %q, allowed are arrival_s,prompt_tokens,output_tokens and "+
			"t_s,n_req,prompt_tokens,output_tokens", conf.File, header)
	}
	if t.pending, err = t.read(); err != nil {
		return nil, err
	}
	for t.pending != nil && t.pending.at < time.Duration(conf.Start).Seconds() {
		if err := t.step(); err != nil {
			return nil, err
		}
	}
	t.ready = nil
	t.fill()
	return t, nil
}

// read is the next row of the file, nil at its end.
func (t *trace) read() (*row, error) {
	if !t.lines.Scan() {
		return nil, t.lines.Err()
	}
	t.line++
	columns := strings.Split(strings.TrimSpace(t.lines.Text()), ",")
	wanted := map[bool]int{false: 3, true: 4}[t.bins]
	var numbers [4]float64
	for i := range wanted {
		if i >= len(columns) {
			return nil, fmt.Errorf("%s:%d: found %d columns, %d are needed", t.conf.File, t.line, len(columns), wanted)
		}
		var err error
		if numbers[i], err = strconv.ParseFloat(columns[i], 64); err != nil || numbers[i] < 0 {
			return nil, fmt.Errorf("%s:%d: %q is no number from 0", t.conf.File, t.line, columns[i])
		}
	}
	if !t.bins {
		return &row{numbers[0], 1, int(numbers[1]), int(numbers[2])}, nil
	}
	return &row{numbers[0], int(numbers[1]), int(numbers[2]), int(numbers[3])}, nil
}

// step expands the pending row, whose bin ends where the next begins.
func (t *trace) step() error {
	this := t.pending
	next, err := t.read()
	if err != nil {
		return err
	}
	t.pending = next
	if t.bins && next != nil && (t.width == 1 || next.at-this.at < t.width) {
		t.width = next.at - this.at
	}
	t.expand(this)
	return nil
}

func (t *trace) expand(this *row) {
	after := time.Duration(t.conf.After).Seconds() - time.Duration(t.conf.Start).Seconds()
	exact := float64(this.count) * t.conf.Scale
	count := int(exact)
	if t.rng.Float64() < exact-float64(count) {
		count++
	}
	for i := range count {
		at := this.at + after
		if t.bins {
			at += t.width * (float64(i) + 0.5) / float64(count)
		}
		r := &request{arrived: at, prompt: this.prompt, output: this.output}
		if t.bins {
			r.prompt, r.output = this.prompt/this.count, this.output/this.count
		}
		t.ready = append(t.ready, r)
	}
}

// fill has at least one request ready unless the trace is over.
func (t *trace) fill() {
	end := time.Duration(t.conf.Start + t.conf.Length).Seconds()
	for len(t.ready) == 0 && t.pending != nil {
		if t.conf.Length > 0 && t.pending.at >= end {
			t.pending = nil
			return
		}
		if err := t.step(); err != nil {
			fmt.Fprintln(os.Stderr, "machines:", err)
			t.pending = nil
		}
	}
}

func (t *trace) peek() *request {
	if len(t.ready) == 0 {
		return nil
	}
	return t.ready[0]
}

func (t *trace) take() {
	t.ready = t.ready[1:]
	t.fill()
}
