/*
 * The client against a real API server. Run beside a rig (tests/rig/with_rig.sh); KUBECONFIG names it, RIG_DIR is
 * where it lives, kubectl in PATH speaks to it as its admin. Without KUBECONFIG: exit code 77.
 */
#include "controller/cluster/event.h"
#include "controller/cluster/lease.h"
#include "controller/cluster/verbs.h"
#include "controller/cluster/watch.h"
#include "tests/live/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct record_spec bare_record = { "", 1, NULL, 0 };

/* What a watch told, by name. */
struct told {
	struct {
		char name[64];
		struct object_uid uid;
	} objects[256];
	size_t count;
	int seen, gone, synced, doubled;
	bool is_stopped;
};

static bool on_object(void *user, const void *record, const struct watch_seen *seen)
{
	struct told *t = user;

	(void)record;
	t->seen++;
	for (size_t i = 0; i < t->count; i++)
		if (t->objects[i].uid.high == seen->uid.high && t->objects[i].uid.low == seen->uid.low)
			return true;
	if (t->count == 256)
		fail("more objects than expected");
	t->objects[t->count].uid = seen->uid;
	snprintf(t->objects[t->count++].name, 64, "%s", seen->name);
	return true;
}

static void on_gone(void *user, struct object_uid uid, millis arrived)
{
	struct told *t = user;

	(void)arrived;
	t->gone++;
	for (size_t i = 0; i < t->count; i++)
		if (t->objects[i].uid.high == uid.high && t->objects[i].uid.low == uid.low) {
			t->objects[i] = t->objects[--t->count];
			return;
		}
	t->doubled++;
}

static void on_synced(void *user)
{
	((struct told *)user)->synced++;
}

static void on_stopped(void *user)
{
	((struct told *)user)->is_stopped = true;
}

static const char *wanted_name;
static bool has_name(void *user)
{
	const struct told *t = user;

	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->objects[i].name, wanted_name))
			return true;
	return false;
}

static bool lacks_name(void *user)
{
	return !has_name(user);
}

static int wanted_syncs;
static bool has_synced(void *user)
{
	return ((struct told *)user)->synced >= wanted_syncs;
}

static void wait_name(struct told *t, const char *name, bool is_there)
{
	wanted_name = name;
	until(is_there ? has_name : lacks_name, t, 60 * SECOND);
}

static struct watch *watch_maps(struct told *t, enum watch_way way, const char *selector, int page)
{
	*t = (struct told){ 0 };
	return watch_start(api, &(struct watch_spec){ .name = "configmaps",
						      .path = "/api/v1/namespaces/live/configmaps",
						      .label_selector = selector,
						      .object = &bare_record,
						      .way = way,
						      .page = page,
						      .on_object = on_object,
						      .on_gone = on_gone,
						      .on_synced = on_synced,
						      .on_stopped = on_stopped,
						      .user = t });
}

static void stop_watch(struct watch *w, struct told *t)
{
	watch_stop(w);
	until(is_true, &t->is_stopped, 10 * SECOND);
}

static void lists_and_watches(void)
{
	static const enum watch_way ways[] = { WATCH_STREAMED, WATCH_PAGED, WATCH_WHOLE };
	static struct told t;

	step("lists by each way, by pages of 3, and follows");
	for (int i = 0; i < 10; i++)
		shell("kubectl -n live create configmap before-%d >/dev/null && kubectl -n live label configmap "
		      "before-%d "
		      "set=a >/dev/null",
		      i, i);
	for (size_t i = 0; i < 3; i++) {
		struct watch *w = watch_maps(&t, ways[i], "set=a", 3);
		wanted_syncs = 1;
		until(has_synced, &t, 20 * SECOND);
		if (t.count != 10)
			fail("way %zu: %zu objects, not 10", i, t.count);
		shell("kubectl -n live create configmap later >/dev/null; kubectl -n live label configmap later set=a "
		      ">/dev/null");
		wait_name(&t, "later", true);
		shell("kubectl -n live delete configmap later >/dev/null");
		wait_name(&t, "later", false);
		if (t.doubled || t.synced != 1)
			fail("way %zu: %d told gone twice, %d syncs", i, t.doubled, t.synced);
		stop_watch(w, &t);
	}
}

