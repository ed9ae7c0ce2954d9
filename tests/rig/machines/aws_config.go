package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"time"
)

// awsConfig is the account, and what it accepts as proof of who one is. All of it is made up for tests.
type awsConfig struct {
	Region           string    `json:"region"`
	Account          string    `json:"account"`
	Keys             []awsKey  `json:"keys"`               // of users: they don't expire
	Role             string    `json:"role"`               // name of the role that STS, IMDS and Pod Identity give
	WebIdentityToken string    `json:"web_identity_token"` // that STS accepts
	PodIdentityToken string    `json:"pod_identity_token"` // that the Pod Identity agent accepts
	CredentialsLast  *duration `json:"credentials_last"`   // real time, as signatures are
	CallsPerSecond   float64   `json:"calls_per_second"`   // of the whole account in real time; 0: no limit
	Burst            float64   `json:"burst"`
}

type awsKey struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
	User   string `json:"user"`
}

// eksConfig makes a group a node group of EKS and the Auto Scaling group under it.
type eksConfig struct {
	Cluster       string            `json:"cluster"`
	Nodegroup     string            `json:"nodegroup"` // default: the group's name
	ASG           string            `json:"asg"`       // default: eks-NODEGROUP-...
	CapacityType  string            `json:"capacity_type"`
	InstanceTypes []string          `json:"instance_types"`  // in order of preference; default: the group's instance_type
	Tags          map[string]string `json:"tags"`            // beside those of EKS
	WarmPool      string            `json:"warm_pool"`       // nodegroup: by warmPoolConfig only; asg; none
	Retry         duration          `json:"retry"`           // until an Auto Scaling group tries a failed launch again
	Hook          duration          `json:"hook"`            // in Terminating:Wait, with power
	Update        duration          `json:"update"`          // that a change of the node group's config takes
	Strategy      string            `json:"update_strategy"` // of version updates: DEFAULT, or MINIMAL: old machines end first
	Unavailable   int               `json:"max_unavailable"` // machines that a version update empties at once
	ReservedFor   duration          `json:"reserved_for"`    // a Capacity Block, from the start
	AZRebalance   bool              `json:"az_rebalance"`
	InstanceStore bool              `json:"instance_store"` // images lie on one, as the user data say
	Bare          bool              `json:"bare"`           // an Auto Scaling group that no node group owns

	region string
	subnet int // of its machines' addresses
}

var eksName = regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]*$`)

func (c *config) completeAWS() error {
	if a := c.AWS; a != nil {
		a.Region, a.Account = or(a.Region, "eu-west-1"), or(a.Account, "111122223333")
		a.Role = or(a.Role, "preheat")
		a.WebIdentityToken = or(a.WebIdentityToken, "projected.web-identity.token")
		a.PodIdentityToken = or(a.PodIdentityToken, "projected.pod-identity.token")
		hour := duration(time.Hour)
		a.CredentialsLast = orNumber(a.CredentialsLast, &hour)
		a.Burst = max(a.Burst, a.CallsPerSecond, 1)
		if len(a.Keys) == 0 {
			a.Keys = []awsKey{{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}}
		}
	}
	seen := map[string]bool{}
	for _, g := range c.Groups {
		if g.EKS == nil {
			continue
		}
		if c.AWS == nil {
			return fmt.Errorf("group %s has eks, but there is no account", g.Name)
		}
		if len(g.Zones) == 1 && g.Zones[0] == "z1" {
			g.Zones = []string{c.AWS.Region + "a"}
		}
		if err := g.EKS.complete(g); err != nil {
			return fmt.Errorf("group %s: eks: %w", g.Name, err)
		}
		if seen[g.EKS.ASG] {
			return fmt.Errorf("group %s: a second Auto Scaling group %s", g.Name, g.EKS.ASG)
		}
		seen[g.EKS.ASG] = true
		g.EKS.region, g.EKS.subnet = c.AWS.Region, len(seen)
	}
	return nil
}

func (e *eksConfig) complete(g *groupConfig) error {
	e.Cluster, e.Nodegroup = or(e.Cluster, "prod"), or(e.Nodegroup, g.Name)
	e.ASG = or(e.ASG, "eks-"+e.Nodegroup+"-"+hexDigits(e.Cluster+e.Nodegroup, 8))
	e.CapacityType, e.WarmPool = or(e.CapacityType, "ON_DEMAND"), or(e.WarmPool, "nodegroup")
	e.Retry = orNumber(e.Retry, duration(time.Minute))
	e.Update = orNumber(e.Update, duration(5*time.Second))
	e.Strategy, e.Unavailable = or(e.Strategy, "DEFAULT"), orNumber(e.Unavailable, 1)
	if e.Tags == nil {
		e.Tags = map[string]string{}
	}
	if len(e.InstanceTypes) == 0 {
		e.InstanceTypes = []string{g.InstanceType}
	}
	if !eksName.MatchString(e.Cluster) || !eksName.MatchString(e.Nodegroup) {
		return fmt.Errorf("cluster and nodegroup are letters, digits, - and _, found %q and %q", e.Cluster, e.Nodegroup)
	}
	if e.CapacityType != "ON_DEMAND" && e.CapacityType != "SPOT" && !e.isBlock() {
		return fmt.Errorf("capacity_type is ON_DEMAND, SPOT or CAPACITY_BLOCK, found %q", e.CapacityType)
	}
	if e.isBlock() != (e.ReservedFor > 0) {
		return fmt.Errorf("reserved_for says how long a CAPACITY_BLOCK lasts")
	}
	if e.Strategy != "DEFAULT" && e.Strategy != "MINIMAL" || e.Unavailable < 1 || e.Unavailable > 100 {
		return fmt.Errorf("update_strategy is DEFAULT or MINIMAL, max_unavailable 1 to 100, found %q and %d", e.Strategy, e.Unavailable)
	}
	if e.WarmPool != "nodegroup" && e.WarmPool != "asg" && e.WarmPool != "none" {
		return fmt.Errorf("warm_pool is nodegroup, asg or none, found %q", e.WarmPool)
	}
	return nil
}

// tags are those of the Auto Scaling group.
func (e *eksConfig) tags() map[string]string {
	all := map[string]string{}
	if !e.Bare {
		all["eks:cluster-name"], all["eks:nodegroup-name"] = e.Cluster, e.Nodegroup
		all["kubernetes.io/cluster/"+e.Cluster] = "owned"
		all["k8s.io/cluster-autoscaler/enabled"], all["k8s.io/cluster-autoscaler/"+e.Cluster] = "true", "owned"
	}
	for key, value := range e.Tags {
		all[key] = value
	}
	return all
}

func (e *eksConfig) labels() map[string]string {
	labels := map[string]string{"topology.kubernetes.io/region": e.region}
	if !e.Bare {
		labels["eks.amazonaws.com/nodegroup"], labels["eks.amazonaws.com/capacityType"] = e.Nodegroup, e.CapacityType
	}
	return labels
}

// christenInstance gives a machine the names that EC2 and the VPC would.
func christenInstance(g *group, m *machine) {
	serial := g.Sequence
	m.ID = "i-0" + hexDigits(fmt.Sprintf("%s/%d", g.conf.EKS.ASG, serial), 16)
	m.ProviderID = "aws:///" + m.Zone + "/" + m.ID
	m.Node = fmt.Sprintf("ip-10-%d-%d-%d.%s.compute.internal", g.conf.EKS.subnet, serial/250, serial%250+1, g.conf.EKS.region)
	m.Type = g.conf.EKS.InstanceTypes[0]
}

// hexDigits is that many digits that follow from the text.
func hexDigits(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}
