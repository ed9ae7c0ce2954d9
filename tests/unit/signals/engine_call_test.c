/* Servers that are put to sleep, woken and looked at: played ones that take seconds, fail, hang and lose answers. */
#include "signals/engine_call.h"
#include "tests/unit/signals/played_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A server. A move takes `takes` milliseconds after the call was answered, as with older versions. */
struct server {
	struct clock clock;
	bool is_asleep, is_moving;
	bool is_paused_first; /* it says that it sleeps as it starts nothing more, long before its memory is free */
	bool has_weights_mapped,
		has_weights; /* of a sleep on level 2: the memory is there again; what belongs there, too */
	millis moves_at, takes;
	int level;	/* of its sleep */
	int in_flight;	/* -1: not told */
	struct buf log; /* paths of writes, one a line */

	const char *fails, *hangs, *loses; /* path: 500 without effect; no answer, no effect; effect, no answer */
	bool is_stuck;			   /* answers, and never gets there */
	bool has_no_sleep;		   /* started without the flags */
	bool has_no_models, has_endless_answers;
};

struct call {
	struct engine_call call;
	struct http_auth *auth;
	int done;
	struct error error;
	enum engine_told told;
	int64_t in_flight;
	bool was_sent;
	millis took;
};

static bool is(const char *path, const char *of)
{
	return of && strncmp(path, of, strlen(of)) == 0;
}

static void settle_move(struct server *s)
{
	if (s->is_moving && clock_mono(&s->clock) >= s->moves_at && !s->is_stuck) {
		s->is_asleep = !s->is_asleep;
		s->is_moving = false;
	}
}

static void begin_move(struct server *s, bool asleep)
{
	if (s->is_asleep == asleep || s->is_moving)
		return;
	s->is_moving = true;
	s->has_weights_mapped = s->has_weights = false;
	s->moves_at = clock_mono(&s->clock) + s->takes;
	settle_move(s);
}

static void write_page(const struct server *s, struct buf *out)
{
	if (s->in_flight >= 0)
		buf_printf(out, "vllm:num_requests_running{model_name=\"m\"} %d\n", s->in_flight);
	buf_text(out, "vllm:num_requests_waiting{model_name=\"m\"} 0\n");
	/* Set by each call that wakes something, though only all of them wake it. */
	bool says_asleep = s->is_asleep && !s->has_weights_mapped;
	buf_printf(out, "vllm:engine_sleep_state{sleep_state=\"awake\"} %d\n", !says_asleep);
	buf_printf(out, "vllm:engine_sleep_state{sleep_state=\"discard_all\"} %d\n", says_asleep && s->level == 2);
}

static void take_write(struct server *s, const char *path)
{
	buf_printf(&s->log, "%s\n", path);
	if (is(path, "/sleep")) {
		s->level = strstr(path, "level=2") ? 2 : 1;
		begin_move(s, true);
	} else if (is(path, "/wake_up?tags=weights")) {
		s->has_weights_mapped = true;
	} else if (is(path, "/collective_rpc")) {
		assert_true(s->has_weights_mapped);
		s->has_weights = true;
	} else if (is(path, "/wake_up")) {
		assert_true(s->level != 2 || s->has_weights); /* else it would answer nonsense from now on */
		begin_move(s, false);
	}
}

