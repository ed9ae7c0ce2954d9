package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func (d *azureDoor) getCluster(c *armCall) *armRefusal {
	a := d.anyPool(c.scope)
	answerJSON(c.w, 200, map[string]any{"id": a.clusterID(), "name": a.Cluster, "location": a.Location,
		"type": "Microsoft.ContainerService/ManagedClusters", "properties": map[string]any{"provisioningState": succeeded,
			"powerState": map[string]any{"code": "Running"}, "kubernetesVersion": "1.34",
			"nodeResourceGroup": a.nodeResourceGroup()}})
	return nil
}

func (d *azureDoor) anyPool(scope string) *aksConfig {
	for _, g := range d.cloud.groups {
		if g.conf.AKS != nil && g.conf.AKS.clusterID() == scope {
			return g.conf.AKS
		}
	}
	return nil
}

func (d *azureDoor) getPermissions(c *armCall) *armRefusal {
	answerJSON(c.w, 200, map[string]any{"value": []any{map[string]any{"actions": c.principal.Actions,
		"notActions": append([]string{}, c.principal.NotActions...), "dataActions": []string{}, "notDataActions": []string{}}}})
	return nil
}

func (d *azureDoor) listPools(c *armCall) *armRefusal {
	list := []any{}
	for _, g := range d.cloud.groups {
		if g.conf.AKS != nil && g.conf.AKS.clusterID() == c.scope {
			list = append(list, d.view(g))
		}
	}
	answerJSON(c.w, 200, map[string]any{"value": list})
	return nil
}

func (d *azureDoor) getPool(c *armCall) *armRefusal {
	answerJSON(c.w, 200, d.view(d.cloud.shown(c.g, c.now)))
	return nil
}

// eTag follows from the pool's version, and says nothing of it.
func (d *azureDoor) eTag(g *group) string {
	return guid(fmt.Sprint(d.cloud.seed, "/etag/", g.conf.AKS.id(), "/", g.AKS.Version))
}

// view is the pool as ARM shows it.
func (d *azureDoor) view(g *group) map[string]any {
	a, p := g.conf.AKS, g.AKS
	properties := map[string]any{}
	for key, value := range p.Properties {
		properties[key] = value
	}
	properties["count"], properties["provisioningState"], properties["eTag"] = p.Count, p.State, d.eTag(g)
	properties["currentOrchestratorVersion"] = "1.34.2"
	properties["nodeImageVersion"] = "AKSUbuntu-2204gen2containerd-202610.28.0"
	if p.Error != nil {
		properties["status"] = map[string]any{"provisioningError": p.Error}
	}
	if a.is("type", "VirtualMachines") {
		properties["virtualMachinesProfile"] = sized(p.Properties["virtualMachinesProfile"], p.Count)
		properties["virtualMachineNodesStatus"] = []any{map[string]any{"size": g.conf.InstanceType, "count": len(g.live())}}
	}
	return map[string]any{"id": a.id(), "name": a.Pool, "type": "Microsoft.ContainerService/managedClusters/agentPools",
		"properties": properties}
}

// sized is the profile of a pool of single machines, with the size that the pool has by now.
func sized(profile any, count int) any {
	text, _ := json.Marshal(profile)
	var copied struct {
		Scale struct {
			Manual []tree `json:"manual"`
		} `json:"scale"`
	}
	if json.Unmarshal(text, &copied) != nil || len(copied.Scale.Manual) != 1 {
		return profile
	}
	copied.Scale.Manual[0]["count"] = count
	return copied
}

// index is a machine's number in its scale set.
func (m *machine) index() int {
	_, number, isSet := strings.Cut(m.ID, "-vmss")
	if !isSet {
		_, number, _ = strings.Cut(m.ID, "-vms")
		index, _ := strconv.Atoi(number)
		return index
	}
	index, _ := strconv.ParseInt(number, 36, 64)
	return int(index)
}

func (d *azureDoor) machineView(g *group, m *machine) map[string]any {
	a := g.conf.AKS
	properties := map[string]any{"resourceId": a.machineResource(a.nodeResourceGroup(), m.index())}
	if m.State != pending {
		address := fmt.Sprintf("10.%d.%d.%d", 224+m.index()/62500, m.index()/250%250, m.index()%250+4)
		properties["network"] = map[string]any{"ipAddresses": []any{map[string]any{"family": "IPv4", "ip": address}}}
	}
	if d.conf.Detailed {
		properties["provisioningState"] = map[machineState]string{pending: "Creating", terminating: "Deleting"}[m.State]
		if properties["provisioningState"] == "" {
			properties["provisioningState"] = succeeded
		}
		properties["status"] = map[string]any{"creationTimestamp": armTime(m.LaunchedAt)}
	}
	view := map[string]any{"id": a.id() + "/machines/" + m.ID, "name": m.ID, "properties": properties,
		"type": "Microsoft.ContainerService/managedClusters/agentPools/machines"}
	if a.zonal {
		view["zones"] = []string{m.Zone}
	}
	return view
}

