package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func written(t *testing.T, text string, packed bool) string {
	t.Helper()
	content := []byte(text)
	if packed {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Write(content)
		w.Close()
		content = out.Bytes()
	}
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func all(s source) (list []string) {
	for r := s.peek(); r != nil; r = s.peek() {
		list = append(list, fmt.Sprintf("%.2f:%d:%d", r.arrived, r.prompt, r.output))
		s.take()
	}
	return list
}

func TestTrace(t *testing.T) {
	requests := "arrival_s,prompt_tokens,output_tokens,class\n0.5,10,1,a\n20,20,2,b\n30.25,30,3,a\n40,40,4,b\n"
	bins := "t_s,n_req,prompt_tokens,output_tokens\n0,2,20,2\n10,4,40,8\n40,1,5,5\n"
	cases := []struct {
		text string
		conf traceConfig
		want string
	}{
		{requests, traceConfig{Scale: 1}, "0.50:10:1 20.00:20:2 30.25:30:3 40.00:40:4"},
		{requests, traceConfig{Scale: 1, Start: duration(20 * time.Second)}, "0.00:20:2 10.25:30:3 20.00:40:4"},
		{requests, traceConfig{Scale: 2, Start: duration(20 * time.Second), Length: duration(15 * time.Second)},
			"0.00:20:2 0.00:20:2 10.25:30:3 10.25:30:3"},
		{requests, traceConfig{Scale: 1, Start: duration(30 * time.Second), After: duration(100 * time.Second)},
			"100.25:30:3 110.00:40:4"},
		{bins, traceConfig{Scale: 1}, "2.50:10:1 7.50:10:1 11.25:10:2 13.75:10:2 16.25:10:2 18.75:10:2 45.00:5:5"},
	}
	for _, c := range cases {
		for _, packed := range []bool{false, true} {
			c.conf.File = written(t, c.text, packed)
			source, err := openTrace(&c.conf, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(all(source), " "); got != c.want {
				t.Errorf("%v: %s, wanted %s", c.conf, got, c.want)
			}
		}
	}
}

func TestTraceRefusesBadInput(t *testing.T) {
	for text, says := range map[string]string{
		"":      "empty",
		"a,b\n": "found columns",
		"arrival_s,prompt_tokens,output_tokens\n1,2\n":   ":2: found 2 columns",
		"arrival_s,prompt_tokens,output_tokens\n1,x,3\n": `:2: "x" is no number`,
	} {
		_, err := openTrace(&traceConfig{File: written(t, text, false), Scale: 1}, 1)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, wanted %s", text, err, says)
		}
	}
}

func TestStreamHasItsRate(t *testing.T) {
	s := synthetic{Rate: 5, ForS: 1000}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	got := all(newStream(s, 50, 7))
	if len(got) < 4700 || len(got) > 5300 || got[0] < "50" {
		t.Errorf("%d requests, the first %s", len(got), got[0])
	}
}

func TestDrawsFollowTheirQuantiles(t *testing.T) {
	d := delay{P50: 60 * time.Second, P95: 90 * time.Second}
	under50, under95 := 0, 0
	for i := range 10000 {
		drawn := d.draw(1, fmt.Sprint(i))
		if drawn < d.P50 {
			under50++
		}
		if drawn < d.P95 {
			under95++
		}
	}
	if math.Abs(float64(under50)-5000) > 200 || math.Abs(float64(under95)-9500) > 100 {
		t.Errorf("%d below p50, %d below p95 of 10000", under50, under95)
	}
	if d.draw(1, "a") != d.draw(1, "a") || d.draw(1, "a") == d.draw(2, "a") || fixed(5).draw(1, "a") != 5 {
		t.Error("a draw depends on seed and key, and on nothing else")
	}
}

func TestConfigRefusesBadInput(t *testing.T) {
	for text, says := range map[string]string{
		`{"groups":[{"name":"a","max":0}]}`:                                     "max >= 1",
		`{"groups":[{"name":"a","max":1},{"name":"a","max":1}]}`:                "a name of its own",
		`{"groups":[{"name":"a","max":1,"colour":"red"}]}`:                      "colour",
		`{"groups":[{"name":"a","max":1,"stopped_node":"eat"}]}`:                "keep or delete",
		`{"groups":[{"name":"a","max":1,"stages":{"load":{"p50":9,"p95":1}}}]}`: "0 < p50 <= p95",
		`{"groups":[{"name":"a","max":1,"stages":{"load":"soon"}}]}`:            "soon",
		`{"pools":[{"name":"p"}]}`:                                              "selector",
		`{"pools":[{"name":"p","selector":{"a":"b"},"groups":["none"]}]}`:       `no group "none"`,
		`{"faults":[{"fault":"flood"}]}`:                                        "known are",
	} {
		_, err := readConfig(written(t, text, false))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, wanted %s", text, err, says)
		}
	}
	if _, err := readConfig("example.json"); err != nil {
		t.Error(err)
	}
}
