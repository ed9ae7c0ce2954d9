#include "controller/cluster/verbs.h"

#include "tests/unit/cluster/played_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* What the server expects next, and what it answers. */
struct line {
	const char *call; /* "GET /api/v1/nodes/n" */
	const char *body; /* all of it, NULL: none */
	long status;
	const char *answer; /* NULL: a Status of that code */
};

static const struct line *script;
static size_t script_at;
static char script_trouble[2048];
static bool is_done;

static void give_answer(struct play_later *l)
{
	struct api_call *c = l->call;
	const struct line *line = l->user;

	free(l);
	play_answer(c, line->status, line->answer ? line->answer : play_status((int)line->status, "Reason", NULL));
}

static void serve(struct api_call *c)
{
	const struct line *line = &script[script_at];
	struct play_later *l = calloc(1, sizeof *l);
	char call[512];

	snprintf(call, sizeof call, "%s %s", c->method, c->path);
	if (!line->call) {
		fail_msg("a call that the script does not know: %s", call);
		return;
	}
	if (strcmp(call, line->call) || !c->body != !line->body || (c->body && strcmp(c->body, line->body) != 0))
		snprintf(script_trouble, sizeof script_trouble, "line %zu: %s %s", script_at, call,
			 c->body ? c->body : "");
	if (strcmp(c->method, "GET") ? c->effect != API_WRITE : c->effect != API_READ)
		snprintf(script_trouble, sizeof script_trouble, "line %zu: %s has another effect", script_at, call);
	script_at++;
	l->call = c;
	l->user = (void *)line;
	play_later(l, 5, give_answer);
}

static struct api *begin(const struct line *lines)
{
	script = lines;
	script_at = 0;
	script_trouble[0] = '\0';
	is_done = false;
	return play_begin(serve);
}

static void finish(size_t lines)
{
	assert_false(is_done);
	play_until(play_now() + MINUTE);
	assert_true(is_done);
	if (script_trouble[0])
		fail_msg("%s", script_trouble);
	assert_int_equal(script_at, lines);
	play_end();
}

static void node_done(struct node_change *c)
{
	(void)c;
	is_done = true;
}

#define NODE_PATH "/api/v1/nodes/n1"
#define NODE(version, spec)                                             \
	"{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"" version \
	"\",\"annotations\":{\"a\":\"1\"},\"labels\":{}},\"spec\":{" spec "}}"

#define OWNED(by) \
	"{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"7\",\"annotations\":{\"a\":\"" by "\"}},\"spec\":{}}"

