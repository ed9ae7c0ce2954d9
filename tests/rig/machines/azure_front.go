package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// azureDoor speaks ARM, AKS's resource provider and the token service on one HTTPS address.
type azureDoor struct {
	*front
	conf *azureConfig
	log  *wire

	mu      sync.Mutex
	buckets map[string]*putBucket // by group
}

// openAzure is the tenant's HTTPS door; what instances ask over plain HTTP is added to plain.
func openAzure(f *front, log *wire, plain *http.ServeMux) http.Handler {
	d := &azureDoor{front: f, conf: f.cloud.conf.Azure, log: log, buckets: map[string]*putBucket{}}
	if d.conf == nil {
		return http.NotFoundHandler()
	}
	plain.HandleFunc("GET /metadata/identity/oauth2/token", d.metadata)
	plain.HandleFunc("GET /metadata/identity/oauth2/token/{$}", d.metadata) // MSAL asks with a slash
	mux := http.NewServeMux()
	mux.HandleFunc("/{tenant}/oauth2/v2.0/token", d.token)
	mux.HandleFunc("GET /{tenant}/v2.0/.well-known/openid-configuration", d.discovery)
	mux.HandleFunc("/", d.arm)
	return d.recorded(mux)
}

// recorded reads the request whole, and writes both sides of the exchange without their secrets.
func (d *azureDoor) recorded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
		if err != nil {
			armRefuse(413, "RequestEntityTooLarge", "the body is larger than 4 MiB").answer(w)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		x := newExchange("azure", r, []byte(plainForm(r, body)), "authorization")
		if r.Header.Get("Authorization") != "" {
			x.Headers["authorization"] = "Bearer (hidden)"
		}
		c := newCaptured()
		c.header.Set("x-ms-request-id", guid(fmt.Sprint(x.At, r.URL, len(body))))
		if id := r.Header.Get("x-ms-client-request-id"); id != "" {
			c.header.Set("x-ms-client-request-id", id)
		}
		defer func() {
			if why := recover(); why != nil { // the answer is lost
				x.Note = fmt.Sprint(why)
				d.log.write(x)
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(c, r)
		x.Note = c.header.Get(noteHeader)
		c.header.Del(noteHeader)
		d.send(x, c, w)
	})
}

// noteHeader carries what the journal says of a call to the recorder; it is not sent.
const noteHeader = "X-Rig-Note"

// send is exchange.end, with what the token service gives out left out of the file.
func (d *azureDoor) send(x *exchange, c *captured, w http.ResponseWriter) {
	x.Status, x.ResponseHeaders, x.Response = c.status, flat(c.header), c.body.String()
	if strings.Contains(x.Response, `"access_token"`) {
		x.Response = "(hidden)"
	}
	d.log.write(x)
	for name, values := range c.header {
		w.Header()[name] = values
	}
	w.WriteHeader(c.status)
	w.Write(c.body.Bytes())
}

// plainForm is the body without what a form proves one's identity with.
func plainForm(r *http.Request, body []byte) string {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return string(body)
	}
	parts := strings.Split(string(body), "&")
	for i, part := range parts {
		if name, _, _ := strings.Cut(part, "="); name == "client_secret" || name == "client_assertion" {
			parts[i] = name + "=" + url.QueryEscape("(hidden)")
		}
	}
	return strings.Join(parts, "&")
}

// realSeconds is a simulated time as Retry-After tells it: in the client's time, at least one second.
func (d *azureDoor) realSeconds(simulated time.Duration) string {
	return fmt.Sprint(max(1, int(math.Ceil(d.cloud.clock.real(simulated).Seconds()))))
}

// putBucket is AKS's limit on PUTs of a pool.
type putBucket struct {
	left float64
	at   float64 // simulated seconds
}

// takePut is 0 when a PUT may pass, or how long until one may.
func (d *azureDoor) takePut(key string, nowS float64) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.buckets[key]
	if b == nil {
		b = &putBucket{d.conf.PutBurst, nowS}
		d.buckets[key] = b
	}
	b.left = min(d.conf.PutBurst, b.left+(nowS-b.at)*d.conf.PutsMinute/60)
	b.at = nowS
	if b.left < 1 {
		return time.Duration((1 - b.left) * 60 / d.conf.PutsMinute * float64(time.Second))
	}
	b.left--
	return 0
}
