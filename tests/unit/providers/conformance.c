#include "tests/unit/providers/conformance.h"

#include "base/net/http.h"
#include "tests/unit/net/cutting_relay.h"
#include "tests/unit/net/scripted_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct wire *wire;

struct conversation {
	struct loop *loop;
	struct http *http;
	const struct provider_ops *ops;
	struct provider *provider;
	struct modelled_cloud cloud;
	struct wire_server *server;
	struct cluster_door door;
	struct buf settings;
	int token_count;
	char tokens[CLOUD_TOKENS][32];
};

/* A call, and how often it was completed. */
struct asked {
	struct provider_call call;
	int done;
	bool is_starting;
	const char *unready[CLOUD_MACHINES];
};

static int set_up(void **state)
{
	struct conversation *c = calloc(1, sizeof *c);
	struct error e;

	assert_non_null(c);
	c->loop = loop_open();
	c->http = http_open(c->loop, "test", &e);
	c->ops = provider_find(wire->provider);
	assert_non_null(c->ops);
	c->cloud = modelled_cloud(3);
	c->server = wire->open(c->loop, &c->cloud);
	if (wire->way)
		c->door = wire->way->open(c->http, wire->url(c->server));
	c->provider = c->ops->open(&(struct provider_setup){ c->loop, c->http, wire->way ? &c->door : NULL }, &e);
	assert_non_null(c->provider);
	wire->settings(wire->url(c->server), &c->settings);
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	struct conversation *c = *state;

	c->ops->close(c->provider);
	if (wire->way)
		wire->way->close(&c->door);
	wire->close(c->server);
	http_close(c->http);
	loop_close(c->loop);
	buf_release(&c->settings);
	free(c);
	return 0;
}

static void count_done(struct provider_call *call)
{
	struct asked *a = call->user;

	assert_false(a->is_starting);
	a->done++;
}

static struct asked ask_for(struct conversation *c, enum provider_verb verb)
{
	struct asked a = { .call = { .verb = verb, .group = "g", .settings = c->settings.text } };

	assert_true(c->token_count < CLOUD_TOKENS);
	a.call.token = c->tokens[c->token_count];
	snprintf(c->tokens[c->token_count], sizeof c->tokens[0], "t%d", c->token_count);
	c->token_count++;
	return a;
}

/* As a cluster would see their nodes. */
static void look_at_nodes(struct conversation *c, struct asked *a)
{
	a->call.unready_count = 0;
	a->call.unready = a->unready;
	for (size_t i = 0; i < c->cloud.count; i++) {
		enum machine_state state = c->cloud.machines[i].state;
		if (state == MACHINE_STOPPING || state == MACHINE_STOPPED || state == MACHINE_WAKING)
			a->unready[a->call.unready_count++] = c->cloud.machines[i].id;
	}
}

static void start(struct conversation *c, struct asked *a)
{
	look_at_nodes(c, a);
	a->call.done = count_done;
	a->call.user = a;
	a->is_starting = true;
	c->ops->start(c->provider, &a->call);
	a->is_starting = false;
}

static void finish(struct conversation *c, struct asked *a)
{
	int before = a->done;

	while (a->done == before)
		assert_true(loop_once(c->loop));
	assert_int_equal(a->done, before + 1);
}

static enum error_kind run(struct conversation *c, struct asked *a)
{
	start(c, a);
	finish(c, a);
	if (a->call.error.kind == ERROR_NONE)
		return ERROR_NONE;
	assert_true(*a->call.error.message);
	assert_int_equal(a->call.description.machine_count, 0);
	return a->call.error.kind;
}

static enum error_kind size(struct conversation *c, enum provider_verb verb, int64_t desired)
{
	struct asked a = ask_for(c, verb);

	a.call.desired = desired;
	a.call.size = verb == PROVIDER_STANDBY ? c->cloud.desired : 0;
	enum error_kind kind = run(c, &a);
	provider_call_release(&a.call);
	return kind;
}

static enum error_kind name(struct conversation *c, enum provider_verb verb, const char *const *ids, size_t count)
{
	struct asked a = ask_for(c, verb);

	a.call.ids = ids;
	a.call.id_count = count;
	enum error_kind kind = run(c, &a);
	provider_call_release(&a.call);
	return kind;
}

/* How many machines of each state a description tells. */
struct told {
	int64_t desired, standby, states[MACHINE_STATE_COUNT], standing; /* standing: to end stopped */
	size_t count;
};

