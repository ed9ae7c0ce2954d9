#include "tests/world/wire.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { HOSTS = 16, PAUSED = 4, MACHINES = 4 };
static const millis PAUSE_LOOK = 100;

/* What is due on a machine that is suspended is out of reach. */
static const millis STANDS_STILL = 100000 * DAY;

struct due {
	struct timer *timer;
	struct loop *loop; /* its; the timer's memory may be gone by mistake */
	millis at;
	bool is_late; /* not urgent */
	uint64_t number;
};

struct host {
	const char *prefix;
	void (*serve)(struct wire_call *c);
	millis ahead; /* its clock */
};

/* The wall clock of a machine, beside the true time. */
struct wall {
	millis ahead, since; /* since: when it was so */
	int64_t gains_permille;
};

struct http {
	struct http *next;
	struct loop *loop;
	int from;
	bool is_dead;
	millis write_until; /* 0: no limit */
	struct http_transfer *first;
	size_t active;
};

struct http_transfer {
	struct wire_call call; /* first: a call is its transfer */
	struct http *http;
	struct http_request *request; /* NULL: whoever asked is dead */
	struct http_transfer *next, **place;
	struct timer arrive, deliver, deadline, silence;
	char *method, *url, *body, *headers, *host_text, *if_match;
	struct buf answer;
	long status;
	bool has_arrived, is_over, is_settled, is_accepted;
	struct wire_fate fate;
	struct echo *echo; /* it is the second delivery of another; NULL: it is not */
};

/* Who waits for the answer to a second delivery: nobody. */
struct echo {
	struct http_request request;
	char *match_header;
	const char *headers[2];
};

static struct {
	struct clock clock;
	millis machine_ahead, servers_ahead;
	bool tells_no_date;
	millis steady; /* 0: as it comes */
	struct random random, uuids;
	struct due *dues; /* a heap */
	size_t count, room;
	uint64_t numbers;
	struct host hosts[HOSTS];
	size_t host_count;
	int from;
	int64_t events, calls;
	struct paused {
		struct loop *loop;
		bool is_suspended;
		millis since;
	} paused[PAUSED];
	struct wall walls[MACHINES];
	int machine; /* whose code runs; -1: the world's own */
	struct loop *buried;
	millis buried_ahead;
	struct wire_fate (*decide)(const struct wire_call *c);
	void (*answered)(const struct wire_call *c);
	bool (*is_unheard)(const struct wire_call *c);
	struct http echoes, *clients;
	millis wall_ahead;
} world;

/* --- time --- */

static bool is_sooner(const struct due *a, const struct due *b)
{
	if (a->at != b->at)
		return a->at < b->at;
	return a->is_late != b->is_late ? b->is_late : a->number < b->number;
}

static void put(size_t at, struct due d)
{
	world.dues[at] = d;
	d.timer->watcher.active = (int)at + 1;
}

static void sift_up(size_t at, struct due d)
{
	for (; at && is_sooner(&d, &world.dues[(at - 1) / 2]); at = (at - 1) / 2)
		put(at, world.dues[(at - 1) / 2]);
	put(at, d);
}

static void sift_down(size_t at, struct due d)
{
	for (size_t child; (child = 2 * at + 1) < world.count; at = child) {
		child += child + 1 < world.count && is_sooner(&world.dues[child + 1], &world.dues[child]);
		if (!is_sooner(&world.dues[child], &d))
			break;
		put(at, world.dues[child]);
	}
	put(at, d);
}

bool __wrap_timer_is_running(const struct timer *t);
bool __wrap_timer_is_running(const struct timer *t)
{
	return t->watcher.active > 0;
}

void __wrap_timer_stop(struct timer *t);
void __wrap_timer_stop(struct timer *t)
{
	if (t->watcher.active <= 0)
		return;
	size_t at = (size_t)t->watcher.active - 1;
	struct due last = world.dues[--world.count];
	t->watcher.active = 0;
	if (at == world.count)
		return;
	if (at && is_sooner(&last, &world.dues[(at - 1) / 2]))
		sift_up(at, last);
	else
		sift_down(at, last);
}

millis __wrap_loop_now(const struct loop *l);
millis __wrap_loop_now(const struct loop *l)
{
	return wire_now() + (l && l == world.buried ? world.buried_ahead : 0);
}

