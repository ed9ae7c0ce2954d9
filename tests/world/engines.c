#include "tests/world/engines.h"

#include "base/exact.h"
#include "tests/world/conditions.h"
#include "tests/world/laws.h"
#include "tests/world/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const double TOKENS_A_SECOND = 32; /* of a sequence, which decodes for 95% of its time */
static const double edges[WAIT_EDGES] = { 0.3, 0.5, 1, 2, 5, 10, 20, 40, 60, 120, 480, 1920 };

static void (*engine_called)(const char *path);

static void begin_request(struct model_server *e, struct world_app *a, double waited_s)
{
	int edge = 0;

	while (edge < WAIT_EDGES && waited_s > edges[edge])
		edge++;
	e->waits[edge]++;
	e->waited_s += waited_s;
	e->started++;
	e->ends[e->running++] = wire_now() + (millis)(a->service_s * SECOND * (0.5 + random_uniform(&a->random)));
}

static void engine_second(struct model_server *e, struct world_app *a)
{
	if (!a->counts_at_ends && a->lie != LIE_HUNG)
		e->worked_s += (double)(e->running * (wire_now() - e->worked_at)) / SECOND;
	e->worked_at = wire_now();
	if (a->lie == LIE_HUNG)
		return;
	if (e->moved && wire_now() >= e->moved) {
		e->sleeps = e->moves_to;
		e->moved = 0;
		e->has_room = e->has_weights = false;
	}
	for (int i = 0; i < e->running; i++)
		if (e->ends[i] <= wire_now()) {
			e->ends[i--] = e->ends[--e->running];
			e->completed++;
			e->worked_s += a->counts_at_ends ? a->service_s : 0;
		}
	while (e->waiting && e->running < a->slots) {
		begin_request(e, a, (double)(wire_now() - e->arrived[0]) / SECOND);
		memmove(e->arrived, e->arrived + 1, (size_t)--e->waiting * sizeof *e->arrived);
	}
}

/* Of the app in the pod; NULL: there is none. */
static struct model_server *engine_of(const struct object *p, const struct world_app *a)
{
	const struct world_app *own = pod_app(p);

	return own && own == a ? &pod_life(p)->engine : own && own == a->host ? &pod_life(p)->beside : NULL;
}

static bool is_in_slice(const struct object *p, const struct world_app *a)
{
	char name[80];
	bool is_in = false;

	snprintf(name, sizeof name, "%s-preheat", a->name);
	const struct object *slice = apiserver_find(KIND_SLICE, "llm", name);
	const struct value *ends = slice ? value_at(slice->value, "endpoints") : NULL;
	for (const struct value *e = ends ? ends->first : NULL; e; e = e->next)
		is_in |= !strcmp(value_at(e, "addresses")->first->text, value_text(p->value, "status>podIP"));
	return is_in;
}

/* Of a pod as routes see it: by its label, or by slices. A request that meets a sleeper would be lost. */
static bool is_routed(const struct object *p, const struct world_app *a)
{
	const struct model_server *e = engine_of(p, a);
	bool by_slice = a->host || a->is_host;

	if (!pod_life(p)->is_ready || pod_is_going(p) ||
	    !(by_slice ? is_in_slice(p, a) : value_is(p->value, "metadata>labels>preheat.dev/engine-state", "awake")))
		return false;
	if (e->sleeps || e->moved)
		laws_break("no_sleeper_in_routing", "%s of %s is routed to, and sleeps or moves", p->name, a->name);
	return true;
}

static bool is_ready_at(const struct object *p, const struct world_app *a, int level)
{
	const struct model_server *e = engine_of(p, a);

	if (!e || (a->is_shared && level == 0 && !is_routed(p, a)))
		return false;
	return pod_life(p)->is_engine && pod_life(p)->is_ready && !pod_is_going(p) && e->sleeps == level;
}

static struct world_app *app_named(const char *name)
{
	struct world_app *a = NULL;

	for (size_t i = 0; (a = world_app_at(i)); i++)
		if (!strcmp(a->name, name))
			break;
	return a;
}

