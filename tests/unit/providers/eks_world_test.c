/*
 * Random calls against an Auto Scaling group that has a will of its own: it
 * launches what is missing, fails to, throttles, loses answers, and where a
 * size is lowered ends machines of its choice. The laws are checked at every
 * request. A failure prints its seed; PREHEAT_SEED=N runs that one.
 */
#include "base/net/http.h"
#include "base/net/server.h"
#include "base/random.h"
#include "providers/provider.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MACHINES = 512, WORLDS = 300, CALLS = 15 };

enum life { PENDING, IN_SERVICE, TERMINATING, STANDING };

struct instance {
	char id[24];
	enum life life;
	bool is_protected, was_shown; /* in service, to the call under way */
};

struct world {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct server_route route;
	struct provider *provider;
	struct random random;
	uint64_t seed;
	int64_t min, max, desired, least, prepared; /* prepared -2: no warm pool */
	struct instance machines[MACHINES];
	size_t count, count_before; /* before: the call under way */
	struct provider_call call;
	bool is_done;
};

static bool chance(struct world *w, int percent)
{
	return (int)(random_next(&w->random) % 100) < percent;
}

static int64_t below(struct world *w, int64_t n)
{
	return (int64_t)(random_next(&w->random) % (uint64_t)n);
}

static int64_t number_of(const struct world *w, enum life life)
{
	int64_t n = 0;

	for (size_t i = 0; i < w->count; i++)
		n += w->machines[i].life == life;
	return n;
}

static int64_t alive(const struct world *w)
{
	return number_of(w, PENDING) + number_of(w, IN_SERVICE);
}

static int64_t pool_target(const struct world *w)
{
	int64_t room = w->prepared - w->desired;

	return w->prepared < 0 ? 0 : room > w->least ? room : w->least;
}

static struct instance *named(struct world *w, const char *id)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->machines[i].id, id) == 0)
			return &w->machines[i];
	return NULL;
}

static bool is_asked_for(const struct world *w, const char *id)
{
	for (size_t i = 0; i < w->call.id_count; i++)
		if (strcmp(w->call.ids[i], id) == 0)
			return true;
	return false;
}

static void launch(struct world *w, enum life life)
{
	struct instance *i = &w->machines[w->count];

	assert_true(w->count < MACHINES);
	*i = (struct instance){ .life = life };
	snprintf(i->id, sizeof i->id, "i-%04zu", w->count++);
}

/* What happens by itself between two requests. */
static void live(struct world *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->machines[i].life == PENDING && chance(w, 40))
			w->machines[i].life = IN_SERVICE;
	while (alive(w) < w->desired && chance(w, 60))
		launch(w, PENDING);
	while (number_of(w, STANDING) < pool_target(w) && chance(w, 60))
		launch(w, STANDING);
}

/* The termination policy: any that is not protected; and it must not be one that works. */
static void lower(struct world *w)
{
	for (size_t tries = 0; alive(w) > w->desired && tries < 4 * w->count; tries++) {
		struct instance *i = &w->machines[below(w, (int64_t)w->count)];
		if ((i->life != PENDING && i->life != IN_SERVICE) || i->is_protected)
			continue;
		if (i->was_shown && !(w->call.verb == PROVIDER_STOP && is_asked_for(w, i->id)))
			fail_msg("seed %" PRIu64 ": %s ended %s, which works", w->seed,
				 provider_verb_name(w->call.verb), i->id);
		i->life = w->call.verb == PROVIDER_STOP && w->prepared >= 0 ? STANDING : TERMINATING;
	}
}

static const char *value_of(const char *body, const char *name)
{
	static char room[64];
	size_t len = strlen(name);

	for (const char *p = body; *p; p += strcspn(p, "&"), p += *p == '&')
		if (strncmp(p, name, len) == 0 && p[len] == '=') {
			snprintf(room, sizeof room, "%.*s", (int)strcspn(p + len + 1, "&"), p + len + 1);
			return room;
		}
	return "";
}

static void show(struct world *w, bool of_pool, struct buf *out)
{
	static const char *const names[] = { "Pending", "InService", "Terminating:Wait", "Warmed:Stopped" };

	buf_text(out, "<Instances>");
	for (size_t i = 0; i < w->count; i++) {
		struct instance *m = &w->machines[i];
		if ((m->life == STANDING) != of_pool || (m->life == TERMINATING && chance(w, 50)))
			continue;
		m->was_shown |= m->life == IN_SERVICE;
		buf_printf(
			out,
			"<member><InstanceId>%s</InstanceId><LifecycleState>%s</LifecycleState><ProtectedFromScaleIn>%s"
			"</ProtectedFromScaleIn></member>",
			m->id, names[m->life], m->is_protected ? "true" : "false");
	}
	buf_text(out, "</Instances>");
}

