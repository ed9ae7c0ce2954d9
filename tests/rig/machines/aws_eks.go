package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nodegroupUpdate is one asynchronous change of a node group's config. What it asks takes effect at its end.
type nodegroupUpdate struct {
	ID     string            `json:"id"`
	Type   string            `json:"type"` // "": ConfigUpdate
	Status string            `json:"status"`
	At     int64             `json:"at"`
	Due    int64             `json:"due"`
	Params map[string]string `json:"params"`
	Token  string            `json:"token"`
	Sizes  map[string]int    `json:"sizes"`
	Warm   *warmPool         `json:"warm"`
	NoWarm bool              `json:"no_warm"`
}

type jsonObject = map[string]any

var eksActions map[string]func(d *awsDoor, c *awsCall) (jsonObject, *awsError)

func init() {
	eksActions = map[string]func(*awsDoor, *awsCall) (jsonObject, *awsError){
		"DescribeCluster": describeCluster, "ListNodegroups": listNodegroups, "DescribeNodegroup": describeNodegroup,
		"UpdateNodegroupConfig": updateNodegroup, "DescribeUpdate": describeUpdate, "ListUpdates": listUpdates,
	}
}

// route finds the action of a path, and the group that it names.
func (c *awsCall) route(k *cloud, r *http.Request) *awsError {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	c.path = map[string]string{"cluster": parts[1]}
	shape := r.Method
	for i, part := range parts[2:] {
		if i%2 == 0 {
			shape += "/" + part
		} else {
			c.path[parts[1+i]] = part
			shape += "/*"
		}
	}
	c.action = map[string]string{"GET": "DescribeCluster", "GET/node-groups": "ListNodegroups",
		"GET/node-groups/*": "DescribeNodegroup", "POST/node-groups/*/update-config": "UpdateNodegroupConfig",
		"GET/updates/*": "DescribeUpdate", "GET/updates": "ListUpdates"}[shape]
	if c.action == "" {
		return &awsError{404, "InvalidAction", "Unknown path " + r.URL.Path}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c.group = k.nodegroup(c.path["cluster"], or(c.path["node-groups"], c.query.Get("nodegroupName")))
	return nil
}

func (k *cloud) nodegroup(cluster, name string) *group {
	for _, g := range k.groups {
		if e := g.conf.EKS; e != nil && !e.Bare && e.Cluster == cluster && e.Nodegroup == name {
			return g
		}
	}
	return nil
}

func eksNotFound(format string, arguments ...any) *awsError {
	return &awsError{404, "ResourceNotFoundException", fmt.Sprintf(format, arguments...)}
}

func eksInvalid(format string, arguments ...any) *awsError {
	return &awsError{400, "InvalidParameterException", fmt.Sprintf(format, arguments...)}
}

func (c *awsCall) needCluster(d *awsDoor) *awsError {
	for _, g := range d.cloud.groups {
		if g.conf.EKS != nil && g.conf.EKS.Cluster == c.path["cluster"] {
			return nil
		}
	}
	return eksNotFound("No cluster found for name: %s.", c.path["cluster"])
}

// needNodegroup is the one of the path.
func (c *awsCall) needNodegroup(d *awsDoor) (*group, *awsError) {
	if refusal := c.needCluster(d); refusal != nil {
		return nil, refusal
	}
	if c.group == nil {
		return nil, eksNotFound("No node group found for name: %s.", c.path["node-groups"])
	}
	return c.group, nil
}

func describeCluster(d *awsDoor, c *awsCall) (jsonObject, *awsError) {
	name := c.path["cluster"]
	return jsonObject{"cluster": jsonObject{"name": name, "status": "ACTIVE", "version": "1.36",
		"arn":       fmt.Sprintf("arn:aws:eks:%s:%s:cluster/%s", d.conf.Region, d.conf.Account, name),
		"createdAt": float64(d.cloud.clock.start.Unix()), "platformVersion": "eks.7", "tags": jsonObject{},
		"endpoint": "https://EXAMPLE.gr7." + d.conf.Region + ".eks.amazonaws.com"}}, c.needCluster(d)
}

// pageOf is page with the names of EKS.
func pageOf(c *awsCall, list []string) (part []string, next any, refusal *awsError) {
	size := 100
	if text := c.query.Get("maxResults"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil || size < 1 || size > 100 {
			return nil, nil, eksInvalid("maxResults needs to be between 1 and 100.")
		}
	}
	part, token, refusal := page(c, list, size, c.query.Get("nextToken"))
	if refusal != nil {
		return nil, nil, eksInvalid("Invalid nextToken.")
	}
	if token != "" {
		next = token
	}
	return append([]string{}, part...), next, nil
}

func listNodegroups(d *awsDoor, c *awsCall) (jsonObject, *awsError) {
	if refusal := c.needCluster(d); refusal != nil {
		return nil, refusal
	}
	var names []string
	for _, g := range d.cloud.groups {
		if e := g.conf.EKS; e != nil && !e.Bare && e.Cluster == c.path["cluster"] {
			names = append(names, e.Nodegroup)
		}
	}
	part, next, refusal := pageOf(c, names)
	return jsonObject{"nodegroups": part, "nextToken": next}, refusal
}

// health tells what Auto Scaling could not do, while it still cannot.
func (d *awsDoor) health(g *group) []jsonObject {
	issues := []jsonObject{}
	short := g.Auto.Desired - len(g.members())
	for i := range slices.Backward(g.Auto.Activities) {
		if y := &g.Auto.Activities[i]; y.Status == "Failed" && short > 0 {
			code := "AsgInstanceLaunchFailures"
			if strings.Contains(y.Message, "vCPU") {
				code = "InstanceLimitExceeded"
			}
			return append(issues, jsonObject{"code": code, "message": y.Message, "resourceIds": []string{g.conf.EKS.ASG}})
		}
	}
	return issues
}

func (d *awsDoor) nodegroup(g *group) jsonObject {
	a, e := g.Auto, g.conf.EKS
	status, health := "ACTIVE", d.health(g)
	switch {
	case a.updating():
		status = "UPDATING"
	case len(health) > 0:
		status = "DEGRADED"
	}
	subnets := []string{}
	for _, zone := range g.conf.Zones {
		subnets = append(subnets, subnet(zone))
	}
	labels := g.conf.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	v := jsonObject{"nodegroupName": e.Nodegroup, "clusterName": e.Cluster, "status": status, "version": "1.36",
		"releaseVersion": "1.36.2-20261107",
		"nodegroupArn": fmt.Sprintf("arn:aws:eks:%s:%s:nodegroup/%s/%s/%s", d.conf.Region, d.conf.Account, e.Cluster, e.Nodegroup,
			hexDigits(e.ASG, 12)), "createdAt": float64(a.CreatedAt) / 1000, "modifiedAt": float64(a.CreatedAt) / 1000,
		"capacityType":  e.CapacityType,
		"scalingConfig": jsonObject{"minSize": a.Min, "maxSize": a.Max, "desiredSize": a.Desired},
		"instanceTypes": e.InstanceTypes, "subnets": subnets, "amiType": "AL2023_x86_64_NVIDIA", "labels": labels,
		"taints": g.conf.eksTaints(), "resources": jsonObject{"autoScalingGroups": []jsonObject{{"name": e.ASG}}},
		"updateConfig": jsonObject{"maxUnavailable": e.Unavailable, "updateStrategy": e.Strategy},
		"health":       jsonObject{"issues": health}, "diskSize": 200,
		"nodeRole": "arn:aws:iam::" + d.conf.Account + ":role/nodes", "tags": e.Tags}
	if t := e.template(); e.isBlock() { // which EKS demands of them; of others it makes its own
		v["launchTemplate"] = jsonObject{"id": t.LaunchTemplateId, "name": t.LaunchTemplateName, "version": t.Version}
	}
	if w := a.Warm; w != nil && e.WarmPool == "nodegroup" {
		warm := jsonObject{"enabled": !w.Deleting, "minSize": w.Min, "poolState": strings.ToUpper(w.State),
			"reuseOnScaleIn": w.Reuse}
		if w.Prepared >= 0 {
			warm["maxGroupPreparedCapacity"] = w.Prepared
		}
		v["warmPoolConfig"] = warm
	}
	return v
}

// eksTaints are the group's in the words of EKS.
func (g *groupConfig) eksTaints() []jsonObject {
	taints := []jsonObject{}
	for _, t := range g.Taints {
		effect := map[string]string{"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE",
			"PreferNoSchedule": "PREFER_NO_SCHEDULE"}[t.Effect]
		taints = append(taints, jsonObject{"key": t.Key, "value": t.Value, "effect": effect})
	}
	return taints
}

func describeNodegroup(d *awsDoor, c *awsCall) (jsonObject, *awsError) {
	g, refusal := c.needNodegroup(d)
	if refusal != nil {
		return nil, refusal
	}
	return jsonObject{"nodegroup": d.nodegroup(g)}, nil
}

type nodegroupChange struct {
	ScalingConfig *struct {
		MinSize     *int `json:"minSize"`
		MaxSize     *int `json:"maxSize"`
		DesiredSize *int `json:"desiredSize"`
	} `json:"scalingConfig"`
	WarmPoolConfig *struct {
		Enabled                  *bool   `json:"enabled"`
		MinSize                  *int    `json:"minSize"`
		MaxGroupPreparedCapacity *int    `json:"maxGroupPreparedCapacity"`
		PoolState                *string `json:"poolState"`
		ReuseOnScaleIn           *bool   `json:"reuseOnScaleIn"`
	} `json:"warmPoolConfig"`
	ClientRequestToken string `json:"clientRequestToken"`
}

func updateNodegroup(d *awsDoor, c *awsCall) (jsonObject, *awsError) {
	g, refusal := c.needNodegroup(d)
	if refusal != nil {
		return nil, refusal
	}
	var asked nodegroupChange
	if err := json.Unmarshal(c.body, &asked); err != nil {
		return nil, &awsError{400, "SerializationException", err.Error()}
	}
	a := g.Auto
	for i := range a.Updates {
		if u := &a.Updates[i]; asked.ClientRequestToken != "" && u.Token == asked.ClientRequestToken {
			return jsonObject{"update": u.view()}, nil
		}
	}
	if a.updating() {
		return nil, &awsError{409, "ResourceInUseException", "Nodegroup cannot be updated as it is currently not in Active State"}
	}
	u := nodegroupUpdate{Status: "InProgress", At: c.nowMillis, Token: asked.ClientRequestToken, Params: map[string]string{},
		Sizes: map[string]int{"min": a.Min, "max": a.Max, "desired": a.Desired},
		Due:   c.nowMillis + d.cloud.clock.millis(time.Duration(g.conf.EKS.Update))}
	if refusal := asked.sizes(&u); refusal != nil {
		return nil, refusal
	}
	if refusal := asked.warm(g, &u); refusal != nil {
		return nil, refusal
	}
	a.Serial++
	u.ID = dashed(fmt.Sprint("update", g.conf.EKS.ASG, a.CreatedAt, a.Serial))
	a.Updates = last(append(a.Updates, u), 100)
	c.changed = true
	return jsonObject{"update": u.view()}, nil
}

func (n *nodegroupChange) sizes(u *nodegroupUpdate) *awsError {
	s := n.ScalingConfig
	if s == nil {
		return nil
	}
	for name, value := range map[string]*int{"min": s.MinSize, "max": s.MaxSize, "desired": s.DesiredSize} {
		if value != nil {
			u.Sizes[name] = *value
			u.Params[strings.ToUpper(name[:1])+name[1:]+"Size"] = strconv.Itoa(*value)
		}
	}
	if u.Sizes["min"] < 0 || u.Sizes["max"] < 1 || u.Sizes["min"] > u.Sizes["max"] {
		return eksInvalid("Minimum capacity %d can't be greater than maximum capacity %d", u.Sizes["min"], u.Sizes["max"])
	}
	if u.Sizes["desired"] > u.Sizes["max"] {
		return eksInvalid("desired capacity %d can't be greater than max size %d", u.Sizes["desired"], u.Sizes["max"])
	}
	if u.Sizes["desired"] < u.Sizes["min"] {
		return eksInvalid("Minimum capacity %d can't be greater than desired size %d", u.Sizes["min"], u.Sizes["desired"])
	}
	return nil
}

func (n *nodegroupChange) warm(g *group, u *nodegroupUpdate) *awsError {
	s := n.WarmPoolConfig
	if s == nil {
		return nil
	}
	if g.conf.EKS.WarmPool != "nodegroup" || g.conf.EKS.CapacityType == "SPOT" {
		return &awsError{400, "InvalidRequestException", "Warm pools are not supported for this node group"}
	}
	w := warmPool{Prepared: -1, State: "Stopped"}
	if g.Auto.Warm != nil {
		w = *g.Auto.Warm
	}
	set(&w.Min, s.MinSize)
	set(&w.Prepared, s.MaxGroupPreparedCapacity)
	set(&w.Reuse, s.ReuseOnScaleIn)
	if s.PoolState != nil {
		if !slices.Contains([]string{"STOPPED", "RUNNING", "HIBERNATED"}, *s.PoolState) {
			return eksInvalid("poolState is STOPPED, RUNNING or HIBERNATED, found %s", *s.PoolState)
		}
		w.State = strings.ToUpper((*s.PoolState)[:1]) + strings.ToLower((*s.PoolState)[1:])
	}
	u.Params["WarmPoolConfig"] = "updated"
	if s.Enabled != nil && !*s.Enabled {
		u.NoWarm = true
		return nil
	}
	if s.Enabled == nil && g.Auto.Warm == nil {
		return eksInvalid("warmPoolConfig.enabled is needed where there is no warm pool")
	}
	u.Warm = &w
	return nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func (a *autoscaling) updating() bool {
	for _, u := range a.Updates {
		if u.Status == "InProgress" {
			return true
		}
	}
	return false
}

// update ends what is due. True if anything was.
func (k *cloud) update(g *group, now int64) bool {
	changed := false
	for i := range g.Auto.Updates {
		u := &g.Auto.Updates[i]
		if u.Status != "InProgress" || u.Due > now {
			continue
		}
		changed = true
		u.Status = "Successful"
		a := g.Auto
		a.Min, a.Max = u.Sizes["min"], u.Sizes["max"]
		if _, ok := u.Params["DesiredSize"]; ok || a.Desired < a.Min || a.Desired > a.Max {
			a.resize(min(max(u.Sizes["desired"], a.Min), a.Max), now)
		}
		if u.NoWarm && a.Warm != nil {
			a.Warm.Deleting = true
		}
		if u.Warm != nil && g.setWarm(u.Warm) != nil {
			u.Status = "Failed"
		}
	}
	return changed
}

func (u *nodegroupUpdate) view() jsonObject {
	params, errors := []jsonObject{}, []jsonObject{}
	for _, name := range slices.Sorted(maps.Keys(u.Params)) {
		params = append(params, jsonObject{"type": name, "value": u.Params[name]})
	}
	code, message := "Unknown", "the warm pool cannot be had"
	if u.Type == "VersionUpdate" {
		code, message = "PodEvictionFailure", "Reached max retries while trying to evict pods from nodes in the node group"
	}
	if u.Status == "Failed" {
		errors = append(errors, jsonObject{"errorCode": code, "errorMessage": message, "resourceIds": []string{}})
	}
	return jsonObject{"id": u.ID, "status": u.Status, "type": or(u.Type, "ConfigUpdate"), "createdAt": float64(u.At) / 1000,
		"params": params, "errors": errors}
}

func describeUpdate(d *awsDoor, c *awsCall) (jsonObject, *awsError) {
	if refusal := c.needCluster(d); refusal != nil {
		return nil, refusal
	}
	if c.group != nil {
		for i := range c.group.Auto.Updates {
			if u := &c.group.Auto.Updates[i]; u.ID == c.path["updates"] {
				return jsonObject{"update": u.view()}, nil
			}
		}
	}
	return nil, eksNotFound("No update found for ID: %s", c.path["updates"])
}

func listUpdates(d *awsDoor, c *awsCall) (jsonObject, *awsError) {
	if refusal := c.needCluster(d); refusal != nil {
		return nil, refusal
	}
	ids := []string{}
	if c.group != nil {
		for _, u := range c.group.Auto.Updates {
			ids = append(ids, u.ID)
		}
	}
	part, next, refusal := pageOf(c, ids)
	return jsonObject{"updateIds": part, "nextToken": next}, refusal
}
