package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func serveTest(t *testing.T, state string) (*cloud, string) {
	t.Helper()
	conf := &config{Groups: []*groupConfig{{Name: "g", Max: 10, Stages: stagesConfig{Provision: fixed(time.Hour)}}},
		Pools: []*poolConfig{{Name: "p", Selector: map[string]string{"app": "p"}, Groups: []string{"g"}}}}
	if err := conf.complete("."); err != nil {
		t.Fatal(err)
	}
	k, err := openCloud(conf, 1, 1, state)
	if err != nil {
		t.Fatal(err)
	}
	pools, err := openTraffic(k)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer((&front{cloud: k, traffic: pools}).routes())
	t.Cleanup(server.Close)
	return k, server.URL
}

// ask gives status 0 where no answer came.
func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func TestAnswers(t *testing.T) {
	cases := []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/v1/groups/g", "", 200, `"desired":0`},
		{"GET", "/v1/groups/none", "", 404, `"code":"NotFound"`},
		{"GET", "/v1/groups", "", 200, `"groups":[{"name":"g"`},
		{"POST", "/v1/groups/g/grow", `{"token":"a","desired":2}`, 202, `"desired":2`},
		{"POST", "/v1/groups/g/grow", `{"token":"b","desired":11}`, 400, `"code":"InvalidParameter"`},
		{"POST", "/v1/groups/g/grow", `{"desired":2}`, 400, "token"},
		{"POST", "/v1/groups/g/grow", `{"token":"a","wish":2}`, 400, "InvalidParameter"},
		{"POST", "/v1/groups/g/grow", `{`, 400, "InvalidParameter"},
		{"POST", "/v1/groups/g/shrink", `{"token":"a"}`, 404, "no call shrink"},
		{"POST", "/v1/groups/none/grow", `{"token":"a","desired":2}`, 404, "NotFound"},
		{"POST", "/v1/faults", `{"fault":"flood"}`, 400, "known are stock-out"},
		{"POST", "/v1/faults", `{"fault":"quota","group":"none"}`, 404, "no group none"},
		{"POST", "/v1/faults", `{"fault":"quota","group":"g","for_s":5}`, 200, `"id":1`},
		{"DELETE", "/v1/faults/7", "", 404, "no fault 7"},
		{"DELETE", "/v1/faults", "", 200, `"faults":[]`},
		{"POST", "/v1/traffic/p", `{"rate":1,"for_s":10}`, 200, "{"},
		{"POST", "/v1/traffic/q", `{"rate":1,"for_s":10}`, 404, "no pool q"},
		{"DELETE", "/v1/traffic/p", ``, 200, "{}"},
		{"DELETE", "/v1/traffic/q", ``, 404, "no pool q"},
		{"POST", "/v1/traffic/p", `{"rate":-1,"for_s":10}`, 400, "above 0"},
		{"GET", "/v1/score", "", 200, `"late_share"`},
		{"GET", "/v1/log", "", 200, `"purchases"`},
	}
	for _, c := range cases {
		_, url := serveTest(t, "")
		status, body := ask(t, c.method, url+c.path, c.body)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s %s: %d %s; wanted %d, %s", c.method, c.path, c.body, status, body, c.status, c.says)
		}
	}
}

func TestCallFaults(t *testing.T) {
	cases := map[string]int{"auth": 403, "throttle": 429, "server-error": 503, "lost-answer": 0, "slow-answer": 202}
	for name, wanted := range cases {
		k, url := serveTest(t, "")
		ask(t, "POST", url+"/v1/faults", `{"fault":"`+name+`","group":"g","count":1,"value":1}`)
		if status, _ := ask(t, "POST", url+"/v1/groups/g/grow", `{"token":"a","desired":2}`); status != wanted {
			t.Errorf("%s: %d, wanted %d", name, status, wanted)
		}
		status, body := ask(t, "POST", url+"/v1/groups/g/grow", `{"token":"a","desired":2}`)
		if status != 202 || !strings.Contains(body, `"desired":2`) || k.journal.Purchases != 2 {
			t.Errorf("%s, again: %d, %d bought, %s", name, status, k.journal.Purchases, body)
		}
	}
}

func TestTokenIsRememberedOverARestart(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	_, url := serveTest(t, state)
	_, first := ask(t, "POST", url+"/v1/groups/g/grow", `{"token":"a","desired":2}`)
	k, url := serveTest(t, state)
	if status, again := ask(t, "POST", url+"/v1/groups/g/grow", `{"token":"a","desired":2}`); status != 202 || again != first {
		t.Errorf("%d: %s, but first %s", status, again, first)
	}
	if status, _ := ask(t, "POST", url+"/v1/groups/g/grow", `{"token":"a","desired":3}`); status != 400 {
		t.Errorf("the same token for another size: %d", status)
	}
	var told journal
	_, text := ask(t, "GET", url+"/v1/log", "")
	if err := json.Unmarshal([]byte(text), &told); err != nil || told.Purchases != 2 || told.ByToken["a"] != 2 ||
		len(k.group("g").Machines) != 2 {
		t.Errorf("%v, %s", err, text)
	}
}
