package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// wire is the file of --wire: a JSON line for each exchange at the clouds' own front doors.
type wire struct {
	mu   sync.Mutex
	file *os.File // nil: nothing is kept
}

// exchange is a request and its answer. Secrets that are not this program's own inventions are not in it.
type exchange struct {
	At              int64             `json:"at"`
	Cloud           string            `json:"cloud"` // aws, azure
	Method          string            `json:"method"`
	URL             string            `json:"url"`
	Headers         map[string]string `json:"headers"` // names in lower case
	Body            string            `json:"body"`
	Status          int               `json:"status"` // 0: no answer was given
	ResponseHeaders map[string]string `json:"response_headers,omitempty"`
	Response        string            `json:"response,omitempty"`
	Note            string            `json:"note,omitempty"`   // what the front door found wrong or did on purpose
	Secret          string            `json:"secret,omitempty"` // made up here: what the request was signed with
}

func openWire(path string) (*wire, error) {
	if path == "" {
		return &wire{}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &wire{file: file}, err
}

func (w *wire) write(x *exchange) {
	if w.file == nil {
		return
	}
	line, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.file.Write(append(line, '\n'))
}

// newExchange begins one; left names headers (in lower case) that stay out.
func newExchange(cloud string, r *http.Request, body []byte, left ...string) *exchange {
	x := &exchange{At: time.Now().UnixMilli(), Cloud: cloud, Method: r.Method, URL: r.URL.String(),
		Headers: flat(r.Header, left...), Body: string(body)}
	x.Headers["host"] = r.Host
	return x
}

func flat(headers http.Header, left ...string) map[string]string {
	list := map[string]string{}
	for name, values := range headers {
		list[strings.ToLower(name)] = values[0]
	}
	for _, name := range left {
		delete(list, name)
	}
	return list
}

// captured is an answer that is looked at before it is sent, or not sent at all.
type captured struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newCaptured() *captured { return &captured{header: http.Header{}, status: 200} }

func (c *captured) Header() http.Header         { return c.header }
func (c *captured) WriteHeader(status int)      { c.status = status }
func (c *captured) Write(b []byte) (int, error) { return c.body.Write(b) }

// end records the answer and sends it.
func (x *exchange) end(c *captured, to http.ResponseWriter, log *wire) {
	x.Status, x.ResponseHeaders, x.Response = c.status, flat(c.header), c.body.String()
	log.write(x)
	for name, values := range c.header {
		to.Header()[name] = values
	}
	to.WriteHeader(c.status)
	to.Write(c.body.Bytes())
}
