package main

import (
	"net/http"
	"strings"
	"time"
)

// azureFaults are those that only Azure has.
var azureFaults = []string{"stuck-operation", "preempted", "etag-mismatch", "operation-expired", "foreign-operation-url",
	"partial-delete", "delete-deallocates", "image-upgrade", "version-upgrade", "cluster-upgrade", "token-refused", "identity-absent", "identity-gone", "identity-throttled", "identity-error"}

// spoiledARM lets the faults of calls answer in the cloud's place.
func (d *azureDoor) spoiledARM(c *armCall, action string) *armRefusal {
	k := d.cloud
	k.mu.Lock()
	nowS := k.nowS(c.now)
	var found *fault
	for _, name := range []string{"auth", "deny", "throttle", "server-error", "conflict", "hang", "slow-answer"} {
		f := k.faults.find(name, groupName(c.g), nowS)
		if f == nil || name == "conflict" && c.r.Method == "GET" || name == "deny" && !f.denies(action) {
			continue
		}
		f.Used++
		found = f
		break
	}
	if found != nil && found.Fault == "conflict" && c.g != nil {
		c.g.AKS.changed() // AKS itself worked on the pool
	}
	k.mu.Unlock()
	if found == nil {
		return nil
	}
	c.entry.Effect = "none: " + found.Fault
	return d.spoilARM(c, found, action)
}

func (f *fault) denies(action string) bool {
	text, ok := f.Value.(string)
	return !ok || strings.EqualFold(text, action)
}

func (d *azureDoor) spoilARM(c *armCall, f *fault, action string) *armRefusal {
	word, _ := f.Value.(string)
	switch f.Fault {
	case "auth":
		if word == "expired" {
			return unauthorized("ExpiredAuthenticationToken", "The access token expiry UTC time '%s' is earlier than current UTC "+
				"time '%s'.", "1/1/2026 1:00:00 AM", "1/1/2026 2:00:00 AM")
		}
		return forbidden(c.principal, action, c.r.URL.Path)
	case "deny":
		return forbidden(c.principal, action, c.r.URL.Path)
	case "throttle":
		return d.throttled(word == "arm", 60*time.Second)
	case "server-error":
		return serverError(int(f.number(500)), word)
	case "conflict":
		return busy(or(word, "PutExtensionAddonHandler.PUT"))
	case "hang":
		c.entry.Status = 0
		d.cloud.mu.Lock()
		d.cloud.journal.write(c.entry)
		d.cloud.mu.Unlock()
		<-c.r.Context().Done()
		panic("hang")
	}
	if !sleepReal(c.r.Context(), time.Duration(f.number(1000))*time.Millisecond) {
		panic("slow answer")
	}
	return nil
}

func (d *azureDoor) throttled(byARM bool, pause time.Duration) *armRefusal {
	r := aksRefuse(429, "Throttled", "The PutAgentPool request limit has been exceeded for this subscription and region, please "+
		"try again later.")
	if byARM {
		r = armRefuse(429, "SubscriptionRequestsThrottled", "Number of requests for subscription exceeded the limit.")
	}
	r.headers = map[string]string{"Retry-After": d.realSeconds(pause)}
	return r
}

// serverError is ARM's, the resource provider's, or a gateway's in HTML.
func serverError(status int, word string) *armRefusal {
	if word == "html" {
		return &armRefusal{status: 502, html: "<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"}
	}
	if status == 503 {
		return armRefuse(status, "ServerTimeout", "The request timed out. Diagnostic information: timestamp '20261101T000000Z'.")
	}
	return aksRefuse(status, "InternalOperationError", "Internal server error")
}

// useFault is the fault of that name, counted; it is about no group.
func (d *azureDoor) useFault(name string) *fault {
	k := d.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.faults.use(name, "*", k.nowS(time.Now().UnixMilli()))
}

func unauthorized(code, format string, arguments ...any) *armRefusal {
	r := armRefuse(http.StatusUnauthorized, code, format, arguments...)
	r.headers = map[string]string{"WWW-Authenticate": `Bearer authorization_uri="https://login.windows.net/", error="invalid_token"`}
	return r
}

func forbidden(p *azurePrincipal, action, path string) *armRefusal {
	return armRefuse(403, "AuthorizationFailed", "The client '%s' with object id '%s' does not have authorization to perform "+
		"action '%s' over scope '%s' or the scope is invalid. If access was recently granted, please refresh your credentials.",
		p.ClientID, p.ObjectID, action, path)
}