static void survives_a_restart(void)
{
	static struct told t;

	step("watches on through a restart of the API server");
	struct watch *w = watch_maps(&t, WATCH_STREAMED, "set=a", 0);
	wanted_syncs = 1;
	until(has_synced, &t, 20 * SECOND);
	shell("\"$RIG_SH\" restart-apiserver >/dev/null");
	shell("kubectl -n live create configmap after-restart >/dev/null; kubectl -n live label configmap "
	      "after-restart "
	      "set=a >/dev/null");
	wait_name(&t, "after-restart", true);
	const struct watch_report *r = watch_report(w);
	printf("   lists %lld, reconnects %lld, failures %lld, relists %lld\n", (long long)r->lists,
	       (long long)r->reconnects, (long long)r->failures, (long long)r->relists);
	if (t.count != 11 || t.doubled)
		fail("%zu objects, %d doubled", t.count, t.doubled);

	step("a version compacted while the server was away: 410, a new list, what is gone told once");
	shell("kubectl -n live delete configmap before-0 after-restart >/dev/null");
	wait_name(&t, "before-0", false);
	shell("for i in 1 2 3 4 5; do kubectl -n live create configmap other-$i >/dev/null; done; \"$RIG_SH\" compact "
	      ">/dev/null");
	wait_name(&t, "after-restart", false);
	shell("kubectl -n live create configmap last >/dev/null; kubectl -n live label configmap last set=a "
	      ">/dev/null");
	wait_name(&t, "last", true);
	printf("   lists %lld, reconnects %lld, failures %lld, relists %lld\n", (long long)r->lists,
	       (long long)r->reconnects, (long long)r->failures, (long long)r->relists);
	if (t.count != 10 || t.doubled || !r->relists)
		fail("%zu objects, %d doubled, %lld relists", t.count, t.doubled, (long long)r->relists);
	stop_watch(w, &t);
}

static void old_version_is_expired(void)
{
	struct api_call c = {
		.path = "/api/v1/namespaces/live/configmaps?watch=true&resourceVersion=1&timeoutSeconds=2",
		.is_single = true
	};

	step("a watch from a version long gone");
	run_call(api, &c);
	printf("   status %ld, %s %.100s\n", c.status, c.error.message, answer);
	if (!c.is_expired && !strstr(answer, "410"))
		fail("neither HTTP 410 nor an ERROR event of 410");
}

static void refusals(void)
{
	static struct told t;
	struct error e;

	step("what RBAC denies is told in the server's words");
	struct kubeconfig nobody = { 0 };
	if (!kubeconfig_read(&(struct kubeconfig_wish){ .path = getenv("NOBODY") }, &nobody, &e))
		fail("%s", e.message);
	struct api *other =
		api_open(&(struct api_setup){ .loop = loop, .http = http, .clock = &wall, .access = &nobody });
	struct api_call c = { .path = "/api/v1/nodes" };
	run_call(other, &c);
	printf("   %s\n", c.error.message);
	if (c.error.kind != ERROR_AUTH || c.status != 403 || !strstr(c.error.message, "cannot list resource"))
		fail("status %ld", c.status);
	struct watch *w = watch_start(other, &(struct watch_spec){ .name = "nodes",
								   .path = "/api/v1/nodes",
								   .object = &bare_record,
								   .on_object = on_object,
								   .on_gone = on_gone,
								   .on_stopped = on_stopped,
								   .user = &t });
	while (watch_report(w)->state != WATCH_REFUSED)
		loop_once(loop);
	stop_watch(w, &t);
	api_close(other);
	kubeconfig_release(&nobody);

	step("a resource that does not exist is absent, and in sync with nothing");
	t = (struct told){ 0 };
	w = watch_start(api, &(struct watch_spec){ .name = "unicorns",
						   .path = "/apis/preheat.test/v1/unicorns",
						   .object = &bare_record,
						   .on_object = on_object,
						   .on_gone = on_gone,
						   .on_synced = on_synced,
						   .on_stopped = on_stopped,
						   .user = &t });
	while (!watch_is_synced(w))
		loop_once(loop);
	if (watch_report(w)->state != WATCH_ABSENT || t.synced != 1)
		fail("state %s", watch_state_name(watch_report(w)->state));
	stop_watch(w, &t);
}

static void verb_over(void *c)
{
	(void)c;
	is_over = true;
}

static void node_done(struct node_change *c)
{
	verb_over(c);
}

static void run_node(struct node_change *c)
{
	is_over = false;
	c->done = node_done;
	node_change_start(api, c);
	until(is_true, &is_over, 20 * SECOND);
	if (c->error.kind != ERROR_NONE)
		fail("%s", c->error.message);
}