static struct told describe(struct conversation *c)
{
	struct asked a = ask_for(c, PROVIDER_DESCRIBE);
	struct told t = { 0 };

	assert_int_equal(run(c, &a), ERROR_NONE);
	t.desired = a.call.description.desired;
	t.standby = a.call.description.standby;
	t.count = a.call.description.machine_count;
	for (size_t i = 0; i < t.count; i++) {
		const struct machine *m = &a.call.description.machines[i];
		assert_true(*m->id && m->provider_id && m->zone);
		t.states[m->state]++;
		t.standing += m->is_standby;
	}
	provider_call_release(&a.call);
	return t;
}

static void it_says_what_is_there(void **state)
{
	struct conversation *c = *state;
	struct asked a = ask_for(c, PROVIDER_DESCRIBE);

	c->cloud.min = 1;
	assert_int_equal(run(c, &a), ERROR_NONE);
	assert_int_equal(a.call.description.min, wire->has_no_min ? 0 : 1);
	assert_int_equal(a.call.description.max, wire->max ? wire->max : 20);
	assert_int_equal(a.call.description.desired, 3);
	assert_int_equal(a.call.description.machine_count, 3);
	assert_string_equal(a.call.description.machines[0].id, "m-1");
	assert_int_equal(a.call.description.machines[0].state, MACHINE_RUNNING);
	/* the same call again, without a release between */
	assert_int_equal(run(c, &a), ERROR_NONE);
	assert_int_equal(a.done, 2);
	provider_call_release(&a.call);
}

static void growing_twice_with_one_token_buys_once(void **state)
{
	struct conversation *c = *state;
	struct asked a = ask_for(c, PROVIDER_GROW);

	a.call.desired = 5;
	assert_int_equal(run(c, &a), ERROR_NONE);
	assert_int_equal(run(c, &a), ERROR_NONE);
	assert_int_equal(c->cloud.bought, 5);
	struct told t = describe(c);
	assert_int_equal(t.desired, 5);
	assert_int_equal(t.states[MACHINE_PENDING], 2);
	/* absolute: another call for the same size buys nothing */
	assert_int_equal(size(c, PROVIDER_GROW, 5), ERROR_NONE);
	assert_int_equal(c->cloud.bought, 5);
	provider_call_release(&a.call);
}

static void growing_never_shrinks(void **state)
{
	struct conversation *c = *state;

	size(c, PROVIDER_GROW, 1);
	size(c, PROVIDER_GROW, 0);
	assert_int_equal(describe(c).states[MACHINE_RUNNING], 3);
	assert_int_equal(c->cloud.desired, 3);
	assert_int_equal(size(c, PROVIDER_GROW, 21), ERROR_INVALID);
	assert_int_equal(c->cloud.bought, 3);
}

static void removing_takes_exactly_those_named(void **state)
{
	struct conversation *c = *state;
	static const char *const ids[] = { "m-2", "m-never", "m-3" };

	if (!(c->ops->abilities & PROVIDER_NAMES_VICTIMS))
		return; /* what a cloud says that it cannot is not asked of it */
	assert_int_equal(name(c, PROVIDER_REMOVE, ids, 3), ERROR_NONE);
	assert_non_null(cloud_machine(&c->cloud, "m-1"));
	assert_null(cloud_machine(&c->cloud, "m-2"));
	assert_null(cloud_machine(&c->cloud, "m-3"));
	assert_int_equal(describe(c).desired, 1);
	/* gone already: nothing more is taken */
	assert_int_equal(name(c, PROVIDER_REMOVE, ids, 3), ERROR_NONE);
	assert_int_equal(describe(c).desired, 1);
}

static void stopped_machines_are_woken_before_new_ones_are_bought(void **state)
{
	struct conversation *c = *state;
	static const char *const ids[] = { "m-1", "m-2" };

	if (!(c->ops->abilities & PROVIDER_STOPS_NAMED))
		return; /* what a cloud says that it cannot is not asked of it */
	assert_int_equal(name(c, PROVIDER_STOP, ids, 2), ERROR_NONE);
	struct told t = describe(c);
	assert_int_equal(t.desired, 1);
	assert_int_equal(t.standby, 2);
	assert_int_equal(t.states[MACHINE_STOPPING], 2);
	assert_int_equal(t.standing, 2);
	cloud_settle(&c->cloud);
	assert_int_equal(describe(c).states[MACHINE_STOPPED], 2);
	assert_int_equal(size(c, PROVIDER_GROW, 4), ERROR_NONE);
	t = describe(c);
	assert_int_equal(t.states[MACHINE_WAKING], 2);
	assert_int_equal(t.states[MACHINE_PENDING], 1);
	assert_int_equal(t.standby, 0);
	assert_int_equal(t.standing, 0);
	assert_int_equal(c->cloud.bought, 4);
}

