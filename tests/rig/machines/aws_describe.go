package main

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// memberList is written even when it is empty, as the service does.
type memberList[T any] struct {
	Member []T `xml:"member"`
}

// absent is left out; a pointer to a list that may be.
type xmlGroup struct {
	AutoScalingGroupName             string
	AutoScalingGroupARN              string
	LaunchTemplate                   *xmlTemplate `xml:",omitempty"`
	MixedInstancesPolicy             *xmlMixed    `xml:",omitempty"`
	MinSize, MaxSize                 int          `xml:""`
	DesiredCapacity, DefaultCooldown int          `xml:""`
	AvailabilityZones                memberList[string]
	LoadBalancerNames                memberList[string]
	TargetGroupARNs                  memberList[string]
	HealthCheckType                  string
	HealthCheckGracePeriod           int
	Instances                        memberList[xmlInstance]
	CreatedTime                      string
	SuspendedProcesses               memberList[xmlSuspended]
	VPCZoneIdentifier                string
	EnabledMetrics                   memberList[string]
	Tags                             memberList[xmlTag]
	TerminationPolicies              memberList[string]
	NewInstancesProtectedFromScaleIn bool
	ServiceLinkedRoleARN             string
	CapacityRebalance                bool
	WarmPoolConfiguration            *xmlWarm `xml:",omitempty"`
	WarmPoolSize                     *int     `xml:",omitempty"`
	TrafficSources                   memberList[string]
}

type xmlTemplate struct {
	LaunchTemplateId, LaunchTemplateName, Version string
}

type xmlMixed struct {
	Specification xmlTemplate             `xml:"LaunchTemplate>LaunchTemplateSpecification"`
	Overrides     memberList[xmlOverride] `xml:"LaunchTemplate>Overrides"`
	Base          int                     `xml:"InstancesDistribution>OnDemandBaseCapacity"`
	Above         int                     `xml:"InstancesDistribution>OnDemandPercentageAboveBaseCapacity"`
}

type xmlOverride struct{ InstanceType string }

type xmlInstance struct {
	InstanceId           string
	InstanceType         string
	AutoScalingGroupName string `xml:",omitempty"` // of DescribeAutoScalingInstances
	AvailabilityZone     string
	LifecycleState       string
	HealthStatus         string
	LaunchTemplate       xmlTemplate
	ProtectedFromScaleIn bool
}

type xmlSuspended struct{ ProcessName, SuspensionReason string }

type xmlTag struct {
	ResourceId, ResourceType, Key, Value string
	PropagateAtLaunch                    bool
}

type xmlWarm struct {
	MaxGroupPreparedCapacity *int `xml:",omitempty"`
	MinSize                  int
	PoolState                string
	Status                   string `xml:",omitempty"`
	ReuseOnScaleIn           *bool  `xml:"InstanceReusePolicy>ReuseOnScaleIn,omitempty"`
}

type xmlActivity struct {
	ActivityId, AutoScalingGroupName, Description, Cause, StartTime string
	EndTime                                                         string `xml:",omitempty"`
	StatusCode                                                      string
	StatusMessage                                                   string `xml:",omitempty"`
	Progress                                                        int
	Details, AutoScalingGroupARN                                    string
}

func (d *awsDoor) arn(g *group) string {
	return fmt.Sprintf("arn:aws:autoscaling:%s:%s:autoScalingGroup:%s:autoScalingGroupName/%s", d.conf.Region, d.conf.Account,
		hexDigits(g.conf.EKS.ASG, 12), g.conf.EKS.ASG)
}

func (e *eksConfig) template() xmlTemplate {
	return xmlTemplate{"lt-0" + hexDigits(e.ASG, 16), "eks-" + hexDigits(e.ASG+"lt", 12), "1"}
}

// lifecycle is a machine's state in Auto Scaling's words.
func (m *machine) lifecycle() string {
	state := map[machineState]string{pending: "Pending", waking: "Pending", running: "InService", stopping: "Pending",
		stopped: "Pending", terminating: "Terminating"}[m.State]
	switch {
	case m.Held:
		state = "Pending:Wait"
	case m.State == terminating && m.Waiting:
		state = "Terminating:Wait"
	}
	if m.Goal == toStandby {
		state = map[machineState]string{pending: "Pending", stopping: "Pending:Proceed", stopped: "Stopped",
			terminating: "Terminating"}[m.State]
		return "Warmed:" + state
	}
	return state
}

