package main

import (
	"fmt"
	"slices"
	"strings"
)

const mostProtected = 50 // instances in a call

func (a *autoscaling) resize(desired int, now int64) {
	if desired != a.Desired {
		a.Sized = now
	}
	a.Desired, a.RetryAt = desired, 0
}

func setDesired(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	desired, given, refusal := c.number("DesiredCapacity", 0, 1<<30)
	if refusal != nil {
		return nil, refusal
	}
	if !given {
		return nil, missing("DesiredCapacity")
	}
	honor, _, refusal := c.flag("HonorCooldown")
	if refusal != nil {
		return nil, refusal
	}
	a := g.Auto
	switch {
	case desired > a.Max:
		return nil, bad("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", desired, a.Max)
	case desired < a.Min:
		return nil, bad("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", desired, a.Min)
	case honor && c.nowMillis < a.Sized+d.cloud.clock.millis(300e9):
		return nil, &awsError{400, "ScalingActivityInProgress", "You cannot change the desired capacity during the cooldown."}
	}
	a.resize(d.cloud.granted(g, a.Desired, desired, a.Max, c.nowMillis), c.nowMillis)
	c.changed = true
	return nil, nil
}

// needInstance is the one that InstanceId names, and its group.
func (c *awsCall) needInstance(d *awsDoor) (*group, *machine, *awsError) {
	id := c.form.Get("InstanceId")
	if id == "" {
		return nil, nil, missing("InstanceId")
	}
	g, m := d.cloud.byInstance(id)
	if m == nil {
		return nil, nil, bad("Instance Id not found - No managed instance found for instance ID: %s", id)
	}
	return g, m, nil
}

func terminateInstance(d *awsDoor, c *awsCall) (any, *awsError) {
	g, m, refusal := c.needInstance(d)
	if refusal != nil {
		return nil, refusal
	}
	decrement, given, refusal := c.flag("ShouldDecrementDesiredCapacity")
	if refusal != nil {
		return nil, refusal
	}
	a := g.Auto
	switch {
	case !given:
		return nil, missing("ShouldDecrementDesiredCapacity")
	case m.Goal == toStandby:
		return nil, bad("The instance %s is not part of Auto Scaling group %s: it is in the warm pool.", m.ID, g.conf.EKS.ASG)
	case m.State == terminating:
		return nil, &awsError{400, "ScalingActivityInProgress", "Instance " + m.ID + " is already terminating."}
	case decrement && a.Desired <= a.Min:
		return nil, bad("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate "+
			"group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", a.Min)
	}
	if d.cloud.faults.use("no-effect", g.Name, d.cloud.nowS(c.nowMillis)) != nil {
		c.changed = true
		return struct{ Activity xmlActivity }{xmlActivity{AutoScalingGroupName: g.conf.EKS.ASG, StatusCode: "InProgress"}}, nil
	}
	cause := fmt.Sprintf("instance %s was taken out of service in response to a user request.", m.ID)
	if decrement {
		a.resize(a.Desired-1, c.nowMillis)
		cause = fmt.Sprintf("instance %s was taken out of service in response to a user request, shrinking the capacity from "+
			"%d to %d.", m.ID, a.Desired+1, a.Desired)
	}
	d.cloud.end(g, m, cause, c.nowMillis)
	d.cloud.follow(g, c.nowMillis)
	c.changed = true
	return struct{ Activity xmlActivity }{d.activity(g, &a.Activities[len(a.Activities)-1])}, nil
}

func setProtection(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	protect, given, refusal := c.flag("ProtectedFromScaleIn")
	ids := members(c.form, "InstanceIds")
	switch {
	case refusal != nil:
		return nil, refusal
	case !given:
		return nil, missing("ProtectedFromScaleIn")
	case len(ids) == 0:
		return nil, missing("InstanceIds")
	case len(ids) > mostProtected:
		return nil, bad("1 validation error detected: Value at 'instanceIds' failed to satisfy constraint: Member must have "+
			"length less than or equal to %d", mostProtected)
	}
	for _, id := range ids {
		m := g.machine(id)
		if m == nil || m.Goal == toStandby {
			return nil, bad("Instance Id not found - No managed instance found for instance ID: %s in group %s", id,
				g.conf.EKS.ASG)
		}
		if !m.inService() {
			return nil, bad("The instance %s is not in InService or EnteringStandby or Standby.", id)
		}
	}
	for _, id := range ids {
		g.machine(id).Protected = protect
	}
	c.changed = true
	return struct{}{}, nil
}

func setHealth(d *awsDoor, c *awsCall) (any, *awsError) {
	g, m, refusal := c.needInstance(d)
	if refusal != nil {
		return nil, refusal
	}
	status := c.form.Get("HealthStatus")
	if status != "Healthy" && status != "Unhealthy" {
		return nil, bad("Valid instance health states are: [Healthy, Unhealthy].")
	}
	m.Unhealthy = status == "Unhealthy"
	if m.Unhealthy && m.inService() && !g.Auto.suspends("ReplaceUnhealthy") {
		d.cloud.end(g, m, "an instance was taken out of service in response to a user health-check.", c.nowMillis)
	}
	c.changed = true
	return nil, nil
}