static void standby_has_an_absolute_size(void **state)
{
	struct conversation *c = *state;

	if (!(c->ops->abilities & PROVIDER_BUYS_STANDBY))
		return; /* what a cloud says that it cannot is not asked of it */
	assert_int_equal(size(c, PROVIDER_STANDBY, 2), ERROR_NONE);
	assert_int_equal(size(c, PROVIDER_STANDBY, 2), ERROR_NONE);
	struct told t = describe(c);
	assert_int_equal(t.standby, 2);
	assert_int_equal(t.states[MACHINE_PENDING], 2);
	assert_int_equal(t.standing, 2); /* on their way to be stopped: they will not serve */
	assert_int_equal(c->cloud.bought, 5);
	cloud_settle(&c->cloud);
	assert_int_equal(size(c, PROVIDER_STANDBY, 1), ERROR_NONE);
	t = describe(c);
	assert_int_equal(t.standby, 1);
	assert_int_equal(t.desired, 3);
	assert_int_equal(t.states[MACHINE_RUNNING], 3);
}

static void cancelling_starts_leaves_what_runs(void **state)
{
	struct conversation *c = *state;
	static const char *const ids[] = { "m-1", "m-4", "m-5", "m-never" };

	if (!(c->ops->abilities & PROVIDER_CANCELS))
		return; /* what a cloud says that it cannot is not asked of it */
	size(c, PROVIDER_GROW, 6);
	assert_int_equal(name(c, PROVIDER_CANCEL, ids, 4), ERROR_NONE);
	struct told t = describe(c);
	assert_int_equal(t.states[MACHINE_RUNNING], 3);
	assert_int_equal(t.states[MACHINE_PENDING], 1);
	assert_int_equal(t.desired, 4);
	assert_int_equal(name(c, PROVIDER_CANCEL, NULL, 0), ERROR_NONE);
	assert_int_equal(describe(c).desired, 4);
}

static void errors_are_told_apart_and_have_no_effect(void **state)
{
	static const struct {
		enum cloud_fault fault;
		enum error_kind kind;
	} cases[] = {
		{ FAULT_STOCKOUT, ERROR_STOCKOUT },	  { FAULT_QUOTA, ERROR_QUOTA },
		{ FAULT_THROTTLED, ERROR_THROTTLED },	  { FAULT_AUTH, ERROR_AUTH },
		{ FAULT_UNAVAILABLE, ERROR_UNAVAILABLE },
	};
	struct conversation *c = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (wire->way && (cases[i].kind == ERROR_STOCKOUT || cases[i].kind == ERROR_QUOTA))
			continue;
		struct asked a = ask_for(c, PROVIDER_GROW);
		a.call.desired = 9;
		c->cloud.fault = cases[i].fault;
		assert_int_equal(run(c, &a), cases[i].kind);
		assert_non_null(strstr(a.call.error.message, "group g"));
		assert_int_equal(a.call.retry_after, cases[i].fault == FAULT_THROTTLED ? 7000 : 0);
		assert_int_equal(c->cloud.bought, 3);
		c->cloud.fault = FAULT_NONE;
		provider_call_release(&a.call); /* the error outlives it */
		assert_int_equal(a.call.error.kind, cases[i].kind);
		/* a failed call can be repeated as it is */
		if (i + 1 == sizeof cases / sizeof *cases) {
			assert_int_equal(run(c, &a), ERROR_NONE);
			assert_int_equal(c->cloud.bought, 9);
		}
		provider_call_release(&a.call);
	}
}

static void after_a_lost_answer_the_description_is_the_truth(void **state)
{
	struct conversation *c = *state;
	struct asked a = ask_for(c, PROVIDER_GROW);

	a.call.desired = 5;
	c->cloud.fault = FAULT_LOST;
	assert_int_equal(run(c, &a), ERROR_UNAVAILABLE);
	c->cloud.fault = FAULT_NONE;
	assert_int_equal(describe(c).count, 5);
	assert_int_equal(run(c, &a), ERROR_NONE);
	assert_int_equal(c->cloud.bought, 5);
	provider_call_release(&a.call);
}