func (d *awsDoor) instance(g *group, m *machine) xmlInstance {
	health := "Healthy"
	if m.Unhealthy {
		health = "Unhealthy"
	}
	return xmlInstance{InstanceId: m.ID, InstanceType: m.Type, AvailabilityZone: m.Zone, LifecycleState: m.lifecycle(),
		HealthStatus: health, LaunchTemplate: g.conf.EKS.template(), ProtectedFromScaleIn: m.Protected}
}

func (d *awsDoor) describe(g *group, instances bool, now int64) xmlGroup {
	a, e := g.Auto, g.conf.EKS
	v := xmlGroup{AutoScalingGroupName: e.ASG, AutoScalingGroupARN: d.arn(g), MinSize: a.Min, MaxSize: a.Max,
		DesiredCapacity: a.Desired, DefaultCooldown: 300, AvailabilityZones: memberList[string]{g.conf.Zones},
		HealthCheckType: "EC2", HealthCheckGracePeriod: 15, CreatedTime: stamp(a.CreatedAt),
		TerminationPolicies: memberList[string]{[]string{"AllocationStrategy", "OldestLaunchTemplate", "OldestInstance"}},
		ServiceLinkedRoleARN: "arn:aws:iam::" + d.conf.Account +
			":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
		NewInstancesProtectedFromScaleIn: a.ProtectNew, Tags: memberList[xmlTag]{g.tags()}}
	var subnets []string
	for _, zone := range g.conf.Zones {
		subnets = append(subnets, subnet(zone))
	}
	v.VPCZoneIdentifier = strings.Join(subnets, ",")
	for _, process := range a.Suspended {
		v.SuspendedProcesses.Member = append(v.SuspendedProcesses.Member,
			xmlSuspended{process, "User suspended at " + stamp(a.CreatedAt)})
	}
	d.describeTemplate(g, &v)
	for _, m := range d.cloud.listed(g, now) {
		if instances && m.Goal == toRun {
			v.Instances.Member = append(v.Instances.Member, d.instance(g, m))
		}
	}
	if a.Warm != nil {
		size := len(g.warm())
		v.WarmPoolConfiguration, v.WarmPoolSize = a.Warm.view(), &size
	}
	return v
}

func (d *awsDoor) describeTemplate(g *group, v *xmlGroup) {
	e := g.conf.EKS
	template := e.template()
	if !e.mixed() {
		v.LaunchTemplate = &template
		return
	}
	v.MixedInstancesPolicy = &xmlMixed{Specification: template, Above: 100}
	if e.CapacityType == "SPOT" {
		v.MixedInstancesPolicy.Above = 0
	}
	for _, kind := range e.InstanceTypes {
		v.MixedInstancesPolicy.Overrides.Member = append(v.MixedInstancesPolicy.Overrides.Member, xmlOverride{kind})
	}
}

// mixed tells whether the group has a MixedInstancesPolicy, which those of managed node groups always have.
func (e *eksConfig) mixed() bool {
	return !e.Bare || len(e.InstanceTypes) > 1 || e.CapacityType == "SPOT"
}

func (w *warmPool) view() *xmlWarm {
	v := &xmlWarm{MinSize: w.Min, PoolState: w.State}
	if w.Reuse {
		v.ReuseOnScaleIn = &w.Reuse
	}
	if w.Prepared >= 0 {
		v.MaxGroupPreparedCapacity = &w.Prepared
	}
	if w.Deleting {
		v.Status = "PendingDelete"
	}
	return v
}

func (g *group) tags() (list []xmlTag) {
	tags := g.conf.EKS.tags()
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, xmlTag{g.conf.EKS.ASG, "auto-scaling-group", key, tags[key], true})
	}
	return list
}

