package main

import (
	"net/http"
	"strconv"
	"time"
)

// spoiled lets the faults of calls answer in the cloud's place; true if one did.
func (f *front) spoiled(w http.ResponseWriter, r *http.Request, name, token string) bool {
	k := f.cloud
	k.mu.Lock()
	now := time.Now().UnixMilli()
	var found *fault
	for _, fault := range callFaults[:5] {
		if found = k.faults.use(fault, name, k.nowS(now)); found != nil {
			break
		}
	}
	if found == nil {
		k.mu.Unlock()
		return false
	}
	what, value := found.Fault, found.number(1000)
	if what != "slow-answer" {
		status := map[string]int{"auth": 403, "throttle": 429, "server-error": 503}[what]
		k.journal.write(entry{At: now, Method: r.Method, Path: r.URL.Path, Token: token, Status: status,
			Effect: "none: " + what})
	}
	k.mu.Unlock()
	return spoil(w, r, what, time.Duration(value)*time.Millisecond)
}

func spoil(w http.ResponseWriter, r *http.Request, what string, pause time.Duration) bool {
	switch what {
	case "auth":
		answerError(w, &refusedCall{403, "AccessDenied", "these credentials may not do that"})
	case "throttle":
		w.Header().Set("Retry-After", "1")
		answerError(w, &refusedCall{429, "Throttling", "rate exceeded"})
	case "server-error":
		answerError(w, &refusedCall{503, "ServiceUnavailable", "try again later"})
	case "hang":
		<-r.Context().Done()
	default:
		return !sleepReal(r.Context(), pause)
	}
	return true
}

func (f *front) listFaults(w http.ResponseWriter, _ *http.Request) {
	f.cloud.mu.Lock()
	defer f.cloud.mu.Unlock()
	answerJSON(w, 200, map[string]any{"faults": append([]*fault{}, f.cloud.faults.List...)})
}

func (f *front) addFault(w http.ResponseWriter, r *http.Request) {
	k := f.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	var asked fault
	err := decode(r, &asked)
	if err == nil {
		err = asked.check()
	}
	if err == nil && asked.Group != "" && asked.Group != "*" && k.group(asked.Group) == nil {
		answerError(w, &refusedCall{404, "NotFound", "there is no group " + asked.Group})
		return
	}
	if err != nil {
		answerError(w, invalid("%v", err))
		return
	}
	now := time.Now().UnixMilli()
	added := k.faults.add(asked, k.nowS(now)+asked.AfterS)
	k.advance(now)
	k.save()
	answerJSON(w, 200, added)
}

func (f *front) removeFaults(w http.ResponseWriter, r *http.Request) {
	k := f.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	id, _ := strconv.Atoi(r.PathValue("id"))
	if !k.faults.remove(id) && id != 0 {
		answerError(w, &refusedCall{404, "NotFound", "there is no fault " + r.PathValue("id")})
		return
	}
	k.save()
	answerJSON(w, 200, map[string]any{"faults": append([]*fault{}, k.faults.List...)})
}