void engines_sleep(const char *app, int64_t count, int level)
{
	struct world_app *a = app_named(app);

	for (const struct object *p = apiserver_first(KIND_POD); p && count > 0; p = p->next) {
		struct model_server *e = engine_of(p, a);
		if (!e || !pod_life(p)->is_ready || pod_is_going(p) || !level == !e->sleeps)
			continue;
		count--;
		e->sleeps = level;
		a->waiting += e->waiting + e->running;
		e->waiting = e->running = 0;
	}
}

/* Its container starts anew: clients come again, counters begin at 0. */
static void crash(struct object *pod, struct world_app *a)
{
	static const millis LOADS = 40 * SECOND;
	struct pod_life *life = pod_life(pod);
	struct value *status = value_at(pod->value, "status");
	char at[32];

	a->waiting += life->engine.waiting + life->engine.running;
	life->beside = (struct model_server){ 0 };
	life->engine = (struct model_server){ 0 };
	life->is_ready = false;
	life->loaded = wire_now() + LOADS;
	apiserver_time(wire_host_wall(APISERVER, wire_now()), at);
	value_set(status, "containerStatuses",
		  value_of("[{'name':'server','ready':false,'state':{'running':{'startedAt':'%s'}}}]", at));
	condition_set(status, "Ready", false, "ContainersNotReady");
	apiserver_changed(pod);
}

void engines_crash(const char *app, int64_t count)
{
	for (struct object *p = apiserver_first(KIND_POD); p && count > 0; p = p->next)
		if (pod_app(p) && !strcmp(pod_app(p)->name, app) && pod_life(p)->engine.sleeps) {
			crash(p, pod_app(p));
			count--;
		}
}

void engines_label(const char *app, int level, const char *state)
{
	const struct world_app *a = app_named(app);
	char own[160] = "metadata>labels>preheat.dev/engine-state";

	if (a->host || a->is_host)
		snprintf(own, sizeof own, "metadata>labels>engine-state.preheat.dev/%s", app);
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (is_ready_at(p, a, level) || (engine_of(p, a) && (a->host || a->is_host))) {
			value_set(p->value, own, NULL);
			if (*state)
				value_set_text(p->value, own, state);
			apiserver_changed(p);
		}
}

int64_t engines_count(const char *app, int level)
{
	const struct world_app *a = app_named(app);
	int64_t count = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		count += is_ready_at(p, a, level);
	return count;
}

static struct model_server *least_busy(const struct world_app *a)
{
	struct model_server *best = NULL;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		struct model_server *e = engine_of(p, a);
		if (e && is_ready_at(p, a, 0) && e->waiting < SERVER_WAITING &&
		    (!best || e->running + e->waiting < best->running + best->waiting))
			best = e;
	}
	return best;
}

static void dispatch(struct world_app *a)
{
	struct model_server *e;

	while (a->waiting && (e = least_busy(a))) {
		a->waiting--;
		e->arrived[e->waiting++] = wire_now();
		engine_second(e, a);
	}
}

static void traffic_second(struct world_app *a)
{
	double left = a->rate;
	struct model_server *e;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if ((e = engine_of(p, a))) {
			engine_second(e, a);
			if (a->host || a->is_host)
				is_routed(p, a); /* a law, also while nobody asks */
			if (pod_is_going(p)) {
				a->waiting += e->waiting;
				e->waiting = 0;
			}
		}
	/* a Poisson number, in parts small enough for the product of uniforms */
	while (left > 0) {
		double part = left > 10 ? 10 : left, product = 1, limit = exact_exp(-part);
		for (product = random_uniform(&a->random); product > limit; product *= random_uniform(&a->random)) {
			a->waiting++;
			a->requests++;
		}
		left -= part;
	}
	dispatch(a);
}

/* What was at work or waiting at every moment of the last while. */
static void look_at_load(struct world_app *a)
{
	int64_t load = a->waiting;
	const struct model_server *e;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if ((e = engine_of(p, a)))
			load += e->running + e->waiting;
	a->loads[wire_now() / SECOND % LOAD_SECONDS] = load;
}

int64_t engines_least_load(const struct world_app *a)
{
	int64_t least = a->loads[0];

	for (size_t i = 1; i < LOAD_SECONDS; i++)
		least = a->loads[i] < least ? a->loads[i] : least;
	return least;
}