static void a_group_that_is_not_there_is_not_found(void **state)
{
	struct conversation *c = *state;

	buf_clear(&c->settings);
	(wire->settings_of_none ? wire->settings_of_none : wire->settings)(wire->url(c->server), &c->settings);
	struct asked a = ask_for(c, PROVIDER_DESCRIBE);
	a.call.group = "nowhere";
	assert_int_equal(run(c, &a), ERROR_NOT_FOUND);
	assert_non_null(strstr(a.call.error.message, "nowhere"));
	provider_call_release(&a.call);
}

static void what_makes_no_sense_is_refused_before_it_is_sent(void **state)
{
	struct conversation *c = *state;
	static const char *const empty[] = { "" };
	struct asked a = ask_for(c, PROVIDER_GROW);

	assert_int_equal(size(c, PROVIDER_GROW, -1), ERROR_INVALID);
	assert_int_equal(name(c, PROVIDER_REMOVE, empty, 1), ERROR_INVALID);
	a.call.token = "";
	assert_int_equal(run(c, &a), ERROR_INVALID);
	a.call.token = NULL;
	assert_int_equal(run(c, &a), ERROR_INVALID);
	for (const char *const *bad = wire->bad_settings; *bad; bad++) {
		a = ask_for(c, PROVIDER_DESCRIBE);
		a.call.settings = *bad;
		assert_int_equal(run(c, &a), ERROR_INVALID);
		assert_non_null(strstr(a.call.error.message, "settings"));
		provider_call_release(&a.call);
	}
	assert_int_equal(c->cloud.answered, 0);
}

static void a_cancelled_call_completes_once(void **state)
{
	struct conversation *c = *state;
	struct asked sent = ask_for(c, PROVIDER_DESCRIBE), unsent = ask_for(c, PROVIDER_GROW);

	unsent.call.token = NULL;
	start(c, &sent);
	start(c, &unsent);
	c->ops->cancel(c->provider, &sent.call);
	c->ops->cancel(c->provider, &sent.call);
	c->ops->cancel(c->provider, &unsent.call);
	assert_int_equal(sent.done + unsent.done, 0);
	while (sent.done + unsent.done < 2)
		assert_true(loop_once(c->loop));
	assert_int_equal(sent.call.error.kind, ERROR_CANCELLED);
	assert_int_equal(unsent.call.error.kind, ERROR_CANCELLED);
	c->ops->cancel(c->provider, &sent.call); /* nothing is under way */
	loop_poll(c->loop);
	assert_true(sent.done == 1 && unsent.done == 1);
	assert_int_equal(run(c, &sent), ERROR_NONE);
	provider_call_release(&sent.call);
	provider_call_release(&unsent.call);
}

struct chain {
	struct conversation *conversation;
	struct provider_call call;
	int left;
};

static void start_again(struct provider_call *call)
{
	struct chain *chain = call->user;

	assert_int_equal(call->error.kind, ERROR_NONE);
	if (--chain->left)
		chain->conversation->ops->start(chain->conversation->provider, call);
}

static void done_may_start_the_call_again(void **state)
{
	struct conversation *c = *state;
	struct asked a = ask_for(c, PROVIDER_DESCRIBE);
	struct chain chain = { .conversation = c, .call = a.call, .left = 5 };

	chain.call.done = start_again;
	chain.call.user = &chain;
	c->ops->start(c->provider, &chain.call);
	while (chain.left)
		assert_true(loop_once(c->loop));
	assert_int_equal(c->cloud.answered, 5);
	provider_call_release(&chain.call);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

/* Asks a peer that follows the script, and tells what came of it. */
static void ask_peer(struct conversation *c, const struct peer_step *script, millis timeout, struct error *out)
{
	struct scripted_peer *peer = peer_open(script);
	struct buf settings = { 0 };
	struct asked a = ask_for(c, PROVIDER_DESCRIBE);

	wire->settings(peer_url(peer), &settings);
	a.call.settings = settings.text;
	a.call.timeout = timeout;
	run(c, &a);
	*out = a.call.error;
	provider_call_release(&a.call);
	free(peer_close(peer));
	buf_release(&settings);
}

#define HEARD                 \
	{ PEER_ACCEPT, "" },  \
	{                     \
		PEER_READ, "" \
	}

static void peers_that_misbehave_are_contained(void **state)
{
	static const struct {
		struct peer_step script[5];
		millis timeout;
		enum error_kind kind;
	} cases[] = {
		{ { HEARD, { PEER_HOLD, "" }, { PEER_END, "" } }, 50, ERROR_TIMEOUT },
		{ { HEARD, { PEER_SEND, OK_HEAD "Content-Length: 100\r\n\r\n{" }, { PEER_HOLD, "" }, { PEER_END, "" } },
		  50,
		  ERROR_TIMEOUT },
		{ { HEARD, { PEER_END, "" } }, 0, ERROR_UNAVAILABLE },
		{ { HEARD, { PEER_RESET, "" }, { PEER_END, "" } }, 0, ERROR_UNAVAILABLE },
		{ { HEARD, { PEER_SEND, OK_HEAD "Content-Length: 100\r\n\r\n{" }, { PEER_END, "" } },
		  0,
		  ERROR_UNAVAILABLE },
		{ { HEARD,
		    { PEER_SEND, OK_HEAD "\r\n[" },
		    { PEER_ENDLESS, "                                                                " },
		    { PEER_END, "" } },
		  0,
		  ERROR_INVALID },
		{ { HEARD, { PEER_SEND, "SSH-2.0-x\r\n" }, { PEER_END, "" } }, 0, ERROR_INVALID },
	};
	struct conversation *c = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e;
		ask_peer(c, cases[i].script, cases[i].timeout, &e);
		if (e.kind != cases[i].kind)
			fail_msg("case %zu: %s: %s", i, error_kind_name(e.kind), e.message);
	}
}

