package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// world is a fleet before an API server of client-go's making, a thousand times as fast.
type world struct {
	*testing.T
	cloud  *cloud
	fleet  *fleet
	client *fake.Clientset
}

func newWorld(t *testing.T, port int) *world {
	t.Helper()
	stage := fixed(5 * time.Second)
	conf := &config{
		Groups: []*groupConfig{{Name: "g", Max: 10, Resource: "nvidia.com/mig-1g.5gb", Count: 7, GPUs: 1, StoppedNode: "keep",
			Stages: stagesConfig{Provision: stage, Register: stage, Device: stage, Image: stage, Load: stage, Wake: stage}}},
		Pools: []*poolConfig{{Name: "p", Namespace: "llm", Selector: map[string]string{"app": "p"}, Groups: []string{"g"}}}}
	return newWorldOf(t, conf, port)
}

func newWorldOf(t *testing.T, conf *config, port int) *world {
	t.Helper()
	if err := conf.complete("."); err != nil {
		t.Fatal(err)
	}
	k := newCloud(conf, clock{start: time.Now(), speed: 100}, 1)
	pools, err := openTraffic(k)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	client := fake.NewClientset()
	w := &world{t, k, newFleet(ctx, client, k, pools, port), client}
	if err := w.fleet.run(); err != nil {
		t.Fatal(err)
	}
	go keepTime(ctx, k, pools)
	return w
}

func (w *world) call(name string, o order) {
	w.Helper()
	w.cloud.mu.Lock()
	defer w.cloud.mu.Unlock()
	if _, err := calls[name](w.cloud, w.cloud.group("g"), &o, time.Now().UnixMilli()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) until(what string, is func() bool) {
	w.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); sleepReal(w.fleet.ctx, 5*time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("never: %s", what)
		}
	}
}

// node is nil where there is none.
func (w *world) node(name string) *core.Node {
	node, err := w.client.CoreV1().Nodes().Get(w.fleet.ctx, name, meta.GetOptions{})
	if err != nil {
		return nil
	}
	return node
}

func ready(node *core.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == core.NodeReady {
			return c.Status == core.ConditionTrue
		}
	}
	return false
}

func (w *world) devices(name string) int64 {
	node := w.node(name)
	if node == nil || !ready(node) {
		return -1
	}
	quantity := node.Status.Allocatable["nvidia.com/mig-1g.5gb"]
	return quantity.Value()
}

func (w *world) bind(name string, annotations map[string]string) {
	w.Helper()
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "llm", UID: "uid-" + "1", Annotations: annotations,
		Labels: map[string]string{"app": "p"}},
		Spec: core.PodSpec{NodeName: "g-000001", Containers: []core.Container{{Name: "c", Image: "image"}}}}
	if _, err := w.client.CoreV1().Pods("llm").Create(w.fleet.ctx, pod, meta.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) pod(name string) *core.Pod {
	pod, err := w.client.CoreV1().Pods("llm").Get(w.fleet.ctx, name, meta.GetOptions{})
	if errs.IsNotFound(err) {
		return nil
	}
	return pod
}

func (w *world) phase(name string) string {
	pod := w.pod(name)
	if pod == nil {
		return "gone"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == core.PodReady && c.Status == core.ConditionTrue {
			return "Ready"
		}
	}
	if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil {
		return pod.Status.ContainerStatuses[0].State.Waiting.Reason
	}
	return string(pod.Status.Phase)
}

// What was bought for standby has no image on its disk, and joins as a new machine does, the first time that it wakes; where
// images lie on an instance store it never has.
func TestAFirstWakePullsTheImage(t *testing.T) {
	for _, store := range []bool{false, true} {
		wakesTwice(t, store)
	}
}