void __wrap_timer_start(struct loop *l, struct timer *t, millis after, void (*fire)(struct timer *t));
void __wrap_timer_start(struct loop *l, struct timer *t, millis after, void (*fire)(struct timer *t))
{
	assert(after >= 0 && fire);
	__wrap_timer_stop(t);
	t->loop = l;
	t->fire = fire;
	if (world.count == world.room) {
		world.room = world.room ? 2 * world.room : 256;
		world.dues = realloc(world.dues, world.room * sizeof *world.dues);
		if (!world.dues)
			abort();
	}
	sift_up(world.count++, (struct due){ t, l, __wrap_loop_now(l) + after, !t->is_urgent, ++world.numbers });
}

/* What counts in the machine's own time counts in this one. */
millis __wrap_clock_now(const struct clock *c);
millis __wrap_clock_now(const struct clock *c)
{
	const struct wall *w = world.machine < 0 ? NULL : &world.walls[world.machine];
	millis own = w ? w->ahead + (wire_now() - w->since) * w->gains_permille / 1000 : 0;

	return WIRE_EPOCH + wire_now() + c->ahead + world.machine_ahead + world.wall_ahead + own;
}

millis __wrap_clock_mono(const struct clock *c);
millis __wrap_clock_mono(const struct clock *c)
{
	(void)c;
	return wire_now();
}

millis wire_now(void)
{
	return world.clock.mono;
}

struct clock *wire_clock(void)
{
	return &world.clock;
}

struct random *wire_random(void)
{
	return &world.random;
}

void wire_turn_one_wall(int machine, millis ahead, int64_t gains_permille)
{
	world.walls[machine] = (struct wall){ ahead, wire_now(), gains_permille };
}

int wire_enter(int machine)
{
	int before = world.machine;

	world.machine = machine;
	return before;
}

void wire_turn_wall(millis ahead)
{
	world.wall_ahead = ahead;
}

void wire_count(int64_t *events, int64_t *calls)
{
	*events = world.events;
	*calls = world.calls;
}

void wire_begin(uint64_t seed)
{
	free(world.dues);
	memset(&world, 0, sizeof world);
	world.clock = clock_open_by_hand(WIRE_EPOCH);
	world.random = random_stream(seed, "wire");
	world.uuids = random_stream(seed, "uuids");
	world.machine = -1;
}

/* Timers of a loop that run now, moved by so much. */
static void move_dues(const struct loop *l, millis by)
{
	for (size_t i = 0; i < world.count; i++)
		if (world.dues[i].loop == l && (by > 0 || world.dues[i].at >= STANDS_STILL))
			world.dues[i].at += by;
	for (size_t i = world.count; i-- > 0;)
		sift_down(i, world.dues[i]);
}

static void stand_still(struct loop *l, bool is_suspended)
{
	size_t at = 0;

	while (world.paused[at].loop)
		at++;
	world.paused[at] = (struct paused){ l, is_suspended, wire_now() };
	if (is_suspended)
		move_dues(l, STANDS_STILL);
}

void wire_pause(struct loop *l, bool is_paused)
{
	size_t at = 0;

	if (is_paused) {
		stand_still(l, false);
		return;
	}
	while (world.paused[at].loop != l)
		at++;
	if (world.paused[at].is_suspended)
		move_dues(l, wire_now() - world.paused[at].since - STANDS_STILL);
	world.paused[at].loop = NULL;
}

void wire_suspend(struct loop *l)
{
	stand_still(l, true);
}

static bool is_paused(const struct loop *l)
{
	for (size_t i = 0; i < PAUSED; i++)
		if (l && world.paused[i].loop == l)
			return true;
	return false;
}

static int machine_of(const struct loop *l)
{
	for (const struct http *h = world.clients; h && l; h = h->next)
		if (h->loop == l)
			return h->from;
	return -1;
}

bool wire_step(millis until)
{
	if (!world.count || world.dues[0].at > until) {
		if (until > wire_now())
			clock_turn(&world.clock, until - wire_now());
		return false;
	}
	struct due d = world.dues[0];
	__wrap_timer_stop(d.timer);
	if (d.at > wire_now())
		clock_turn(&world.clock, d.at - wire_now());
	world.events++;
	if (is_paused(d.loop)) { /* together with all else that is due, urgent ones first */
		millis next = (wire_now() / PAUSE_LOOK + 1) * PAUSE_LOOK;
		__wrap_timer_start(d.loop, d.timer, next - wire_now(), d.timer->fire);
		return true;
	}
	int before = wire_enter(machine_of(d.loop));
	d.timer->fire(d.timer);
	wire_enter(before);
	return true;
}