static void answer(void *user, const struct http_request *r, struct played_answer *a)
{
	struct server *s = user;
	const char *path = strstr(r->url, "9:8000") + strlen("9:8000");
	bool writes = strcmp(r->method, "POST") == 0;

	assert_true(writes == r->is_write);
	settle_move(s);
	if (s->has_no_sleep && (is(path, "/is_sleeping") || is(path, "/sleep")))
		a->status = 404;
	else if (is(path, s->fails))
		a->status = 500;
	if (a->status)
		return;
	a->is_silent = is(path, s->hangs);
	if (a->is_silent)
		return;
	if (writes)
		take_write(s, path);
	if (is(path, s->loses)) {
		a->kind = ERROR_UNAVAILABLE;
		s->loses = NULL;
	} else if (is(path, "/is_sleeping")) {
		a->is_endless = s->has_endless_answers;
		bool is_pausing = s->is_paused_first && s->is_moving && !s->is_asleep;
		buf_printf(&a->body, "{\"is_sleeping\":%s}", s->is_asleep || is_pausing ? "true" : "false");
	} else if (is(path, "/metrics")) {
		write_page(s, &a->body);
	} else if (is(path, "/v1/models")) {
		buf_text(&a->body, s->has_no_models ? "{\"data\":[]}" : "{\"data\":[{\"id\":\"org/m\"}]}");
	} else if (is(path, "/v1/completions")) {
		assert_non_null(strstr(r->body, "\"model\":\"org/m\"") ? r->body : NULL);
		assert_false(s->is_asleep);
	}
}

static void on_done(struct engine_call *c)
{
	struct call *k = c->user;

	k->done++;
	k->error = c->error;
	k->told = c->told;
	k->in_flight = c->in_flight;
	k->was_sent = c->was_sent;
	k->took = c->took;
}

static struct server *server_open(void)
{
	struct server *s = calloc(1, sizeof *s);

	assert_non_null(s);
	s->clock = clock_open_by_hand(1700000000000);
	played_begin(&s->clock, answer, s);
	return s;
}

static void server_close(struct server *s)
{
	played_end();
	buf_release(&s->log);
	free(s);
}

static struct call begin(enum engine engine, enum engine_move move, int level, const struct http_auth_settings *auth)
{
	const struct http_auth_settings none = { 0 };
	struct call k = { .call = { .move = move,
				    .engine = engine,
				    .level = level,
				    .metrics_path = "/metrics",
				    .deadline = 30 * SECOND,
				    .done = on_done } };

	k.auth = http_auth_open("http://me:word@10.0.0.9:8000", auth ? auth : &none);
	k.call.server = k.auth;
	return k;
}

/* A call until it ends; it ends once. */
static struct call make_call(struct server *s, enum engine engine, enum engine_move move, int level)
{
	struct call k = begin(engine, move, level, NULL);

	k.call.user = &k;
	buf_clear(&s->log);
	engine_call_start(NULL, NULL, &s->clock, &k.call);
	assert_int_equal(k.done, 0);
	for (int i = 0; i < 600 && !k.done; i++)
		played_turn(100);
	assert_int_equal(k.done, 1);
	assert_null(strstr(k.error.message, "word"));
	http_auth_close(k.auth);
	return k;
}

static void expect(const struct call *k, enum error_kind kind, const char *says)
{
	if (k->error.kind != kind || !strstr(k->error.message, says))
		fail_msg("wanted kind %d, '%s', got kind %d, '%s'", (int)kind, says, (int)k->error.kind,
			 k->error.message);
}

static void expect_writes(const struct server *s, const char *paths)
{
	assert_string_equal(s->log.len ? s->log.text : "", paths);
}

static void it_sleeps_and_wakes(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->takes = 1500;
	struct call k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "/sleep?level=1&mode=wait\n");
	assert_true(s->is_asleep && k.told == TOLD_ASLEEP && k.was_sent);
	assert_int_equal(k.took, 1500);
	k = make_call(s, ENGINE_VLLM, MOVE_LOOK, 1);
	expect(&k, ERROR_NONE, "");
	assert_true(k.told == TOLD_ASLEEP && !k.was_sent && k.in_flight == 0);
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "/wake_up\n/v1/completions\n");
	assert_true(!s->is_asleep && k.told == TOLD_AWAKE);
	server_close(s);
}

/* The level stands on its page; what the caller believes counts only where it does not. */
static void level_2_loads_the_weights_again(void **state)
{
	struct server *s = server_open();

	(void)state;
	struct call k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 2);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "/sleep?level=2&mode=wait\n");
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "/wake_up?tags=weights\n/collective_rpc\n/reset_prefix_cache\n/wake_up?tags=kv_cache\n"
			 "/v1/completions\n");
	server_close(s);
}