static void nodes(void)
{
	static const struct node_taint ours[] = { { "preheat.dev/draining", "yes", "NoSchedule" } };
	static const struct verb_pair marks[] = { { "preheat.dev/draining", "1" } },
				      none[] = { { "preheat.dev/draining", NULL } };
	struct node_change c = { .node = "live-1",
				 .cordon = CORDON_ON,
				 .add = ours,
				 .add_count = 1,
				 .annotations = marks,
				 .annotation_count = 1 };

	step("cordon, taint and annotation in one write; others' taints stay");
	shell("kubectl create -f - >/dev/null <<'END'\n{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":"
	      "\"live-1\"},\"spec\":{\"taints\":[{\"key\":\"x\",\"value\":\"y\",\"effect\":\"NoSchedule\"}]}}\nEND");
	run_node(&c);
	if (!c.is_changed)
		fail("nothing was written");
	run_node(&c);
	if (c.is_changed)
		fail("written again without need");
	shell("kubectl get node live-1 -o jsonpath='{.spec.unschedulable} {.spec.taints[*].key} "
	      "{.metadata.annotations.preheat\\.dev/draining}' | tee /dev/stderr | grep -q '^true "
	      ".*x.*preheat.dev/draining.* "
	      "1$' && echo >&2");
	struct node_change back = { .node = "live-1",
				    .cordon = CORDON_OFF,
				    .remove = ours,
				    .remove_count = 1,
				    .annotations = none,
				    .annotation_count = 1 };
	run_node(&back);
	shell("kubectl get node live-1 -o jsonpath='{.spec.unschedulable}|{.spec.taints[*].key}|"
	      "{.metadata.annotations.preheat\\.dev/draining}' | grep -vq draining");
}

static void eviction_done(struct eviction *v)
{
	verb_over(v);
}

static void run_eviction(struct eviction *v, enum eviction_result want)
{
	is_over = false;
	v->done = eviction_done;
	eviction_start(api, v);
	until(is_true, &is_over, 20 * SECOND);
	printf("   %s: %s %s (again after %lld ms)\n", v->pod, eviction_result_name(v->result), v->error.message,
	       (long long)v->retry_after);
	if (v->result != want)
		fail("not %s", eviction_result_name(want));
}

#define POD(name, labels)                                                                                 \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"labels\":{" labels \
	"}},\"spec\":{\"nodeName\":\"live-1\",\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}}\n"
#define BUDGET(name)                                                                                    \
	"{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"" name \
	"\"},\"spec\":{\"minAvailable\":1,\"selector\":{\"matchLabels\":{\"app\":\"kept\"}}}}\n"

static void running(const char *pod)
{
	shell("kubectl -n live patch pod %s --subresource=status --type=merge -p '{\"status\":{\"phase\":\"Running\","
	      "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}' >/dev/null",
	      pod);
}

static void evictions(void)
{
	struct eviction v = { .name_space = "live", .pod = "kept", .grace_seconds = -1 };

	step("evictions");
	shell("kubectl -n live create -f - >/dev/null <<'END'\n" POD("kept", "\"app\":\"kept\"") "END");
	shell("kubectl -n live create -f - >/dev/null <<'END'\n" POD("free", "\"app\":\"free\"") "END");
	shell("kubectl -n live create -f - >/dev/null <<'END'\n" BUDGET("one") "END");
	running("kept");
	running("free");
	shell("for i in $(seq 100); do [ \"$(kubectl -n live get pdb one -o jsonpath='{.status.expectedPods}')\" = 1 ] "
	      "&& "
	      "exit 0; sleep 0.2; done; exit 1");
	run_eviction(&v, EVICTION_BUDGET);
	v.pod = "free";
	v.uid = "00000000-0000-0000-0000-000000000000";
	run_eviction(&v, EVICTION_GONE);
	v.uid = NULL;
	v.version = 1; /* of long ago */
	run_eviction(&v, EVICTION_CHANGED);
	v.version = 0;
	run_eviction(&v, EVICTION_DONE);
	v.pod = "never-was";
	run_eviction(&v, EVICTION_GONE);
	shell("kubectl -n live create -f - >/dev/null <<'END'\n" BUDGET("two") "END");
	v.pod = "kept";
	run_eviction(&v, EVICTION_MISCONFIGURED);

	step("the gate: what writes is not sent");
	api_set_gate(api, API_GATE_SHUT, "dry run");
	run_eviction(&v, EVICTION_FAILED);
	if (!strstr(v.error.message, "not sent: dry run"))
		fail("%s", v.error.message);
	api_set_gate(api, API_GATE_OPEN, NULL);
}

