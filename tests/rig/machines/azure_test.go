package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newTestPool has an agent pool g of so many machines that take 60 s, begun at 1,000,000 s.
func newTestPool(t *testing.T, initial int, properties tree) (*cloud, *group) {
	t.Helper()
	conf := &config{Azure: &azureConfig{Principals: []*azurePrincipal{{ClientID: "app", Secret: "secret"}}},
		Groups: []*groupConfig{{Name: "g", Max: 50, Initial: initial, Zones: []string{"1", "2"}, Stages: stagesConfig{
			Provision: fixed(60 * time.Second), Wake: fixed(20 * time.Second)}, AKS: &aksConfig{Properties: properties}}}}
	if err := conf.complete("."); err != nil {
		t.Fatal(err)
	}
	k := newCloud(conf, clock{start: time.Unix(1000000, 0), speed: 1}, 1)
	return k, k.group("g")
}

// put begins to scale at second s.
func put(k *cloud, g *group, s, count int) *armOperation {
	k.advance(at(s))
	o := k.begin(g, "put", "Scaling", at(s))
	k.scale(g, o, count, at(s))
	return o
}

func TestPoolFollowsItsCount(t *testing.T) {
	k, g := newTestPool(t, 2, nil)
	o := put(k, g, 0, 4)
	for second, wanted := range map[int]string{5: inProgress, 59: inProgress} {
		if k.advance(at(second)); o.Status != wanted {
			t.Errorf("at %d s: %s, wanted %s", second, o.Status, wanted)
		}
	}
	k.advance(at(60))
	if o.Status != succeeded || g.AKS.State != succeeded || len(g.live()) != 4 {
		t.Errorf("%s, %s, %s", o.Status, g.AKS.State, states(g))
	}
	put(k, g, 100, 1)
	if got := states(g); got != "running terminating terminating terminating" {
		t.Errorf("the highest numbers go first, found %s", got)
	}
	check(t, k)
}

func TestAnUpgradeReimagesUnderTheSameNames(t *testing.T) {
	k, g := newTestPool(t, 2, nil)
	before := names(g.live())
	k.faults.add(fault{Fault: "image-upgrade", Group: "g"}, 0)
	seen := map[string]bool{}
	for s := 1; s < 600; s += 5 {
		k.advance(at(s))
		check(t, k)
		for _, m := range g.live() {
			if m.Evicting {
				seen[m.ID] = true
				k.hasEvicted(m.ID)
			}
		}
		if s < 60 && (g.AKS.State != upgrading || len(g.live()) != 3 || g.AKS.Count != 2) {
			t.Fatalf("at %d s: %s, %s, count %d", s, g.AKS.State, states(g), g.AKS.Count)
		}
	}
	if a := k.journal.Acts; len(a) != 1 || a[0].Kind != "image-upgrade" || a[0].Until <= a[0].From || a[0].Size != 2 {
		t.Errorf("the journal says %+v", a)
	}
	if g.AKS.State != succeeded || strings.Join(names(g.live()), " ") != strings.Join(before, " ") || len(seen) != 3 {
		t.Errorf("%s, %v of %v, emptied %v", g.AKS.State, names(g.live()), before, seen)
	}
	for _, m := range g.live() {
		if m.Cordoned || m.State != running {
			t.Errorf("%s is %s, cordoned %v", m.ID, m.State, m.Cordoned)
		}
	}
}

