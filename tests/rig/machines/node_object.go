package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	dra "k8s.io/api/resource/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	leaseNamespace  = "kube-node-lease"
	groupAnnotation = "rig.preheat.dev/group" // tells a later run whose node this is
)

// isClaimed tells whether the devices are published by a driver and claimed, not requested: its name has no slash.
func (g *groupConfig) isClaimed() bool {
	return !strings.Contains(g.Resource, "/")
}

// devices are the resources that the device plugin brings.
func (g *groupConfig) devices() core.ResourceList {
	return core.ResourceList{core.ResourceName(g.Resource): *resource.NewQuantity(int64(g.Count), resource.DecimalSI)}
}

func (g *groupConfig) capacity() core.ResourceList {
	return core.ResourceList{
		core.ResourceCPU:              resource.MustParse(g.CPU),
		core.ResourceMemory:           resource.MustParse(g.Memory),
		core.ResourceEphemeralStorage: resource.MustParse("400Gi"),
		core.ResourcePods:             resource.MustParse("110"),
	}
}

// allocatable is what the kubelet leaves of the capacity.
func (g *groupConfig) allocatable() core.ResourceList {
	list := g.capacity()
	cpu, memory := list[core.ResourceCPU], list[core.ResourceMemory]
	list[core.ResourceCPU] = *resource.NewMilliQuantity(cpu.MilliValue()-110, resource.DecimalSI)
	list[core.ResourceMemory] = *resource.NewQuantity(memory.Value()-memory.Value()/16, resource.BinarySI)
	return list
}

// ensure makes the Node object unless it is there; where that is somebody else's, it waits for it.
func (n *node) ensure(ctx context.Context) bool {
	m := n.now()
	if m.conf.Foreign != "" {
		return persist(ctx, "find node "+n.name, func() error {
			_, err := n.fleet.client.CoreV1().Nodes().Get(ctx, n.name, meta.GetOptions{})
			return err
		})
	}
	object := m.object()
	return persist(ctx, "create node "+n.name, func() error {
		_, err := n.fleet.client.CoreV1().Nodes().Create(ctx, object, meta.CreateOptions{})
		if errs.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (m *snapshot) object() *core.Node {
	g := m.conf
	labels := map[string]string{
		"kubernetes.io/hostname":           m.node(),
		"kubernetes.io/os":                 "linux",
		"kubernetes.io/arch":               "amd64",
		"node.kubernetes.io/instance-type": or(m.Type, g.InstanceType),
		"topology.kubernetes.io/zone":      m.Zone,
		"topology.kubernetes.io/region":    "simulated",
	}
	for key, value := range g.cloudLabels(m.Zone) {
		labels[key] = value
	}
	for key, value := range g.Labels {
		labels[key] = value
	}
	node := &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: m.node(), Labels: labels,
			Annotations: map[string]string{groupAnnotation: g.Name}},
		Spec: core.NodeSpec{ProviderID: m.ProviderID},
		Status: core.NodeStatus{
			Capacity: g.capacity(), Allocatable: g.allocatable(),
			Conditions: conditions(false, "the kubelet starts"),
			Addresses: []core.NodeAddress{{Type: core.NodeInternalIP, Address: "127.0.0.1"},
				{Type: core.NodeHostName, Address: m.node()}},
			NodeInfo: core.NodeSystemInfo{KubeletVersion: "v1.36.2", OperatingSystem: "linux", Architecture: "amd64",
				ContainerRuntimeVersion: "containerd://1.7.27", OSImage: "simulated", KernelVersion: "6.1.141",
				MachineID: m.ID, SystemUUID: m.ID, BootID: m.ID},
		},
	}
	for _, taint := range g.Taints {
		node.Spec.Taints = append(node.Spec.Taints, taint.taint())
	}
	return node
}

func (t taintConfig) taint() core.Taint {
	return core.Taint{Key: t.Key, Value: t.Value, Effect: core.TaintEffect(t.Effect)}
}

func conditions(ready bool, message string) []core.NodeCondition {
	now := meta.Now()
	list := []core.NodeCondition{
		{Type: core.NodeMemoryPressure, Reason: "KubeletHasSufficientMemory"},
		{Type: core.NodeDiskPressure, Reason: "KubeletHasNoDiskPressure"},
		{Type: core.NodePIDPressure, Reason: "KubeletHasSufficientPID"},
		{Type: core.NodeReady, Reason: "KubeletNotReady", Message: message},
	}
	for i := range list {
		list[i].Status, list[i].LastHeartbeatTime, list[i].LastTransitionTime = core.ConditionFalse, now, now
	}
	if ready {
		list[3].Status, list[3].Reason, list[3].Message = core.ConditionTrue, "KubeletReady",
			"kubelet is posting ready status"
	}
	return list
}

// report patches the Node's readiness and, unless nil, its devices: an empty list takes them back.
func (n *node) report(ctx context.Context, ready bool, message string, devices core.ResourceList) {
	n.mu.Lock()
	n.stated = ready
	n.mu.Unlock()
	status := map[string]any{"conditions": conditions(ready, message)[3:]}
	m := n.now()
	if devices != nil && m.conf.isClaimed() {
		n.publish(ctx, &m, len(devices) > 0)
	} else if devices != nil {
		capacity := map[string]any{m.conf.Resource: nil}
		for name, quantity := range devices {
			capacity[string(name)] = quantity.String()
		}
		status["capacity"], status["allocatable"] = capacity, capacity
	}
	patch, _ := json.Marshal(map[string]any{"status": status})
	persist(ctx, "patch status of node "+n.name, func() error {
		_, err := n.fleet.client.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch,
			meta.PatchOptions{}, "status")
		return gone(err)
	})
	if ready {
		n.fleet.cloud.hasJoined(n.now().machine)
	}
}