enum { ANSWERS_MOST = 6 };

/* Answers with the body, then with what a description takes beside it. */
static void ask_for_body(struct conversation *c, const char *body, struct error *out)
{
	struct buf answers[ANSWERS_MOST] = { 0 };
	struct peer_step script[3 * ANSWERS_MOST + 1];
	size_t count = 0;

	for (const char *const *more = wire->described_more; body; body = more && *more ? *more++ : NULL) {
		assert_true(count < ANSWERS_MOST);
		buf_printf(&answers[count], OK_HEAD "Connection: close\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
			   body);
		script[3 * count] = (struct peer_step){ PEER_ACCEPT, "" };
		script[3 * count + 1] = (struct peer_step){ PEER_READ, "" };
		script[3 * count + 2] = (struct peer_step){ PEER_SEND, answers[count].text };
		count++;
	}
	script[3 * count] = (struct peer_step){ PEER_END, "" };
	ask_peer(c, script, 0, out);
	while (count)
		buf_release(&answers[--count]);
}

static void answers_that_make_no_sense_are_refused(void **state)
{
	struct conversation *c = *state;
	struct error e;

	ask_for_body(c, wire->described, &e);
	if (e.kind != ERROR_NONE)
		fail_msg("the good answer: %s", e.message);
	for (const char *const *body = wire->spoiled; *body; body++) {
		ask_for_body(c, *body, &e);
		if (e.kind != ERROR_INVALID)
			fail_msg("%s: %s: %s", *body, error_kind_name(e.kind), e.message);
	}
	/* cut anywhere, it is no answer */
	for (size_t len = 0; len < strlen(wire->described); len += strlen(wire->described) / 20 + 1) {
		char *cut = strndup(wire->described, len);
		ask_for_body(c, cut, &e);
		assert_int_equal(e.kind, ERROR_INVALID);
		free(cut);
	}
}

static void a_call_that_hangs_holds_up_no_other(void **state)
{
	static const struct peer_step silent[] = { HEARD, { PEER_HOLD, "" }, { PEER_END, "" } };
	struct conversation *c = *state;
	struct scripted_peer *peer = peer_open(silent);
	struct asked hung = ask_for(c, PROVIDER_DESCRIBE);
	struct buf settings = { 0 };

	wire->settings(peer_url(peer), &settings);
	hung.call.settings = settings.text;
	start(c, &hung);
	for (int i = 0; i < 10; i++)
		assert_int_equal(describe(c).count, 3);
	assert_int_equal(hung.done, 0);
	c->ops->cancel(c->provider, &hung.call);
	finish(c, &hung);
	assert_int_equal(hung.call.error.kind, ERROR_CANCELLED);
	provider_call_release(&hung.call);
	free(peer_close(peer));
	buf_release(&settings);
}

/* --- a process that dies between any two bytes --- */

static void set_up_anew(struct conversation **c)
{
	void *state = *c;

	tear_down(&state);
	set_up(&state);
	*c = state;
}

