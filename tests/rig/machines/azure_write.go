package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// putPool follows a PUT of a pool. It may change the size; all else is to come back as it was.
func (d *azureDoor) putPool(c *armCall) *armRefusal {
	k, g := d.cloud, c.g
	p := g.AKS
	if pause := d.takePut(g.Name, k.nowS(c.now)); pause > 0 {
		return d.throttled(false, pause)
	}
	sent, count, refusal := d.readPut(c)
	if refusal != nil {
		return refusal
	}
	c.entry.Asked = &count
	if refusal := d.checkTag(c); refusal != nil {
		return refusal
	}
	if refusal := d.checkPut(c, sent, count); refusal != nil {
		return refusal
	}
	if p.State == succeeded && count == p.Count && count == len(g.live()) {
		p.Properties = merged(p.Properties, sent)
		c.entry.Effect = "none: as it is"
		answerJSON(c.w, 200, d.view(g))
		return nil
	}
	if refusal := d.preflight(c, count); refusal != nil {
		return refusal
	}
	if refusal := d.oneAtATime(c); refusal != nil {
		return refusal
	}
	p.Properties = merged(p.Properties, sent)
	d.startPut(c, count)
	return nil
}

func (d *azureDoor) startPut(c *armCall, count int) {
	k, g := d.cloud, c.g
	o := k.begin(g, "put", "Updating", c.now)
	o.cordoned = c.cordoned
	c.entry.Effect = k.scale(g, o, k.granted(g, g.AKS.Count, count, g.conf.Max, c.now), c.now)
	for _, m := range g.Machines {
		if m.Token == o.ID && (m.State == terminating || m.State == stopping) {
			c.entry.Machines = append(c.entry.Machines, m.ID)
		}
	}
	c.entry.Status = 201
	d.accept(c, o, false)
	answerJSON(c.w, 201, d.view(g))
	g.AKS.State = "Scaling" // as one sees it from now on
}

// readPut takes the body apart: its properties, and the size that it asks for.
func (d *azureDoor) readPut(c *armCall) (sent map[string]any, count int, refusal *armRefusal) {
	if kind := c.r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return nil, 0, armRefuse(415, "UnsupportedMediaType", "The content media type '%s' is not supported.", kind)
	}
	var body struct {
		Properties tree `json:"properties"`
	}
	if err := decodeNumbers(c.body, &body); err != nil {
		return nil, 0, armRefuse(400, "InvalidRequestContent",
			"The request content was invalid and could not be deserialized: '%v'.", err)
	}
	if body.Properties == nil {
		return nil, 0, aksRefuse(400, "InvalidParameter", "Required parameter properties is missing (null).")
	}
	if c.g.conf.AKS.is("type", "VirtualMachines") {
		count, refusal = manualCount(body.Properties, c.g)
	} else {
		count, refusal = wholeNumber(body.Properties["count"], "count", c.g.AKS.Count)
	}
	for _, key := range []string{"count", "eTag", "provisioningState", "currentOrchestratorVersion", "nodeImageVersion", "status",
		"virtualMachineNodesStatus"} {
		delete(body.Properties, key)
	}
	return body.Properties, count, refusal
}

func wholeNumber(value any, name string, otherwise int) (int, *armRefusal) {
	if value == nil {
		return otherwise, nil
	}
	number, isNumber := value.(json.Number)
	whole, err := number.Int64()
	if !isNumber || err != nil {
		return 0, aksRefuse(400, "UnmarshalError", "UnmarshalEntity encountered error: json: cannot unmarshal %T into Go struct "+
			"field Properties.properties.%s of type int32.", value, name)
	}
	if whole < 0 || whole > 1000 {
		return 0, aksRefuse(400, "InvalidParameter", "The value of parameter agentPoolProfile.count is invalid. Please see "+
			"https://aka.ms/aks-naming-rules for more details: found %d, allowed is 0 to 1000.", whole)
	}
	return int(whole), nil
}

// manualCount is the size of a pool of single machines: the sum over its sizes.
func manualCount(properties map[string]any, g *group) (int, *armRefusal) {
	profile, _ := properties["virtualMachinesProfile"].(map[string]any)
	scale, _ := profile["scale"].(map[string]any)
	manual, _ := scale["manual"].([]any)
	if profile == nil {
		return g.AKS.Count, nil
	}
	total := 0
	for _, each := range manual {
		one, _ := each.(map[string]any)
		if one["size"] != g.conf.InstanceType {
			return 0, aksRefuse(400, "InvalidParameter", "virtualMachinesProfile.scale.manual: the size %v is not of this pool",
				one["size"])
		}
		count, refusal := wholeNumber(one["count"], "virtualMachinesProfile.scale.manual.count", 0)
		if refusal != nil {
			return 0, refusal
		}
		total += count
	}
	return total, nil
}