// A machine that runs is none that pods can go to: the added one first, then each that was reimaged.
func TestAnUpgradeWaitsForReadyNodes(t *testing.T) {
	k, g := newTestPool(t, 2, nil)
	k.hasNodes = true
	k.faults.add(fault{Fault: "image-upgrade", Group: "g"}, 0)
	s := 0
	for emptied := range 3 {
		for until := s + 600; s < until; s += 5 {
			k.advance(at(s))
			for _, m := range g.live() {
				if m.Cordoned {
					t.Fatalf("at %d s: %s is emptied, the %dth, and nothing is ready in its place", s, m.ID, emptied+1)
				}
			}
		}
		for _, m := range g.live() {
			k.hasJoined(*m)
		}
		k.advance(at(s))
		n := slices.IndexFunc(g.live(), func(m *machine) bool { return m.Cordoned })
		if g.AKS.State != upgrading || n < 0 {
			t.Fatalf("%s, %s: nothing is emptied", g.AKS.State, states(g))
		}
		k.hasEvicted(g.live()[n].ID)
	}
	k.advance(at(s + 5))
	if g.AKS.State != succeeded || len(g.live()) != 2 {
		t.Errorf("%s, %s", g.AKS.State, states(g))
	}
}

func TestAVersionTakesAsManyAtOnceAsTheSurgeSays(t *testing.T) {
	k, g := newTestPool(t, 4, tree{"upgradeSettings": map[string]any{"maxSurge": "50%", "drainTimeoutInMinutes": json.Number("5")}})
	k.faults.add(fault{Fault: "version-upgrade", Group: "g", Value: "1.35.3"}, 0)
	most := 0
	for s := 1; s < 900; s += 5 {
		k.advance(at(s))
		check(t, k)
		if s < 60 && (g.AKS.State != "Upgrading" || len(g.live()) != 6 || g.AKS.Count != 4) {
			t.Fatalf("at %d s: %s, %s, count %d", s, g.AKS.State, states(g), g.AKS.Count)
		}
		cordoned := 0
		for _, m := range g.live() {
			if m.Cordoned {
				cordoned++
			}
			if m.Evicting {
				k.hasEvicted(m.ID)
			}
		}
		most = max(most, cordoned)
	}
	if g.AKS.State != succeeded || len(g.live()) != 4 || most != 2 || g.AKS.Properties["orchestratorVersion"] != "1.35.3" {
		t.Errorf("%s, %s, %d cordoned at most, version %v", g.AKS.State, states(g), most, g.AKS.Properties["orchestratorVersion"])
	}
}

func TestADrainTimeoutEndsAnUpgrade(t *testing.T) {
	k, g := newTestPool(t, 1, tree{"upgradeSettings": map[string]any{"drainTimeoutInMinutes": json.Number("5")}})
	k.faults.add(fault{Fault: "version-upgrade", Group: "g"}, 0)
	for s := 1; s < 600; s += 30 {
		k.advance(at(s))
	}
	if g.AKS.State != failedWord || g.AKS.Properties["orchestratorVersion"] != "1.34" {
		t.Errorf("%s, %s, version %v", g.AKS.State, states(g), g.AKS.Properties["orchestratorVersion"])
	}
}

func TestAnUpgradeFailsOnPodsThatStay(t *testing.T) {
	k, g := newTestPool(t, 1, nil)
	k.faults.add(fault{Fault: "image-upgrade", Group: "g"}, 0)
	for s := 1; s < 2400; s += 30 {
		k.advance(at(s))
	}
	if m := g.live()[0]; g.AKS.State != failedWord || g.AKS.Error == nil || m.Cordoned || m.Evicting {
		t.Errorf("%s, %s, cordoned %v, evicting %v", g.AKS.State, states(g), m.Cordoned, m.Evicting)
	}
}

func TestAPoolMayKeepBlockedMachinesCordoned(t *testing.T) {
	k, g := newTestPool(t, 1, tree{"upgradeSettings": map[string]any{"undrainableNodeBehavior": "Cordon"}})
	k.faults.add(fault{Fault: "image-upgrade", Group: "g"}, 0)
	for s := 1; s < 2400; s += 30 {
		k.advance(at(s))
	}
	if m := g.live()[0]; g.AKS.State != failedWord || !m.Cordoned || m.Evicting {
		t.Errorf("%s, cordoned %v, evicting %v", g.AKS.State, m.Cordoned, m.Evicting)
	}
}

