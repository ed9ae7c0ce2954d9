/* When it counts as alive, and when as ready. */
#include "controller/web/web.h"
#include "tests/unit/web/shown.h"

struct probe {
	const char *name;
	void (*change)(struct shown *s);
	millis now; /* clock_mono, in seconds */
	bool is_alive, is_ready;
	const char *says; /* of whichever is false, else of readiness */
};

static void nothing(struct shown *s)
{
	(void)s;
}

static void no_tick_yet(struct shown *s)
{
	s->p.tick_begun_mono = s->p.tick_ended_mono = 0;
	s->p.ticks = 0;
}

static void hangs(struct shown *s)
{
	s->p.tick_ended_mono = 985 * SECOND;
	s->p.tick_waits_for = "describe of g5-od";
}

/* It led before, lost the lease for an hour, and leads again. */
static void leads_again(struct shown *s)
{
	s->p.tick_due_mono = 5000 * SECOND;
}

static void follows(struct shown *s)
{
	s->p.role = ROLE_FOLLOWER;
	s->p.leader = "b";
	s->p.history_lag_ticks = 2;
	s->p.is_history_spare = true;
	s->p.tick_due_mono = 0;
	s->p.plan = NULL;
}

static void copies(struct shown *s)
{
	follows(s);
	s->p.is_history_spare = false;
}

static void follows_nobody(struct shown *s)
{
	follows(s);
	s->p.leader = "";
}

static void server_is_away(struct shown *s)
{
	s->watches[1].is_synced = false;
	s->watches[1].trouble = "connection refused";
}

static void has_no_pools(struct shown *s)
{
	no_tick_yet(s);
	s->fleet.pool_count = 0;
	s->p.tick_due_mono = 0;
}

static void tries_only(struct shown *s)
{
	s->p.is_dry_run = true;
	s->p.role = ROLE_ALONE;
}

static void cannot_write(struct shown *s)
{
	error_set(&s->p.history_error, ERROR_UNAVAILABLE, "history.db: disk full");
}

static void stops(struct shown *s)
{
	s->p.is_stopping = true;
}

static const struct probe probes[] = {
	{ "all is well", nothing, 1010, true, true, "ready: leading" },
	{ "five intervals late is not too late", nothing, 1075, true, true, "ready: leading" },
	{ "more is", nothing, 1076, false, true, "wedged: a tick is due every 15s, and the last one began 1m16s ago" },
	{ "a tick that hangs names what it waits for", hangs, 1100, false, true,
	  "the last one began 1m40s ago and is not over; it waits for describe of g5-od" },
	{ "the first tick has time", no_tick_yet, 175, true, false, "not ready: no decision yet" },
	{ "but not for ever", no_tick_yet, 176, false, false, "none has begun since one was due 1m16s ago" },
	{ "who leads again is not late for what it missed", leads_again, 5010, true, true, "ready: leading" },
	{ "but late when nothing follows", leads_again, 5076, false, true,
	  "none has begun since one was due 1m16s ago" },
	{ "followers make no ticks", follows, 99999, true, true, "ready: following b, 2 ticks behind" },
	{ "who lacks the past is not ready to replace who has it", copies, 99999, true, false,
	  "not ready: copying the history of b, 2 ticks behind" },
	{ "nobody leads", follows_nobody, 99999, true, true, "ready: no leader yet" },
	{ "a server that is away is no reason to restart", server_is_away, 99999, true, false,
	  "not ready: pods have not been read from the API server: connection refused" },
	{ "without pools", has_no_pools, 99999, true, true, "ready: leading, no pools to decide on" },
	{ "a dry run says so", tries_only, 1010, true, true, "ready: leading, dry run: nothing is changed" },
	{ "no history, no decisions", cannot_write, 1010, true, false, "not ready: history.db: disk full" },
	{ "on the way out", stops, 99999, true, false, "not ready: stopping" },
};

static void each_probe(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
		CLEANUP(buf_release) struct buf alive = { 0 }, ready = { 0 };
		const struct probe *t = &probes[i];
		struct shown s;

		shown_fill(&s);
		t->change(&s);
		bool is_alive = health_is_alive(&s.p, t->now * SECOND, &alive);
		bool is_ready = health_is_ready(&s.p, &ready);
		if (is_alive != t->is_alive || is_ready != t->is_ready)
			fail_msg("%s: %s; %s", t->name, alive.text, ready.text);
		if (!strstr(is_alive ? ready.text : alive.text, t->says))
			fail_msg("%s: found '%s', expected '%s'", t->name, is_alive ? ready.text : alive.text, t->says);
		if (is_alive)
			assert_string_equal(alive.text, "ok");
	}
}

static void nothing_shown_is_alive_and_not_ready(void **state)
{
	CLEANUP(buf_release) struct buf why = { 0 };
	const struct published zero = { 0 };

	(void)state;
	assert_true(health_is_alive(NULL, 5, &why));
	assert_true(health_is_alive(&zero, 5, &why));
	buf_clear(&why);
	assert_false(health_is_ready(NULL, &why));
	assert_string_equal(why.text, "not ready: starting");
	assert_false(health_is_ready(&zero, &why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_probe),
		cmocka_unit_test(nothing_shown_is_alive_and_not_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