func (d *azureDoor) listMachines(c *armCall) *armRefusal {
	query, machines := c.r.URL.Query(), d.cloud.listed(d.cloud.shown(c.g, c.now), c.now)
	from, _ := strconv.Atoi(query.Get("$skipToken"))
	from = max(0, min(from, len(machines)))
	to := min(from+d.conf.MachinePage, len(machines))
	list := []any{}
	for _, m := range machines[from:to] {
		list = append(list, d.machineView(c.g, m))
	}
	answer := map[string]any{"value": list}
	if to < len(machines) {
		answer["nextLink"] = "https://" + c.r.Host + c.r.URL.Path + "?api-version=" + url.QueryEscape(query.Get("api-version")) +
			"&%24skipToken=" + strconv.Itoa(to)
	}
	answerJSON(c.w, 200, answer)
	return nil
}

func (d *azureDoor) getMachine(c *armCall) *armRefusal {
	m := c.g.machine(c.rest)
	if m == nil {
		return aksRefuse(404, "NotFound", "Could not find the machine %s in the agent pool %s.", c.rest, c.g.conf.AKS.Pool)
	}
	answerJSON(c.w, 200, d.machineView(c.g, m))
	return nil
}

// operationQuery is signed by Azure in its way; who polls has to send all of it, as it was given.
func (d *azureDoor) operationQuery(id string) string {
	signed := strings.Repeat(strings.ReplaceAll(guid(id+"/c"), "-", ""), 40)
	return "api-version=2017-03-31&t=639" + digits(id, 15) + "&c=MII" + signed + "&s=" + guid(id+"/s") + "&h=" + guid(id+"/h")
}

// operationURL has another host case, another api-version and a long query: it is to be used as it is.
func (d *azureDoor) operationURL(c *armCall, kind string, o *armOperation) string {
	a := c.g.conf.AKS
	host := strings.Replace(c.r.Host, "localhost", "LocalHost", 1)
	return "https://" + host + "/subscriptions/" + a.Subscription + "/providers/Microsoft.ContainerService/locations/" +
		a.Location + "/" + kind + "/" + o.ID + "?" + d.operationQuery(o.ID)
}

// accept puts the headers of an operation that goes on after the answer.
func (d *azureDoor) accept(c *armCall, o *armOperation, withLocation bool) {
	h := c.w.Header()
	h.Set("Azure-AsyncOperation", d.operationURL(c, "operations", o))
	if d.cloud.faults.use("foreign-operation-url", c.g.Name, d.cloud.nowS(c.now)) != nil {
		h.Set("Azure-AsyncOperation", strings.Replace(h.Get("Azure-AsyncOperation"), "https://", "https://evil.example/", 1))
	}
	if withLocation {
		h.Set("Location", d.operationURL(c, "operationresults", o))
	}
	h.Set("Retry-After", d.realSeconds(10*time.Second))
}

// operationOf finds the operation that a path ends in; forgotten ones are not found.
func (d *azureDoor) operationOf(c *armCall) (*group, *armOperation, *armRefusal) {
	k := d.cloud
	for _, g := range k.groups {
		if g.AKS == nil {
			continue
		}
		o := g.AKS.operation(c.rest)
		if o == nil {
			continue
		}
		if c.r.URL.RawQuery != d.operationQuery(o.ID) {
			c.entry.Effect = "violation: the URL of the operation is not the one given"
			return nil, nil, armRefuse(400, "InvalidAuthenticationInfo", "The signature of the operation's URL is not valid.")
		}
		forgotten := o.Ended != 0 && c.now > o.Ended+k.clock.millis(time.Duration(d.conf.Remembered))
		if !forgotten && k.faults.use("operation-expired", g.Name, k.nowS(c.now)) == nil {
			return g, o, nil
		}
	}
	return nil, nil, armRefuse(404, "OperationNotFound", "The operation '%s' was not found.", c.rest)
}

func armTime(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

func (d *azureDoor) getOperation(c *armCall) *armRefusal {
	_, o, refusal := d.operationOf(c)
	if refusal != nil {
		return refusal
	}
	answer := map[string]any{"name": o.ID, "status": o.Status, "startTime": armTime(o.Started)}
	if o.Status == inProgress {
		c.w.Header().Set("Retry-After", d.realSeconds(10*time.Second))
	} else {
		answer["endTime"] = armTime(o.Ended)
	}
	if o.Error != nil {
		answer["error"] = o.Error
	}
	answerJSON(c.w, 200, answer)
	return nil
}

func (d *azureDoor) getOperationResult(c *armCall) *armRefusal {
	_, o, refusal := d.operationOf(c)
	switch {
	case refusal != nil:
		return refusal
	case o.Status == inProgress:
		c.w.Header().Set("Location", "https://"+c.r.Host+c.r.URL.RequestURI())
		c.w.Header().Set("Retry-After", d.realSeconds(10*time.Second))
		c.w.WriteHeader(202)
		c.entry.Status = 202
	case o.Error != nil:
		return &armRefusal{status: 409, armError: *o.Error}
	default:
		c.w.WriteHeader(204)
		c.entry.Status = 204
	}
	return nil
}
