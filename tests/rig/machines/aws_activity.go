package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// activity is one line of a group's scaling history.
type activity struct {
	ID          string `json:"id"`
	Machine     string `json:"machine"`
	Description string `json:"description"`
	Cause       string `json:"cause"`
	Status      string `json:"status"`
	Message     string `json:"message"`
	Zone        string `json:"zone"`
	Start       int64  `json:"start"`
	End         int64  `json:"end"` // 0: goes on
	Progress    int    `json:"progress"`
}

const mostMessage = 255

func (a *autoscaling) add(y activity) *activity {
	a.Serial++
	y.ID = dashed(fmt.Sprint("activity", a.CreatedAt, a.Serial))
	a.Activities = last(append(a.Activities, y), 500)
	return &a.Activities[len(a.Activities)-1]
}

func dashed(text string) string {
	digits := hexDigits(text, 32)
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

func (a *autoscaling) begin(m *machine, description, cause string, now int64) *activity {
	status, progress := "PreInService", 30
	if !strings.HasPrefix(description, "Launching") {
		status, progress = "InProgress", 0
	}
	return a.add(activity{Machine: m.ID, Description: description, Cause: "At " + stamp(now) + " " + cause, Status: status,
		Zone: m.Zone, Start: now, Progress: progress})
}

// failedLaunch writes down what EC2 said, cut as the service cuts it.
func (a *autoscaling) failedLaunch(g *group, r *refusal) {
	text := r.Message
	if text == "" {
		text = launchFailure(g, r)
	}
	text += " Launching EC2 instance failed."
	if len(text) > mostMessage {
		text = text[:mostMessage]
	}
	a.add(activity{Description: "Launching a new EC2 instance.  Status Reason: " + text, Cause: "At " + stamp(r.Due) + " " +
		r.Cause, Status: "Failed", Message: text, Zone: r.Zone, Start: r.Due, End: r.Due, Progress: 100})
}

// launchFailed has the group try elsewhere at once, or again after a while where it tried all.
func (k *cloud) launchFailed(g *group, r *refusal, now int64) {
	a := g.Auto
	a.failedLaunch(g, r)
	for _, kind := range g.conf.EKS.InstanceTypes {
		for _, zone := range g.conf.Zones {
			if a.Failed[zone+"/"+kind] <= now {
				return
			}
		}
	}
	a.RetryAt = r.Due + k.clock.millis(time.Duration(g.conf.EKS.Retry))
}

// launchFailure is EC2's text, as Auto Scaling passes it on.
func launchFailure(g *group, r *refusal) string {
	spot := g.conf.EKS.CapacityType == "SPOT"
	switch {
	case r.Code == "quota" && spot:
		return "Max spot instance count exceeded (MaxSpotInstanceCountExceeded)."
	case r.Code == "quota":
		return "You have requested more vCPU capacity than your current vCPU limit of 64 allows for the instance bucket " +
			"that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to " +
			"request an adjustment to this limit."
	case spot:
		return "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request " +
			"configuration. Please adjust your request and try again."
	}
	others := "by not specifying an Availability Zone in your request"
	for _, zone := range g.conf.Zones {
		if zone != r.Zone {
			others += " or choosing " + zone
		}
	}
	return "We currently do not have sufficient " + r.Type + " capacity in the Availability Zone you requested (" + r.Zone +
		"). Our system will be working on provisioning additional capacity. You can currently get " + r.Type + " capacity " +
		others + "."
}

// lost notes an instance that EC2 took. Takes nil.
func (a *autoscaling) lost(m *machine, at int64) {
	if a == nil {
		return
	}
	a.add(activity{Machine: m.ID, Description: "Terminating EC2 instance: " + m.ID, Cause: "At " + stamp(at) +
		" an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped.",
		Status: "Successful", Zone: m.Zone, Start: at, End: at, Progress: 100})
}

// abandon ends the launch of a machine that a hook said no to.
func (a *autoscaling) abandon(m *machine, at int64) {
	text := "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token " + dashed(m.ID) +
		" was abandoned: Lifecycle Action Completed with ABANDON Result"
	for i := range a.Activities {
		y := &a.Activities[i]
		if y.Machine == m.ID && y.End == 0 && strings.HasPrefix(y.Description, "Launching") {
			y.Status, y.End, y.Progress, y.Message = "Failed", at, 100, text
			y.Description += ".  Status Reason: " + text
		}
	}
}

// cannot notes, once while it lasts, that only protected instances are left.
func (a *autoscaling) cannot(now int64) {
	const text = "Could not scale to desired capacity because all remaining instances are protected from scale-in."
	if n := len(a.Activities); n > 0 && a.Activities[n-1].Message == text {
		return
	}
	a.add(activity{Description: text, Cause: "At " + stamp(now) + " the desired capacity was lowered.",
		Status: "Cancelled", Message: text, Start: now, End: now, Progress: 100})
}

// follow brings the activities that go on up to their machines. True if one ended.
func (k *cloud) follow(g *group, now int64) bool {
	changed := false
	for i := range g.Auto.Activities {
		y := &g.Auto.Activities[i]
		if y.End != 0 {
			continue
		}
		m := g.machine(y.Machine)
		starts := strings.HasPrefix(y.Description, "Launching")
		switch {
		case m == nil && starts, starts && m.State == terminating:
			y.Status, y.End = "Cancelled", now
		case m == nil, starts && m.inService(), starts && m.State == stopped, m.State == stopped:
			y.Status, y.End = "Successful", now
		case m.Waiting || m.Held:
			y.Status, y.Progress = "MidLifecycleAction", 50
		case !starts:
			y.Status = "InProgress"
		}
		if y.End != 0 {
			y.Progress, changed = 100, true
		}
	}
	return changed
}

// details is the JSON text within the XML.
func (y *activity) details() string {
	if y.Zone == "" {
		return "{}"
	}
	text, _ := json.Marshal(map[string]string{"Subnet ID": subnet(y.Zone), "Availability Zone": y.Zone})
	return string(text)
}

// fine is stamp with milliseconds.
func fine(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

func subnet(zone string) string { return "subnet-0" + hexDigits(zone, 16) }
