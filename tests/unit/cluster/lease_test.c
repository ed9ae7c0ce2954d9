#include "controller/cluster/lease.h"

#include "tests/unit/cluster/played_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { REPLICAS = 3 };

static struct replica {
	struct lease *lease;
	int won, lost, told;
	bool is_leading, is_closed, is_cut_off;
	char why[256];
} replicas[REPLICAS];

/* The lease as the server holds it. */
static struct {
	struct random random;
	bool is_there, is_wild;
	int64_t version;
	char holder[32], address[64], labels[64];
	int64_t duration, transitions;
	int writes;
} server;

static const char *name_of(size_t i)
{
	static const char *const names[] = { "a", "b", "c" };

	return names[i];
}

static void on_won(void *user)
{
	struct replica *r = user;

	r->won++;
	r->is_leading = true;
	for (size_t i = 0; i < REPLICAS; i++)
		if (&replicas[i] != r && replicas[i].is_leading)
			fail_msg("two lead");
}

static void on_lost(void *user, const char *why)
{
	struct replica *r = user;

	r->lost++;
	r->is_leading = false;
	snprintf(r->why, sizeof r->why, "%s", why);
}

static void on_holder(void *user)
{
	((struct replica *)user)->told++;
}

static void closed(void *user)
{
	((struct replica *)user)->is_closed = true;
}

/* A request on its way: what is written takes place at `at`, the answer comes later, or never. */
struct request {
	struct play_later arrives, answers;
	struct api_call *call;
	char method[8], body[1024];
	long status;
	char answer[1024];
	bool is_lost;
	struct request *next;
};

static struct request *requests;

static void forget_call(struct api_call *c)
{
	for (struct request *r = requests; r; r = r->next)
		if (r->call == c)
			r->call = NULL;
}

static void free_request(struct request *r)
{
	struct request **at = &requests;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}

static bool text_after(const char *body, const char *key, char *out, size_t room)
{
	const char *at = strstr(body, key);

	if (!at)
		return false;
	at += strlen(key);
	snprintf(out, room, "%.*s", (int)strcspn(at, "\""), at);
	return true;
}