void __wrap_uuid_write(char out[37]);
void __wrap_uuid_write(char out[37])
{
	snprintf(out, 37, "%016llx-%016llx", (unsigned long long)random_next(&world.uuids),
		 (unsigned long long)random_next(&world.uuids));
}

/* --- the network --- */

void wire_from(int who)
{
	world.from = who;
}

void wire_host(const char *prefix, void (*serve)(struct wire_call *c))
{
	assert(world.host_count < HOSTS);
	world.hosts[world.host_count++] = (struct host){ .prefix = prefix, .serve = serve };
}

void wire_host_ahead(const char *url, millis ahead)
{
	for (size_t i = 0; i < world.host_count; i++)
		if (!strncmp(world.hosts[i].prefix, url, strlen(url)))
			world.hosts[i].ahead = ahead;
}

static const struct host *host_of(const char *url)
{
	const struct host *best = NULL;

	for (size_t i = 0; i < world.host_count; i++)
		if (!strncmp(world.hosts[i].prefix, url, strlen(world.hosts[i].prefix)))
			best = &world.hosts[i];
	return best;
}

millis wire_host_wall(const char *url, millis at)
{
	const struct host *h = host_of(url);

	return WIRE_EPOCH + at + (h ? h->ahead : 0);
}

static millis delay(void)
{
	return world.steady ? world.steady : 1 + (millis)(random_next(&world.random) % 12);
}

void wire_machine_ahead(millis by)
{
	world.machine_ahead = by;
}

void wire_dates(bool are_told, millis ahead)
{
	world.tells_no_date = !are_told;
	world.servers_ahead = ahead;
}

void wire_steady(millis each)
{
	world.steady = each;
}

struct http *__wrap_http_open(struct loop *loop, const char *agent, struct error *e);
struct http *__wrap_http_open(struct loop *loop, const char *agent, struct error *e)
{
	struct http *h = calloc(1, sizeof *h);

	(void)agent;
	(void)e;
	if (!h)
		abort();
	h->loop = loop;
	h->from = world.from;
	h->next = world.clients;
	world.clients = h;
	return h;
}

void __wrap_http_close(struct http *h);
void __wrap_http_close(struct http *h)
{
	assert(!h || !h->active);
	for (struct http **at = &world.clients; *at; at = &(*at)->next)
		if (*at == h) {
			*at = h->next;
			break;
		}
	free(h);
}

bool wire_carries(const char *text)
{
	for (const struct http *h = world.clients; h; h = h->next)
		for (const struct http_transfer *t = h->first; t; t = t->next)
			if (!t->has_arrived && strcmp(t->method, "GET") != 0 &&
			    (strstr(t->url, text) || (t->body && strstr(t->body, text))))
				return true;
	return false;
}

size_t __wrap_http_active(const struct http *h);
size_t __wrap_http_active(const struct http *h)
{
	return h->active;
}

static void stop_timers(struct http_transfer *t)
{
	__wrap_timer_stop(&t->arrive);
	__wrap_timer_stop(&t->deliver);
	__wrap_timer_stop(&t->deadline);
	__wrap_timer_stop(&t->silence);
}

static void transfer_free(struct http_transfer *t)
{
	stop_timers(t);
	free(t->method);
	free(t->url);
	free(t->body);
	free(t->headers);
	free(t->host_text);
	free(t->if_match);
	buf_release(&t->answer);
	free(t);
}

static void complete(struct http_transfer *t)
{
	struct http_request *r = t->request;

	stop_timers(t);
	if (t->call.gone)
		t->call.gone(&t->call);
	t->call.gone = NULL;
	*t->place = t->next;
	if (t->next)
		t->next->place = t->place;
	t->http->active--;
	r->transfer = NULL;
	r->answered = t;
	r->status = r->error.kind == ERROR_NONE ? t->status : 0;
	bool is_gathered = t->answer.text && (!r->on_chunk || t->status < 200 || t->status > 299);
	r->response = is_gathered ? t->answer.text : "";
	r->response_len = is_gathered ? t->answer.len : 0;
	if (r->error.kind == ERROR_NONE && r->response_len > r->max_response)
		error_set(&r->error, ERROR_INVALID, "%s %s: the answer is too long", t->method, t->url);
	r->done(r);
	transfer_free(t);
}