static void show_group(struct world *w, struct buf *out)
{
	buf_printf(out,
		   "<AutoScalingGroups><member><AutoScalingGroupName>a</AutoScalingGroupName><MinSize>%" PRId64
		   "</MinSize><MaxSize>%" PRId64 "</MaxSize><DesiredCapacity>%" PRId64 "</DesiredCapacity>",
		   w->min, w->max, w->desired);
	show(w, false, out);
	if (w->prepared != -2)
		buf_printf(out,
			   "<WarmPoolConfiguration><MinSize>%" PRId64 "</MinSize><MaxGroupPreparedCapacity>%" PRId64
			   "</MaxGroupPreparedCapacity><InstanceReusePolicy><ReuseOnScaleIn>true</ReuseOnScaleIn>"
			   "</InstanceReusePolicy></WarmPoolConfiguration>",
			   w->least, w->prepared);
	buf_text(out, "</member></AutoScalingGroups>");
}

static void set_size(struct world *w, int64_t size)
{
	if (size > w->max || size < w->min)
		fail_msg("seed %" PRIu64 ": asked for %" PRId64 " of %" PRId64 " to %" PRId64, w->seed, size, w->min,
			 w->max);
	assert_true(size > w->desired || w->call.verb == PROVIDER_STOP || w->call.verb == PROVIDER_CANCEL);
	assert_true(w->call.verb != PROVIDER_GROW || size == w->call.desired);
	while (size > w->desired && number_of(w, STANDING) && alive(w) < size)
		for (size_t i = 0; i < w->count; i++)
			if (w->machines[i].life == STANDING) {
				w->machines[i].life = PENDING;
				break;
			}
	w->desired = size;
	lower(w);
}

static const char *terminate(struct world *w, const char *id)
{
	struct instance *i = named(w, id);

	if (!is_asked_for(w, id))
		fail_msg("seed %" PRIu64 ": ended %s, which nobody named", w->seed, id);
	if (!i || i->life == TERMINATING || i->life == STANDING)
		return "Instance Id not found";
	if (w->desired - 1 < w->min)
		return "Currently, desiredSize equals minSize";
	assert_true(w->call.verb == PROVIDER_REMOVE || (w->call.verb == PROVIDER_CANCEL && !i->was_shown));
	i->life = TERMINATING;
	w->desired--;
	return NULL;
}

static void protect(struct world *w, const char *body)
{
	bool is_protected = strcmp(value_of(body, "ProtectedFromScaleIn"), "true") == 0;
	char name[40];

	for (int n = 1;; n++) {
		snprintf(name, sizeof name, "InstanceIds.member.%d", n);
		const char *id = value_of(body, name);
		if (!*id)
			return;
		assert_true(n <= 50);
		assert_true(is_protected || (w->call.verb == PROVIDER_STOP && is_asked_for(w, id)));
		if (named(w, id)->life == IN_SERVICE)
			named(w, id)->is_protected = is_protected;
	}
}

/* NULL, or why it is refused. */
static const char *act(struct world *w, const char *body, struct buf *out)
{
	const char *problem = NULL;

	if (strncmp(body, "Action=DescribeAutoScalingGroups&", 33) == 0)
		show_group(w, out);
	else if (strncmp(body, "Action=DescribeWarmPool&", 24) == 0)
		show(w, true, out);
	else if (strncmp(body, "Action=DescribeScalingActivities&", 33) == 0)
		buf_text(out, "<Activities/>");
	else if (strncmp(body, "Action=DescribeLifecycleHooks&", 30) == 0)
		buf_text(out, "<LifecycleHooks/>");
	else if (strncmp(body, "Action=SetInstanceProtection&", 29) == 0)
		protect(w, body);
	else if (strncmp(body, "Action=SetDesiredCapacity&", 26) == 0)
		set_size(w, strtoll(value_of(body, "DesiredCapacity"), NULL, 10));
	else if (strncmp(body, "Action=TerminateInstance", 24) == 0)
		problem = terminate(w, value_of(body, "InstanceId"));
	else if (strncmp(body, "Action=PutWarmPool&", 19) == 0) {
		w->least = strtoll(value_of(body, "MinSize"), NULL, 10);
		w->prepared = strtoll(value_of(body, "MaxGroupPreparedCapacity"), NULL, 10);
	} else
		fail_msg("%s", body);
	return problem;
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	struct world *w = q->user;
	int name = (int)strcspn(q->body, "&") - 7;
	int luck = (int)below(w, 100);
	const char *problem = NULL;

	live(w);
	buf_printf(&a->body, "<%.*sResponse><%.*sResult>", name, q->body + 7, name, q->body + 7);
	if (luck > 2)
		problem = act(w, q->body, &a->body);
	buf_printf(&a->body, "</%.*sResult></%.*sResponse>", name, q->body + 7, name, q->body + 7);
	if (luck > 4 && !problem)
		return;
	a->status = problem || luck < 2 ? 400 : 500; /* 3 and 4: done, and the answer is lost */
	buf_clear(&a->body);
	buf_printf(&a->body, "<ErrorResponse><Error><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>",
		   problem    ? "ValidationError"
		   : luck < 2 ? "Throttling"
			      : "ResourceContention",
		   problem ? problem : "");
}