/* What a page says in place of its true numbers. */
static void write_lies(enum server_lie lie, struct buf *out)
{
	if (lie == LIE_ENDLESS) /* more than anybody would read */
		for (int i = 0; i < 300000; i++)
			buf_printf(out, "vllm:some_metric{number=\"%d\"} 1\n", i);
	else
		buf_printf(out,
			   "vllm:num_requests_running{engine=\"0\"} %s\nvllm:num_requests_waiting{engine=\"0\"} %s\n"
			   "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\"} %s\n"
			   "vllm:generation_tokens_total{engine=\"0\"} %s\n",
			   lie == LIE_NAN ? "NaN" : "-3", lie == LIE_NAN ? "+Inf" : "-1", lie == LIE_NAN ? "NaN" : "-7",
			   lie == LIE_NAN ? "NaN" : "-1");
}

static void write_page(const struct model_server *e, struct buf *out)
{
	static const char labels[] = "engine=\"0\",model_name=\"m\"";
	static const char *const states[] = { "awake", "weights_offloaded", "discard_all" };
	int64_t sum = 0, tokens = (int64_t)(e->worked_s * TOKENS_A_SECOND);

	/* The first call that wakes a part of it sets this. */
	for (int i = 0; i < 3; i++)
		buf_printf(out, "vllm:engine_sleep_state{%s,sleep_state=\"%s\"} %d.0\n", labels, states[i],
			   (e->has_room ? 0 : e->sleeps) == i);

	buf_printf(out, "vllm:num_requests_running{%s} %d\n", labels, e->running);
	buf_printf(out, "vllm:num_requests_waiting{%s} %d\n", labels, e->waiting);
	buf_printf(out, "vllm:kv_cache_usage_perc{%s} %.3f\n", labels, e->running / 16.);
	buf_printf(out, "vllm:prompt_tokens_total{%s} %" PRId64 "\n", labels, e->started * 1000);
	buf_printf(out, "vllm:generation_tokens_total{%s} %" PRId64 "\n", labels, tokens);
	buf_printf(out, "vllm:request_success_total{%s,finished_reason=\"stop\"} %" PRId64 "\n", labels, e->completed);
	buf_printf(out, "vllm:time_to_first_token_seconds_count{%s} %" PRId64 "\n", labels, e->started);
	buf_printf(out, "vllm:inter_token_latency_seconds_sum{%s} %.3f\n", labels, (double)tokens * .03);
	buf_printf(out, "vllm:inter_token_latency_seconds_count{%s} %" PRId64 "\n", labels, tokens);
	for (int i = 0; i < WAIT_EDGES; i++) {
		sum += e->waits[i];
		buf_printf(out, "vllm:request_queue_time_seconds_bucket{%s,le=\"%g\"} %" PRId64 "\n", labels, edges[i],
			   sum);
	}
	buf_printf(out, "vllm:request_queue_time_seconds_bucket{%s,le=\"+Inf\"} %" PRId64 "\n", labels, e->started);
	buf_printf(out, "vllm:request_queue_time_seconds_count{%s} %" PRId64 "\n", labels, e->started);
	buf_printf(out, "vllm:request_queue_time_seconds_sum{%s} %.3f\n", labels, e->waited_s);
}

static void write_sglang_page(const struct model_server *e, struct buf *out)
{
	static const char labels[] = "engine_type=\"unified\",model_name=\"m\",tp_rank=\"0\"";

	buf_printf(out, "sglang:num_running_reqs{%s} %d.0\n", labels, e->running);
	buf_printf(out, "sglang:num_queue_reqs{%s} %d.0\n", labels, e->waiting);
	buf_printf(out, "sglang:prompt_tokens_total{%s} %" PRId64 ".0\n", labels, e->started * 1000);
	buf_printf(out, "sglang:generation_tokens_total{%s} %" PRId64 ".0\n", labels,
		   (int64_t)(e->worked_s * TOKENS_A_SECOND));
	buf_printf(out, "sglang:num_requests_total{%s} %" PRId64 ".0\n", labels, e->completed);
	buf_printf(out, "sglang:time_to_first_token_seconds_count{%s} %" PRId64 ".0\n", labels, e->started);
}