static void completed(struct timer *timer)
{
	complete(timer->user);
}

static void settle_as(struct http_transfer *t, enum error_kind kind, const char *why)
{
	if (t->is_settled)
		return;
	if (t->call.gone)
		t->call.gone(&t->call);
	t->call.gone = NULL;
	t->is_settled = true;
	if (kind != ERROR_NONE)
		error_set(&t->request->error, kind, "%s %.*s: %s", t->method, (int)strcspn(t->url, "?"), t->url, why);
	stop_timers(t);
	t->deliver.user = t;
	__wrap_timer_start(t->http->loop, &t->deliver, 0, completed);
}

static void too_late(struct timer *timer)
{
	settle_as(timer->user, ERROR_TIMEOUT, "no answer in time");
}

static void hear(struct http_transfer *t)
{
	struct http_request *r = t->request;

	if (!r->silence_timeout)
		return;
	t->silence.user = t;
	__wrap_timer_start(t->http->loop, &t->silence, r->silence_timeout, too_late);
}

static void deliver(struct timer *timer)
{
	struct http_transfer *t = timer->user;
	struct http_request *r = t->request;
	bool was_settled = t->is_settled;

	if (world.is_unheard && !t->echo && world.is_unheard(&t->call)) {
		__wrap_timer_start(t->http->loop, &t->deliver, SECOND, deliver);
		return;
	}
	if (world.answered && !t->echo && !was_settled)
		world.answered(&t->call);
	if (t->http->is_dead)
		return;
	bool is_streamed = r->on_chunk && t->status >= 200 && t->status <= 299;

	hear(t);
	r->status = t->status;
	r->answered = t;
	if (is_streamed && !t->is_accepted && r->on_accepted)
		r->on_accepted(r);
	t->is_accepted = true;
	if (is_streamed && !t->is_settled && t->answer.len) {
		struct buf part = t->answer;
		t->answer = (struct buf){ 0 };
		bool goes_on = r->on_chunk(r, part.text, part.len);
		buf_release(&part);
		if (!goes_on && !t->is_settled) {
			if (r->error.kind == ERROR_NONE)
				error_set(&r->error, ERROR_CANCELLED, "cancelled");
			settle_as(t, ERROR_NONE, "");
		}
	}
	if (t->is_over && !t->is_settled)
		complete(t);
}

static void deliver_soon(struct http_transfer *t)
{
	if (t->is_settled || t->http->is_dead || __wrap_timer_is_running(&t->deliver))
		return;
	t->deliver.user = t;
	__wrap_timer_start(t->http->loop, &t->deliver, delay(), deliver);
}

void wire_answer(struct wire_call *c, long status, const char *headers, const char *body)
{
	wire_answer_bytes(c, status, headers, body, strlen(body));
}

void wire_answer_bytes(struct wire_call *c, long status, const char *headers, const char *body, size_t len)
{
	struct http_transfer *t = (struct http_transfer *)c;

	assert(!t->is_over);
	t->is_over = true;
	t->status = status;
	t->headers = headers ? strdup(headers) : NULL;
	t->answer.cap = (size_t)64 << 20;
	buf_append(&t->answer, body, t->fate.is_answer_half ? len / 2 : len);
	if (t->fate.is_answer_lost)
		settle_as(t, ERROR_UNAVAILABLE, "the connection broke");
	else
		deliver_soon(t);
}

void wire_push(struct wire_call *c, const char *bytes, size_t len)
{
	struct http_transfer *t = (struct http_transfer *)c;

	t->status = 200;
	t->answer.cap = (size_t)64 << 20;
	buf_append(&t->answer, bytes, len);
	deliver_soon(t);
}

void wire_close(struct wire_call *c)
{
	struct http_transfer *t = (struct http_transfer *)c;

	t->is_over = true;
	t->status = 200;
	deliver_soon(t);
}

void wire_cut(struct wire_call *c)
{
	settle_as((struct http_transfer *)c, ERROR_UNAVAILABLE, "the connection was lost");
}

static void arrive(struct timer *timer)
{
	struct http_transfer *t = timer->user;
	const struct host *h = host_of(t->url);

	t->has_arrived = true;
	world.calls++;
	if (h)
		h->serve(&t->call);
	else
		settle_as(t, ERROR_UNAVAILABLE, "no such host");
}

