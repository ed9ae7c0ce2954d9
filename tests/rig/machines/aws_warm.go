package main

import (
	"encoding/json"
	"slices"
)

func putWarm(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	w := warmPool{Prepared: -1, State: "Stopped"}
	if g.Auto.Warm != nil {
		w = *g.Auto.Warm
	}
	least, given, refusal := c.number("MinSize", 0, 1<<30)
	if refusal != nil {
		return nil, refusal
	}
	if given {
		w.Min = least
	}
	prepared, given, refusal := c.number("MaxGroupPreparedCapacity", -1, 1<<30)
	if refusal != nil {
		return nil, refusal
	}
	if given {
		w.Prepared = prepared
	}
	reuse, given, refusal := c.flag("InstanceReusePolicy.ReuseOnScaleIn")
	if refusal != nil {
		return nil, refusal
	}
	if given {
		w.Reuse = reuse
	}
	w.State = or(c.form.Get("PoolState"), w.State)
	if refusal := g.setWarm(&w); refusal != nil {
		return nil, refusal
	}
	c.changed = true
	return struct{}{}, nil
}

// setWarm refuses what the service does not offer for such a group.
func (g *group) setWarm(w *warmPool) *awsError {
	a, e := g.Auto, g.conf.EKS
	switch {
	case !slices.Contains([]string{"Stopped", "Running", "Hibernated"}, w.State):
		return bad("PoolState is Stopped, Running or Hibernated, found %s", w.State)
	case e.CapacityType == "SPOT" || e.WarmPool == "none":
		return bad("You can't add a warm pool to an Auto Scaling group that has a mixed instances policy or a launch " +
			"template or launch configuration that requests Spot Instances.")
	case a.Warm != nil && a.Warm.Deleting:
		return &awsError{400, "ScalingActivityInProgress", "The warm pool is being deleted."}
	case w.Prepared >= 0 && w.Prepared < w.Min:
		return bad("MaxGroupPreparedCapacity %d is less than the warm pool's MinSize %d.", w.Prepared, w.Min)
	}
	a.Warm, a.RetryAt = w, 0
	return nil
}

func deleteWarm(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	force, _, refusal := c.flag("ForceDelete")
	switch {
	case refusal != nil:
		return nil, refusal
	case g.Auto.Warm == nil:
		return nil, bad("No warm pool found for Auto Scaling group %s", g.conf.EKS.ASG)
	case !force && g.busy():
		return nil, &awsError{400, "ResourceInUse", "The warm pool of " + g.conf.EKS.ASG + " has activities in progress."}
	}
	g.Auto.Warm.Deleting = true
	c.changed = true
	return struct{}{}, nil
}

func (g *group) busy() bool {
	for _, y := range g.Auto.Activities {
		if y.End == 0 {
			return true
		}
	}
	return false
}

// launch is what LaunchInstances answered to a client token.
type launch struct {
	Asked  string          `json:"asked"`
	Result json.RawMessage `json:"result"`
}

type launchResult struct {
	AutoScalingGroupName string
	ClientToken          string
	Instances            memberList[launchedXML]
	Errors               memberList[launchErrorXML]
}

type launchedXML struct {
	InstanceType, MarketType, SubnetId, AvailabilityZone string
	InstanceIds                                          memberList[string]
}

type launchErrorXML struct {
	InstanceType, MarketType, SubnetId, AvailabilityZone, ErrorCode, ErrorMessage string
}

// launchInstances answers at once what could be had, in one zone; a token does it once.
func launchInstances(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	token := c.form.Get("ClientToken")
	count, given, refusal := c.number("RequestedCapacity", 1, 100)
	switch {
	case refusal != nil:
		return nil, refusal
	case !given:
		return nil, missing("RequestedCapacity")
	case token == "":
		return nil, missing("ClientToken")
	}
	a := g.Auto
	if done, ok := a.Launches[token]; ok {
		if done.Asked != c.form.Encode() {
			return nil, &awsError{400, "IdempotentParameterMismatch", "The parameters differ from those of the request with " +
				"the same client token."}
		}
		var r launchResult
		json.Unmarshal(done.Result, &r)
		return r, nil
	}
	zone, refusal := c.zone(g)
	if refusal != nil {
		return nil, refusal
	}
	if a.Desired+count > a.Max {
		return nil, bad("Launching %d instances would exceed the group's maximum size: desired %d, max %d.", count, a.Desired, a.Max)
	}
	r := d.launchIn(g, zone, d.cloud.granted(g, a.Desired, a.Desired+count, a.Max, c.nowMillis)-a.Desired, c)
	text, _ := json.Marshal(r)
	if a.Launches == nil {
		a.Launches = map[string]launch{}
	}
	a.Launches[token] = launch{c.form.Encode(), text}
	c.changed = true
	return r, nil
}

// zone is the one that the launch is for.
func (c *awsCall) zone(g *group) (string, *awsError) {
	zones := append(members(c.form, "AvailabilityZones"), members(c.form, "AvailabilityZoneIds")...)
	for _, id := range members(c.form, "SubnetIds") {
		for _, zone := range g.conf.Zones {
			if subnet(zone) == id {
				zones = append(zones, zone)
			}
		}
	}
	switch {
	case len(zones) == 0 && len(g.conf.Zones) == 1:
		return g.conf.Zones[0], nil
	case len(zones) != 1:
		return "", bad("One Availability Zone or subnet is needed for a group with several, found %d.", len(zones))
	case !slices.Contains(g.conf.Zones, zones[0]):
		return "", bad("Availability Zone %s is not one of the Auto Scaling group's.", zones[0])
	}
	return zones[0], nil
}

func (d *awsDoor) launchIn(g *group, zone string, count int, c *awsCall) launchResult {
	k, a := d.cloud, g.Auto
	market := map[string]string{"SPOT": "spot", "ON_DEMAND": "on-demand"}[g.conf.EKS.CapacityType]
	r := launchResult{AutoScalingGroupName: g.conf.EKS.ASG, ClientToken: c.form.Get("ClientToken")}
	retries := c.form.Get("RetryStrategy") == "retry-with-group-configuration"
	for _, kind := range g.conf.EKS.InstanceTypes {
		var ids []string
		for ; count > 0; count-- {
			code, message, _ := k.lacking(g, zone, kind, c.nowMillis)
			if code != "" {
				f := refusal{Code: code, Zone: zone, Type: kind, Message: message}
				if f.Message == "" {
					f.Message = launchFailure(g, &f)
				}
				r.Errors.Member = append(r.Errors.Member, launchErrorXML{kind, market, subnet(zone), zone,
					map[string]string{"stock-out": "InsufficientInstanceCapacity", "quota": "VcpuLimitExceeded"}[code], f.Message})
				break
			}
			a.resize(a.Desired+1, c.nowMillis)
			g.expect(toRun, 1)
			m := k.launch(g, toRun, r.ClientToken, c.nowMillis)
			m.place(zone, kind)
			m.Protected = a.ProtectNew
			a.begin(m, "Launching a new EC2 instance: "+m.ID, "a user requested to launch instances.", c.nowMillis)
			ids = append(ids, m.ID)
		}
		if len(ids) > 0 {
			r.Instances.Member = append(r.Instances.Member, launchedXML{kind, market, subnet(zone), zone, memberList[string]{ids}})
		}
	}
	if retries && count > 0 {
		a.resize(a.Desired+count, c.nowMillis)
	}
	return r
}
