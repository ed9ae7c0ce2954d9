package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// metadata is the instance metadata service's token call, over plain HTTP on a machine.
func (d *azureDoor) metadata(w http.ResponseWriter, r *http.Request) {
	x := newExchange("azure", r, nil)
	c := newCaptured()
	d.answerMetadata(c, r)
	d.send(x, c, w)
}

func refuseMetadata(w http.ResponseWriter, status int, kind, message string) {
	answerJSON(w, status, map[string]any{"error": kind, "error_description": message})
}

func (d *azureDoor) answerMetadata(w http.ResponseWriter, r *http.Request) {
	for _, spoiled := range []struct {
		fault, kind, message string
		status               int
	}{
		{"identity-gone", "gone", "IMDS is being updated", 410},
		{"identity-absent", "not_found", "IMDS endpoint is updating", 404},
		{"identity-throttled", "too_many_requests", "Too many requests", 429},
		{"identity-error", "unknown", "Failed to retrieve token from the Active directory. For details see logs", 500},
	} {
		if d.useFault(spoiled.fault) != nil {
			refuseMetadata(w, spoiled.status, spoiled.kind, spoiled.message)
			return
		}
	}
	query := r.URL.Query()
	version, resource := query.Get("api-version"), query.Get("resource")
	i := slices.IndexFunc(d.conf.Principals, func(p *azurePrincipal) bool {
		return p.Managed && (query.Get("client_id") == "" || p.ClientID == query.Get("client_id"))
	})
	switch {
	case r.Header.Get("Metadata") != "true" || r.Header.Get("X-Forwarded-For") != "":
		refuseMetadata(w, 400, "invalid_request", "Required metadata header not specified")
	case version != "2018-02-01" && version != "2019-08-01":
		refuseMetadata(w, 400, "bad_request_102", "Required metadata header not specified or api-version is not supported")
	case !d.isAudience(resource):
		refuseMetadata(w, 400, "invalid_resource", "AADSTS500011: The resource principal named "+resource+" was not found")
	case i < 0:
		refuseMetadata(w, 400, "invalid_request", "Identity not found")
	default:
		d.giveManaged(w, d.conf.Principals[i], strings.TrimSuffix(resource, "/"))
	}
}

// giveManaged tells numbers as texts, as that service does.
func (d *azureDoor) giveManaged(w http.ResponseWriter, p *azurePrincipal, resource string) {
	d.note("token for " + p.ClientID + " from IMDS")
	lasts := int64(time.Duration(d.conf.TokensLast).Seconds())
	now := time.Now().Unix()
	answerJSON(w, 200, map[string]any{"access_token": d.issue(p, resource), "client_id": p.ClientID,
		"expires_in": fmt.Sprint(lasts), "expires_on": fmt.Sprint(now + lasts), "ext_expires_in": fmt.Sprint(lasts),
		"not_before": fmt.Sprint(now), "resource": resource, "token_type": "Bearer"})
}