static void echo_done(struct http_request *r)
{
	struct echo *echo = (struct echo *)r;

	free(echo->match_header);
	free((char *)r->url);
	free((char *)r->method);
	free((char *)r->body);
	free(echo);
}

static char *owned(const char *text, size_t len)
{
	char *copy = text ? strndup(text, len) : strdup("");

	if (!copy)
		abort();
	return copy;
}

static const char *header_of(const struct http_request *r, const char *name)
{
	size_t len = strlen(name);

	for (const char *const *h = r->headers; h && *h; h++)
		if (!strncasecmp(*h, name, len) && (*h)[len] == ':')
			return *h + len + 1 + strspn(*h + len + 1, " ");
	return "";
}

static void begin(struct http *h, struct http_request *r, struct echo *echo, millis later);

/* The network delivers it a second time. */
static void repeat(const struct http_transfer *t)
{
	struct echo *echo = calloc(1, sizeof *echo);

	if (!echo)
		abort();
	echo->request = (struct http_request){ .method = owned(t->method, strlen(t->method)),
					       .url = owned(t->url, strlen(t->url)),
					       .body = owned(t->body, strlen(t->body)),
					       .body_len = strlen(t->body),
					       .timeout = MINUTE,
					       .max_response = (size_t)64 << 20,
					       .done = echo_done };
	if (*t->call.if_match) {
		size_t size = strlen(t->call.if_match) + sizeof "If-Match: ";
		echo->match_header = calloc(1, size);
		if (!echo->match_header)
			abort();
		snprintf(echo->match_header, size, "If-Match: %s", t->call.if_match);
		echo->headers[0] = echo->match_header;
		echo->request.headers = echo->headers;
	}
	world.echoes.from = t->call.from;
	begin(&world.echoes, &echo->request, echo, (millis)(random_next(&world.random) % (2 * SECOND)));
}

void wire_on_leave(struct wire_fate (*decide)(const struct wire_call *c))
{
	world.decide = decide;
}

void wire_on_answer(void (*answered)(const struct wire_call *c))
{
	world.answered = answered;
}

void wire_on_hear(bool (*is_unheard)(const struct wire_call *c))
{
	world.is_unheard = is_unheard;
}

void wire_silence(struct http *h)
{
	h->is_dead = true;
}

static void depart(struct http_transfer *t, millis later)
{
	if (!t->echo && world.decide)
		t->fate = world.decide(&t->call);
	if (t->fate.is_last) {
		arrive(&t->arrive);
		return;
	}
	if (t->http->is_dead || t->fate.is_refused) {
		settle_as(t, ERROR_UNAVAILABLE, "no connection");
		return;
	}
	if (!t->fate.is_swallowed)
		__wrap_timer_start(t->fate.is_held ? t->http->loop : NULL, &t->arrive, delay() + t->fate.slow + later,
				   arrive);
	if (t->fate.is_twice)
		repeat(t);
}

void __wrap_http_start(struct http *h, struct http_request *r);
void __wrap_http_start(struct http *h, struct http_request *r)
{
	begin(h, r, NULL, 0);
}

static void begin(struct http *h, struct http_request *r, struct echo *echo, millis later)
{
	struct http_transfer *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	assert(!r->transfer && r->max_response && (r->timeout || r->silence_timeout));
	r->error = (struct error){ 0 };
	r->status = 0;
	r->response = "";
	r->response_len = 0;
	r->answered = NULL;
	r->transfer = t;
	t->http = h;
	t->request = r;
	t->method = owned(r->method, strlen(r->method));
	t->url = owned(r->url, strlen(r->url));
	t->body = owned(r->body, r->body_len);
	const char *host = strstr(t->url, "://");
	host = host ? host + 3 : t->url;
	size_t host_len = (size_t)(host - t->url) + strcspn(host, "/");
	t->host_text = owned(t->url, host_len);
	t->call = (struct wire_call){
		.method = t->method, .path = t->url + host_len, .host = t->host_text, .body = t->body, .from = h->from
	};
	t->echo = echo;
	t->call.is_again = echo != NULL;
	t->if_match = owned(header_of(r, "If-Match"), strlen(header_of(r, "If-Match")));
	t->call.if_match = t->if_match;
	t->next = h->first;
	t->place = &h->first;
	if (t->next)
		t->next->place = &t->next;
	h->first = t;
	h->active++;
	if (h->is_dead) {
		settle_as(t, ERROR_UNAVAILABLE, "dead");
		return;
	}
	t->arrive.user = t->deadline.user = t;
	if (!echo && r->is_write && h->write_until && wire_now() >= h->write_until) {
		settle_as(t, ERROR_UNAVAILABLE, "not sent: the time to write ran out");
		return;
	}
	depart(t, later);
	if (t->is_settled)
		return;
	if (r->timeout)
		__wrap_timer_start(h->loop, &t->deadline, r->timeout, too_late);
	hear(t);
}