func describeGroups(d *awsDoor, c *awsCall) (any, *awsError) {
	names, filters := members(c.form, "AutoScalingGroupNames"), c.filters()
	if len(names) > 100 {
		return nil, bad("The maximum number of group names is 100.")
	}
	for name := range filters {
		if name != "tag-key" && name != "tag-value" && !strings.HasPrefix(name, "tag:") {
			return nil, bad("Filter type %s is not correct. Allowed Filter types are: tag-key tag-value tag:<key>", name)
		}
	}
	instances, given, refusal := c.flag("IncludeInstances")
	if refusal != nil {
		return nil, refusal
	}
	var found []xmlGroup
	for _, g := range d.cloud.groups {
		if g.Auto == nil || (len(names) > 0 && !slices.Contains(names, g.conf.EKS.ASG)) || !g.passes(filters) {
			continue
		}
		found = append(found, d.describe(d.cloud.shown(g, c.nowMillis), instances || !given, c.nowMillis))
	}
	part, next, refusal := records(c, found, 50, 100)
	return struct {
		AutoScalingGroups memberList[xmlGroup]
		NextToken         string `xml:",omitempty"`
	}{memberList[xmlGroup]{part}, next}, refusal
}

func (g *group) passes(filters map[string][]string) bool {
	tags := g.conf.EKS.tags()
	for name, values := range filters {
		ok := false
		for key, value := range tags {
			tag, named := strings.CutPrefix(name, "tag:")
			ok = ok || (name == "tag-key" && slices.Contains(values, key)) ||
				(name == "tag-value" && slices.Contains(values, value)) ||
				(named && tag == key && slices.Contains(values, value))
		}
		if !ok {
			return false
		}
	}
	return true
}

func describeInstances(d *awsDoor, c *awsCall) (any, *awsError) {
	ids := members(c.form, "InstanceIds")
	var found []xmlInstance
	for _, g := range d.cloud.groups {
		for _, m := range d.cloud.listed(g, c.nowMillis) {
			if g.Auto == nil || (len(ids) > 0 && !slices.Contains(ids, m.ID)) {
				continue
			}
			v := d.instance(g, m)
			v.AutoScalingGroupName, v.HealthStatus = g.conf.EKS.ASG, strings.ToUpper(v.HealthStatus)
			found = append(found, v)
		}
	}
	part, next, refusal := records(c, found, 50, 50)
	return struct {
		AutoScalingInstances memberList[xmlInstance]
		NextToken            string `xml:",omitempty"`
	}{memberList[xmlInstance]{part}, next}, refusal
}

func (d *awsDoor) activity(g *group, y *activity) xmlActivity {
	v := xmlActivity{ActivityId: y.ID, AutoScalingGroupName: g.conf.EKS.ASG, Description: y.Description, Cause: y.Cause,
		StartTime: fine(y.Start), StatusCode: y.Status, StatusMessage: y.Message, Progress: y.Progress,
		Details: y.details(), AutoScalingGroupARN: d.arn(g)}
	if y.End != 0 {
		v.EndTime = stamp(y.End + 999)
	}
	return v
}

func describeActivities(d *awsDoor, c *awsCall) (any, *awsError) {
	ids, filters := members(c.form, "ActivityIds"), c.filters()
	for name := range filters {
		if name != "Status" {
			return nil, bad("Filter type %s is not correct. Allowed Filter types here are: Status", name)
		}
	}
	if c.form.Has("AutoScalingGroupName") {
		if _, refusal := c.needGroup(d); refusal != nil {
			return nil, refusal
		}
	}
	var found []xmlActivity
	for _, g := range d.cloud.groups {
		if g.Auto == nil || (c.form.Has("AutoScalingGroupName") && g.conf.EKS.ASG != c.form.Get("AutoScalingGroupName")) {
			continue
		}
		for i := range slices.Backward(g.Auto.Activities) {
			y := &g.Auto.Activities[i]
			if (len(ids) == 0 || slices.Contains(ids, y.ID)) &&
				(filters["Status"] == nil || slices.Contains(filters["Status"], y.Status)) {
				found = append(found, d.activity(g, y))
			}
		}
	}
	part, next, refusal := records(c, found, 100, 100)
	return struct {
		Activities memberList[xmlActivity]
		NextToken  string `xml:",omitempty"`
	}{memberList[xmlActivity]{part}, next}, refusal
}