func TestCordonedMachinesGoFirst(t *testing.T) {
	k, g := newTestPool(t, 3, nil)
	o := k.begin(g, "put", "Scaling", at(0))
	o.cordoned = map[string]bool{g.Machines[0].ID: true}
	k.scale(g, o, 2, at(0))
	if got := states(g); got != "terminating running running" {
		t.Errorf("found %s", got)
	}
}

func TestCountStaysAfterAFailure(t *testing.T) {
	k, g := newTestPool(t, 1, nil)
	k.faults.add(fault{Fault: "stock-out", Group: "g", Zone: "1"}, 0)
	o := put(k, g, 1, 5)
	k.advance(at(100))
	check(t, k)
	if o.Status != failedWord || g.AKS.State != failedWord || g.AKS.Count != 5 || len(g.live()) != 3 {
		t.Errorf("%s, %s, count %d, %s", o.Status, g.AKS.State, g.AKS.Count, states(g))
	}
	for _, m := range g.Machines[1:] {
		if m.Zone != "2" {
			t.Errorf("%s came up in zone %s, which is out of stock", m.ID, m.Zone)
		}
	}
	text, _ := json.Marshal(o.Error)
	if !strings.Contains(string(text), "ZonalAllocationFailed") || !strings.Contains(string(text), "in zone 1.") {
		t.Errorf("%s", text)
	}
	again := put(k, g, 200, 3)
	k.advance(at(210))
	if again.Status != succeeded || g.AKS.State != succeeded {
		t.Errorf("back to what is there: %s, %s", again.Status, g.AKS.State)
	}
}

func TestStuckUntilAborted(t *testing.T) {
	k, g := newTestPool(t, 1, nil)
	k.faults.add(fault{Fault: "stuck-operation", Group: "g"}, 0)
	o := put(k, g, 1, 5)
	if k.advance(at(3000)); o.Status != inProgress || len(g.live()) != 3 {
		t.Errorf("%s, %s", o.Status, states(g))
	}
	k.abort(g, o, at(3001))
	if o.Status != canceled || g.AKS.State != "Canceling" {
		t.Errorf("%s, %s", o.Status, g.AKS.State)
	}
	if k.advance(at(3010)); g.AKS.State != canceled || g.AKS.Count != 5 || len(g.live()) != 3 {
		t.Errorf("%s, count %d, %s", g.AKS.State, g.AKS.Count, states(g))
	}
	check(t, k)
}

func TestDeallocatedMachinesStay(t *testing.T) {
	k, g := newTestPool(t, 3, tree{"scaleDownMode": "Deallocate"})
	put(k, g, 0, 1)
	if k.advance(at(50)); states(g) != "running stopped stopped" || g.AKS.Count != 1 || g.conf.StoppedNode != "keep" {
		t.Errorf("%s, count %d", states(g), g.AKS.Count)
	}
	put(k, g, 60, 4)
	if got := states(g); got != "running waking waking pending" {
		t.Errorf("found %s", got)
	}
	check(t, k)
}

func TestDeleteMachinesMayDeallocate(t *testing.T) {
	for deletes, want := range map[string]string{"delete": "running running", "deallocate": "running stopped running",
		"by fault": "running stopped running"} {
		k, g := newTestPool(t, 3, tree{"scaleDownMode": "Deallocate"})
		if deletes == "by fault" {
			k.faults.add(fault{Group: "g", Fault: "delete-deallocates"}, 0)
		} else {
			g.conf.AKS.Deletes = deletes
		}
		for _, now := range []int{1, 100} {
			o := k.begin(g, "deleteMachines", "Updating", at(now))
			k.deleteMachines(g, o, []string{g.Machines[1].ID}, at(now))
			k.advance(at(now + 60))
			if deletes == "delete" {
				break // another one has its place
			}
		}
		if got := states(g); got != want || g.AKS.Count != 2 || g.AKS.State != succeeded {
			t.Errorf("%s: found %s, count %d, %s", deletes, got, g.AKS.Count, g.AKS.State)
		}
		check(t, k)
	}
}