/* A reload that failed leaves it asleep: nothing serves with weights that are not there. */
static void a_failed_reload_stays_asleep(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->is_asleep = true;
	s->level = 2;
	s->fails = "/collective_rpc";
	struct call k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 2);
	expect(&k, ERROR_UNAVAILABLE, "/collective_rpc: HTTP status 500");
	expect_writes(s, "/wake_up?tags=weights\n");
	assert_true(s->is_asleep && k.was_sent);
	s->fails = NULL;
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 2);
	expect(&k, ERROR_NONE, "");
	assert_false(s->is_asleep);
	server_close(s);
}

static void who_serves_is_not_put_to_sleep(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->in_flight = 3;
	struct call k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_CONFLICT, "3 requests");
	assert_true(!k.was_sent && k.in_flight == 3);
	s->in_flight = -1;
	k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_INVALID, "the page has no vllm:num_requests_running");
	s->in_flight = 0;
	s->fails = "/metrics";
	k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_UNAVAILABLE, "/metrics");
	expect_writes(s, "");
	server_close(s);
}

/* After a crash the same call comes again. */
static void what_is_so_already_is_left(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->is_asleep = true;
	s->level = 1;
	struct call k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "");
	assert_true(!k.was_sent && k.took == 0);
	s->is_asleep = false;
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "/v1/completions\n"); /* the token may be what is missing */
	assert_false(k.was_sent);
	server_close(s);
}

static void a_lost_answer_is_looked_after(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->takes = 2 * SECOND;
	s->loses = "/sleep";
	struct call k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_NONE, "");
	assert_true(s->is_asleep);
	s->loses = "/is_sleeping";
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_UNAVAILABLE, "");
	assert_false(k.was_sent);
	s->loses = "/wake_up";
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "/wake_up\n/v1/completions\n");
	server_close(s);
}

/* It pauses, and says that it sleeps, before it gives its memory free: what else wakes there meanwhile hangs. */
static void a_pause_is_no_sleep(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->takes = 2 * SECOND;
	s->is_paused_first = true;
	s->loses = "/sleep";
	struct call k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_NONE, "");
	assert_true(s->is_asleep && k.took >= 2 * SECOND);
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_NONE, "");
	begin_move(s, true); /* by whoever led before, and crashed */
	k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "/sleep?level=1&mode=wait\n"); /* its answer comes as both are over */
	server_close(s);
}

/* Between two steps it says that it sleeps, and its page that it is awake: on which level it slept nobody knows. */
static void a_wake_that_was_cut_loads_the_weights(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->is_asleep = true;
	s->level = 2;
	s->fails = "/collective_rpc";
	struct call k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 2);
	expect(&k, ERROR_UNAVAILABLE, "");
	s->fails = NULL;
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1); /* its manifest says level 1 by now */
	expect(&k, ERROR_NONE, "");
	assert_true(!s->is_asleep);
	server_close(s);
}

static void failures_and_hangs_end(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->is_asleep = true;
	s->level = 1;
	s->fails = "/wake_up"; /* out of memory, as the server tells it */
	struct call k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_UNAVAILABLE, "/wake_up: HTTP status 500");
	assert_true(k.told == TOLD_ASLEEP && k.was_sent);
	s->fails = NULL;
	s->hangs = "/wake_up";
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_TIMEOUT, "no answer");
	assert_int_equal(k.told, TOLD_ASLEEP);
	s->hangs = NULL;
	s->is_stuck = true;
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_TIMEOUT, "http://10.0.0.9:8000: still asleep after 30");
	s->is_stuck = false;
	s->hangs = "/v1/completions";
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_TIMEOUT, "awake, and gives no token");
	s->hangs = "/is_sleeping";
	k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_TIMEOUT, "");
	assert_true(!k.was_sent && k.told == TOLD_NOTHING);
	server_close(s);
}