func describeTags(d *awsDoor, c *awsCall) (any, *awsError) {
	filters := c.filters()
	var found []xmlTag
	for _, g := range d.cloud.groups {
		if g.Auto == nil {
			continue
		}
		for _, tag := range g.tags() {
			keep := true
			for name, values := range filters {
				field := map[string]string{"auto-scaling-group": tag.ResourceId, "key": tag.Key, "value": tag.Value,
					"propagate-at-launch": fmt.Sprint(tag.PropagateAtLaunch)}[name]
				keep = keep && slices.Contains(values, field)
			}
			if keep {
				found = append(found, tag)
			}
		}
	}
	part, next, refusal := records(c, found, 50, 100)
	return struct {
		Tags      memberList[xmlTag]
		NextToken string `xml:",omitempty"`
	}{memberList[xmlTag]{part}, next}, refusal
}

func describeWarm(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	var found []xmlInstance
	for _, m := range d.cloud.listed(g, c.nowMillis) {
		if m.Goal == toStandby {
			found = append(found, d.instance(g, m))
		}
	}
	part, next, refusal := records(c, found, 50, 50)
	v := struct {
		WarmPoolConfiguration *xmlWarm `xml:",omitempty"`
		Instances             memberList[xmlInstance]
		NextToken             string `xml:",omitempty"`
	}{nil, memberList[xmlInstance]{part}, next}
	if g.Auto.Warm != nil {
		v.WarmPoolConfiguration = g.Auto.Warm.view()
	}
	return v, refusal
}

type xmlHook struct {
	LifecycleHookName, AutoScalingGroupName, LifecycleTransition string
	HeartbeatTimeout, GlobalTimeout                              int
	DefaultResult                                                string
}

func hookOf(g *group, name, transition string, hold time.Duration, result string) xmlHook {
	seconds := int(hold.Seconds())
	return xmlHook{name, g.conf.EKS.ASG, "autoscaling:" + transition, seconds, min(100*seconds, 172800), result}
}

func describeHooks(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	var hooks []xmlHook
	if hold := d.cloud.endHook(g, c.nowMillis); hold > 0 {
		hooks = append(hooks, hookOf(g, "Terminate-LC-Hook", "EC2_INSTANCE_TERMINATING", hold, "CONTINUE"))
	}
	nowS := d.cloud.nowS(c.nowMillis)
	if f := d.cloud.faults.find("launch-hook", g.Name, nowS); f != nil {
		result := "CONTINUE"
		if d.cloud.faults.find("hook-abandons", g.Name, nowS) != nil {
			result = "ABANDON"
		}
		hold := time.Duration(f.number(600) * float64(time.Second))
		hooks = append(hooks, hookOf(g, "somebodys", "EC2_INSTANCE_LAUNCHING", hold, result))
	}
	return struct{ LifecycleHooks memberList[xmlHook] }{memberList[xmlHook]{hooks}}, nil
}

type xmlRefresh struct {
	InstanceRefreshId, AutoScalingGroupName, Status string
	StartTime                                       string
	EndTime                                         string `xml:",omitempty"`
	PercentageComplete, InstancesToUpdate           int
	Strategy                                        string
	Preferences                                     struct{ ScaleInProtectedInstances string }
}

func describeRefreshes(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	ids := members(c.form, "InstanceRefreshIds")
	var found []xmlRefresh
	for _, r := range slices.Backward(g.Auto.Refreshes) {
		if len(ids) > 0 && !slices.Contains(ids, r.ID) {
			continue
		}
		v := xmlRefresh{InstanceRefreshId: r.ID, AutoScalingGroupName: g.conf.EKS.ASG, Status: r.Status, StartTime: stamp(r.Start),
			InstancesToUpdate: r.Left, Strategy: "Rolling"}
		v.Preferences.ScaleInProtectedInstances = "Wait"
		if r.End != 0 {
			v.EndTime = stamp(r.End)
		} else {
			v.InstancesToUpdate = len(g.Auto.Owner.Old)
		}
		v.PercentageComplete = 100 * (r.All - v.InstancesToUpdate) / max(r.All, 1)
		found = append(found, v)
	}
	part, next, refusal := records(c, found, 50, 100)
	return struct {
		InstanceRefreshes memberList[xmlRefresh]
		NextToken         string `xml:",omitempty"`
	}{memberList[xmlRefresh]{part}, next}, refusal
}

func describeLaunchConfigurations(_ *awsDoor, _ *awsCall) (any, *awsError) {
	return struct {
		XMLName              xml.Name `xml:"DescribeLaunchConfigurationsResult"`
		LaunchConfigurations memberList[string]
	}{}, nil
}
