package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// front is the cloud's HTTP side.
type front struct {
	cloud   *cloud
	traffic *traffic
	fleet   *fleet // nil without an API server
}

func (f *front) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/groups", f.listGroups)
	mux.HandleFunc("GET /v1/groups/{name}", f.describe)
	mux.HandleFunc("POST /v1/groups/{name}/{call}", f.change)
	mux.HandleFunc("GET /v1/faults", f.listFaults)
	mux.HandleFunc("POST /v1/faults", f.addFault)
	mux.HandleFunc("DELETE /v1/faults", f.removeFaults)
	mux.HandleFunc("DELETE /v1/faults/{id}", f.removeFaults)
	mux.HandleFunc("GET /v1/log", f.log)
	mux.HandleFunc("GET /v1/score", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, 200, f.traffic.scores()) })
	mux.HandleFunc("GET /v1/starts", f.listStarts)
	mux.HandleFunc("POST /v1/traffic/{pool}", f.addTraffic)
	mux.HandleFunc("DELETE /v1/traffic/{pool}", f.endTraffic)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	return mux
}

func decode(r *http.Request, into any) error {
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return err
	}
	return strict(text, into)
}

func answerJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	answerBody(w, status, body)
}

func answerBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

func answerError(w http.ResponseWriter, err error) {
	refusal := &refusedCall{500, "InternalError", ""}
	if !errors.As(err, &refusal) {
		refusal.Message = err.Error()
	}
	answerJSON(w, refusal.Status, map[string]any{"error": refusal})
}

func (f *front) listGroups(w http.ResponseWriter, r *http.Request) {
	if f.spoiled(w, r, "*", "") {
		return
	}
	k := f.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	k.advance(time.Now().UnixMilli())
	views := []groupView{}
	for _, g := range k.groups {
		views = append(views, g.view(nil))
	}
	answerJSON(w, 200, map[string]any{"groups": views})
}

func (f *front) describe(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if f.spoiled(w, r, name, "") {
		return
	}
	k := f.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now().UnixMilli()
	k.advance(now)
	g := k.group(name)
	if g == nil {
		k.journal.write(entry{At: now, Method: r.Method, Path: r.URL.Path, Status: 404})
		answerError(w, &refusedCall{404, "NotFound", "there is no group " + name})
		return
	}
	k.journal.write(entry{At: now, Method: r.Method, Path: r.URL.Path, Status: 200})
	answerJSON(w, 200, g.view(nil))
}

func (f *front) change(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := decode(r, &o); err != nil || o.Token == "" {
		answerError(w, invalid("the body is a JSON object with token, and desired, size or machines"))
		return
	}
	if f.spoiled(w, r, r.PathValue("name"), o.Token) {
		return
	}
	var occupied map[string][]string
	if r.PathValue("call") != "grow" { // which names machines that are not there yet
		occupied = f.occupied(o.Machines)
	}
	status, body, effect, lost := f.changeOnce(r, &o)
	k := f.cloud
	k.mu.Lock()
	e := entry{At: time.Now().UnixMilli(), Method: r.Method, Path: r.URL.Path, Token: o.Token, Status: status,
		Effect: effect, Asked: orNumber(o.Desired, o.Size), Machines: o.Machines, Occupied: occupied}
	if lost {
		e.Status, e.Effect = 0, effect+" (answer lost)"
	}
	k.journal.write(e)
	if err := k.save(); err != nil {
		status, body = 500, []byte(`{"error":{"code":"InternalError","message":`+strconv.Quote(err.Error())+`}}`)
	}
	k.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler)
	}
	answerBody(w, status, body)
}

// changeOnce does what is asked unless the token did already.
func (f *front) changeOnce(r *http.Request, o *order) (status int, body []byte, effect string, lost bool) {
	k := f.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now().UnixMilli()
	k.advance(now)
	name, kind := r.PathValue("name"), r.PathValue("call")
	asked := *o
	asked.Token = ""
	what, _ := json.Marshal(asked)
	signature := r.URL.Path + string(what)
	if given, ok := k.answers.Given[o.Token]; ok {
		if given.Call == signature {
			return given.Status, []byte(given.Body), "none: token known", false
		}
		return failed(invalid("token %s was used for another call", o.Token))
	}
	g, do := k.group(name), calls[kind]
	if g == nil || do == nil {
		return failed(&refusedCall{404, "NotFound", "there is no group " + name + ", or no call " + kind})
	}
	if g.Auto != nil && kind != "grow" && kind != "remove" {
		return failed(invalid("group %s is EKS's: only grow and remove stand for somebody who works by hand", name))
	}
	g.operate(o.Token, kind, now)
	before := g.Desired
	done, err := do(k, g, o, now)
	if g.Auto != nil && g.Desired < before {
		g.Auto.resize(g.Auto.Desired+g.Desired-before, now)
	}
	if err != nil {
		g.Operations = g.Operations[:len(g.Operations)-1]
		return failed(err)
	}
	k.advance(now)
	g.settleDone(now)
	body, _ = json.Marshal(g.view(done.refused))
	k.answers.keep(o.Token, answer{signature, 202, string(body)})
	lost = k.faults.use("lost-answer", name, k.nowS(now)) != nil
	return 202, body, done.effect, lost
}

func failed(err error) (int, []byte, string, bool) {
	refusal := &refusedCall{500, "InternalError", err.Error()}
	errors.As(err, &refusal)
	body, _ := json.Marshal(map[string]any{"error": refusal})
	return refusal.Status, body, "refused: " + refusal.Code, false
}

func (f *front) log(w http.ResponseWriter, _ *http.Request) {
	f.cloud.mu.Lock()
	defer f.cloud.mu.Unlock()
	var out bytes.Buffer
	json.NewEncoder(&out).Encode(f.cloud.journal)
	answerBody(w, 200, bytes.TrimSpace(out.Bytes()))
}