// checkTag compares If-Match, quoted or not, and If-None-Match.
func (d *azureDoor) checkTag(c *armCall) *armRefusal {
	k, p := d.cloud, c.g.AKS
	if f := k.faults.use("etag-mismatch", c.g.Name, k.nowS(c.now)); f != nil {
		p.changed()
		if f.number(412) == 409 {
			r := aksRefuse(409, "EtagMismatch", "Operation is not allowed: Another operation is in progress")
			r.subcode = "PutManagedClusterAndComponents_FailedPrecondition"
			r.Details = []*armError{plainError("Unspecified", "rpc error: code = FailedPrecondition desc = Etag mismatched")}
			return r
		}
	}
	match := strings.Trim(c.r.Header.Get("If-Match"), `"`)
	if match == "" {
		c.entry.Effect = "without If-Match"
	}
	if c.r.Header.Get("If-None-Match") != "" || match != "" && match != "*" && match != d.eTag(c.g) {
		return armRefuse(412, "PreconditionFailed", "The condition '%s' set in the request is not satisfied: the resource's eTag is "+
			"'%s'.", match, d.eTag(c.g))
	}
	return nil
}

// checkPut refuses what AKS refuses, and what a scaler must not do to a pool.
func (d *azureDoor) checkPut(c *armCall, sent map[string]any, count int) *armRefusal {
	a, p := c.g.conf.AKS, c.g.AKS
	isSystem := p.Properties["mode"] == "System"
	switch {
	case isSystem && sent["mode"] != "System" && d.isLastSystem(c):
		return aksRefuse(400, "OperationNotAllowed", "There has to be at least one system agent pool.")
	case isSystem && count < 1:
		return aksRefuse(400, "InvalidParameter", "The value of parameter agentPoolProfile.count is invalid: a system pool has from 1 "+
			"to 1000 machines.")
	case p.Properties["enableAutoScaling"] == true && count != p.Count:
		return aksRefuse(400, "InvalidParameter", "Cannot manually scale AgentPool '%s' of an AKS cluster with cluster autoscaler "+
			"enabled. Please disable cluster autoscaler in the cluster to manually scale.", a.Pool)
	}
	for _, key := range []string{"vmSize", "osType", "type", "scaleSetPriority"} {
		if value, there := sent[key]; there && value != p.Properties[key] {
			r := aksRefuse(400, "PropertyChangeNotAllowed", "Changing property 'properties.%s' is not allowed.", key)
			r.Target = "properties." + key
			return r
		}
	}
	if odd := differences(map[string]any(p.Properties), sent, ""); a.Sparse == "reject" && len(odd) > 0 {
		c.entry.Effect = "violation: the PUT " + strings.Join(odd, ", ")
		return aksRefuse(400, "InvalidParameter", "A scaler leaves all but the size as it is; the PUT %s", strings.Join(odd, ", "))
	}
	return nil
}

// isLastSystem tells whether the cluster has no other pool of mode System.
func (d *azureDoor) isLastSystem(c *armCall) bool {
	return !slices.ContainsFunc(d.cloud.groups, func(g *group) bool {
		return g != c.g && g.AKS != nil && g.conf.AKS.clusterID() == c.scope && g.AKS.Properties["mode"] == "System"
	})
}

// differences are what a PUT leaves out or changes of what the pool has, sizes apart.
func differences(known, sent any, path string) (list []string) {
	if path == "virtualMachinesProfile.scale.manual[].count" {
		return nil
	}
	switch mine := known.(type) {
	case map[string]any:
		theirs, _ := sent.(map[string]any)
		keys := make([]string, 0, len(mine))
		for key := range mine {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			below := strings.TrimPrefix(path+"."+key, ".")
			if value, there := theirs[key]; there {
				list = append(list, differences(mine[key], value, below)...)
			} else {
				list = append(list, "drops "+below)
			}
		}
		for key := range theirs {
			if _, there := mine[key]; !there {
				list = append(list, "adds "+strings.TrimPrefix(path+"."+key, "."))
			}
		}
		return list
	case []any:
		theirs, _ := sent.([]any)
		if len(mine) != len(theirs) {
			return []string{"changes " + path}
		}
		for i := range mine {
			list = append(list, differences(mine[i], theirs[i], path+"[]")...)
		}
		return list
	}
	if !sameScalar(known, sent) {
		return []string{fmt.Sprintf("changes %s from %v to %v", path, known, sent)}
	}
	return nil
}

// sameScalar compares numbers exactly, however they are written.
func sameScalar(one, other any) bool {
	a, isNumber := one.(json.Number)
	b, alike := other.(json.Number)
	if !isNumber || !alike {
		return one == other
	}
	x, parsed := new(big.Rat).SetString(string(a))
	y, too := new(big.Rat).SetString(string(b))
	return parsed && too && x.Cmp(y) == 0
}

