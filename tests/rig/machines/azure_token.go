package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// tokenRefusal is the token service's error.
type tokenRefusal struct {
	status  int
	kind    string // OAuth's word
	number  int    // of AADSTS
	message string
}

func refuseToken(status int, kind string, number int, format string, arguments ...any) *tokenRefusal {
	return &tokenRefusal{status, kind, number, fmt.Sprintf(format, arguments...)}
}

func (d *azureDoor) discovery(w http.ResponseWriter, r *http.Request) {
	base := "https://" + r.Host + "/" + r.PathValue("tenant")
	answerJSON(w, 200, map[string]any{"token_endpoint": base + "/oauth2/v2.0/token", "issuer": base + "/v2.0",
		"authorization_endpoint": base + "/oauth2/v2.0/authorize", "jwks_uri": base + "/discovery/v2.0/keys",
		"device_authorization_endpoint": base + "/oauth2/v2.0/devicecode", "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"pairwise"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		"end_session_endpoint": base + "/oauth2/v2.0/logout", "claims_supported": []string{"sub"}})
}

func (d *azureDoor) token(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, err := url.ParseQuery(string(body))
	principal, refusal := (*azurePrincipal)(nil), (*tokenRefusal)(nil)
	switch f := d.useFault("token-refused"); {
	case f != nil:
		refusal = faultyToken(f)
	case r.Method != "POST" || err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		refusal = refuseToken(400, "invalid_request", 900144, "The request body must contain the following parameter: 'grant_type'.")
	case r.PathValue("tenant") != d.conf.Tenant:
		refusal = refuseToken(400, "invalid_request", 90002, "Tenant '%s' not found. Check to make sure you have the correct tenant "+
			"ID and are signing into the correct cloud.", r.PathValue("tenant"))
	default:
		principal, refusal = d.grant(r, form)
	}
	if refusal != nil {
		refusal.answer(w)
		return
	}
	d.note("token for " + principal.ClientID)
	answerJSON(w, 200, map[string]any{"token_type": "Bearer", "expires_in": int(time.Duration(d.conf.TokensLast).Seconds()),
		"ext_expires_in": int(time.Duration(d.conf.TokensLast).Seconds()),
		"access_token":   d.issue(principal, strings.TrimSuffix(form.Get("scope"), "/.default"))})
}

// note tells the journal of a token that was given.
func (d *azureDoor) note(effect string) {
	d.cloud.mu.Lock()
	defer d.cloud.mu.Unlock()
	d.cloud.journal.write(entry{At: time.Now().UnixMilli(), Method: "POST", Path: "/oauth2/v2.0/token", Status: 200, Effect: effect})
}

// faultyToken is the error that the fault's value names: a number of AADSTS, or a status of its own.
func faultyToken(f *fault) *tokenRefusal {
	switch number := int(f.number(700024)); number {
	case 503:
		return refuseToken(503, "temporarily_unavailable", 90033, "A transient error has occurred. Please try again.")
	case 429:
		return refuseToken(429, "invalid_request", 90055, "The request was throttled due to too many requests.")
	default:
		return refuseToken(401, "invalid_client", number, "Client assertion is not within its valid time range, or what the number says.")
	}
}

// grant finds who asks, and lets them prove it.
func (d *azureDoor) grant(r *http.Request, form url.Values) (*azurePrincipal, *tokenRefusal) {
	if kind := form.Get("grant_type"); kind != "client_credentials" {
		return nil, refuseToken(400, "unsupported_grant_type", 70003, "The app requested an unsupported grant type '%s'.", kind)
	}
	i := slices.IndexFunc(d.conf.Principals, func(p *azurePrincipal) bool { return p.ClientID == form.Get("client_id") })
	if i < 0 {
		return nil, refuseToken(400, "unauthorized_client", 700016, "Application with identifier '%s' was not found in the directory "+
			"'%s'.", form.Get("client_id"), d.conf.Tenant)
	}
	p := d.conf.Principals[i]
	if scope, ok := strings.CutSuffix(form.Get("scope"), "/.default"); !ok {
		return nil, refuseToken(400, "invalid_scope", 1002012, "The provided value for scope %s is not valid. Client credential flows "+
			"must have a scope value with /.default suffixed to the resource identifier (application ID URI).", form.Get("scope"))
	} else if !d.isAudience(scope) {
		return nil, refuseToken(400, "invalid_resource", 500011, "The resource principal named %s was not found in the tenant named "+
			"%s.", scope, d.conf.Tenant)
	}
	switch {
	case form.Get("client_assertion") != "":
		if kind := form.Get("client_assertion_type"); kind != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
			return nil, refuseToken(400, "invalid_request", 900144, "client_assertion_type '%s' is not supported.", kind)
		}
		return p, d.checkAssertion(r, p, form.Get("client_assertion"))
	case form.Get("client_secret") == "":
		return nil, refuseToken(401, "invalid_client", 7000218, "The request body must contain the following parameter: "+
			"'client_assertion' or 'client_secret'.")
	case p.Secret == "" || form.Get("client_secret") != p.Secret:
		return nil, refuseToken(401, "invalid_client", 7000215, "Invalid client secret provided. Ensure the secret being sent in the "+
			"request is the client secret value, not the client secret ID, for a secret added to app '%s'.", p.ClientID)
	}
	return p, nil
}

// isAudience takes this very door for the Resource Manager, whatever its port.
func (d *azureDoor) isAudience(audience string) bool {
	audience = strings.TrimSuffix(audience, "/")
	asked, err := url.Parse(audience)
	isHere := err == nil && asked.Scheme == "https" && (asked.Hostname() == "localhost" || asked.Hostname() == "127.0.0.1")
	return slices.Contains(d.conf.Audiences, audience) || isHere
}

// checkAssertion takes a JWT for proof: one signed with the principal's certificate, or one of a federated service.
func (d *azureDoor) checkAssertion(r *http.Request, p *azurePrincipal, assertion string) *tokenRefusal {
	t, err := parseJWT(assertion)
	if err != nil {
		return refuseToken(401, "invalid_client", 50027, "JWT token is invalid or malformed: %v.", err)
	}
	now := time.Now().Unix()
	if t.claims.Issuer == p.ClientID {
		return checkCertified(r, d.conf.Tenant, p, t, now)
	}
	i := slices.IndexFunc(p.Federated, func(f *federation) bool { return f.Issuer == t.claims.Issuer })
	switch {
	case i < 0:
		return refuseToken(401, "invalid_client", 700211, "No matching federated identity record found for presented assertion "+
			"issuer '%s'.", t.claims.Issuer)
	case p.Federated[i].Subject != t.claims.Subject:
		return refuseToken(401, "invalid_client", 700213, "No matching federated identity record found for presented assertion "+
			"subject '%s'.", t.claims.Subject)
	case !slices.Contains(t.claims.Audience, "api://AzureADTokenExchange"):
		return refuseToken(401, "invalid_client", 700212, "No matching federated identity record found for presented assertion "+
			"audience '%s'.", strings.Join(t.claims.Audience, " "))
	case !t.isSignedBy(p.Federated[i].public):
		return refuseToken(401, "invalid_client", 5000131, "The assertion's signature is not of its issuer.")
	}
	return t.inTime(now)
}

func checkCertified(r *http.Request, tenant string, p *azurePrincipal, t *jwt, now int64) *tokenRefusal {
	base := "https://" + r.Host + "/" + tenant
	switch {
	case p.certified == nil || !slices.Contains(p.thumbprints, or(t.header.ThumbprintTwo, t.header.Thumbprint)):
		return refuseToken(401, "invalid_client", 700027, "The certificate with identifier used to sign the client assertion is not "+
			"registered on application. [Reason - The key was not found., Thumbprint of key used by client: '%s']",
			or(t.header.ThumbprintTwo, t.header.Thumbprint))
	case !t.isSignedBy(p.certified):
		return refuseToken(401, "invalid_client", 700027, "Client assertion failed signature validation.")
	case t.claims.Subject != p.ClientID:
		return refuseToken(401, "invalid_client", 700021, "Client assertion application identifier doesn't match 'client_id' parameter.")
	case !slices.Contains(t.claims.Audience, base+"/oauth2/v2.0/token") && !slices.Contains(t.claims.Audience, base+"/v2.0"):
		return refuseToken(401, "invalid_client", 700023, "Client assertion audience claim does not match Realm issuer: found '%s'.",
			strings.Join(t.claims.Audience, " "))
	case t.claims.ID == "":
		return refuseToken(401, "invalid_client", 50027, "JWT token is invalid or malformed: there is no jti.")
	}
	return t.inTime(now)
}

func (t *tokenRefusal) answer(w http.ResponseWriter) {
	now := time.Now().UTC()
	trace := guid(t.message)
	answerJSON(w, t.status, map[string]any{"error": t.kind, "error_codes": []int{t.number}, "trace_id": trace,
		"correlation_id": trace, "timestamp": now.Format("2006-01-02 15:04:05Z"),
		"error_uri": fmt.Sprintf("https://login.microsoftonline.com/error?code=%d", t.number),
		"error_description": fmt.Sprintf("AADSTS%d: %s Trace ID: %s Correlation ID: %s Timestamp: %s", t.number, t.message, trace, trace,
			now.Format("2006-01-02 15:04:05Z"))})
}