void __wrap_http_cancel(struct http_request *r);
void __wrap_http_cancel(struct http_request *r)
{
	if (r->transfer)
		settle_as(r->transfer, ERROR_CANCELLED, "cancelled");
}

void __wrap_http_cancel_all(struct http *h);
void __wrap_http_cancel_all(struct http *h)
{
	for (struct http_transfer *t = h->first; t; t = t->next)
		settle_as(t, ERROR_CANCELLED, "cancelled");
}

void __wrap_http_write_until(struct http *h, millis until);
void __wrap_http_write_until(struct http *h, millis until)
{
	for (struct http_transfer *t = h->write_until && wire_now() >= h->write_until ? h->first : NULL; t; t = t->next)
		if (t->request->is_write)
			settle_as(t, ERROR_UNAVAILABLE, "the time to write ran out");
	h->write_until = until;
}

const char *__wrap_http_header(const struct http_request *r, const char *name);
const char *__wrap_http_header(const struct http_request *r, const char *name)
{
	static char value[256];
	const char *line = r->answered ? r->answered->headers : NULL;

	if (r->answered && !strcmp(name, "Date")) {
		time_t at = (time_t)((wire_host_wall(r->url, wire_now()) + world.servers_ahead) / SECOND);
		if (world.tells_no_date)
			return NULL;
		struct tm t;
		strftime(value, sizeof value, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&at, &t));
		return value;
	}

	for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t len = strlen(name);
		if (!strncasecmp(line, name, len) && line[len] == ':') {
			const char *from = line + len + 1 + strspn(line + len + 1, " ");
			snprintf(value, sizeof value, "%.*s", (int)strcspn(from, "\n"), from);
			return value;
		}
	}
	return NULL;
}

void wire_kill(struct http *h)
{
	h->is_dead = true;
	for (struct http_transfer *t = h->first; t; t = t->next) {
		if (t->is_settled)
			continue;
		if (!t->has_arrived && random_next(&world.random) % 2)
			arrive(&t->arrive);
		if (t->is_settled) /* it was cut as it arrived */
			continue;
		__wrap_timer_stop(&t->arrive);
		__wrap_timer_stop(&t->deliver);
		if (random_next(&world.random) % 2) /* it fails in the round in which the process ends */
			settle_as(t, ERROR_UNAVAILABLE, "the connection broke");
	}
}

size_t wire_forget(const struct loop *l)
{
	size_t count = 0;

	for (size_t i = 0; i < world.count;) {
		if (world.dues[i].loop != l) {
			i++;
			continue;
		}
		count++;
		world.dues[i] = world.dues[--world.count];
	}
	for (size_t i = world.count; count && i-- > 0;)
		sift_down(i, world.dues[i]);
	return count;
}

static struct timer *next_buried(const struct loop *l)
{
	const struct due *best = NULL;

	for (size_t i = 0; i < world.count; i++)
		if (world.dues[i].loop == l && (!best || is_sooner(&world.dues[i], best)))
			best = &world.dues[i];
	if (!best)
		return NULL;
	if (best->at > __wrap_loop_now(l))
		world.buried_ahead = best->at - wire_now();
	return best->timer;
}

void wire_bury(struct loop *l, bool (*is_over)(void *user), void *user)
{
	world.buried = l;
	world.buried_ahead = 0;
	int before = wire_enter(machine_of(l));
	for (int steps = 0; !is_over(user); steps++) {
		struct timer *t = next_buried(l);
		if (!t || steps > 100000) {
			fprintf(stderr, "a dead process does not end: %d steps, %s\n", steps,
				t ? "and more" : "nothing due");
			abort();
		}
		__wrap_timer_stop(t);
		t->fire(t);
	}
	wire_enter(before);
	world.buried = NULL;
}

void wire_end(void)
{
	__wrap_http_cancel_all(&world.echoes);
	while (world.echoes.first)
		complete(world.echoes.first);
	free(world.dues);
	memset(&world, 0, sizeof world);
}
