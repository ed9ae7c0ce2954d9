package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// armCall is a call of ARM on its way.
type armCall struct {
	w         http.ResponseWriter
	r         *http.Request
	body      []byte
	principal *azurePrincipal
	scope     string // of the cluster
	g         *group // nil where it is about no pool
	rest      string // below the pool: a machine's name, an operation's id
	now       int64
	occupied  map[string][]string // what lives on the pool's machines, before the call
	cordoned  map[string]bool
	entry     entry
}

// armRoute is a kind of call: its path, the permission that it takes, what does it.
type armRoute struct {
	method, path, action string
	do                   func(d *azureDoor, c *armCall) *armRefusal
}

const (
	armCluster  = `/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.ContainerService/managedClusters/([^/]+)`
	armPool     = armCluster + `/agentPools/([^/]+)`
	armLocation = `/subscriptions/([^/]+)/providers/Microsoft\.ContainerService/locations/([^/]+)`
	aksSpace    = "Microsoft.ContainerService/"
	aksClusters = aksSpace + "managedClusters/"
)

var armRoutes = []armRoute{
	{"GET", armCluster, aksClusters + "read", (*azureDoor).getCluster},
	{"GET", armCluster + `/providers/Microsoft\.Authorization/permissions`, "Microsoft.Authorization/permissions/read",
		(*azureDoor).getPermissions},
	{"GET", `/subscriptions/([^/]+)/providers/Microsoft\.Authorization/permissions`, "Microsoft.Authorization/permissions/read",
		(*azureDoor).getPermissions},
	{"GET", armCluster + `/agentPools`, aksClusters + "agentPools/read", (*azureDoor).listPools},
	{"GET", armPool, aksClusters + "agentPools/read", (*azureDoor).getPool},
	{"PUT", armPool, aksClusters + "agentPools/write", (*azureDoor).putPool},
	{"DELETE", armPool, aksClusters + "agentPools/delete", (*azureDoor).deletePool},
	{"POST", armPool + `/deleteMachines`, aksClusters + "agentPools/deleteMachines/action", (*azureDoor).postDeleteMachines},
	{"POST", armPool + `/abort`, aksClusters + "agentPools/abort/action", (*azureDoor).postAbort},
	{"GET", armPool + `/machines`, aksClusters + "agentPools/machines/read", (*azureDoor).listMachines},
	{"GET", armPool + `/machines/([^/]+)`, aksClusters + "agentPools/machines/read", (*azureDoor).getMachine},
	{"GET", armLocation + `/operations/([^/]+)`, aksSpace + "locations/operations/read", (*azureDoor).getOperation},
	{"GET", armLocation + `/operationresults/([^/]+)`, aksSpace + "locations/operationresults/read",
		(*azureDoor).getOperationResult},
}

var armPaths = func() (list []*regexp.Regexp) {
	for _, route := range armRoutes {
		list = append(list, regexp.MustCompile("(?i)^"+route.path+"$"))
	}
	return list
}()

// route finds what a path is for; parts are what its pattern caught.
func route(method, path string) (found *armRoute, parts []string, known bool) {
	for i := range armRoutes {
		if caught := armPaths[i].FindStringSubmatch(path); caught != nil {
			known = true
			if armRoutes[i].method == method {
				return &armRoutes[i], caught[1:], true
			}
		}
	}
	return nil, nil, known
}

func (d *azureDoor) arm(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c := &armCall{w: w, r: r, body: body, now: time.Now().UnixMilli()}
	c.entry = entry{At: c.now, Method: r.Method, Path: r.URL.Path, Token: r.Header.Get("x-ms-client-request-id"), Status: 200}
	refusal := d.admit(c)
	k := d.cloud
	k.mu.Lock()
	if refusal != nil {
		c.entry.Status = refusal.status
		c.entry.Effect = or(c.entry.Effect, "refused: "+refusal.Code)
	}
	lost := refusal == nil && r.Method != "GET" && k.faults.use("lost-answer", groupName(c.g), k.nowS(c.now)) != nil
	if lost {
		c.entry.Status, c.entry.Effect = 0, c.entry.Effect+" (answer lost)"
	}
	c.entry.Group = groupName(c.g)
	k.journal.write(c.entry)
	if c.r.Method != "GET" {
		if err := k.save(); err != nil {
			refusal = armRefuse(500, "InternalServerError", "%v", err)
		}
	}
	k.mu.Unlock()
	if lost {
		panic("answer lost")
	}
	if refusal != nil {
		refusal.answer(w)
	}
	w.Header().Set(noteHeader, c.entry.Effect)
}