func updateGroup(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	a := g.Auto
	size := map[string]int{"MinSize": a.Min, "MaxSize": a.Max, "DesiredCapacity": a.Desired}
	sized := false
	for name := range size {
		value, given, refusal := c.number(name, 0, 1<<30)
		if refusal != nil {
			return nil, refusal
		}
		if given {
			size[name] = value
			sized = sized || name == "DesiredCapacity"
		}
	}
	protect, given, refusal := c.flag("NewInstancesProtectedFromScaleIn")
	if refusal != nil {
		return nil, refusal
	}
	if size["MinSize"] > size["MaxSize"] {
		return nil, bad("Min bound, %d, must be less than or equal to Max bound, %d.", size["MinSize"], size["MaxSize"])
	}
	if sized && (size["DesiredCapacity"] < size["MinSize"] || size["DesiredCapacity"] > size["MaxSize"]) {
		return nil, bad("Desired capacity:%d must be between the specified min size:%d and max size:%d", size["DesiredCapacity"],
			size["MinSize"], size["MaxSize"])
	}
	a.Min, a.Max = size["MinSize"], size["MaxSize"]
	a.resize(min(max(size["DesiredCapacity"], a.Min), a.Max), c.nowMillis)
	if given {
		a.ProtectNew = protect
	}
	c.changed = true
	return nil, nil
}

var processes = []string{"Launch", "Terminate", "AddToLoadBalancer", "AlarmNotification", "AZRebalance", "HealthCheck",
	"InstanceRefresh", "ReplaceUnhealthy", "ScheduledActions"}

func (c *awsCall) processes() ([]string, *awsError) {
	list := members(c.form, "ScalingProcesses")
	for _, name := range list {
		if !slices.Contains(processes, name) {
			return nil, bad("%s is not a valid scaling process type. Valid types are %s.", name, strings.Join(processes, ", "))
		}
	}
	if len(list) == 0 {
		list = processes
	}
	return list, nil
}

func suspend(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	list, refusal := c.processes()
	for _, name := range list {
		if !g.Auto.suspends(name) {
			g.Auto.Suspended = append(g.Auto.Suspended, name)
		}
	}
	c.changed = true
	return nil, refusal
}

func resume(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	list, refusal := c.processes()
	g.Auto.Suspended = slices.DeleteFunc(g.Auto.Suspended, func(name string) bool { return slices.Contains(list, name) })
	c.changed = true
	return nil, refusal
}

// detach takes instances out of the group; here, where nobody else could own them, they end.
func detach(d *awsDoor, c *awsCall) (any, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	decrement, given, refusal := c.flag("ShouldDecrementDesiredCapacity")
	if refusal == nil && !given {
		refusal = missing("ShouldDecrementDesiredCapacity")
	}
	var list []xmlActivity
	for _, id := range members(c.form, "InstanceIds") {
		m := g.machine(id)
		switch {
		case refusal != nil:
			return nil, refusal
		case m == nil || !m.inService() || m.Goal != toRun:
			return nil, bad("The instance %s is not part of Auto Scaling group %s.", id, g.conf.EKS.ASG)
		case decrement && g.Auto.Desired <= g.Auto.Min:
			return nil, bad("Detaching the instances will violate group's min size constraint.")
		}
		if decrement {
			g.Auto.resize(g.Auto.Desired-1, c.nowMillis)
		}
		y := g.Auto.begin(m, "Detaching EC2 instance: "+id, "instance "+id+" was detached in response to a user request.",
			c.nowMillis)
		list = append(list, d.activity(g, y))
		d.cloud.terminate(g, m, g.Auto.token(), c.nowMillis)
	}
	c.changed = true
	return struct{ Activities memberList[xmlActivity] }{memberList[xmlActivity]{list}}, refusal
}

// waiting is the instance that a lifecycle action is about.
func (c *awsCall) waiting(d *awsDoor) (*machine, *awsError) {
	g, refusal := c.needGroup(d)
	if refusal != nil {
		return nil, refusal
	}
	m := g.machine(c.form.Get("InstanceId"))
	if m == nil || !m.Waiting && !m.Held {
		return nil, bad("No active Lifecycle Action found with instance ID %s", c.form.Get("InstanceId"))
	}
	return m, nil
}

func completeHook(d *awsDoor, c *awsCall) (any, *awsError) {
	m, refusal := c.waiting(d)
	switch result := c.form.Get("LifecycleActionResult"); {
	case refusal != nil:
	case result != "CONTINUE" && result != "ABANDON":
		refusal = bad("Lifecycle action result must be CONTINUE or ABANDON, found %q", result)
	default:
		m.Due, m.Abandoned = c.nowMillis, m.Held && result == "ABANDON"
		c.changed = true
	}
	return struct{}{}, refusal
}

func heartbeatHook(d *awsDoor, c *awsCall) (any, *awsError) {
	m, refusal := c.waiting(d)
	if refusal == nil {
		m.Due += d.cloud.clock.millis(60e9)
		c.changed = true
	}
	return struct{}{}, refusal
}