static void on_done(struct provider_call *c)
{
	((struct world *)c->user)->is_done = true;
}

static void begin_call(struct world *w)
{
	w->count_before = w->count;
	for (size_t i = 0; i < w->count; i++)
		w->machines[i].was_shown = false;
}

/* Before the call began. */
static bool existed(struct world *w, const char *id)
{
	const struct instance *i = named(w, id);

	return i && (size_t)(i - w->machines) < w->count_before;
}

/* After a call that went well, what it wanted is so. */
static void check_outcome(struct world *w, int64_t desired_before, int64_t target_before)
{
	const struct provider_call *c = &w->call;

	if (c->error.kind != ERROR_NONE)
		return;
	if (c->verb == PROVIDER_GROW)
		assert_true(w->desired >= c->desired && w->desired >= desired_before);
	if (c->verb == PROVIDER_REMOVE) {
		for (size_t i = 0; i < c->id_count; i++)
			if (existed(w, c->ids[i]) && named(w, c->ids[i])->life < TERMINATING)
				fail_msg("seed %" PRIu64 ": %s was to be removed", w->seed, c->ids[i]);
		if (pool_target(w) > target_before)
			fail_msg("seed %" PRIu64 ": the warm pool grew from %" PRId64 " to %" PRId64, w->seed,
				 target_before, pool_target(w));
	}
	if (c->verb == PROVIDER_STANDBY && w->prepared != -2)
		assert_int_equal(pool_target(w), c->desired);
	if (c->verb == PROVIDER_CANCEL)
		assert_true(w->desired <= desired_before && w->desired >= w->min);
}

static void call_once(struct world *w, const char *settings)
{
	static const enum provider_verb verbs[] = { PROVIDER_DESCRIBE, PROVIDER_GROW,	 PROVIDER_GROW, PROVIDER_REMOVE,
						    PROVIDER_CANCEL,   PROVIDER_STANDBY, PROVIDER_STOP };
	char ids[4][24];
	const char *pointers[4] = { ids[0], ids[1], ids[2], ids[3] };
	int64_t desired = w->desired, target = pool_target(w);

	for (size_t i = 0; i < 4; i++)
		snprintf(ids[i], sizeof ids[i], "i-%04d", (int)below(w, (int64_t)w->count + 2));
	w->call = (struct provider_call){ .verb = verbs[below(w, 7)],
					  .group = "g",
					  .settings = settings,
					  .token = "t",
					  .desired = below(w, 12),
					  .ids = pointers,
					  .id_count = (size_t)below(w, 5),
					  .done = on_done,
					  .user = w };
	w->is_done = false;
	begin_call(w);
	provider_find("eks")->start(w->provider, &w->call);
	while (!w->is_done)
		assert_true(loop_once(w->loop));
	if (w->call.error.kind == ERROR_INTERNAL || w->call.error.kind == ERROR_NOT_FOUND ||
	    w->call.error.kind == ERROR_AUTH)
		fail_msg("seed %" PRIu64 ": %s", w->seed, w->call.error.message);
	check_outcome(w, desired, target);
	provider_call_release(&w->call);
	if (chance(w, 10)) /* somebody else */
		w->desired = w->min + below(w, w->max - w->min + 1);
	while (alive(w) > w->desired)
		w->desired++;
}

static void run_world(uint64_t seed)
{
	struct world *w = calloc(1, sizeof *w);
	char settings[160];
	struct error e;

	assert_non_null(w);
	w->seed = seed;
	w->random = random_stream(seed, "eks-world");
	w->max = 2 + below(w, 9);
	w->min = below(w, 3);
	w->desired = w->min + below(w, w->max - w->min + 1);
	w->prepared = chance(w, 50) ? -2 : w->desired + below(w, 3);
	w->loop = loop_open();
	w->http = http_open(w->loop, "test", &e);
	w->route = (struct server_route){ "POST", "/", answer, w };
	w->server = server_open(
		w->loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = &w->route, .route_count = 1 },
		&e);
	assert_non_null(w->server);
	snprintf(settings, sizeof settings,
		 "{\"region\":\"eu-west-1\",\"autoScalingGroup\":\"a\",\"endpoint\":\"http://127.0.0.1:%d\"}",
		 server_port(w->server));
	w->provider = provider_find("eks")->open(&(struct provider_setup){ w->loop, w->http, NULL }, &e);
	live(w);
	for (int i = 0; i < CALLS; i++)
		call_once(w, settings);
	provider_find("eks")->close(w->provider);
	server_close(w->server);
	http_close(w->http);
	loop_close(w->loop);
	free(w);
}

static void laws_hold_in_random_worlds(void **state)
{
	const char *seed = getenv("PREHEAT_SEED");

	(void)state;
	if (seed) {
		run_world(strtoull(seed, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= WORLDS; i++)
		run_world(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(laws_hold_in_random_worlds) };

	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
	unsetenv("AWS_CA_BUNDLE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
