package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// awsDoor is the account's HTTPS side: EKS, Auto Scaling and STS at one address.
type awsDoor struct {
	conf     *awsConfig
	front    *front
	cloud    *cloud
	log      *wire
	sessions issued
	bucket   bucket
}

// awsError is a refusal as the query services name it; EKS has names of its own for some.
type awsError struct {
	status  int
	code    string
	message string
}

// awsCall is a request that is understood so far.
type awsCall struct {
	service, action string // autoscaling, SetDesiredCapacity
	group           *group // nil: none, or several
	form            url.Values
	path            map[string]string
	query           url.Values
	body            []byte
	caller          *caller
	nowMillis       int64
	changed         bool                // the call did something: its answer can get lost
	isAgain         bool                // the network delivered it twice
	before          map[string][]string // who served, before the call, and what lived there
}

// bucket limits an account's calls per real second.
type bucket struct {
	level float64
	at    time.Time
}

func (b *bucket) take(rate, burst float64, now time.Time) bool {
	if rate <= 0 {
		return true
	}
	if b.at.IsZero() {
		b.level = burst
	} else {
		b.level = min(burst, b.level+rate*now.Sub(b.at).Seconds())
	}
	b.at = now
	if b.level < 1 {
		return false
	}
	b.level--
	return true
}

// openAWS is the account's HTTPS door; what instances and pods ask over plain HTTP is added to plain.
func openAWS(f *front, log *wire, plain *http.ServeMux) (http.Handler, error) {
	k := f.cloud
	if k.conf.AWS == nil {
		return nil, fmt.Errorf("--aws needs an account: aws in the config")
	}
	d := &awsDoor{conf: k.conf.AWS, front: f, cloud: k, log: log,
		sessions: issued{byKey: map[string]*temporary{}, tokens: map[string]time.Time{}}}
	d.metadata(plain)
	return d, nil
}

func (d *awsDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return
	}
	x := newExchange("aws", r, body)
	answer := newCaptured()
	c, refusal := d.understand(r, body)
	lost := false
	if refusal == nil {
		lost, refusal = d.serve(answer, r, c, x)
	}
	if refusal != nil {
		x.Note = refusal.code + ": " + refusal.message
		c.refuse(answer, refusal)
	}
	if lost {
		x.Note = "answer lost"
		d.log.write(x)
		panic(http.ErrAbortHandler)
	}
	x.end(answer, w, d.log)
}

// understand finds service, action and group.
func (d *awsDoor) understand(r *http.Request, body []byte) (*awsCall, *awsError) {
	c := &awsCall{body: body, query: r.URL.Query()}
	if strings.HasPrefix(r.URL.Path, "/clusters/") {
		c.service = "eks"
		return c, c.route(d.cloud, r)
	}
	c.service = "autoscaling"
	form, err := url.ParseQuery(string(body))
	if r.URL.Path != "/" || r.Method != http.MethodPost || err != nil {
		return c, &awsError{404, "InvalidAction", "a POST of a form to / is needed, found " + r.Method + " " + r.URL.Path}
	}
	c.form, c.action = form, form.Get("Action")
	if strings.HasPrefix(c.action, "AssumeRole") || c.action == "GetCallerIdentity" {
		c.service = "sts"
	}
	if form.Get("Version") == ec2Version {
		c.service = "ec2"
	}
	if want := map[string]string{"autoscaling": "2011-01-01", "sts": "2011-06-15", "ec2": ec2Version}[c.service]; form.Get("Version") != want {
		return c, &awsError{400, "InvalidAction", fmt.Sprintf("Could not find operation %s for version %s", c.action,
			form.Get("Version"))}
	}
	if queryActions[c.action] == nil {
		return c, &awsError{400, "InvalidAction", fmt.Sprintf("Could not find operation %s for version %s", c.action,
			form.Get("Version"))}
	}
	c.group = d.groupOf(form)
	return c, nil
}

// groupOf is the one group that a form names, or nil.
func (d *awsDoor) groupOf(form url.Values) *group {
	k := d.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	if g := k.byASG(form.Get("AutoScalingGroupName")); g != nil {
		return g
	}
	if names := members(form, "AutoScalingGroupNames"); len(names) > 0 { // whose look it is stands first
		return k.byASG(names[0])
	}
	g, _ := k.byInstance(form.Get("InstanceId"))
	return g
}

func (k *cloud) byASG(name string) *group {
	for _, g := range k.groups {
		if g.Auto != nil && g.conf.EKS.ASG == name {
			return g
		}
	}
	return nil
}

func (k *cloud) byInstance(id string) (*group, *machine) {
	for _, g := range k.groups {
		if m := g.machine(id); g.Auto != nil && m != nil {
			return g, m
		}
	}
	return nil, nil
}

// serve asks who it is and whether all is well today, and then does it.
func (d *awsDoor) serve(w http.ResponseWriter, r *http.Request, c *awsCall, x *exchange) (lost bool, refusal *awsError) {
	now := time.Now()
	if refusal := d.spoiled(r, c, x); refusal != nil {
		return false, refusal
	}
	if c.action != "AssumeRoleWithWebIdentity" {
		if c.caller, refusal = d.verify(r, c.body, now); refusal != nil {
			return false, refusal
		}
		if c.caller.service != c.service {
			return false, mismatch(fmt.Sprintf("Credential should be scoped to correct service: '%s'.", c.service))
		}
		x.Secret = c.caller.secret
	}
	d.look(c)
	k := d.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.service != "sts" && !d.bucket.take(d.conf.CallsPerSecond, d.conf.Burst, now) {
		return false, &awsError{400, "Throttling", "Rate exceeded"}
	}
	c.nowMillis = now.UnixMilli()
	k.advance(c.nowMillis)
	if refusal := d.forbidden(c); refusal != nil {
		return false, refusal
	}
	refusal = c.answer(d, w)
	k.advance(c.nowMillis)
	d.note(c, r, refusal)
	if c.changed {
		d.again(c, r)
		lost = k.faults.use("lost-answer", c.name(), k.nowS(c.nowMillis)) != nil
	}
	return lost, refusal
}