/* What a page that can be read says in place of the truth. */
static void distort(const struct world_app *a, const struct pod_life *life, struct model_server *shown)
{
	if (a->lie == LIE_REPLAY && life->page_before.started) {
		*shown = life->page_before;
	} else if (a->lie == LIE_RESET) {
		shown->started = shown->completed = 0;
		shown->worked_s = 0;
	} else if (a->lie == LIE_ZERO_LEVELS) {
		shown->running = shown->waiting = 0;
	} else if (a->lie == LIE_LOW_LEVELS) {
		shown->running = shown->running * a->shows_permille / 1000;
		shown->waiting = shown->waiting * a->shows_permille / 1000;
	} else if (a->lie == LIE_OLD_LEVELS) {
		shown->running = life->page_before.running;
		shown->waiting = life->page_before.waiting;
	}
}

static void answer_page(struct wire_call *c, const struct world_app *a, struct pod_life *life,
			const struct model_server *engine)
{
	struct buf page = { .cap = (size_t)64 << 20 };
	struct model_server shown = *engine;

	distort(a, life, &shown);
	if (a->lie == LIE_NAN || a->lie == LIE_NEGATIVE || a->lie == LIE_ENDLESS)
		write_lies(a->lie, &page);
	else if (a->is_sglang)
		write_sglang_page(&shown, &page);
	else
		write_page(&shown, &page);
	if (a->lie == LIE_NONE)
		life->page_before = *engine;
	wire_answer(c, 200, NULL, page.text);
	buf_release(&page);
}

/* --- engines that are put to sleep and woken --- */

static bool are_on_one_gpu(const struct object *a, const struct object *b)
{
	const struct value *x = value_at(a->value, "spec>resourceClaims"),
			   *y = value_at(b->value, "spec>resourceClaims");

	return !strcmp(pod_node(a), pod_node(b)) && (!x || !y || value_equal(x, y));
}

static void check_beside(const struct object *pod, const char *path, const struct object *p,
			 const struct model_server *e)
{
	bool is_wake = strncmp(path, "/sleep", 6) != 0 && strncmp(path, "/release", 8) != 0;

	if (e->moved)
		laws_break("one_at_a_time", "%s is asked for %s while %s moves", pod->name, path, p->name);
	else if (is_wake && (!e->sleeps || e->has_room) && !pod_app(pod)->are_two_awake)
		laws_break("one_awake", "%s is woken beside %s", pod->name, p->name);
}

/* Nothing else on the GPU is awake, or on its way there or back. */
static void check_gpu(const struct object *pod, const struct world_app *a, const char *path)
{
	if (a->host || a->is_host) {
		check_beside(pod, path, pod, a->host ? &pod_life(pod)->engine : &pod_life(pod)->beside);
		return;
	}
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (p != pod && are_on_one_gpu(p, pod) && pod_app(p) && pod_app(p)->is_shared && pod_life(p)->is_up)
			check_beside(pod, path, p, &pod_life(p)->engine);
}

static void move_engine(struct wire_call *c, struct object *pod, struct world_app *a, int level)
{
	struct model_server *e = engine_of(pod, a);

	if (engine_called)
		engine_called(c->path);
	laws_note("%s: %s: %s", pod->name, a->name, c->path);
	check_gpu(pod, a, c->path);
	if (!level && e->sleeps == 2 && !e->has_weights)
		laws_break("nothing_serves_without_weights", "%s is woken, and was not told to load them", pod->name);
	if (level && (e->running || e->waiting))
		laws_break("nothing_runs_on_sleepers", "%s is put to sleep with %d running and %d waiting", pod->name,
			   e->running, e->waiting);
	if (!level && a->wakes_fail > 0) {
		a->wakes_fail--;
		wire_answer(c, 500, NULL, "{\"error\":\"CUDA out of memory\"}");
		return;
	}
	if (!level && a->wakes_hang > 0) {
		a->wakes_hang--;
		wire_answer(c, 200, NULL, "");
		return;
	}
	e->moves_to = level;
	e->moved = wire_now() + (level ? a->sleep_ms : a->wake_ms);
	wire_answer(c, 200, NULL, "");
}

/* A part of a wake from level 2. */
static void wake_part(struct wire_call *c, struct object *pod, const struct world_app *a)
{
	struct model_server *e = engine_of(pod, a);

	if (engine_called)
		engine_called(c->path);
	laws_note("%s: %s", pod->name, c->path);
	check_gpu(pod, a, c->path);
	if (!strcmp(c->path, "/wake_up?tags=weights"))
		e->has_room = true;
	else if (!strcmp(c->path, "/collective_rpc"))
		e->has_weights = e->has_room;
	wire_answer(c, e->has_room ? 200 : 500, NULL, "");
}