// admit asks who calls, what for, and whether they may; then it is done.
func (d *azureDoor) admit(c *armCall) *armRefusal {
	found, parts, known := route(c.r.Method, c.r.URL.Path)
	var refusal *armRefusal
	if c.principal, refusal = d.authenticate(c.r); refusal != nil {
		return refusal
	}
	if !known {
		return armRefuse(404, "InvalidResourceType", "The resource type could not be found for path %s", c.r.URL.Path)
	}
	if found == nil {
		return armRefuse(405, "MethodNotAllowed", "The requested resource does not support http method '%s'.", c.r.Method)
	}
	d.locate(c, parts)
	if refusal := d.spoiledARM(c, found.action); refusal != nil {
		return refusal
	}
	if refusal := checkVersion(c.r); refusal != nil {
		return refusal
	}
	if !c.principal.may(found.action) {
		return forbidden(c.principal, found.action, c.r.URL.Path)
	}
	d.look(c)
	k := d.cloud
	k.mu.Lock()
	defer k.mu.Unlock()
	k.advance(c.now)
	if refusal := d.find(c, parts); refusal != nil {
		return refusal
	}
	refusal = found.do(d, c)
	c.entry.Occupied = only(c.occupied, c.entry.Machines)
	if refusal == nil && c.r.Method != "GET" {
		d.again(c, found.do)
	}
	return refusal
}

var apiVersion = regexp.MustCompile(`^20\d\d-\d\d-\d\d(-preview)?$`)

func checkVersion(r *http.Request) *armRefusal {
	version := r.URL.Query().Get("api-version")
	if version == "" {
		return armRefuse(400, "MissingApiVersionParameter",
			"The api-version query parameter (?api-version=) is required for all requests.")
	}
	if !apiVersion.MatchString(version) {
		return armRefuse(400, "InvalidApiVersionParameter", "The api-version '%s' is invalid.", version)
	}
	return nil
}

// locate finds the pool that a path is about, if any.
func (d *azureDoor) locate(c *armCall, parts []string) {
	if len(parts) < 3 || isOfLocation(c) {
		c.rest = parts[len(parts)-1]
		return
	}
	for _, g := range d.cloud.groups {
		a := g.conf.AKS
		if a == nil || !strings.EqualFold(a.Subscription, parts[0]) || !strings.EqualFold(a.ResourceGroup, parts[1]) ||
			!strings.EqualFold(a.Cluster, parts[2]) {
			continue
		}
		c.scope = a.clusterID()
		if len(parts) > 3 && a.Pool == parts[3] {
			c.g = g
		}
	}
	if len(parts) > 4 {
		c.rest = parts[4]
	}
}

func isOfLocation(c *armCall) bool {
	return strings.Contains(strings.ToLower(c.r.URL.Path), "/locations/")
}

// find says what of a path there is not.
func (d *azureDoor) find(c *armCall, parts []string) *armRefusal {
	hasSubscription, hasGroup := false, false
	for _, g := range d.cloud.groups {
		if a := g.conf.AKS; a != nil && strings.EqualFold(a.Subscription, parts[0]) {
			hasSubscription = true
			hasGroup = hasGroup || len(parts) > 1 && strings.EqualFold(a.ResourceGroup, parts[1])
		}
	}
	switch {
	case !hasSubscription:
		return armRefuse(404, "SubscriptionNotFound", "The subscription '%s' could not be found.", parts[0])
	case len(parts) == 1 || isOfLocation(c):
		return nil
	case !hasGroup:
		return armRefuse(404, "ResourceGroupNotFound", "Resource group '%s' could not be found.", parts[1])
	case c.scope == "":
		return armRefuse(404, "ResourceNotFound", "The Resource 'Microsoft.ContainerService/managedClusters/%s' under resource "+
			"group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix", parts[2], parts[1])
	case len(parts) > 3 && c.g == nil && c.r.Method == "PUT":
		c.entry.Effect = "violation: would create the pool " + parts[3]
		return aksRefuse(400, "InvalidParameter", "This cloud makes no new pools: there is no %s", parts[3])
	case len(parts) > 3 && c.g == nil:
		return aksRefuse(404, "NotFound", "Could not find the agent pool %s in the managed cluster %s.", parts[3], parts[2])
	}
	return nil
}

func groupName(g *group) string {
	if g == nil {
		return "*"
	}
	return g.Name
}

// look sees what lives on the pool's machines and which are cordoned, before anything is done. No lock may be held.
func (d *azureDoor) look(c *armCall) {
	if c.g == nil || c.r.Method == "GET" || d.fleet == nil {
		return
	}
	d.cloud.mu.Lock()
	names := c.g.names()
	d.cloud.mu.Unlock()
	c.occupied, c.cordoned = d.occupied(names), map[string]bool{}
	for _, name := range names {
		node, err := d.fleet.client.CoreV1().Nodes().Get(c.r.Context(), name, meta.GetOptions{})
		c.cordoned[name] = err == nil && node.Spec.Unschedulable
	}
}

func only(occupied map[string][]string, names []string) map[string][]string {
	found := map[string][]string{}
	for _, name := range names {
		if list := occupied[name]; len(list) > 0 {
			found[name] = list
		}
	}
	return found
}

// decodeNumbers keeps numbers as they were written.
func decodeNumbers(text []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.More() {
		return io.ErrUnexpectedEOF
	}
	return nil
}