func (c *awsCall) name() string {
	if c.group == nil {
		return ""
	}
	return c.group.Name
}

// note writes a change into the journal that all clouds share, and saves it.
func (d *awsDoor) note(c *awsCall, r *http.Request, refusal *awsError) {
	k := d.cloud
	if !c.changed && refusal == nil {
		return
	}
	e := entry{At: c.nowMillis, Method: r.Method, Path: r.URL.Path + " " + c.service + ":" + c.action, Status: 200,
		Effect: c.form.Get("DesiredCapacity"), Group: c.name()}
	if size, err := strconv.Atoi(e.Effect); err == nil {
		e.Asked = &size
	}
	e.Machines, e.Occupied = c.taken()
	if refusal != nil {
		e.Status, e.Effect = refusal.status, "refused: "+refusal.code
	}
	if c.isAgain {
		e.Effect = "again: " + e.Effect
	}
	k.journal.write(e)
	k.dirty = true
	if err := k.save(); err != nil {
		log.Print(err)
	}
}

// look notes who serves in the call's group and what lives there, before the cloud is locked.
func (d *awsDoor) look(c *awsCall) {
	if c.group == nil || strings.HasPrefix(c.action, "Describe") || strings.HasPrefix(c.action, "List") {
		return
	}
	d.cloud.mu.Lock()
	nodes, ids := []string{}, []string{}
	for _, m := range c.group.members() {
		nodes, ids = append(nodes, m.node()), append(ids, m.ID)
	}
	d.cloud.mu.Unlock()
	occupied := d.front.occupied(nodes)
	c.before = map[string][]string{}
	for i, id := range ids {
		c.before[id] = occupied[nodes[i]]
	}
}

// taken are those who served before the call and don't any more, with what lived there.
func (c *awsCall) taken() (ids []string, occupied map[string][]string) {
	occupied = map[string][]string{}
	for id, list := range c.before {
		if m := c.group.machine(id); m == nil || m.State == terminating || m.Goal != toRun {
			ids = append(ids, id)
			if len(list) > 0 {
				occupied[id] = list
			}
		}
	}
	slices.Sort(ids)
	return ids, occupied
}

// spoiled lets the faults of calls answer in the services' place.
func (d *awsDoor) spoiled(r *http.Request, c *awsCall, x *exchange) *awsError {
	k := d.cloud
	k.mu.Lock()
	var found *fault
	for _, name := range []string{"auth", "throttle", "server-error", "hang", "slow-answer", "contention", "expired"} {
		if found = k.faults.use(name, c.name(), k.nowS(time.Now().UnixMilli())); found != nil {
			break
		}
	}
	k.mu.Unlock()
	if found == nil {
		return nil
	}
	switch found.Fault {
	case "auth":
		return &awsError{403, "AccessDenied", "User: arn:aws:sts::" + d.conf.Account + ":assumed-role/" + d.conf.Role +
			"/session is not authorized to perform: " + c.service + ":" + c.action + " because no identity-based policy allows it"}
	case "throttle":
		return &awsError{400, "Throttling", "Rate exceeded"}
	case "server-error":
		return &awsError{503, "ServiceUnavailable", "The service is temporarily unavailable. Please try again later."}
	case "contention":
		return &awsError{500, "ResourceContention", "You already have a pending update to this Auto Scaling group."}
	case "expired":
		return &awsError{403, "ExpiredToken", "The security token included in the request is expired"}
	case "hang":
		<-r.Context().Done()
		x.Note = "no answer"
		d.log.write(x)
		panic(http.ErrAbortHandler)
	}
	sleepReal(r.Context(), time.Duration(found.number(1000))*time.Millisecond)
	return nil
}

// forbidden is the fault that takes one permission away, and the one of a group that is busy.
func (d *awsDoor) forbidden(c *awsCall) *awsError {
	k := d.cloud
	for _, f := range k.faults.List {
		if f.Fault == "deny" && f.Value == c.service+":"+c.action && f.active(k.nowS(c.nowMillis)) &&
			(f.Group == "*" || f.Group == c.name()) {
			f.Used++
			return &awsError{403, "AccessDenied", "User: " + c.caller.arn + " is not authorized to perform: " + c.service + ":" +
				c.action + " because no identity-based policy allows the " + c.service + ":" + c.action + " action"}
		}
	}
	if !strings.HasPrefix(c.action, "Describe") && !strings.HasPrefix(c.action, "List") && c.service != "sts" &&
		k.faults.use("conflict", c.name(), k.nowS(c.nowMillis)) != nil {
		if c.service == "eks" {
			return &awsError{409, "ResourceInUseException", "Nodegroup cannot be updated as it is currently not in Active State"}
		}
		return &awsError{400, "ScalingActivityInProgress", "Scaling activity is in progress and must complete first."}
	}
	return nil
}