static void nodes(void **state)
{
	static const struct node_taint ours = { "preheat.dev/draining", NULL, "NoSchedule" };
	static const struct verb_pair mark = { "a", "2" }, unmark = { "a", NULL }, same = { "a", "1" },
				      none = { "b", NULL }, owned = { "a", "us/p" };
	static const struct {
		struct node_change change;
		struct line lines[8];
		bool is_changed;
		enum error_kind kind;
	} cases[] = {
		/* others' taints stay as they are, unknown members too */
		{ .change = { .cordon = CORDON_ON, .add = &ours, .add_count = 1 },
		  .lines = { { "GET " NODE_PATH, NULL, 200,
			       NODE("7", "\"taints\":[{\"key\":\"x\",\"effect\":\"NoExecute\",\"timeAdded\":\"t\","
					 "\"new\":[1]}]") },
			     { "PATCH " NODE_PATH,
			       "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"unschedulable\":true,\"taints\":["
			       "{\"key\":"
			       "\"x\",\"effect\":\"NoExecute\",\"timeAdded\":\"t\",\"new\":[1]},{\"key\":\"preheat.dev/"
			       "draining\",\"effect\":\"NoSchedule\"}]}}",
			       200, "{}" } },
		  .is_changed = true },
		/* someone else wrote in between: read anew, their taint stays */
		{ .change = { .add = &ours, .add_count = 1 },
		  .lines = { { "GET " NODE_PATH, NULL, 200, NODE("7", "") },
			     { "PATCH " NODE_PATH,
			       "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"taints\":[{\"key\":\"preheat.dev/"
			       "draining\","
			       "\"effect\":\"NoSchedule\"}]}}",
			       409, NULL },
			     { "GET " NODE_PATH, NULL, 200,
			       NODE("8", "\"taints\":[{\"key\":\"y\",\"effect\":\"NoSchedule\"}]") },
			     { "PATCH " NODE_PATH,
			       "{\"metadata\":{\"resourceVersion\":\"8\"},\"spec\":{\"taints\":[{\"key\":\"y\","
			       "\"effect\":"
			       "\"NoSchedule\"},{\"key\":\"preheat.dev/draining\",\"effect\":\"NoSchedule\"}]}}",
			       200, "{}" } },
		  .is_changed = true },
		{ .change = { .cordon = CORDON_OFF,
			      .remove = &ours,
			      .remove_count = 1,
			      .annotations = &unmark,
			      .annotation_count = 1 },
		  .lines = { { "GET " NODE_PATH, NULL, 200,
			       NODE("7", "\"unschedulable\":true,\"taints\":[{\"key\":\"preheat.dev/"
					 "draining\",\"value\":\"v\","
					 "\"effect\":\"NoSchedule\"}]") },
			     { "PATCH " NODE_PATH,
			       "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"a\":null}},\"spec\":{"
			       "\"unschedulable\":false,\"taints\":[]}}",
			       200, "{}" } },
		  .is_changed = true },
		/* as wished already: nothing is written */
		{ .change = { .cordon = CORDON_ON,
			      .add = &ours,
			      .add_count = 1,
			      .annotations = &same,
			      .annotation_count = 1,
			      .labels = &none,
			      .label_count = 1 },
		  .lines = { { "GET " NODE_PATH, NULL, 200,
			       NODE("7",
				    "\"unschedulable\":true,\"taints\":[{\"key\":\"preheat.dev/draining\",\"effect\":"
				    "\"NoSchedule\"}]") } } },
		{ .change = { .annotations = &mark, .annotation_count = 1 },
		  .lines = { { "GET " NODE_PATH, NULL, 200, NODE("7", "") },
			     { "PATCH " NODE_PATH,
			       "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"a\":\"2\"}},\"spec\":{}}",
			       403, NULL } },
		  .kind = ERROR_AUTH },
		/* another's by now: nothing is written */
		{ .change = { .cordon = CORDON_ON, .annotations = &owned, .annotation_count = 1, .owner = "us/p" },
		  .lines = { { "GET " NODE_PATH, NULL, 200, OWNED("them/p") } },
		  .kind = ERROR_CONFLICT },
		{ .change = { .annotations = &unmark, .annotation_count = 1, .owner = "us/p" },
		  .lines = { { "GET " NODE_PATH, NULL, 200, OWNED("them/p") } },
		  .kind = ERROR_CONFLICT },
		/* ours, or of before marks had owners */
		{ .change = { .annotations = &unmark, .annotation_count = 1, .owner = "us/p" },
		  .lines = { { "GET " NODE_PATH, NULL, 200, OWNED("us/p") },
			     { "PATCH " NODE_PATH,
			       "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"a\":null}},\"spec\":{}}",
			       200, "{}" } },
		  .is_changed = true },
		{ .change = { .annotations = &owned, .annotation_count = 1, .owner = "us/p" },
		  .lines = { { "GET " NODE_PATH, NULL, 200, OWNED("remove") },
			     { "PATCH " NODE_PATH,
			       "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"a\":\"us/"
			       "p\"}},\"spec\":{}}",
			       200, "{}" } },
		  .is_changed = true },
		{ .change = { .cordon = CORDON_ON },
		  .lines = { { "GET " NODE_PATH, NULL, 404, NULL } },
		  .kind = ERROR_NOT_FOUND },
		{ .change = { .cordon = CORDON_ON },
		  .lines = { { "GET " NODE_PATH, NULL, 200, "{\"metadata\":{}}" } },
		  .kind = ERROR_INVALID },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node_change c = cases[i].change;
		size_t lines = 0;
		while (cases[i].lines[lines].call)
			lines++;
		struct api *api = begin(cases[i].lines);
		c.node = "n1";
		c.done = node_done;
		node_change_start(api, &c);
		finish(lines);
		if (c.error.kind != cases[i].kind || c.is_changed != cases[i].is_changed ||
		    c.is_others != (c.error.kind == ERROR_CONFLICT))
			fail_msg("case %zu: %s %s", i, error_kind_name(c.error.kind), c.error.message);
	}
}

static void eviction_done(struct eviction *v)
{
	(void)v;
	is_done = true;
}

