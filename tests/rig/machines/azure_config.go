package main

import (
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// azureConfig is the tenant, and who may do what there. All of it is made up for tests.
type azureConfig struct {
	Tenant      string            `json:"tenant"`
	Principals  []*azurePrincipal `json:"principals"`
	TokensLast  duration          `json:"tokens_last"` // real time, as clients' clocks run
	Audiences   []string          `json:"audiences"`   // scopes without /.default, beside our own door
	PutBurst    float64           `json:"put_burst"`   // PUTs of one pool
	PutsMinute  float64           `json:"puts_per_minute"`
	Remembered  duration          `json:"operations_remembered"`
	Detailed    bool              `json:"machines_detailed"` // their states too, as newer versions of the API tell
	MachinePage int               `json:"machines_per_page"`
}

// azurePrincipal is somebody: what proves it, and what it is allowed.
type azurePrincipal struct {
	ClientID    string         `json:"client_id"`
	ObjectID    string         `json:"object_id"`
	Secret      string         `json:"secret"`
	Certificate string         `json:"certificate"` // file of a PEM certificate
	Federated   []*federation  `json:"federated"`
	Managed     bool           `json:"managed"` // IMDS gives its tokens; the first such is the default
	Actions     []string       `json:"actions"`
	NotActions  []string       `json:"not_actions"`
	certified   *rsa.PublicKey // of the certificate
	thumbprints []string       // x5t, x5t#S256
}

// federation is a token service, of Kubernetes say, whose tokens are taken for a principal's own.
type federation struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	Key     string `json:"key"` // file of a PEM public key
	public  *rsa.PublicKey
}

// aksConfig makes a group an agent pool of AKS.
type aksConfig struct {
	Subscription  string `json:"subscription"`
	ResourceGroup string `json:"resource_group"`
	Cluster       string `json:"cluster"`
	Pool          string `json:"pool"` // default: the group's name
	Location      string `json:"location"`
	Properties    tree   `json:"properties"`      // as ARM has them: mode, type, scaleDownMode, what nobody knows yet, ...
	Sparse        string `json:"sparse"`          // a PUT that leaves out or changes more than the size: reject, or merge
	Deletes       string `json:"delete_machines"` // what deleteMachines does where scaleDownMode is Deallocate: delete, or deallocate
	zonal         bool
}

// tree is a JSON object as somebody else wrote it, numbers to the digit.
type tree map[string]any

func (t *tree) UnmarshalJSON(text []byte) error {
	plain := map[string]any{}
	err := decodeNumbers(text, &plain)
	*t = plain
	return err
}