static int64_t number_after(const char *body, const char *key)
{
	const char *at = strstr(body, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static void print_lease(char *out, size_t room)
{
	snprintf(out, room,
		 "{\"metadata\":{\"name\":\"preheat\",\"resourceVersion\":\"%lld\",\"labels\":{%s},\"annotations\":{"
		 "\"x\":\"y\","
		 "\"preheat.dev/address\":\"%s\"}},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":%lld,"
		 "\"leaseTransitions\":%lld,\"acquireTime\":\"2026-01-01T00:00:00.000000Z\"}}",
		 (long long)server.version, server.labels, server.address, server.holder, (long long)server.duration,
		 (long long)server.transitions);
}

static void write_lease(const char *body)
{
	server.is_there = true;
	server.version++;
	server.writes++;
	server.address[0] = '\0';
	text_after(body, "\"holderIdentity\":\"", server.holder, sizeof server.holder);
	text_after(body, "\"preheat.dev/address\":\"", server.address, sizeof server.address);
	server.duration = number_after(body, "\"leaseDurationSeconds\":");
	server.transitions = number_after(body, "\"leaseTransitions\":");
}

static void arrived(struct play_later *l)
{
	struct request *r = l->user;

	r->status = 200;
	if (!strcmp(r->method, "GET")) {
		r->status = server.is_there ? 200 : 404;
	} else if (!strcmp(r->method, "POST")) {
		r->status = server.is_there ? 409 : 201;
		if (!server.is_there)
			write_lease(r->body);
	} else if (number_after(r->body, "\"resourceVersion\":\"") != server.version) {
		r->status = 409;
	} else {
		write_lease(r->body);
	}
	if (r->status < 300)
		print_lease(r->answer, sizeof r->answer);
	else
		snprintf(r->answer, sizeof r->answer, "%s", play_status((int)r->status, "Whatever", NULL));
	if (r->is_lost)
		free_request(r);
}

static void answers(struct play_later *l)
{
	struct request *r = l->user;
	struct api_call *c = r->call;

	r->call = NULL;
	if (timer_is_running(&r->arrives.timer)) /* too late for the client, not for the server */
		r->is_lost = true;
	if (r->is_lost || r->status == 0) {
		if (c)
			play_failure(c, ERROR_TIMEOUT);
		if (!r->is_lost)
			free_request(r);
		return;
	}
	if (c)
		play_answer(c, r->status, r->answer);
	free_request(r);
}

static size_t below(size_t n)
{
	return (size_t)(random_next(&server.random) % n);
}

static struct replica *sender_of(const struct api_call *c)
{
	for (size_t i = 0; i < REPLICAS; i++)
		if (replicas[i].lease == c->user)
			return &replicas[i];
	return NULL;
}

static void serve(struct api_call *c)
{
	struct request *r = calloc(1, sizeof *r);
	const struct replica *from = sender_of(c);
	bool is_cut_off = from && from->is_cut_off;
	millis there = 1, back = 1;

	if (server.is_wild) {
		there = below(8) ? 1 + (millis)below(300) : 1 + (millis)below(9000);
		back = below(8) ? 1 + (millis)below(300) : 1 + (millis)below(9000);
	}
	r->call = c;
	r->next = requests;
	requests = r;
	snprintf(r->method, sizeof r->method, "%s", c->method);
	snprintf(r->body, sizeof r->body, "%s", c->body ? c->body : "");
	assert_int_equal(c->effect, strcmp(c->method, "GET") ? API_LEASE : API_READ);
	r->arrives.user = r->answers.user = r;
	if (!is_cut_off || below(4) == 0)
		play_later(&r->arrives, there, arrived);
	else
		there = 5000;
	millis answer_at = there + back > c->timeout || is_cut_off ? c->timeout : there + back;
	play_later(&r->answers, answer_at, answers);
}

static struct lease *open_one(size_t i, struct api *api)
{
	struct error e;
	struct lease_setup s = { .api = api,
				 .name_space = "llm",
				 .name = "preheat",
				 .identity = name_of(i),
				 .address = i ? NULL : "10.0.0.1:8080",
				 .on_won = on_won,
				 .on_lost = on_lost,
				 .on_holder = on_holder,
				 .user = &replicas[i] };

	replicas[i].lease = NULL;
	replicas[i].lease = lease_open(&s, &e);
	return replicas[i].lease;
}

static struct api *begin(void)
{
	memset(replicas, 0, sizeof replicas);
	memset(&server, 0, sizeof server);
	server.random = random_stream(5, "lease");
	struct api *api = play_begin(serve);
	play_on_cancel(forget_call);
	return api;
}

static void close_all(void)
{
	server.is_wild = false;
	for (size_t i = 0; i < REPLICAS; i++)
		if (replicas[i].lease && !replicas[i].is_closed)
			lease_close(replicas[i].lease, closed, &replicas[i]);
	play_until(play_now() + MINUTE);
	for (size_t i = 0; i < REPLICAS; i++)
		assert_true(!replicas[i].lease || replicas[i].is_closed);
	play_end();
}

static void the_first_wins_and_keeps_it(void **state)
{
	struct api *api = begin();

	(void)state;
	open_one(0, api);
	play_until(SECOND);
	assert_int_equal(replicas[0].won, 1);
	assert_string_equal(server.holder, "a");
	assert_int_equal(server.duration, 15);
	assert_int_equal(server.transitions, 0);
	open_one(1, api);
	play_until(10 * MINUTE);
	assert_int_equal(replicas[0].lost, 0);
	assert_int_equal(replicas[1].won, 0);
	assert_string_equal(lease_holder(replicas[1].lease), "a");
	assert_string_equal(lease_holder_address(replicas[1].lease), "10.0.0.1:8080");
	assert_int_equal(replicas[1].told, 1);
	/* every 2 s */
	assert_in_range(server.writes, 280, 302);
	close_all();
}

static void given_back_it_is_taken_at_once(void **state)
{
	struct api *api = begin();

	(void)state;
	open_one(0, api);
	play_until(SECOND);
	open_one(1, api);
	snprintf(server.labels, sizeof server.labels, "\"team\":\"llm\"");
	play_until(20 * SECOND);
	lease_close(replicas[0].lease, closed, &replicas[0]);
	assert_int_equal(replicas[0].lost, 1); /* before anything else happens */
	while (!replicas[0].is_closed)
		assert_true(play_step(22 * SECOND));
	assert_string_equal(server.holder, "");
	assert_string_equal(server.address, "");
	assert_int_equal(server.duration, 1);
	play_until(24 * SECOND);
	assert_int_equal(replicas[1].won, 1);
	assert_int_equal(server.transitions, 1);
	close_all();
}

static void cut_off_it_stops_before_the_next_begins(void **state)
{
	struct api *api = begin();
	millis lost_at = 0;

	(void)state;
	open_one(0, api);
	play_until(SECOND);
	open_one(1, api);
	play_until(30 * SECOND);
	replicas[0].is_cut_off = true;
	server.random = random_stream(3, "none arrive");
	while (!replicas[1].won && play_now() < 2 * MINUTE) {
		play_step(play_now() + 10);
		if (replicas[0].lost && !lost_at)
			lost_at = play_now();
		assert_false(lease_is_held(replicas[0].lease) && !replicas[0].is_leading);
	}
	assert_in_range(lost_at, 30 * SECOND, 41 * SECOND);
	assert_true(replicas[1].won == 1 && play_now() > lost_at);
	assert_non_null(strstr(replicas[0].why, "not renewed in time"));
	replicas[0].is_cut_off = false;
	play_until(play_now() + MINUTE);
	assert_int_equal(replicas[0].won, 1);
	assert_string_equal(lease_holder(replicas[0].lease), "b");
	close_all();
}

static void another_holder_is_believed(void **state)
{
	struct api *api = begin();

	(void)state;
	open_one(0, api);
	play_until(SECOND);
	/* Someone wrote over it by force. */
	snprintf(server.holder, sizeof server.holder, "z");
	server.version++;
	play_until(4 * SECOND);
	assert_int_equal(replicas[0].lost, 1);
	assert_non_null(strstr(replicas[0].why, "another replica"));
	play_until(25 * SECOND); /* z never renews */
	assert_int_equal(replicas[0].won, 2);
	assert_int_equal(server.transitions, 1);
	/* deleted: made anew */
	server.is_there = false;
	play_until(40 * SECOND);
	assert_true(server.is_there && replicas[0].is_leading);
	close_all();
}

static void times_that_cannot_work(void **state)
{
	static const struct {
		millis duration, deadline, retry;
	} cases[] = {
		{ 10000, 10000, 2000 }, { 15000, 2000, 2000 }, { 500, 300, 100 }, { 15000, 10000, -1 }, { -1, 0, 0 }
	};
	struct api *api = begin();
	struct error e;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct lease_setup s = { .api = api,
					 .name_space = "n",
					 .name = "n",
					 .identity = "i",
					 .duration = cases[i].duration,
					 .renew_deadline = cases[i].deadline,
					 .retry = cases[i].retry };
		assert_null(lease_open(&s, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
	}
	play_end();
}

/* As a tool writes it, or a hand. */
static void a_lease_without_a_duration(void **state)
{
	static const int64_t durations[] = { 0, -5, INT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
		struct api *api = begin();
		server.is_there = true;
		server.version = 7;
		server.duration = durations[i];
		snprintf(server.holder, sizeof server.holder, "z");
		open_one(0, api);
		play_until(14 * SECOND);
		assert_int_equal(server.writes, 0);
		play_until(20 * SECOND);
		assert_int_equal(replicas[0].won, 1);
		assert_string_equal(server.holder, "a");
		close_all();
	}
}

/* Whatever the network does, two never lead; and when it is well again, one does. */
static void never_two(void **state)
{
	(void)state;
	int won = 0;
	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct api *api = begin();
		server.random = random_stream(seed, "lease");
		server.is_wild = true;
		for (size_t i = 0; i < REPLICAS; i++)
			open_one(i, api);
		for (int turn = 0; turn < 60; turn++) {
			if (below(3) == 0) {
				size_t i = below(REPLICAS);
				replicas[i].is_cut_off = !replicas[i].is_cut_off;
			}
			play_until(play_now() + (millis)below(10000));
		}
		server.is_wild = false;
		for (size_t i = 0; i < REPLICAS; i++)
			replicas[i].is_cut_off = false;
		play_until(play_now() + MINUTE);
		int leading = 0;
		for (size_t i = 0; i < REPLICAS; i++) {
			leading += replicas[i].is_leading;
			won += replicas[i].won;
			assert_int_equal(replicas[i].is_leading, lease_is_held(replicas[i].lease));
			assert_string_equal(lease_holder(replicas[i].lease), server.holder);
		}
		if (leading != 1)
			fail_msg("seed %llu: %d lead", (unsigned long long)seed, leading);
		close_all();
	}
	assert_true(won > 300); /* it changed hands often */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_wins_and_keeps_it),
		cmocka_unit_test(given_back_it_is_taken_at_once),
		cmocka_unit_test(cut_off_it_stops_before_the_next_begins),
		cmocka_unit_test(another_holder_is_believed),
		cmocka_unit_test(times_that_cannot_work),
		cmocka_unit_test(a_lease_without_a_duration),
		cmocka_unit_test(never_two),
	};

	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