/* The verbs that buy or end, of a group of three that run. */
static const struct cut_case {
	enum provider_verb verb;
	int64_t before, desired; /* before: it was grown to so many; their launches are under way */
	const char *id;
} cut_cases[] = {
	{ PROVIDER_GROW, 3, 5, NULL },
	{ PROVIDER_REMOVE, 3, 2, "m-2" },
	{ PROVIDER_CANCEL, 5, 4, "m-5" },
};

static struct asked ask_case(struct conversation *c, const struct cut_case *k)
{
	struct asked a = ask_for(c, k->verb);

	a.call.desired = k->desired;
	a.call.ids = &k->id;
	a.call.id_count = k->id != NULL;
	return a;
}

/* As the next process does: it looks, and asks for what is missing under a token of its own. */
static void go_on_anew(struct conversation *c, const struct cut_case *k)
{
	struct asked a = ask_case(c, k);

	if (describe(c).desired != k->desired)
		assert_int_equal(run(c, &a), ERROR_NONE);
	provider_call_release(&a.call);
}

/* Returns the bytes that the call's requests have, at most those. */
static size_t cut_after(struct conversation *c, const struct cut_case *k, size_t bytes, bool goes_on)
{
	const char *url = wire->url(c->server);
	struct cutting_relay *relay = cutting_relay_open(atoi(strrchr(url, ':') + 1), bytes, goes_on);
	CLEANUP(buf_release) struct buf settings = { 0 };
	struct asked a = ask_case(c, k);

	wire->settings(relay_url(relay), &settings);
	a.call.settings = settings.text;
	run(c, &a);
	provider_call_release(&a.call);
	bytes = cutting_relay_close(relay);
	go_on_anew(c, k);
	assert_int_equal(describe(c).desired, k->desired);
	assert_int_equal(c->cloud.bought, k->verb == PROVIDER_GROW ? k->desired : k->before);
	assert_true(!k->id || !cloud_machine(&c->cloud, k->id));
	return bytes;
}

/* Each of the last bytes, and of those before some; PREHEAT_CUT_EVERY=1: all of them (AKS: two minutes). An odd number:
 * both kinds of network come in turn. */
static size_t next_cut(size_t bytes, size_t whole)
{
	enum { LAST = 30, EVERY = 17 };
	const char *every = getenv("PREHEAT_CUT_EVERY");

	return bytes + (every ? strtoul(every, NULL, 10) | 1 : bytes + LAST < whole ? EVERY : 1);
}

/* The receiver has a part of a request, or all of it, and nothing is heard; the network comes back at once, or for the
 * next process only. */
static void cut_after_any_byte_nothing_is_done_twice(void **state)
{
	struct conversation *c = *state;
	const size_t all = (size_t)1 << 20;

	for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases && !wire->way; i++) {
		const struct cut_case *k = &cut_cases[i];
		size_t whole = 0;
		for (size_t bytes = 0; bytes == 0 || bytes <= whole; bytes = bytes ? next_cut(bytes, whole) : 1) {
			set_up_anew(&c);
			if (k->before > 3)
				assert_int_equal(size(c, PROVIDER_GROW, k->before), ERROR_NONE);
			size_t had = cut_after(c, k, bytes ? bytes : all, bytes % 2);
			whole = bytes ? whole : had;
		}
		assert_true(whole > 0);
	}
	*state = c;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int conformance_run(const struct wire *w)
{
	const struct CMUnitTest tests[] = {
		TEST(it_says_what_is_there),
		TEST(growing_twice_with_one_token_buys_once),
		TEST(growing_never_shrinks),
		TEST(removing_takes_exactly_those_named),
		TEST(stopped_machines_are_woken_before_new_ones_are_bought),
		TEST(standby_has_an_absolute_size),
		TEST(cancelling_starts_leaves_what_runs),
		TEST(errors_are_told_apart_and_have_no_effect),
		TEST(after_a_lost_answer_the_description_is_the_truth),
		TEST(a_group_that_is_not_there_is_not_found),
		TEST(what_makes_no_sense_is_refused_before_it_is_sent),
		TEST(a_cancelled_call_completes_once),
		TEST(done_may_start_the_call_again),
		TEST(peers_that_misbehave_are_contained),
		TEST(answers_that_make_no_sense_are_refused),
		TEST(a_call_that_hangs_holds_up_no_other),
		TEST(cut_after_any_byte_nothing_is_done_twice),
	};

	wire = w;
	return cmocka_run_group_tests_name(w->provider, tests, NULL, NULL);
}
