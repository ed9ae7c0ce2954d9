package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// config is the file of --config: the cloud's groups, the pools' traffic, faults by the clock.
type config struct {
	Groups []*groupConfig `json:"groups"`
	Pools  []*poolConfig  `json:"pools"`
	AWS    *awsConfig     `json:"aws"`   // the account of all groups with eks
	Azure  *azureConfig   `json:"azure"` // the tenant of all groups with aks
	Faults []fault        `json:"faults"`
}

type groupConfig struct {
	Name         string            `json:"name"`
	Min          int               `json:"min"`
	Max          int               `json:"max"`
	Initial      int               `json:"initial"` // machines that serve from the first moment
	StandbyMax   *int              `json:"standby_max"`
	Zones        []string          `json:"zones"`
	InstanceType string            `json:"instance_type"`
	Labels       map[string]string `json:"labels"`
	Taints       []taintConfig     `json:"taints"`
	CPU          string            `json:"cpu"`
	Memory       string            `json:"memory"`
	Resource     string            `json:"resource"` // nvidia.com/gpu, nvidia.com/mig-1g.5gb, ...; a driver publishes: gpu.nvidia.com
	Count        int               `json:"count"`    // of Resource on a machine: GPUs times replicas or slices
	GPUs         int               `json:"gpus"`     // paid for; default: Count
	StoppedNode  string            `json:"stopped_node"`
	Foreign      string            `json:"foreign"` // somebody else makes the Node objects and names the machines; of their provider ids
	Stages       stagesConfig      `json:"stages"`
	SpotNotice   duration          `json:"spot_notice"`
	SpotTaint    taintConfig       `json:"spot_taint"`
	EKS          *eksConfig        `json:"eks"` // a node group of EKS, which AWS's API alone changes
	AKS          *aksConfig        `json:"aks"` // an agent pool of AKS, which ARM alone changes
}

type taintConfig struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// stagesConfig are the delays of a start; the wake_ ones stand for those after a machine was stopped.
type stagesConfig struct {
	Provision    delay `json:"provision"`
	Register     delay `json:"register"`
	Device       delay `json:"device"`
	Image        delay `json:"image"`
	Load         delay `json:"load"`
	Wake         delay `json:"wake"`
	WakeRegister delay `json:"wake_register"`
	WakeDevice   delay `json:"wake_device"`
	Stop         delay `json:"stop"`
	Terminate    delay `json:"terminate"`
	Refuse       delay `json:"refuse"` // until a launch that fails is known to fail
}

type poolConfig struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	Selector          map[string]string `json:"selector"`
	Model             string            `json:"model"`
	Groups            []string          `json:"groups"`
	Trace             *traceConfig      `json:"trace"`
	MaxSequences      int               `json:"max_sequences"`
	PrefillRate       float64           `json:"prefill_tokens_per_second"`
	InterTokenLatency duration          `json:"inter_token_latency"`
	KVTokens          int               `json:"kv_tokens"`
	PrefixHits        float64           `json:"prefix_hits"` // mean share of a prompt that the prefix cache has
	Objective         duration          `json:"objective"`
}

type traceConfig struct {
	File   string   `json:"file"`
	Start  duration `json:"start"`  // of the trace that is simulated time 0
	After  duration `json:"after"`  // simulated time at which the replay begins
	Length duration `json:"length"` // 0: to the end
	Scale  float64  `json:"scale"`
}