func merged(known, sent map[string]any) map[string]any {
	all := map[string]any{}
	for key, value := range known {
		all[key] = value
	}
	for key, value := range sent {
		all[key] = value
	}
	return all
}

// preflight refuses at once what faults with the value "sync" let fail.
func (d *azureDoor) preflight(c *armCall, count int) *armRefusal {
	k, g := d.cloud, c.g
	if count <= len(g.live()) {
		return nil
	}
	for _, name := range []string{"stock-out", "quota"} {
		f := k.faults.find(name, g.Name, k.nowS(c.now))
		if f == nil || f.Value != "sync" {
			continue
		}
		f.Used++
		if name == "quota" {
			return aksRefuse(400, "ErrCode_InsufficientVCPUQuota", "Insufficient vcpu quota requested %d, remaining 0 for family "+
				"standard for region %s.", 24*(count-len(g.live())), g.conf.AKS.Location)
		}
		r := aksRefuse(400, "VMSizeNotSupported", "Virtual Machine size: '%s' is not supported for subscription %s in location '%s'. "+
			"The available VM sizes are 'standard_d2s_v3'.", g.conf.InstanceType, g.conf.AKS.Subscription, g.conf.AKS.Location)
		return r
	}
	return nil
}

// oneAtATime refuses while an operation is in progress, unless Azure lets the later one win today.
func (d *azureDoor) oneAtATime(c *armCall) *armRefusal {
	k, g := d.cloud, c.g
	if k.faults.use("cluster-upgrade", g.Name, k.nowS(c.now)) != nil { // its pools show nothing of it
		return aksRefuse(409, "OperationNotAllowed", "Operation is not allowed because there's an in progress upgrade managed cluster "+
			"operation on the managed cluster started at %s. Please wait for it to finish before starting a new operation. See "+
			"https://aka.ms/aks-pending-operation for more details", armTime(c.now))
	}
	o := g.AKS.current()
	if o == nil {
		return nil
	}
	if f := k.faults.use("preempted", g.Name, k.nowS(c.now)); f != nil {
		k.preempt(g, o, guid(o.ID+"/later"), f.Value, c.now)
		return nil
	}
	return busy(g.conf.AKS.Pool + " - Updating")
}

func (d *azureDoor) deletePool(c *armCall) *armRefusal {
	c.entry.Effect = "violation: would delete the pool"
	return aksRefuse(400, "OperationNotAllowed", "This cloud deletes no pools.")
}

func (d *azureDoor) postDeleteMachines(c *armCall) *armRefusal {
	k, g := d.cloud, c.g
	var body struct {
		MachineNames []string `json:"machineNames"`
	}
	if err := strict(c.body, &body); err != nil || len(body.MachineNames) == 0 {
		return armRefuse(400, "InvalidRequestContent", "The request content was invalid: machineNames is a list of names.")
	}
	if refusal := d.oneAtATime(c); refusal != nil {
		return refusal
	}
	known := slices.DeleteFunc(slices.Clone(body.MachineNames), func(name string) bool { return g.machine(name) == nil })
	if len(known) == 0 {
		return aksRefuse(400, "InvalidParameter", "Cannot find any valid machines to delete. Please check your input machine names. "+
			"The valid machines to delete in agent pool '%s' are: %s.", g.conf.AKS.Pool, strings.Join(g.names(), ", "))
	}
	if g.AKS.Properties["mode"] == "System" && len(g.live()) <= len(known) {
		return aksRefuse(400, "OperationNotAllowed", "There has to be at least one machine in a system agent pool.")
	}
	o := k.begin(g, "deleteMachines", "Updating", c.now)
	o.Stuck = false
	c.entry.Machines = known
	if k.faults.use("no-effect", g.Name, k.nowS(c.now)) != nil {
		c.entry.Machines, c.entry.Effect = nil, "none: no-effect"
	} else {
		c.entry.Effect = k.deleteMachines(g, o, known, c.now)
	}
	c.entry.Status = 202
	d.accept(c, o, true)
	c.w.WriteHeader(202)
	return nil
}

func (g *group) names() (list []string) {
	for _, m := range g.Machines {
		list = append(list, m.ID)
	}
	return list
}

func (d *azureDoor) postAbort(c *armCall) *armRefusal {
	o := c.g.AKS.current()
	if o == nil || o.Kind == "abort" {
		return aksRefuse(409, "OperationNotAllowed", "There is no operation in progress that could be aborted: the latest operation of "+
			"agent pool %s is completed.", c.g.conf.AKS.Pool)
	}
	a := d.cloud.abort(c.g, o, c.now)
	c.entry.Effect, c.entry.Status = "aborted "+o.Kind, 202
	d.accept(c, a, true)
	c.w.WriteHeader(202)
	return nil
}