// publish makes the ResourceSlice of the node's devices, or takes it back, as the driver's kubelet plugin does.
func (n *node) publish(ctx context.Context, m *snapshot, there bool) {
	driver, slices := m.conf.Resource, n.fleet.client.ResourceV1().ResourceSlices()
	name := n.name + "-" + driver
	persist(ctx, "publish devices of node "+n.name, func() error {
		if err := gone(slices.Delete(ctx, name, meta.DeleteOptions{})); err != nil || !there {
			return err
		}
		node, err := n.fleet.client.CoreV1().Nodes().Get(ctx, n.name, meta.GetOptions{})
		if err != nil {
			return gone(err)
		}
		kind, controls := "gpu", true
		slice := &dra.ResourceSlice{
			ObjectMeta: meta.ObjectMeta{Name: name, OwnerReferences: []meta.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: n.name, UID: node.UID, Controller: &controls}}},
			Spec: dra.ResourceSliceSpec{Driver: driver, NodeName: &n.name,
				Pool: dra.ResourcePool{Name: n.name, Generation: 1, ResourceSliceCount: 1}}}
		for i := range m.conf.Count {
			slice.Spec.Devices = append(slice.Spec.Devices, dra.Device{Name: fmt.Sprint("gpu-", i),
				Attributes: map[dra.QualifiedName]dra.DeviceAttribute{"type": {StringValue: &kind}}})
		}
		_, err = slices.Create(ctx, slice, meta.CreateOptions{})
		return err
	})
}

// taint adds one unless it is there: a spot machine's notice, or that it was stopped.
func (n *node) taint(ctx context.Context, t taintConfig) {
	persist(ctx, "taint node "+n.name, func() error {
		node, err := n.fleet.client.CoreV1().Nodes().Get(ctx, n.name, meta.GetOptions{})
		if err != nil {
			return gone(err)
		}
		if slices.ContainsFunc(node.Spec.Taints, func(old core.Taint) bool { return old.Key == t.Key }) {
			return nil
		}
		node.Spec.Taints = append(node.Spec.Taints, t.taint())
		_, err = n.fleet.client.CoreV1().Nodes().Update(ctx, node, meta.UpdateOptions{})
		return err
	})
}

// untaint takes one off again.
func (n *node) untaint(ctx context.Context, key string) {
	persist(ctx, "take the taint off node "+n.name, func() error {
		node, err := n.fleet.client.CoreV1().Nodes().Get(ctx, n.name, meta.GetOptions{})
		if err != nil {
			return gone(err)
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t core.Taint) bool { return t.Key == key })
		_, err = n.fleet.client.CoreV1().Nodes().Update(ctx, node, meta.UpdateOptions{})
		return err
	})
}

// cordon as clouds do before an update replaces a node, or take it back.
func (n *node) cordon(ctx context.Context, on bool) {
	patch := []byte(`{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":null}},"spec":{"unschedulable":null}}`)
	if on {
		patch = []byte(`{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"}},"spec":{"unschedulable":true}}`)
	}
	persist(ctx, "cordon node "+n.name, func() error {
		_, err := n.fleet.client.CoreV1().Nodes().Patch(ctx, n.name, types.MergePatchType, patch, meta.PatchOptions{})
		return gone(err)
	})
}

// evict the pods until there are none but those of DaemonSets, as often as budgets refuse it.
func (n *node) evict(ctx context.Context, machine string) {
	for left := true; left; left = left && sleepReal(ctx, 200*time.Millisecond) {
		if !n.now().Evicting {
			return // given up
		}
		left = false
		for _, pod := range n.fleet.podsOf(n.name) {
			owner := meta.GetControllerOf(pod)
			if owner != nil && owner.Kind == "DaemonSet" {
				continue
			}
			left = true
			if pod.DeletionTimestamp == nil {
				n.fleet.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policy.Eviction{
					ObjectMeta: meta.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
			}
		}
	}
	n.fleet.cloud.hasEvicted(machine)
}

// heartbeat renews the Node's lease, in real time as the control plane counts it.
func (n *node) heartbeat(ctx context.Context) {
	defer n.sessions.Done()
	leases := n.fleet.client.CoordinationV1().Leases(leaseNamespace)
	seconds := int32(40)
	for ok := true; ok; ok = sleepReal(ctx, 10*time.Second) {
		now := meta.NowMicro()
		lease, err := leases.Get(ctx, n.name, meta.GetOptions{})
		if errs.IsNotFound(err) {
			lease = &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: n.name, Namespace: leaseNamespace}}
			lease.Spec = coordination.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &seconds, RenewTime: &now}
			leases.Create(ctx, lease, meta.CreateOptions{})
		} else if err == nil {
			lease.Spec.RenewTime = &now
			leases.Update(ctx, lease, meta.UpdateOptions{})
		}
		n.restate(ctx)
	}
}

// restate says again that the node is ready, where somebody took a late heartbeat for its end.
func (n *node) restate(ctx context.Context) {
	node, err := n.fleet.client.CoreV1().Nodes().Get(ctx, n.name, meta.GetOptions{})
	if err != nil {
		return
	}
	n.mu.Lock()
	stated := n.stated
	n.mu.Unlock()
	for _, c := range node.Status.Conditions {
		if stated && c.Type == core.NodeReady && c.Status == core.ConditionUnknown {
			n.report(ctx, true, "", nil)
		}
	}
}