func strict(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func readConfig(path string) (*config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &config{}
	if err := strict(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := c.complete(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// complete fills in defaults, and names the first contradiction.
func (c *config) complete(folder string) error {
	names := map[string]bool{}
	for _, g := range c.Groups {
		if g.Name == "" || names[g.Name] {
			return fmt.Errorf("groups: each needs a name of its own, found %q", g.Name)
		}
		names[g.Name] = true
		if err := g.complete(); err != nil {
			return fmt.Errorf("group %s: %w", g.Name, err)
		}
	}
	if err := c.completeAWS(); err != nil {
		return fmt.Errorf("aws: %w", err)
	}
	if err := c.completeAzure(folder); err != nil {
		return fmt.Errorf("azure: %w", err)
	}
	for _, p := range c.Pools {
		if err := p.complete(folder); err != nil {
			return fmt.Errorf("pool %q: %w", p.Name, err)
		}
		for _, name := range p.Groups {
			if !names[name] {
				return fmt.Errorf("pool %s: there is no group %q", p.Name, name)
			}
		}
	}
	for i := range c.Faults {
		if err := c.Faults[i].check(); err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return nil
}

func (g *groupConfig) complete() error {
	if g.Max < 1 || g.Min < 0 || g.Min > g.Max || g.Initial < 0 || g.Initial > g.Max {
		return fmt.Errorf("0 <= min <= max, 0 <= initial <= max and max >= 1 are needed")
	}
	if g.StandbyMax == nil {
		g.StandbyMax = &g.Max
	}
	if len(g.Zones) == 0 {
		g.Zones = []string{"z1"}
	}
	g.InstanceType = or(g.InstanceType, "g5.xlarge")
	g.Resource = or(g.Resource, "nvidia.com/gpu")
	g.CPU, g.Memory = or(g.CPU, "16"), or(g.Memory, "64Gi")
	g.StoppedNode = or(g.StoppedNode, "delete")
	if g.AKS != nil {
		g.SpotTaint = orNumber(g.SpotTaint, remediatorTaint)
	}
	g.SpotTaint.Key = or(g.SpotTaint.Key, "aws-node-termination-handler/spot-itn")
	g.SpotTaint.Effect = or(g.SpotTaint.Effect, "NoSchedule")
	g.Count, g.GPUs = orNumber(g.Count, 1), orNumber(g.GPUs, orNumber(g.Count, 1))
	g.SpotNotice = orNumber(g.SpotNotice, duration(2*time.Minute))
	g.Stages.Terminate = orNumber(g.Stages.Terminate, fixed(20*time.Second))
	g.Stages.Stop = orNumber(g.Stages.Stop, fixed(40*time.Second))
	g.Stages.Refuse = orNumber(g.Stages.Refuse, fixed(10*time.Second))
	if g.StoppedNode != "delete" && g.StoppedNode != "keep" {
		return fmt.Errorf("stopped_node is keep or delete, found %q", g.StoppedNode)
	}
	return nil
}

// cloudLabels are those that the group's cloud gives its nodes in a zone.
func (g *groupConfig) cloudLabels(zone string) map[string]string {
	switch {
	case g.EKS != nil:
		return g.EKS.labels()
	case g.AKS != nil:
		return g.AKS.labels(zone)
	}
	return nil
}

func (p *poolConfig) complete(folder string) error {
	if p.Name == "" || len(p.Selector) == 0 {
		return fmt.Errorf("name and selector are needed")
	}
	p.Namespace = or(p.Namespace, "default")
	p.Model = or(p.Model, p.Name)
	p.MaxSequences = orNumber(p.MaxSequences, 105)
	p.PrefillRate = orNumber(p.PrefillRate, 25000)
	p.InterTokenLatency = orNumber(p.InterTokenLatency, duration(30*time.Millisecond))
	if p.PrefixHits < 0 || p.PrefixHits > 0.5 {
		return fmt.Errorf("prefix_hits is from 0 to 0.5, found %v", p.PrefixHits)
	}
	p.KVTokens = orNumber(p.KVTokens, p.MaxSequences*4096)
	p.Objective = orNumber(p.Objective, duration(2*time.Second))
	if p.Trace != nil {
		p.Trace.Scale = orNumber(p.Trace.Scale, 1)
		if !filepath.IsAbs(p.Trace.File) {
			p.Trace.File = filepath.Join(folder, p.Trace.File)
		}
	}
	return nil
}

func fixed(d time.Duration) delay { return delay{P50: d, P95: d} }

func or(value, otherwise string) string { return orNumber(value, otherwise) }

func orNumber[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