func wakesTwice(t *testing.T, store bool) {
	stages := stagesConfig{Provision: fixed(time.Second), Stop: fixed(time.Second), Wake: fixed(time.Second), Image: fixed(time.Hour)}
	k := newCloud(&config{Groups: []*groupConfig{{Name: "g", Max: 1, Zones: []string{"z1"}, Stages: stages}}}, clock{speed: 1, start: time.Now()}, 41)
	g := k.groups[0]
	now := time.Now().UnixMilli()
	g.expect(toStandby, 1)
	m := k.launch(g, toStandby, "a", now)
	for wake, pulls := range []bool{true, false} {
		for m.State != stopped {
			now += 1000
			k.advance(now)
		}
		k.wake(g, m, "b", now)
		for m.State != running {
			now += 1000
			k.advance(now)
		}
		n := newNode(&fleet{cloud: k}, m.ID)
		conf := *g.conf
		conf.EKS = &eksConfig{InstanceStore: store}
		n.machine = snapshot{*m, &conf}
		if got := time.Until(n.imageAt("image")) > time.Minute; got != (pulls || store) {
			t.Errorf("wake %d, instance store %v: pulls: %v", wake, store, got)
		}
		m.Goal = toStandby
		m.enter(stopping, now, now+1000)
	}
}

func TestMachineJoinsServesAndLeaves(t *testing.T) {
	w := newWorld(t, 41)
	w.call("grow", order{Token: "a", Desired: count(1)})
	w.until("a node", func() bool { return w.node("g-000001") != nil })
	if node := w.node("g-000001"); node.Spec.ProviderID != "simulated:///g/g-000001" {
		t.Errorf("providerID %s", node.Spec.ProviderID)
	}
	w.until("devices", func() bool { return w.devices("g-000001") == 7 })
	w.bind("server", map[string]string{serveAnnotation: "vllm"})
	w.until("a ready pod", func() bool { return w.phase("server") == "Ready" })
	response, err := http.Get("http://" + w.pod("server").Status.PodIP + ":8000/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	if response.Body.Close(); !strings.Contains(string(text), "vllm:num_requests_running{") {
		t.Errorf("metrics: %s", text)
	}
	w.call("stop", order{Token: "b", Machines: []string{"g-000001"}})
	w.until("no pod", func() bool { return w.phase("server") == "gone" })
	w.until("a node not ready", func() bool { return !ready(w.node("g-000001")) })
	w.call("grow", order{Token: "c", Desired: count(1)})
	w.until("devices again", func() bool { return w.devices("g-000001") == 7 })
	w.call("remove", order{Token: "d", Machines: []string{"g-000001"}})
	w.until("no node", func() bool { return w.node("g-000001") == nil })
}

func TestJobEnds(t *testing.T) {
	w := newWorld(t, 42)
	w.call("grow", order{Token: "a", Desired: count(1)})
	w.until("devices", func() bool { return w.devices("g-000001") == 7 })
	w.bind("job", map[string]string{runForAnnotation: "30s"})
	w.until("an ended pod", func() bool { return w.phase("job") == "Succeeded" })
}

func TestFaultsOfMachines(t *testing.T) {
	cases := []struct {
		fault string
		is    func(w *world) bool
	}{
		{"never-registers", func(w *world) bool { return w.node("g-000001") == nil }},
		{"never-ready", func(w *world) bool { n := w.node("g-000001"); return n != nil && !ready(n) }},
		{"gpu-never-appears", func(w *world) bool { return w.devices("g-000001") == 0 }},
	}
	for i, c := range cases {
		w := newWorld(t, 43+i)
		w.cloud.mu.Lock()
		w.cloud.faults.add(fault{Fault: c.fault, Group: "*", Count: 1}, 0)
		w.cloud.mu.Unlock()
		w.call("grow", order{Token: "a", Desired: count(2)})
		w.until("devices of the sound machine", func() bool { return w.devices("g-000002") == 7 })
		w.until(c.fault, func() bool { return c.is(w) })
	}
}

func TestFaultsOfPods(t *testing.T) {
	w := newWorld(t, 46)
	w.cloud.mu.Lock()
	w.cloud.faults.add(fault{Fault: "image-pull-fails", Group: "*"}, 0)
	w.cloud.mu.Unlock()
	w.call("grow", order{Token: "a", Desired: count(1)})
	w.until("devices", func() bool { return w.devices("g-000001") == 7 })
	w.bind("server", map[string]string{serveAnnotation: "vllm"})
	w.until("a failed pull", func() bool { return w.phase("server") == "ImagePullBackOff" })
	w.cloud.mu.Lock()
	w.cloud.faults.remove(0)
	w.cloud.faults.add(fault{Fault: "model-never-ready", Group: "g"}, 0)
	w.cloud.mu.Unlock()
	w.until("a model that loads", func() bool { return w.phase("server") == "Running" })
}