var (
	aksPoolName    = regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`)
	aksClusterName = regexp.MustCompile(`^[a-zA-Z0-9]$|^[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]$`)
)

func (c *config) completeAzure(folder string) error {
	if a := c.Azure; a != nil {
		if err := a.complete(folder); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, g := range c.Groups {
		if g.AKS == nil {
			continue
		}
		if c.Azure == nil {
			return fmt.Errorf("group %s has aks, but there is no tenant", g.Name)
		}
		if err := g.AKS.complete(g); err != nil {
			return fmt.Errorf("group %s: aks: %w", g.Name, err)
		}
		id := strings.ToLower(g.AKS.id())
		if seen[id] {
			return fmt.Errorf("group %s: a second pool %s", g.Name, id)
		}
		seen[id] = true
	}
	return nil
}

func (a *azureConfig) complete(folder string) error {
	a.Tenant = or(a.Tenant, "72f988bf-0000-4000-8000-2d7cd011db47")
	a.TokensLast = orNumber(a.TokensLast, duration(time.Hour))
	a.PutBurst, a.PutsMinute = orNumber(a.PutBurst, 20), orNumber(a.PutsMinute, 1)
	a.Remembered = orNumber(a.Remembered, duration(2*time.Hour))
	a.MachinePage = orNumber(a.MachinePage, 100)
	a.Audiences = append(a.Audiences, "https://management.azure.com", "https://management.core.windows.net")
	seen := map[string]bool{}
	for i, p := range a.Principals {
		p.ObjectID = or(p.ObjectID, guid("object/"+p.ClientID))
		if p.ClientID == "" || seen[p.ClientID] {
			return fmt.Errorf("principals[%d]: each needs a client_id of its own, found %q", i, p.ClientID)
		}
		seen[p.ClientID] = true
		if len(p.Actions) == 0 {
			p.Actions = []string{"*"}
		}
		if err := p.readKeys(folder); err != nil {
			return fmt.Errorf("principal %s: %w", p.ClientID, err)
		}
	}
	return nil
}

func (p *azurePrincipal) readKeys(folder string) error {
	if p.Certificate != "" {
		block, err := readPEM(folder, p.Certificate, "CERTIFICATE")
		if err != nil {
			return err
		}
		certificate, err := x509.ParseCertificate(block)
		if err != nil {
			return err
		}
		one, two := sha1.Sum(certificate.Raw), sha256.Sum256(certificate.Raw)
		encode := base64.RawURLEncoding.EncodeToString
		p.thumbprints = []string{encode(one[:]), encode(two[:])}
		var ok bool
		if p.certified, ok = certificate.PublicKey.(*rsa.PublicKey); !ok {
			return fmt.Errorf("%s: an RSA certificate is needed", p.Certificate)
		}
	}
	for _, f := range p.Federated {
		block, err := readPEM(folder, f.Key, "PUBLIC KEY")
		if err != nil {
			return err
		}
		key, err := x509.ParsePKIXPublicKey(block)
		if err != nil {
			return err
		}
		var ok bool
		if f.public, ok = key.(*rsa.PublicKey); !ok {
			return fmt.Errorf("%s: an RSA key is needed", f.Key)
		}
	}
	return nil
}

// readPEM is the first block of that kind in a file: a private key may stand beside it.
func readPEM(folder, path, kind string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == kind {
			return block.Bytes, nil
		}
	}
	return nil, fmt.Errorf("%s: there is no %s in it", path, kind)
}

func (a *aksConfig) complete(g *groupConfig) error {
	a.Subscription = or(a.Subscription, "00000000-0000-0000-0000-000000000000")
	a.ResourceGroup, a.Cluster, a.Pool = or(a.ResourceGroup, "rg"), or(a.Cluster, "prod"), or(a.Pool, g.Name)
	a.Location, a.Sparse = or(a.Location, "westeurope"), or(a.Sparse, "reject")
	if !aksPoolName.MatchString(a.Pool) || !aksClusterName.MatchString(a.Cluster) {
		return fmt.Errorf("pool is %s, cluster %s; found %q and %q", aksPoolName, aksClusterName, a.Pool, a.Cluster)
	}
	a.Deletes = or(a.Deletes, "delete")
	if a.Deletes != "delete" && a.Deletes != "deallocate" {
		return fmt.Errorf("delete_machines is delete or deallocate, found %q", a.Deletes)
	}
	if a.Sparse != "reject" && a.Sparse != "merge" {
		return fmt.Errorf("sparse is reject or merge, found %q", a.Sparse)
	}
	if g.InstanceType == "g5.xlarge" {
		g.InstanceType = "Standard_NC24ads_A100_v4"
	}
	if len(g.Zones) == 1 && g.Zones[0] == "z1" {
		g.Zones = []string{"1"}
	} else {
		a.zonal = true
	}
	properties := tree{"vmSize": g.InstanceType, "type": "VirtualMachineScaleSets", "mode": "User", "osType": "Linux",
		"osSKU": "Ubuntu", "enableAutoScaling": false, "scaleDownMode": "Delete", "maxPods": json.Number("110"),
		"orchestratorVersion": "1.34", "powerState": map[string]any{"code": "Running"}}
	if a.zonal {
		properties["availabilityZones"] = anyList(g.Zones)
	}
	for key, value := range a.Properties {
		properties[key] = value
	}
	a.Properties = properties
	if a.is("type", "VirtualMachines") && properties["virtualMachinesProfile"] == nil {
		manual := map[string]any{"size": g.InstanceType, "count": json.Number(strconv.Itoa(g.Initial))}
		properties["virtualMachinesProfile"] = map[string]any{"scale": map[string]any{"manual": []any{manual}}}
	}
	if a.is("scaleDownMode", "Deallocate") {
		g.StoppedNode = "keep"
	}
	if a.is("scaleSetPriority", "Spot") {
		g.Taints = append(g.Taints, taintConfig{"kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule"})
	}
	g.tellMarks(properties)
	return nil
}

// tellMarks puts what the group's nodes are given where the pool tells of it, unless that was written.
func (g *groupConfig) tellMarks(properties tree) {
	if properties["nodeLabels"] == nil && len(g.Labels) > 0 {
		labels := map[string]any{}
		for key, value := range g.Labels {
			labels[key] = value
		}
		properties["nodeLabels"] = labels
	}
	if properties["nodeTaints"] == nil && len(g.Taints) > 0 {
		taints := []any{}
		for _, t := range g.Taints {
			taints = append(taints, t.Key+"="+t.Value+":"+t.Effect)
		}
		properties["nodeTaints"] = taints
	}
}

func anyList(texts []string) (list []any) {
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

func (a *aksConfig) is(key, value string) bool { return a.Properties[key] == value }

// clusterID and id are the ARM ids of the cluster and the pool.
func (a *aksConfig) clusterID() string {
	return "/subscriptions/" + a.Subscription + "/resourceGroups/" + a.ResourceGroup +
		"/providers/Microsoft.ContainerService/managedClusters/" + a.Cluster
}

func (a *aksConfig) id() string { return a.clusterID() + "/agentPools/" + a.Pool }

// nodeResourceGroup is where AKS keeps the machines.
func (a *aksConfig) nodeResourceGroup() string {
	return "MC_" + a.ResourceGroup + "_" + a.Cluster + "_" + a.Location
}

// machineResource is the ARM id of a machine; provider ids have its resource group in lower case.
func (a *aksConfig) machineResource(nodeGroup string, index int) string {
	base := "/subscriptions/" + a.Subscription + "/resourceGroups/" + nodeGroup + "/providers/Microsoft.Compute/"
	if a.is("type", "VirtualMachines") {
		return base + "virtualMachines/" + a.machineName(index)
	}
	return base + "virtualMachineScaleSets/" + a.stem() + "-vmss/virtualMachines/" + strconv.Itoa(index)
}

func (a *aksConfig) stem() string { return "aks-" + a.Pool + "-" + digits(a.clusterID(), 8) }

func (a *aksConfig) machineName(index int) string {
	if a.is("type", "VirtualMachines") {
		return fmt.Sprintf("%s-vms%d", a.stem(), index)
	}
	number := strconv.FormatInt(int64(index), 36)
	return a.stem() + "-vmss" + strings.Repeat("0", 6-len(number)) + number
}

func (a *aksConfig) labels(zone string) map[string]string {
	labels := map[string]string{
		"agentpool":                        a.Pool,
		"kubernetes.azure.com/agentpool":   a.Pool,
		"kubernetes.azure.com/cluster":     a.nodeResourceGroup(),
		"kubernetes.azure.com/mode":        strings.ToLower(fmt.Sprint(a.Properties["mode"])),
		"kubernetes.azure.com/accelerator": "nvidia",
		"topology.kubernetes.io/region":    a.Location,
		"topology.kubernetes.io/zone":      a.Location + "-" + zone,
	}
	if a.is("scaleSetPriority", "Spot") {
		labels["kubernetes.azure.com/scalesetpriority"] = "spot"
	}
	return labels
}

// christenVirtualMachine gives a machine the names that AKS would.
func christenVirtualMachine(g *group, m *machine) {
	a, index := g.conf.AKS, g.Sequence-1
	m.ID = a.machineName(index)
	m.ProviderID = "azure://" + a.machineResource(strings.ToLower(a.nodeResourceGroup()), index)
}

// guid follows from the text.
func guid(text string) string {
	h := sha256.Sum256([]byte(text))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// digits are that many decimal ones that follow from the text.
func digits(text string, count int) string {
	return fmt.Sprintf("%0*d", count, int64(uniform(7, text)*1e12))[:count]
}