static void evictions(void **state)
{
	static const struct {
		long status;
		const char *answer, *uid;
		enum eviction_result result;
		enum error_kind kind;
		millis retry_after;
		int64_t version;
	} cases[] = {
		{ 201, "{}", "u", EVICTION_DONE, ERROR_NONE, 0, 0 },
		{ 201, "{}", "u", EVICTION_DONE, ERROR_NONE, 0, 7 },
		{ 409,
		  "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409,\"message\":\"the ResourceVersion in the "
		  "precondition (7) does not match the ResourceVersion in record (8). The object might have been "
		  "modified\"}",
		  "u", EVICTION_CHANGED, ERROR_CONFLICT, 0, 7 },
		{ 404, NULL, "u", EVICTION_GONE, ERROR_NONE, 0, 0 },
		{ 409,
		  "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409,\"message\":\"Precondition failed: UID in "
		  "precondition: u, UID in object meta: w\"}",
		  "u", EVICTION_GONE, ERROR_NONE, 0, 0 },
		{ 409, NULL, "u", EVICTION_FAILED, ERROR_CONFLICT, 0, 0 },
		{ 429,
		  "{\"code\":429,\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The "
		  "disruption "
		  "budget x needs 1 healthy pods\"}],\"retryAfterSeconds\":10}}",
		  "u", EVICTION_BUDGET, ERROR_THROTTLED, 10 * SECOND, 0 },
		{ 429, "{\"code\":429,\"message\":\"Too many requests\",\"details\":{\"retryAfterSeconds\":1}}", "u",
		  EVICTION_THROTTLED, ERROR_THROTTLED, SECOND, 0 },
		{ 429, "", "u", EVICTION_THROTTLED, ERROR_THROTTLED, 0, 0 },
		{ 500,
		  "{\"message\":\"This pod has more than one PodDisruptionBudget, which the eviction subresource does "
		  "not "
		  "support.\"}",
		  "u", EVICTION_MISCONFIGURED, ERROR_UNAVAILABLE, 0, 0 },
		{ 500, NULL, "u", EVICTION_FAILED, ERROR_UNAVAILABLE, 0, 0 },
		{ 403, NULL, "u", EVICTION_REFUSED, ERROR_AUTH, 0, 0 },
		{ 422, NULL, NULL, EVICTION_FAILED, ERROR_INVALID, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct line lines[2] = {
			{ "POST /api/v1/namespaces/llm/pods/p-1/eviction",
			  cases[i].version ? "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
					     "\"name\":\"p-1\",\"namespace\":\"llm\"},\"deleteOptions\":{"
					     "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},"
					     "\"gracePeriodSeconds\":30}}"
			  : cases[i].uid
				  ? "{\"apiVersion\":\"policy/"
				    "v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p-1\","
				    "\"namespace\":\"llm\"},\"deleteOptions\":{\"preconditions\":{\"uid\":\"u\"},"
				    "\"gracePeriodSeconds\":30}}"
				  : "{\"apiVersion\":\"policy/"
				    "v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p-1\","
				    "\"namespace\":\"llm\"},\"deleteOptions\":{\"preconditions\":{}}}",
			  cases[i].status, cases[i].answer },
		};
		struct api *api = begin(lines);
		struct eviction v = { .name_space = "llm",
				      .pod = "p-1",
				      .uid = cases[i].uid,
				      .version = cases[i].version,
				      .grace_seconds = cases[i].uid ? 30 : -1,
				      .done = eviction_done };
		eviction_start(api, &v);
		finish(1);
		if (v.result != cases[i].result || v.error.kind != cases[i].kind ||
		    v.retry_after != cases[i].retry_after)
			fail_msg("case %zu: %s, %s, again after %lld", i, eviction_result_name(v.result),
				 error_kind_name(v.error.kind), (long long)v.retry_after);
	}
}

static void scale_done(struct scale_call *c)
{
	(void)c;
	is_done = true;
}

#define KINDS                                                                                                       \
	"{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"leaderworkersets\",\"kind\":\"LeaderWorkerSet\"," \
	"\"namespaced\":true,\"verbs\":[]},{\"name\":\"leaderworkersets/"                                           \
	"scale\",\"kind\":\"Scale\",\"namespaced\":true},"                                                          \
	"{\"name\":\"jobs\",\"kind\":\"Job\",\"namespaced\":true}]}"
#define SCALE(version, wanted, running)                                                      \
	"{\"metadata\":{\"resourceVersion\":\"" version "\"},\"spec\":{\"replicas\":" wanted \
	"},\"status\":{\"replicas\":" running ",\"selector\":\"app=x\"}}"
#define TARGET_PATH "/apis/lws.x-k8s.io/v1/namespaces/llm/leaderworkersets/w"
#define SCALE_PATH  TARGET_PATH "/scale"
#define TARGET(version, ready) \
	"{\"metadata\":{\"resourceVersion\":\"" version "\"},\"status\":{\"readyReplicas\":" ready "}}"
#define SCALE_BODY(version, replicas)                                                                               \
	"{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"metadata\":{\"name\":\"w\",\"namespace\":\"llm\"," \
	"\"resourceVersion\":\"" version "\"},\"spec\":{\"replicas\":" replicas "}}"

static void scales(void **state)
{
	static const struct line lines[] = {
		{ "GET /apis/lws.x-k8s.io/v1", NULL, 200, KINDS },
		{ "GET " SCALE_PATH, NULL, 200, SCALE("5", "2", "1") },
		{ "PUT " SCALE_PATH, SCALE_BODY("5", "4"), 409, NULL },
		{ "GET " SCALE_PATH, NULL, 200, SCALE("6", "3", "2") },
		{ "PUT " SCALE_PATH, SCALE_BODY("6", "4"), 200, SCALE("7", "4", "2") },
		/* the kind is known now, and nothing is to be written */
		{ "GET " SCALE_PATH, NULL, 200, SCALE("7", "4", "4") },
		/* a larger number of somebody else's stays where that is asked for */
		{ "GET " SCALE_PATH, NULL, 200, SCALE("8", "7", "4") },
		{ "GET " SCALE_PATH, NULL, 200, SCALE("8", "7", "4") },
		{ "GET " TARGET_PATH, NULL, 200, TARGET("8", "4") },
		{ "PUT " SCALE_PATH, SCALE_BODY("8", "4"), 200, SCALE("9", "4", "4") },
		{ 0 },
	};
	struct api *api = begin(lines);
	struct scale_call c = { .api_version = "lws.x-k8s.io/v1",
				.kind = "LeaderWorkerSet",
				.name_space = "llm",
				.name = "w",
				.is_write = true,
				.replicas = 4,
				.done = scale_done };

	(void)state;
	scale_start(api, &c);
	play_until(SECOND);
	assert_true(is_done);
	assert_int_equal(c.error.kind, ERROR_NONE);
	assert_int_equal(c.before, 2);
	assert_int_equal(c.wanted, 4);
	assert_int_equal(c.running, 2);
	is_done = false;
	scale_start(api, &c);
	play_until(2 * SECOND);
	assert_true(is_done);
	assert_int_equal(c.running, 4);
	assert_int_equal(c.before, 4);
	is_done = false;
	c.kept_above = 6;
	scale_start(api, &c);
	play_until(3 * SECOND);
	assert_true(is_done);
	assert_int_equal(c.wanted, 7);
	is_done = false;
	c.kept_above = 7;
	scale_start(api, &c);
	finish(10);
	assert_int_equal(c.wanted, 4);
	assert_false(c.is_overtaken);
}

/* Fewer than are ready are never set, nor where it changed since; a kind that tells nothing, or may not be read, takes
 * what was decided. */
static void fewer_are_set_where_no_more_are_ready(void **state)
{
	static const struct {
		struct line target, put;
		bool is_overtaken;
		enum error_kind error;
	} cases[] = {
		{ { "GET " TARGET_PATH, NULL, 200, TARGET("5", "3") }, { 0 }, true, ERROR_NONE },
		{ { "GET " TARGET_PATH, NULL, 200, TARGET("6", "2") }, { 0 }, true, ERROR_NONE },
		{ { "GET " TARGET_PATH, NULL, 503, NULL }, { 0 }, false, ERROR_UNAVAILABLE },
		{ { "GET " TARGET_PATH, NULL, 200, TARGET("5", "2") },
		  { "PUT " SCALE_PATH, SCALE_BODY("5", "2"), 409, NULL },
		  true,
		  ERROR_NONE },
		{ { "GET " TARGET_PATH, NULL, 200, TARGET("5", "2") },
		  { "PUT " SCALE_PATH, SCALE_BODY("5", "2"), 200, SCALE("6", "2", "2") },
		  false,
		  ERROR_NONE },
		{ { "GET " TARGET_PATH, NULL, 200, "{\"metadata\":{\"resourceVersion\":\"5\"}}" },
		  { "PUT " SCALE_PATH, SCALE_BODY("5", "2"), 200, SCALE("6", "2", "2") },
		  false,
		  ERROR_NONE },
		{ { "GET " TARGET_PATH, NULL, 403, NULL },
		  { "PUT " SCALE_PATH, SCALE_BODY("5", "2"), 200, SCALE("6", "2", "2") },
		  false,
		  ERROR_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct line lines[] = { { "GET /apis/lws.x-k8s.io/v1", NULL, 200, KINDS },
					      { "GET " SCALE_PATH, NULL, 200, SCALE("5", "3", "3") },
					      cases[i].target,
					      cases[i].put,
					      { 0 } };
		struct api *api = begin(lines);
		struct scale_call c = { .api_version = "lws.x-k8s.io/v1",
					.kind = "LeaderWorkerSet",
					.name_space = "llm",
					.name = "w",
					.is_write = true,
					.replicas = 2,
					.done = scale_done };
		scale_start(api, &c);
		finish(cases[i].put.call ? 4 : 3);
		if (c.error.kind != cases[i].error || c.is_overtaken != cases[i].is_overtaken ||
		    (c.wanted == 3) != !(cases[i].put.call && !c.is_overtaken))
			fail_msg("case %zu: %s, %lld replicas", i, error_kind_name(c.error.kind), (long long)c.wanted);
	}
}

static void scales_that_cannot_be(void **state)
{
	static const struct {
		const char *kind;
		struct line lines[4];
		enum error_kind expected;
		const char *message;
	} cases[] = {
		{ "Thing",
		  { { "GET /apis/lws.x-k8s.io/v1", NULL, 404, NULL } },
		  ERROR_NOT_FOUND,
		  "knows no API lws.x-k8s.io/v1" },
		{ "Thing",
		  { { "GET /apis/lws.x-k8s.io/v1", NULL, 200, KINDS } },
		  ERROR_NOT_FOUND,
		  "knows no kind Thing" },
		{ "Job",
		  { { "GET /apis/lws.x-k8s.io/v1", NULL, 200, KINDS } },
		  ERROR_INVALID,
		  "has no scale subresource" },
		{ "Job", { { "GET /apis/lws.x-k8s.io/v1", NULL, 200, "no JSON" } }, ERROR_INVALID, "the kinds of" },
		{ "Job", { { "GET /apis/lws.x-k8s.io/v1", NULL, 503, NULL } }, ERROR_UNAVAILABLE, "503" },
		{ "LeaderWorkerSet",
		  { { "GET /apis/lws.x-k8s.io/v1", NULL, 200, KINDS }, { "GET " SCALE_PATH, NULL, 404, NULL } },
		  ERROR_NOT_FOUND,
		  "404" },
		{ "LeaderWorkerSet",
		  { { "GET /apis/lws.x-k8s.io/v1", NULL, 200, KINDS },
		    { "GET " SCALE_PATH, NULL, 200, SCALE("1", "\"x\"", "1") } },
		  ERROR_INVALID,
		  "spec>replicas: found" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t lines = 0;
		while (cases[i].lines[lines].call)
			lines++;
		struct api *api = begin(cases[i].lines);
		struct scale_call c = { .api_version = "lws.x-k8s.io/v1",
					.kind = cases[i].kind,
					.name_space = "llm",
					.name = "w",
					.done = scale_done };
		scale_start(api, &c);
		finish(lines);
		if (c.error.kind != cases[i].expected || !strstr(c.error.message, cases[i].message))
			fail_msg("case %zu: %s %s", i, error_kind_name(c.error.kind), c.error.message);
	}
}

static void object_done(struct object_call *c)
{
	assert_string_equal(c->response, "{\"x\":1}");
	is_done = true;
}

static void objects(void **state)
{
	static const struct line lines[] = {
		{ "PATCH /apis/preheat.dev/v1alpha1/namespaces/llm/warmpools/chat/status", "{\"status\":{}}", 200,
		  "{\"x\":1}" },
		{ 0 },
	};
	struct api *api = begin(lines);
	struct object_call o = { .verb = OBJECT_PATCH,
				 .object = { .api_version = "preheat.dev/v1alpha1",
					     .plural = "warmpools",
					     .name_space = "llm",
					     .name = "chat",
					     .subresource = "status" },
				 .body = "{\"status\":{}}",
				 .done = object_done };

	(void)state;
	object_start(api, &o);
	finish(1);
	assert_int_equal(o.error.kind, ERROR_NONE);
	assert_int_equal(o.status, 200);
}

static void paths(void **state)
{
	CLEANUP(buf_release) struct buf b = { 0 };

	(void)state;
	api_object_path(&(struct api_object){ .api_version = "apps/v1", .plural = "deployments" }, &b);
	api_query(&b, "labelSelector", "a=b,c");
	api_query(&b, "none", NULL);
	api_query(&b, "x", "\xc3\xa4 ");
	assert_string_equal(b.text, "/apis/apps/v1/deployments?labelSelector=a%3Db%2Cc&x=%C3%A4%20");
	buf_clear(&b);
	api_time(INT64_C(1767323045678), &b);
	assert_string_equal(b.text, "2026-01-02T03:04:05.678000Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes),
		cmocka_unit_test(evictions),
		cmocka_unit_test(scales),
		cmocka_unit_test(scales_that_cannot_be),
		cmocka_unit_test(fewer_are_set_where_no_more_are_ready),
		cmocka_unit_test(objects),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests_name("verbs", tests, NULL, NULL);
}