/* Told what is so already its scheduler looks for what is not there, and takes the server with it. */
static void answer_sglang(struct wire_call *c, struct object *pod, struct world_app *a)
{
	struct model_server *e = &pod_life(pod)->engine;
	bool releases = !strcmp(c->path, "/release_memory_occupation");

	if (!releases && strcmp(c->path, "/resume_memory_occupation") != 0) {
		wire_answer(c, !strncmp(c->path, "/v1/", 4) && !e->sleeps ? 200 : 500, NULL,
			    "{\"data\":[{\"id\":\"m\"}]}");
		return;
	}
	if (releases == !!e->sleeps || (releases && (e->running || e->waiting))) {
		laws_note("%s: %s, and crashes", pod->name, c->path);
		crash(pod, a);
		wire_cut(c);
		return;
	}
	move_engine(c, pod, a, releases);
	e->sleeps = e->moves_to; /* its answer comes as it is over */
	e->moved = 0;
}

static void answer_engine(struct wire_call *c, struct object *pod, struct world_app *a)
{
	struct model_server *e = engine_of(pod, a);

	if (a->is_sglang)
		answer_sglang(c, pod, a);
	else if (!strcmp(c->path, "/is_sleeping"))
		wire_answer(c, 200, NULL, e->sleeps ? "{\"is_sleeping\":true}" : "{\"is_sleeping\":false}");
	else if (!strncmp(c->path, "/sleep?level=", 13))
		move_engine(c, pod, a, c->path[13] - '0');
	else if (!strcmp(c->path, "/wake_up") || !strcmp(c->path, "/wake_up?tags=kv_cache"))
		move_engine(c, pod, a, 0);
	else if (!strcmp(c->path, "/wake_up?tags=weights") || !strcmp(c->path, "/collective_rpc") ||
		 !strcmp(c->path, "/reset_prefix_cache"))
		wake_part(c, pod, a);
	else if (!strcmp(c->path, "/v1/models"))
		wire_answer(c, 200, NULL, "{\"object\":\"list\",\"data\":[{\"id\":\"m\"}]}");
	else if (!strcmp(c->path, "/v1/completions") && !e->sleeps)
		wire_answer(c, a->has_no_completions ? 404 : 200, NULL, "{\"choices\":[]}");
	else
		wire_answer(c, 500, NULL, "");
}

/* What answers there in the pod; NULL: nothing. */
static struct world_app *app_on(const struct object *p, const char *port)
{
	struct world_app *own = pod_app(p), *a = own;

	for (size_t i = 0; own && !strcmp(port, "8001") && (a = world_app_at(i)); i++)
		if (a->host == own)
			break;
	return a;
}

/* "http://10.0.0.7:8000" */
static void serve_pod(struct wire_call *c)
{
	char ip[32];

	size_t len = strcspn(c->host + 7, ":");
	snprintf(ip, sizeof ip, "%.*s", (int)len, c->host + 7);
	for (struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		struct world_app *a = app_on(p, c->host[7 + len] ? c->host + 8 + len : "");
		if (!value_is(p->value, "status>podIP", ip) || !a)
			continue;
		if (a->is_mute || !pod_life(p)->is_up || value_is(p->value, "metadata>labels>tells", "no")) {
			wire_answer(c, 500, NULL, "");
			return;
		}
		engine_second(engine_of(p, a), a);
		if (strcmp(c->path, "/metrics") != 0 && a->is_shared)
			answer_engine(c, p, a);
		else
			answer_page(c, a, pod_life(p), engine_of(p, a));
		return;
	}
	wire_cut(c);
}

void engines_on_call(void (*called)(const char *path))
{
	engine_called = called;
}

void engines_second(struct world_app *a)
{
	if (a->is_idle)
		return;
	traffic_second(a);
	look_at_load(a);
	a->mute_since = !a->is_mute || !world_ready(a->name) ? 0 : a->mute_since ? a->mute_since : wire_now();
}

void engines_begin(void)
{
	engine_called = NULL;
	wire_host("http://10.", serve_pod);
}
