package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	// shutdownTaint is what Azure's cloud controller puts on the nodes of machines that are deallocated.
	shutdownTaint = taintConfig{Key: "node.cloudprovider.kubernetes.io/shutdown", Effect: "NoSchedule"}
	// remediatorTaint is what AKS's auto-drain puts on a spot node that is about to be taken.
	remediatorTaint = taintConfig{Key: "remediator.kubernetes.azure.com/unschedulable", Effect: "NoSchedule"}
)

// announce tells of a scheduled event as AKS's node problem detector does: by a condition and by an event.
func (n *node) announce(ctx context.Context) {
	now := meta.Now()
	message := fmt.Sprintf("Preempt Scheduled: %s; DurationInSeconds: -1", now.UTC().Format(time.RFC1123))
	patch, _ := json.Marshal(map[string]any{"status": map[string]any{"conditions": []core.NodeCondition{{Type: "VMEventScheduled",
		Status: core.ConditionTrue, Reason: "VMEventScheduled", Message: message, LastHeartbeatTime: now, LastTransitionTime: now}}}})
	persist(ctx, "announce on node "+n.name, func() error {
		_, err := n.fleet.client.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, meta.PatchOptions{},
			"status")
		return gone(err)
	})
	event := &core.Event{ObjectMeta: meta.ObjectMeta{Name: n.name + ".preempt", Namespace: "default"}, Type: core.EventTypeWarning,
		InvolvedObject: core.ObjectReference{Kind: "Node", Name: n.name, UID: types.UID(n.name)}, Reason: "PreemptScheduled",
		Message: message, Source: core.EventSource{Component: "custom-scheduledevents-preempt-plugin-monitor", Host: n.name},
		FirstTimestamp: now, LastTimestamp: now, Count: 1}
	persist(ctx, "event of node "+n.name, func() error {
		_, err := n.fleet.client.CoreV1().Events("default").Create(ctx, event, meta.CreateOptions{})
		if errs.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