static void scale_done(struct scale_call *c)
{
	verb_over(c);
}

static struct error run_scale(struct scale_call *c)
{
	is_over = false;
	c->done = scale_done;
	scale_start(api, c);
	until(is_true, &is_over, 20 * SECOND);
	printf("   %s %s/%s: was %lld, is %lld, runs %lld %s\n", c->kind, c->name_space, c->name, (long long)c->before,
	       (long long)c->wanted, (long long)c->running, c->error.message);
	return c->error;
}

/* As many pods of the Deployment as there are get ready, but for one; its controllers tell how many, where there are
 * any.
 */
static void make_ready(const char *count, const char *last)
{
	setenv("COUNT", count, 1);
	setenv("LAST", last, 1);
	shell("set -e; at='-o jsonpath={.metadata.resourceVersion}'; before=$(kubectl -n live get deployment web $at); "
	      "if [ -e $RIG_DIR/bin/kube-controller-manager ]; then "
	      "  kubectl -n live wait deployment web --for=jsonpath='{.status.replicas}'=3 --timeout=30s >/dev/null; "
	      "  is=True; for pod in $(kubectl -n live get pods -l app=web -o name | sort -r); do "
	      "    [ $pod != \"$(kubectl -n live get pods -l app=web -o name | sort | head -1)\" ] || is=$LAST; "
	      "    kubectl -n live patch $pod --subresource=status -p "
	      "'{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"'$is'\"}]}}' >/dev/null; "
	      "  done; "
	      "else kubectl -n live patch deployment web --subresource=status -p "
	      "'{\"status\":{\"replicas\":3,\"readyReplicas\":'$COUNT'}}' >/dev/null; fi; "
	      "kubectl -n live wait deployment web --for=jsonpath='{.status.readyReplicas}'=$COUNT --timeout=30s "
	      ">/dev/null; "
	      "test $before != $(kubectl -n live get deployment web $at)");
}

/* Who gets ready changes the status, and with it the version that a write names. */
static void scales_down(struct scale_call *c)
{
	c->replicas = 2;
	make_ready("3", "True");
	if (run_scale(c).kind != ERROR_NONE || !c->is_overtaken || c->wanted != 3)
		fail("three are ready, and two were set: %s", c->error.message);
	make_ready("2", "False");
	if (run_scale(c).kind != ERROR_NONE || c->is_overtaken || c->wanted != 2)
		fail("two are ready, and two were not set: %s", c->error.message);
	c->replicas = 3;
}

static void scales(void)
{
	struct scale_call c = { .api_version = "apps/v1",
				.kind = "Deployment",
				.name_space = "live",
				.name = "web",
				.is_write = true,
				.replicas = 3 };

	step("the scale of a Deployment, and of what has none");
	shell("kubectl -n live create deployment web --image=x --replicas=1 >/dev/null");
	run_scale(&c);
	if (c.error.kind != ERROR_NONE || c.before != 1 || c.wanted != 3)
		fail("%s", c.error.message);
	shell("test \"$(kubectl -n live get deployment web -o jsonpath='{.spec.replicas}')\" = 3");
	scales_down(&c);
	c.name = "missing";
	if (run_scale(&c).kind != ERROR_NOT_FOUND)
		fail("%s", c.error.message);
	c.kind = "Deploiment";
	if (run_scale(&c).kind != ERROR_NOT_FOUND)
		fail("%s", c.error.message);
	c.api_version = "leaderworkerset.x-k8s.io/v1";
	c.kind = "LeaderWorkerSet";
	if (run_scale(&c).kind != ERROR_NOT_FOUND)
		fail("%s", c.error.message);
	c.api_version = "v1";
	c.kind = "ConfigMap";
	if (run_scale(&c).kind != ERROR_INVALID)
		fail("%s", c.error.message);
}

static bool events_sent(void *user)
{
	return event_counts(user).sent >= 2;
}