static void answers_are_bounded(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->has_endless_answers = true;
	struct call k = make_call(s, ENGINE_VLLM, MOVE_LOOK, 1);
	expect(&k, ERROR_INVALID, "longer than 65536 bytes");
	s->has_endless_answers = false;
	s->has_no_models = true;
	k = make_call(s, ENGINE_VLLM, MOVE_WAKE, 1);
	expect(&k, ERROR_INVALID, "it serves no model");
	s->has_no_sleep = true;
	k = make_call(s, ENGINE_VLLM, MOVE_SLEEP, 1);
	expect(&k, ERROR_NOT_FOUND, "/is_sleeping: HTTP status 404: it does not serve this");
	server_close(s);
}

/* It cannot be asked whether it sleeps: its answer counts, and one that was lost is a failure. */
static void sglang_is_taken_at_its_answer(void **state)
{
	struct server *s = server_open();

	(void)state;
	struct call k = make_call(s, ENGINE_SGLANG, MOVE_WAKE, 1);
	expect(&k, ERROR_NONE, "");
	expect_writes(s, "/resume_memory_occupation\n/v1/completions\n");
	assert_int_equal(k.told, TOLD_AWAKE);
	s->loses = "/resume_memory_occupation";
	k = make_call(s, ENGINE_SGLANG, MOVE_WAKE, 1);
	expect(&k, ERROR_UNAVAILABLE, "");
	assert_int_equal(k.told, TOLD_NOTHING);
	k = make_call(s, ENGINE_SGLANG, MOVE_SLEEP, 2);
	expect(&k, ERROR_INVALID, "no server of sglang sleeps on level 2");
	k = make_call(s, ENGINE_TGI, MOVE_SLEEP, 1);
	expect(&k, ERROR_INVALID, "no server of tgi sleeps");
	expect_writes(s, "");
	server_close(s);
}

static void what_is_cancelled_ends_once(void **state)
{
	struct server *s = server_open();

	(void)state;
	s->is_stuck = true;
	for (int i = 0; i < 2; i++) {
		struct call k = begin(ENGINE_VLLM, MOVE_SLEEP, 1, NULL);
		k.call.user = &k;
		s->hangs = i ? "/sleep" : NULL;
		engine_call_start(NULL, NULL, &s->clock, &k.call);
		played_turn(SECOND);
		assert_int_equal(k.done, 0);
		engine_call_cancel(&k.call);
		assert_int_equal(k.done, 0);
		played_settle();
		assert_int_equal(k.done, 1);
		assert_int_equal(k.error.kind, ERROR_CANCELLED);
		engine_call_cancel(&k.call);
		played_settle();
		assert_int_equal(k.done, 1);
		http_auth_close(k.auth);
	}
	server_close(s);
}

static void a_secret_that_cannot_be_read_sends_nothing(void **state)
{
	struct server *s = server_open();
	struct call k = begin(ENGINE_VLLM, MOVE_SLEEP, 1,
			      &(struct http_auth_settings){ .bearer_token_file = "/nowhere/token" });

	(void)state;
	k.call.user = &k;
	engine_call_start(NULL, NULL, &s->clock, &k.call);
	played_settle();
	assert_int_equal(k.done, 1);
	expect(&k, ERROR_AUTH, "/nowhere/token");
	assert_false(k.was_sent);
	http_auth_close(k.auth);
	server_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_sleeps_and_wakes),
		cmocka_unit_test(level_2_loads_the_weights_again),
		cmocka_unit_test(a_failed_reload_stays_asleep),
		cmocka_unit_test(who_serves_is_not_put_to_sleep),
		cmocka_unit_test(what_is_so_already_is_left),
		cmocka_unit_test(a_lost_answer_is_looked_after),
		cmocka_unit_test(a_pause_is_no_sleep),
		cmocka_unit_test(a_wake_that_was_cut_loads_the_weights),
		cmocka_unit_test(failures_and_hangs_end),
		cmocka_unit_test(answers_are_bounded),
		cmocka_unit_test(sglang_is_taken_at_its_answer),
		cmocka_unit_test(what_is_cancelled_ends_once),
		cmocka_unit_test(a_secret_that_cannot_be_read_sends_nothing),
	};

	return cmocka_run_group_tests_name("engine_call", tests, NULL, NULL);
}