func TestDeleteMachinesLowersTheCount(t *testing.T) {
	k, g := newTestPool(t, 4, nil)
	k.faults.add(fault{Fault: "partial-delete", Group: "g", Value: 1.0, Count: 1}, 0)
	o := k.begin(g, "deleteMachines", "Updating", at(1))
	k.deleteMachines(g, o, []string{g.Machines[0].ID, g.Machines[2].ID, "nobody"}, at(1))
	if k.advance(at(60)); o.Status != failedWord || g.AKS.Count != 3 || len(g.Machines) != 3 {
		t.Errorf("%s, count %d, %s", o.Status, g.AKS.Count, states(g))
	}
	check(t, k)
}

func TestNamesAreAzures(t *testing.T) {
	_, g := newTestPool(t, 11, nil)
	m := g.Machines[10]
	if !strings.HasSuffix(m.ID, "-vmss00000a") || m.index() != 10 || !strings.HasSuffix(m.ProviderID, "-vmss/virtualMachines/10") ||
		!strings.HasPrefix(m.ProviderID, "azure:///subscriptions/") || !strings.Contains(m.ProviderID, "/mc_rg_prod_westeurope/") {
		t.Errorf("%s, %s", m.ID, m.ProviderID)
	}
	_, g = newTestPool(t, 1, tree{"type": "VirtualMachines"})
	if m := g.Machines[0]; !strings.HasSuffix(m.ID, "-vms0") || !strings.HasSuffix(m.ProviderID, "/virtualMachines/"+m.ID) {
		t.Errorf("%s, %s", m.ID, m.ProviderID)
	}
}

func TestDifferences(t *testing.T) {
	cases := []struct{ known, sent, says string }{
		{`{"a":1,"b":{"c":[1,{"d":null}]}}`, `{"a":1.0,"b":{"c":[1,{"d":null}]}}`, ""},
		{`{"a":1,"b":2}`, `{"a":1}`, "drops b"},
		{`{"a":{"b":2}}`, `{"a":{}}`, "drops a.b"},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, "changes a from 9007199254740993 to 9007199254740992"},
		{`{"a":"1"}`, `{"a":1}`, "changes a from 1 to 1"},
		{`{"a":[1,2]}`, `{"a":[1]}`, "changes a"},
		{`{"a":1}`, `{"a":1,"z":2}`, "adds z"},
		{`{"a":null}`, `{}`, "drops a"},
		{`{"virtualMachinesProfile":{"scale":{"manual":[{"size":"s","count":1}]}}}`,
			`{"virtualMachinesProfile":{"scale":{"manual":[{"size":"s","count":5}]}}}`, ""},
	}
	for _, c := range cases {
		var known, sent map[string]any
		if decodeNumbers([]byte(c.known), &known) != nil || decodeNumbers([]byte(c.sent), &sent) != nil {
			t.Fatal(c)
		}
		if got := strings.Join(differences(known, sent, ""), ", "); got != c.says {
			t.Errorf("%s to %s: %q, wanted %q", c.known, c.sent, got, c.says)
		}
	}
}

// door serves the tenant without TLS, and gives a bearer token for it.
func door(t *testing.T, k *cloud) (base, bearer string) {
	t.Helper()
	server := httptest.NewServer(openAzure(&front{cloud: k}, &wire{}, http.NewServeMux()))
	t.Cleanup(server.Close)
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"app"}, "client_secret": {"secret"},
		"scope": {"https://management.azure.com/.default"}}
	answer, err := http.PostForm(server.URL+"/"+k.conf.Azure.Tenant+"/oauth2/v2.0/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var given struct {
		Token string `json:"access_token"`
	}
	if json.NewDecoder(answer.Body).Decode(&given); given.Token == "" {
		t.Fatal(answer.Status)
	}
	return server.URL, given.Token
}