static void tells_events(void)
{
	struct events *v = events_open(
		&(struct events_setup){ .api = api, .controller = "preheat.dev/controller", .instance = "live-test" });
	struct event t = { .api_version = "apps/v1",
			   .kind = "Deployment",
			   .name_space = "live",
			   .name = "web",
			   .reason = "TriggeredScaleUp",
			   .action = "ScaleUp",
			   .note = "from 1 to 3: demand 2.7" };
	struct event n = { .api_version = "v1",
			   .kind = "Node",
			   .name = "live-1",
			   .is_warning = true,
			   .reason = "NodeStuck",
			   .action = "Replace",
			   .note = "no GPU after 10m" };

	step("events, deduplicated");
	for (int i = 0; i < 5; i++)
		events_tell(v, &t);
	events_tell(v, &n);
	until(events_sent, v, 20 * SECOND);
	struct event_counts counts = event_counts(v);
	if (counts.told != 6 || counts.repeated != 4 || counts.failed)
		fail("told %lld, repeated %lld, failed %lld", (long long)counts.told, (long long)counts.repeated,
		     (long long)counts.failed);
	events_close(v);
	shell("test \"$(kubectl -n live get events.events.k8s.io -o "
	      "jsonpath='{.items[?(@.reason==\"TriggeredScaleUp\")].note}')\" = "
	      "'from 1 to 3: demand 2.7'");
	shell("kubectl -n default get events.events.k8s.io -o jsonpath='{.items[*].reason}' | grep -q NodeStuck");
}

struct candidate {
	struct lease *lease;
	int won, lost;
	bool is_closed;
};

static void on_won(void *user)
{
	((struct candidate *)user)->won++;
}

static void on_lost(void *user, const char *why)
{
	printf("   lost: %s\n", why);
	((struct candidate *)user)->lost++;
}

static void lease_gone(void *user)
{
	((struct candidate *)user)->is_closed = true;
}

static bool has_won(void *user)
{
	return ((struct candidate *)user)->won > 0;
}

static void leases(void)
{
	struct candidate a = { 0 }, b = { 0 };
	struct error e;
	struct lease_setup s = { .api = api,
				 .name_space = "live",
				 .name = "preheat",
				 .identity = "a",
				 .address = "10.0.0.1:8080",
				 .duration = 2 * SECOND,
				 .renew_deadline = 1500,
				 .retry = 200,
				 .on_won = on_won,
				 .on_lost = on_lost,
				 .user = &a };

	step("a lease: one holds it, its address is known, the next takes over");
	a.lease = lease_open(&s, &e);
	until(has_won, &a, 10 * SECOND);
	s.identity = "b";
	s.address = "10.0.0.2:8080";
	s.user = &b;
	b.lease = lease_open(&s, &e);
	for (int i = 0; i < 40; i++)
		loop_once(loop);
	while (!*lease_holder_address(b.lease))
		loop_once(loop);
	if (strcmp(lease_holder(b.lease), "a") || strcmp(lease_holder_address(b.lease), "10.0.0.1:8080") || b.won)
		fail("holder %s at %s", lease_holder(b.lease), lease_holder_address(b.lease));
	lease_close(a.lease, lease_gone, &a);
	until(is_true, &a.is_closed, 10 * SECOND);
	if (a.lost != 1)
		fail("lost %d times", a.lost);
	until(has_won, &b, 3 * SECOND);
	if (lease_transitions(b.lease) != 1)
		fail("%lld transitions", (long long)lease_transitions(b.lease));
	shell("test \"$(kubectl -n live get lease preheat -o jsonpath='{.spec.holderIdentity}')\" = b");
	lease_close(b.lease, lease_gone, &b);
	until(is_true, &b.is_closed, 10 * SECOND);
	shell("test \"$(kubectl -n live get lease preheat -o "
	      "jsonpath='{.spec.holderIdentity}/{.spec.leaseDurationSeconds}')\" = /1");
}

int main(void)
{
	struct error e;

	if (!getenv("KUBECONFIG")) {
		fputs("skipped: no KUBECONFIG; run beside tests/rig/with_rig.sh\n", stderr);
		return 77;
	}
	loop = loop_open();
	http = http_open(loop, "preheat/live-test", &e);
	wall = clock_open();
	if (!http ||
	    !kubeconfig_read(&(struct kubeconfig_wish){ .environment = getenv("KUBECONFIG") }, &access_config, &e)) {
		fprintf(stderr, "%s\n", e.message);
		return 3;
	}
	api = api_open(
		&(struct api_setup){ .loop = loop, .http = http, .clock = &wall, .access = &access_config, .seed = 7 });
	lists_and_watches();
	refusals();
	nodes();
	evictions();
	scales();
	tells_events();
	leases();
	survives_a_restart();
	old_version_is_expired();
	while (api_active(api))
		loop_once(loop);
	api_close(api);
	http_close(http);
	kubeconfig_release(&access_config);
	loop_close(loop);
	puts("all of it holds");
	return 0;
}
