package main

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const ec2Version = "2016-11-15"

// EC2 ends the machines of a Capacity Block, and launches none, so long before its end; its buyer's scheduled action sets the
// size to 0 before that, once, whatever it is.
const (
	blockEnds    = 30 * time.Minute
	blockEmptied = 40 * time.Minute
)

// block is the Capacity Block of a group, whose launch template names it.
func (e *eksConfig) block() string { return "cr-0" + hexDigits(e.ASG+"cr", 16) }

func (e *eksConfig) isBlock() bool { return e.CapacityType == "CAPACITY_BLOCK" }

// blockEnd is when it ends, in real milliseconds.
func (k *cloud) blockEnd(g *group) int64 {
	return k.clock.start.UnixMilli() + k.clock.millis(time.Duration(g.conf.EKS.ReservedFor))
}

// isEnding is whether a Capacity Block ends within that time.
func (k *cloud) isEnding(g *group, within time.Duration, now int64) bool {
	return g.conf.EKS.isBlock() && now >= k.blockEnd(g)-k.clock.millis(within)
}

// endBlock lets a Capacity Block go to its end. True if anything happened.
func (k *cloud) endBlock(g *group, now int64) bool {
	changed := !g.Auto.Closed && k.isEnding(g, blockEmptied, now)
	if changed {
		g.Auto.Closed = true
		k.schedule(g, 0, now)
		k.journal.began(g, "scheduled-action", now)
	}
	if !k.isEnding(g, blockEnds, now) {
		return changed
	}
	for _, m := range g.members() {
		k.end(g, m, "an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped.", now)
		changed = true
	}
	return changed
}

type ec2Target struct {
	ID string `xml:"capacityReservationId"`
}

type ec2Template struct {
	ID      string    `xml:"launchTemplateId"`
	Name    string    `xml:"launchTemplateName"`
	Version int       `xml:"versionNumber"`
	Default bool      `xml:"defaultVersion"`
	Market  string    `xml:"launchTemplateData>instanceMarketOptions>marketType"`
	Target  ec2Target `xml:"launchTemplateData>capacityReservationSpecification>capacityReservationTarget"`
	Data    string    `xml:"launchTemplateData>userData"`
}

// userData is what EKS makes of a node group's own, which only says where images shall lie, and of what the cluster is.
func (e *eksConfig) userData() string {
	text := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n"
	if e.InstanceStore {
		text += "--//\nContent-Type: application/node.eks.aws\n\n---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n" +
			"spec:\n  instance:\n    localStorage:\n      strategy: RAID0\n\n"
	}
	return text + "--//\nContent-Type: application/node.eks.aws\n\n---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n" +
		"spec:\n  cluster:\n    name: " + e.Cluster + "\n    certificateAuthority: Y2E=\n  kubelet:\n    flags:\n" +
		"    - --node-labels=eks.amazonaws.com/nodegroup=" + e.Nodegroup + "\n\n--//--\n"
}

func describeTemplateVersions(d *awsDoor, c *awsCall) (any, *awsError) {
	id, version := c.form.Get("LaunchTemplateId"), c.form.Get("LaunchTemplateVersion.1")
	for _, g := range d.cloud.groups {
		if g.Auto == nil || g.conf.EKS.template().LaunchTemplateId != id {
			continue
		}
		if !slices.Contains([]string{"", "1", "$Default", "$Latest"}, version) {
			return nil, &awsError{400, "InvalidLaunchTemplateId.VersionNotFound",
				fmt.Sprintf("Could not find the specified version %s for the launch template with ID %s.", version, id)}
		}
		v := ec2Template{ID: id, Name: g.conf.EKS.template().LaunchTemplateName, Version: 1, Default: true,
			Data: base64.StdEncoding.EncodeToString([]byte(g.conf.EKS.userData()))}
		if g.conf.EKS.isBlock() {
			v.Market, v.Target.ID = "capacity-block", g.conf.EKS.block()
		}
		return ec2Set{"launchTemplateVersionSet", v}, nil
	}
	return nil, &awsError{400, "InvalidLaunchTemplateId.NotFound",
		"The specified launch template, with template ID " + id + ", does not exist."}
}

type ec2Reservation struct {
	ID        string `xml:"capacityReservationId"`
	Type      string `xml:"instanceType"`
	Zone      string `xml:"availabilityZone"`
	Total     int    `xml:"totalInstanceCount"`
	Available int    `xml:"availableInstanceCount"`
	State     string `xml:"state"`
	Start     string `xml:"startDate"`
	End       string `xml:"endDate"`
	EndType   string `xml:"endDateType"`
	Match     string `xml:"instanceMatchCriteria"`
	Kind      string `xml:"reservationType"`
}

func describeReservations(d *awsDoor, c *awsCall) (any, *awsError) {
	id := c.form.Get("CapacityReservationId.1")
	for _, g := range d.cloud.groups {
		if g.Auto == nil || !g.conf.EKS.isBlock() || g.conf.EKS.block() != id {
			continue
		}
		end := d.cloud.blockEnd(g)
		return ec2Set{"capacityReservationSet", ec2Reservation{ID: id, Type: g.conf.EKS.InstanceTypes[0], Zone: g.conf.Zones[0],
			Total: g.conf.Max, Available: g.conf.Max - len(g.members()), State: "active", Start: stamp(g.Auto.CreatedAt),
			End: stamp(end), EndType: "limited", Match: "targeted", Kind: "capacity-block"}}, nil
	}
	return nil, &awsError{400, "InvalidCapacityReservationId.NotFound", "The Capacity Reservation ID '" + id + "' does not exist"}
}

// ec2Set is a list of one.
type ec2Set struct {
	name string
	item any
}

// answerEC2 writes what EC2 says, whose XML has a form of its own.
func answerEC2(w http.ResponseWriter, action string, set ec2Set) {
	w.Header().Set("Content-Type", "text/xml")
	w.Header().Set("X-Amzn-Requestid", requestID)
	encoder := xml.NewEncoder(w)
	outer := xml.StartElement{Name: xml.Name{Local: action + "Response"},
		Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: "http://ec2.amazonaws.com/doc/" + ec2Version + "/"}}}
	encoder.EncodeToken(outer)
	encoder.EncodeElement(requestID, xml.StartElement{Name: xml.Name{Local: "requestId"}})
	encoder.EncodeElement(struct {
		Item any `xml:"item"`
	}{set.item}, xml.StartElement{Name: xml.Name{Local: set.name}})
	encoder.EncodeToken(outer.End())
	encoder.Flush()
}

func refuseEC2(w http.ResponseWriter, e *awsError) {
	text, err := xml.Marshal(struct {
		XMLName   xml.Name `xml:"Response"`
		Code      string   `xml:"Errors>Error>Code"`
		Message   string   `xml:"Errors>Error>Message"`
		RequestID string   `xml:"RequestID"`
	}{Code: e.code, Message: e.message, RequestID: requestID})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(e.status)
	w.Write(text)
}