func askARM(t *testing.T, method, address, bearer, body string) *http.Response {
	t.Helper()
	request, _ := http.NewRequest(method, address, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// Operations, tokens and the pool go on after a restart.
func TestOperationsOutliveARestart(t *testing.T) {
	first, g := newTestPool(t, 1, nil)
	first.clock.start, first.statePath = time.Now(), filepath.Join(t.TempDir(), "state")
	base, bearer := door(t, first)
	answer := askARM(t, "PUT", base+g.conf.AKS.id()+"?api-version=2026-02-01", bearer, pooled(t, first, base, bearer, 3))
	if answer.StatusCode != 201 {
		t.Fatal(answer.Status)
	}
	told, _ := url.Parse(answer.Header.Get("Azure-AsyncOperation"))
	second, err := openCloud(first.conf, 1, 1, first.statePath)
	if err != nil {
		t.Fatal(err)
	}
	base, _ = door(t, second)
	status := askARM(t, "GET", base+told.RequestURI(), bearer, "")
	var says struct{ Status string }
	if json.NewDecoder(status.Body).Decode(&says); status.StatusCode != 200 || says.Status != inProgress {
		t.Errorf("%s, %s", status.Status, says.Status)
	}
	second.advance(time.Now().Add(time.Hour).UnixMilli())
	if p := second.group("g").AKS; p.State != succeeded || p.Count != 3 {
		t.Errorf("%s, count %d", p.State, p.Count)
	}
	if altered := askARM(t, "GET", base+strings.Replace(told.RequestURI(), "2017-03-31", "2026-02-01", 1), bearer, ""); altered.StatusCode != 400 {
		t.Errorf("an altered URL: %s", altered.Status)
	}
}

// pooled is the body of a PUT that asks for another count.
func pooled(t *testing.T, k *cloud, base, bearer string, count int) string {
	t.Helper()
	var pool struct {
		Properties tree `json:"properties"`
	}
	answer := askARM(t, "GET", base+k.groups[0].conf.AKS.id()+"?api-version=2026-02-01", bearer, "")
	if err := json.NewDecoder(answer.Body).Decode(&pool); err != nil {
		t.Fatal(err)
	}
	pool.Properties["count"] = count
	text, _ := json.Marshal(map[string]any{"properties": pool.Properties})
	return string(text)
}

// What is asked of pools in random order, with random faults, breaks no law of the cloud, and whatever is over is over.
func TestRandomOperationsKeepTheLaws(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		properties := []tree{nil, {"scaleDownMode": "Deallocate"}, {"type": "VirtualMachines"}}[seed%3]
		k, g := newTestPool(t, rng.IntN(4), properties)
		*g.conf.StandbyMax = 50
		for second := 0; second < 3000 && !t.Failed(); second += rng.IntN(40) {
			k.advance(at(second))
			checkPool(t, k, g)
			operate(k, g, rng, second)
			check(t, k)
		}
		k.faults.remove(0)
		k.advance(at(10000))
		if k.advance(at(20000)); g.AKS.current() != nil {
			t.Errorf("%s never ends", g.AKS.current().Kind)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkPool(t *testing.T, k *cloud, g *group) {
	t.Helper()
	running, lastKind := 0, ""
	for _, o := range g.AKS.Operations {
		if o.Status == inProgress {
			running++
		}
		lastKind = o.Kind
	}
	if running > 1 {
		t.Errorf("%d operations at once", running)
	}
	if g.AKS.State == succeeded && running == 0 && lastKind == "put" && g.AKS.Count != len(g.live()) {
		t.Errorf("succeeded with count %d and %d machines", g.AKS.Count, len(g.live()))
	}
}

// operate asks for one thing, as the handlers would let it.
func operate(k *cloud, g *group, rng *rand.Rand, second int) {
	o, now := g.AKS.current(), at(second)
	switch {
	case rng.IntN(5) == 0:
		struck := []string{"stock-out", "quota", "partial", "spot-loss", "stuck-operation", "partial-delete"}[rng.IntN(6)]
		k.faults.add(fault{Fault: struck, Group: "g", ForS: 100, Value: 1.0, Zone: []string{"", "2"}[rng.IntN(2)]}, k.nowS(now))
	case o != nil && o.Kind != "abort" && rng.IntN(4) == 0:
		k.abort(g, o, now)
	case o != nil && rng.IntN(6) == 0:
		k.preempt(g, o, "later", []any{nil, "etag"}[rng.IntN(2)], now)
		fallthrough
	case o == nil && rng.IntN(3) > 0:
		o = k.begin(g, "put", "Scaling", now)
		k.scale(g, o, rng.IntN(12), now)
	case o == nil && len(g.Machines) > 0:
		o = k.begin(g, "deleteMachines", "Updating", now)
		o.Stuck = false
		k.deleteMachines(g, o, []string{g.Machines[rng.IntN(len(g.Machines))].ID, fmt.Sprint("nobody", second)}, now)
	}
}

// The nodes of deallocated machines stay, not ready and tainted as Azure's cloud controller does, until they wake.
func TestNodesOfDeallocatedMachines(t *testing.T) {
	stage := fixed(5 * time.Second)
	w := newWorldOf(t, &config{Azure: &azureConfig{}, Groups: []*groupConfig{{Name: "g", Max: 5, Initial: 1, Zones: []string{"1", "3"},
		Stages: stagesConfig{Provision: stage, Wake: stage, Stop: stage}, AKS: &aksConfig{Properties: tree{"scaleDownMode": "Deallocate",
			"scaleSetPriority": "Spot"}}}}}, 61)
	g := w.cloud.group("g")
	name := g.Machines[0].ID
	resize := func(count int) {
		w.cloud.mu.Lock()
		defer w.cloud.mu.Unlock()
		now := time.Now().UnixMilli()
		w.cloud.scale(g, w.cloud.begin(g, "put", "Scaling", now), count, now)
	}
	isShut := func() bool {
		return strings.Contains(fmt.Sprint(w.node(name).Spec.Taints), "cloudprovider.kubernetes.io/shutdown")
	}
	w.until("a ready node", func() bool { return w.node(name) != nil && ready(w.node(name)) })
	node := w.node(name)
	for key, value := range map[string]string{"kubernetes.azure.com/agentpool": "g", "topology.kubernetes.io/zone": "westeurope-3",
		"kubernetes.azure.com/scalesetpriority": "spot", "node.kubernetes.io/instance-type": "Standard_NC24ads_A100_v4"} {
		if node.Labels[key] != value {
			t.Errorf("%s: %s, wanted %s", key, node.Labels[key], value)
		}
	}
	if isShut() || node.Spec.ProviderID != g.Machines[0].ProviderID || !strings.Contains(fmt.Sprint(node.Spec.Taints), "spot") {
		t.Errorf("%s, %v", node.Spec.ProviderID, node.Spec.Taints)
	}
	resize(0)
	w.until("a stopped node", func() bool { return !ready(w.node(name)) && isShut() })
	resize(1)
	w.until("a node that is back", func() bool { return ready(w.node(name)) && !isShut() })
	w.cloud.mu.Lock()
	w.cloud.faults.add(fault{Fault: "spot-loss", Group: "g"}, w.cloud.nowS(time.Now().UnixMilli()))
	w.cloud.mu.Unlock()
	w.until("a notice", func() bool {
		events, err := w.client.CoreV1().Events("").List(w.fleet.ctx, meta.ListOptions{})
		return err == nil && len(events.Items) == 1 && events.Items[0].Reason == "PreemptScheduled"
	})
	w.until("the node to go", func() bool { return w.node(name) == nil })
}
