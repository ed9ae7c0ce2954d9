package main

import (
	"encoding/json"
	"fmt"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podStatus is what a kubelet says of a pod, before it is known which.
type podStatus struct {
	phase    core.PodPhase
	state    core.ContainerState
	up       bool // containers run
	ready    bool
	finished bool
	ip       string
	restarts int32
}

func creating() podStatus {
	return podStatus{phase: core.PodPending,
		state: core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "ContainerCreating"}}}
}

func pullFailed(image string, times int) podStatus {
	waiting := &core.ContainerStateWaiting{Reason: "ErrImagePull",
		Message: fmt.Sprintf("failed to pull and unpack image %q: not found", image)}
	if times > 1 {
		waiting.Reason, waiting.Message = "ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", image)
	}
	return podStatus{phase: core.PodPending, state: core.ContainerState{Waiting: waiting}}
}

func (a *agent) up(ready bool) podStatus {
	started := meta.Now()
	for _, c := range a.pod.Status.ContainerStatuses {
		if c.State.Running != nil && c.RestartCount == a.restarts {
			started = c.State.Running.StartedAt
		}
	}
	return podStatus{phase: core.PodRunning, up: true, ready: ready, ip: a.ip, restarts: a.restarts,
		state: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: started}}}
}

func (a *agent) succeeded() podStatus {
	s := a.up(false)
	s.phase, s.up, s.finished = core.PodSucceeded, false, true
	s.state = core.ContainerState{Terminated: &core.ContainerStateTerminated{Reason: "Completed",
		StartedAt: s.state.Running.StartedAt, FinishedAt: meta.Now()}}
	return s
}

// report patches the pod's status, and remembers it.
func (a *agent) report(s podStatus) {
	status := s.of(a.pod)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.pod.UID}, "status": status})
	if err != nil {
		panic(err)
	}
	persist(a.ctx, "patch status of pod "+a.pod.Name, func() error {
		patched, err := a.fleet.client.CoreV1().Pods(a.pod.Namespace).Patch(a.ctx, a.pod.Name,
			types.StrategicMergePatchType, patch, meta.PatchOptions{}, "status")
		if err == nil {
			a.pod = patched
		}
		return gone(err)
	})
}

func (s podStatus) of(pod *core.Pod) core.PodStatus {
	now := meta.Now()
	status := core.PodStatus{Phase: s.phase, HostIP: "127.0.0.1", HostIPs: []core.HostIP{{IP: "127.0.0.1"}},
		StartTime: pod.Status.StartTime}
	if status.StartTime == nil {
		status.StartTime = &now
	}
	if s.ip != "" {
		status.PodIP, status.PodIPs = s.ip, []core.PodIP{{IP: s.ip}}
	}
	condition := func(kind core.PodConditionType, is bool, why string) {
		c := core.PodCondition{Type: kind, Status: core.ConditionFalse, Reason: why, LastTransitionTime: now}
		if is {
			c.Status, c.Reason = core.ConditionTrue, ""
		}
		for _, old := range pod.Status.Conditions {
			if old.Type == kind && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		status.Conditions = append(status.Conditions, c)
	}
	notReady := "ContainersNotReady"
	if s.finished {
		notReady = "PodCompleted"
	}
	condition("PodReadyToStartContainers", s.up, notReady)
	condition(core.PodInitialized, true, "")
	condition(core.PodReady, s.ready, notReady)
	condition(core.ContainersReady, s.ready, notReady)
	status.ContainerStatuses = s.containers(pod, pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		done := core.ContainerState{Terminated: &core.ContainerStateTerminated{Reason: "Completed", StartedAt: now,
			FinishedAt: now}}
		status.InitContainerStatuses = append(status.InitContainerStatuses,
			core.ContainerStatus{Name: c.Name, Image: c.Image, State: done, Ready: true})
	}
	return status
}

func (s podStatus) containers(pod *core.Pod, containers []core.Container) (list []core.ContainerStatus) {
	for i, c := range containers {
		one := core.ContainerStatus{Name: c.Name, Image: c.Image, State: s.state, Ready: s.ready, Started: &s.up,
			RestartCount: s.restarts}
		if s.up || s.finished {
			one.ContainerID = fmt.Sprintf("containerd://%s-%d", pod.UID, i)
			one.ImageID = c.Image + "@sha256:" + fmt.Sprintf("%064x", len(c.Image))
		}
		list = append(list, one)
	}
	return list
}
