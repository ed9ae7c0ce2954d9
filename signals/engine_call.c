#include "signals/engine_call.h"

#include "base/arena.h"
#include "base/decode.h"
#include "base/json.h"

#include <string.h>

static const size_t MOST_ANSWER = (size_t)64 << 10;
static const millis POLL = 100;

enum { MARK = -1 }; /* the move of a row that names the engine of those behind it */

struct step {
	int move, level; /* of a mark: the engine */
	const char *path, *body;
};

#define ENGINE(id, name, image, slots) { MARK, ENGINE_##id, NULL, NULL },
#define METRIC(...)
#define SLEEP_STEP(move, level, path, body) { MOVE_##move, level, path, body },
static const struct step steps[] = {
#include "signals/engines/all.def"
};
#undef ENGINE
#undef METRIC

/* The first row from `at` on for this move and level, `engine` being that of the row before. NULL: there is none. */
static const struct step *find_step(enum engine engine, enum engine_move move, int level, size_t at)
{
	const size_t all = sizeof steps / sizeof *steps;
	bool is_here = at > 0;

	for (size_t i = at; i < all; i++) {
		if (steps[i].move == MARK && is_here)
			return NULL;
		if (steps[i].move == MARK)
			is_here = steps[i].level == (int)engine;
		else if (is_here && steps[i].move == (int)move && steps[i].level == level)
			return &steps[i];
	}
	return NULL;
}

bool engine_can_sleep(enum engine engine, int level)
{
	return find_step(engine, MOVE_SLEEP, level, 0) != NULL;
}

bool engine_tells_sleep(enum engine engine)
{
	return find_step(engine, MOVE_LOOK, 0, 0) != NULL;
}

static const struct step *look_step(const struct engine_call *c)
{
	return find_step(c->engine, MOVE_LOOK, 0, 0);
}

static millis elapsed(const struct engine_call *c)
{
	return clock_mono(c->clock) - c->began;
}

static void finish(struct engine_call *c, const struct error *e)
{
	c->error = c->is_cancelled ? (struct error){ 0 } : *e;
	if (c->is_cancelled)
		error_set(&c->error, ERROR_CANCELLED, "cancelled");
	c->took = c->was_sent ? clock_mono(c->clock) - c->sent : 0;
	timer_stop(&c->timer);
	http_auth_shown_release(&c->shown);
	page_close(c->page);
	c->page = NULL;
	buf_release(&c->url);
	buf_release(&c->answer);
	buf_release(&c->body);
	arena_release(&c->arena);
	c->answered = NULL;
	c->done(c);
}

static void finish_well(struct engine_call *c)
{
	finish(c, &(struct error){ 0 });
}

static void on_refused(struct timer *t)
{
	struct engine_call *c = t->user;
	struct error e = c->lost;

	finish(c, &e);
}

/* Fails from the loop, with what stands in `lost`. */
static void refuse(struct engine_call *c)
{
	timer_start(c->loop, &c->timer, 0, on_refused);
}

/* --- one request --- */

static bool on_chunk(struct http_request *r, const char *bytes, size_t len)
{
	struct engine_call *c = r->user;

	if (c->page)
		return page_feed(c->page, bytes, len, &r->error);
	if (c->answer.len + len > MOST_ANSWER)
		return error_set(&r->error, ERROR_INVALID, "the answer is longer than %zu bytes", MOST_ANSWER);
	buf_append(&c->answer, bytes, len);
	return true;
}

static void on_answer(struct http_request *r)
{
	struct engine_call *c = r->user;
	struct error e = r->error;

	c->was_answered = e.kind == ERROR_NONE;
	if (c->was_answered && r->status / 100 != 2)
		error_set(&e, http_status_kind(r->status), "%s: HTTP status %ld%s", c->url.text, r->status,
			  r->status == 404 ? ": it does not serve this; was it started with the flags for sleep?" : "");
	if (c->is_cancelled)
		finish(c, &e);
	else
		c->answered(c, &e);
}

/* `body` NULL: reads. The answer goes to `answered`. */
static void ask(struct engine_call *c, const char *path, const char *body, millis timeout,
		void (*answered)(struct engine_call *c, const struct error *e))
{
	millis real = clock_real(c->clock, timeout > 1 ? timeout : 1);

	buf_clear(&c->url);
	buf_printf(&c->url, "%s%s", http_auth_url(c->server), path);
	buf_clear(&c->answer);
	c->answered = answered;
	c->request = (struct http_request){ .method = body ? "POST" : "GET",
					    .url = c->url.text,
					    .body = body,
					    .body_len = body ? strlen(body) : 0,
					    .is_write = body != NULL,
					    .timeout = real,
					    .max_response = MOST_ANSWER,
					    .on_chunk = on_chunk,
					    .done = on_answer,
					    .user = c };
	if (http_auth_show(c->server, body ? "Content-Type: application/json" : "Accept: */*", &c->request, &c->shown,
			   &c->lost))
		http_start(c->http, &c->request);
	else
		refuse(c);
}

static bool decode(struct engine_call *c, const struct record_spec *spec, void *out, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, c->answer.text, c->answer.len, &c->arena, out, e) ||
		  error_wrap(e, "%s", c->url.text);

	decode_plan_free(plan);
	return ok;
}

/* --- a token --- */

struct served_model {
	const char *id;
};
static const struct field model_fields[] = { { "id", FIELD_STRING, offsetof(struct served_model, id), true, NULL,
					       NULL } };
static const struct record_spec model_record = { "", sizeof(struct served_model), model_fields, 1 };
struct served_models {
	struct decoded_list data;
};
static const struct field models_fields[] = { { "data", FIELD_LIST, offsetof(struct served_models, data), true,
						&model_record, NULL } };
static const struct record_spec models_record = { "", sizeof(struct served_models), models_fields, 1 };

/* Who answers that it does not serve that, to us or at all, is awake: it embeds, ranks or wants a key. */
static void fail_warm_up(struct engine_call *c, const struct error *e)
{
	struct error told = *e;

	if (c->was_answered && c->request.status / 100 == 4) {
		finish_well(c);
		return;
	}
	error_wrap(&told, "awake, and gives no token");
	finish(c, &told);
}

static void on_token(struct engine_call *c, const struct error *e)
{
	if (e->kind == ERROR_NONE)
		finish_well(c);
	else
		fail_warm_up(c, e);
}

/* The first that it serves, in the call's arena; NULL with the error. */
static const char *read_model(struct engine_call *c, struct error *e)
{
	struct served_models served = { { NULL, 0 } };
	const struct served_model *first;

	if (!decode(c, &models_record, &served, e))
		return NULL;
	first = served.data.items;
	if (served.data.count && first)
		return first->id;
	error_set(e, ERROR_INVALID, "%s: it serves no model", c->url.text);
	return NULL;
}

static void on_models(struct engine_call *c, const struct error *told)
{
	struct error e = *told;
	const char *model = e.kind == ERROR_NONE ? read_model(c, &e) : NULL;

	if (!model) {
		fail_warm_up(c, &e);
		return;
	}
	buf_clear(&c->body);
	buf_text(&c->body, "{\"model\":");
	json_write_text(model, &c->body);
	buf_text(&c->body, ",\"prompt\":\"a\",\"max_tokens\":1}");
	ask(c, "/v1/completions", c->body.text, c->deadline - elapsed(c), on_token);
}

static void end_move(struct engine_call *c)
{
	if (c->move == MOVE_WAKE)
		ask(c, "/v1/models", NULL, c->deadline - elapsed(c), on_models);
	else
		finish_well(c);
}

/* --- how it is --- */

struct sleep_answer {
	bool is_sleeping;
};
static const struct field sleep_fields[] = { { "is_sleeping", FIELD_BOOL, offsetof(struct sleep_answer, is_sleeping),
					       true, NULL, NULL } };
static const struct record_spec sleep_record = { "", sizeof(struct sleep_answer), sleep_fields, 1 };

static bool take_look(struct engine_call *c, struct error *e)
{
	struct sleep_answer answer;

	if (e->kind != ERROR_NONE || !decode(c, &sleep_record, &answer, e))
		return false;
	c->told = answer.is_sleeping ? TOLD_ASLEEP : TOLD_AWAKE;
	return true;
}

static enum engine_told wanted(const struct engine_call *c)
{
	return c->move == MOVE_SLEEP ? TOLD_ASLEEP : TOLD_AWAKE;
}

static void confirm(struct engine_call *c);
static void read_page(struct engine_call *c, void (*answered)(struct engine_call *c, const struct error *e));
static bool take_page(struct engine_call *c, struct error *e);

static void on_poll(struct timer *t)
{
	struct engine_call *c = t->user;

	if (c->is_cancelled)
		finish_well(c);
	else
		confirm(c);
}

/* `e`: why it is not known how it is. */
static void end_look(struct engine_call *c, bool is_known, struct error *e)
{
	if (is_known && c->told == wanted(c)) {
		end_move(c);
		return;
	}
	if (elapsed(c) < c->deadline) {
		timer_start(c->loop, &c->timer, clock_real(c->clock, POLL), on_poll);
		return;
	}
	if (is_known)
		error_set(e, ERROR_TIMEOUT, "%s: still %s after %lld ms", http_auth_url(c->server),
			  c->told == TOLD_ASLEEP ? "asleep" : "awake", (long long)elapsed(c));
	finish(c, c->lost.kind != ERROR_NONE ? &c->lost : e);
}

static void on_confirming_page(struct engine_call *c, const struct error *told)
{
	struct error e = *told;
	bool is_known = take_page(c, &e);

	end_look(c, is_known, &e);
}

/* The answer to a sleep comes as it is over. Where that was lost the page says so: who only pauses says that it sleeps,
 * and holds its memory still. */
static void on_confirmed(struct engine_call *c, const struct error *told)
{
	struct error e = *told;
	bool is_known = take_look(c, &e);

	if (is_known && c->told == TOLD_ASLEEP && c->move == MOVE_SLEEP && c->lost.kind != ERROR_NONE)
		read_page(c, on_confirming_page);
	else
		end_look(c, is_known, &e);
}

static void confirm(struct engine_call *c)
{
	const struct step *look = look_step(c);

	if (look) {
		ask(c, look->path, NULL, ENGINE_LOOK_TIMEOUT, on_confirmed);
		return;
	}
	c->told = wanted(c);
	end_move(c);
}

/* --- the move --- */

static void send_step(struct engine_call *c);

/* A refusal ends it. An answer that was lost says nothing: whether the last step was done, the server says itself. */
static void on_step(struct engine_call *c, const struct error *e)
{
	bool is_last = !find_step(c->engine, c->move, c->level, c->step);

	if (e->kind != ERROR_NONE && (c->was_answered || !is_last || !look_step(c))) {
		finish(c, e);
		return;
	}
	c->lost = *e;
	send_step(c);
}

static void send_step(struct engine_call *c)
{
	const struct step *s = find_step(c->engine, c->move, c->level, c->step);

	if (!s) {
		confirm(c);
		return;
	}
	c->step = (size_t)(s - steps) + 1;
	if (!c->was_sent)
		c->sent = clock_mono(c->clock);
	c->was_sent = true;
	ask(c, s->path, s->body, c->deadline - elapsed(c), on_step);
}

static void act(struct engine_call *c)
{
	struct error e;

	if (c->move == MOVE_LOOK || (c->move == MOVE_SLEEP && c->told == TOLD_ASLEEP)) {
		finish_well(c);
	} else if (c->told == wanted(c) && c->move == MOVE_WAKE) {
		end_move(c);
	} else if (c->move == MOVE_SLEEP && c->in_flight > 0) {
		error_set(&e, ERROR_CONFLICT, "%s: %lld requests run or wait there; it is put to sleep when none does",
			  http_auth_url(c->server), (long long)c->in_flight);
		finish(c, &e);
	} else {
		send_step(c);
	}
}

/*
 * It says that it sleeps, and its page that it is awake: it is on its way there, and holds its memory still; or a wake
 * was cut between two steps, as the first that wakes something sets the page. Then whether its weights are there nobody
 * knows, and they are loaded.
 */
static void weigh_page(struct engine_call *c, const struct page_content *seen)
{
	bool is_between = c->told == TOLD_ASLEEP && seen->rank[ENGINE_AWAKE] >= 0 && seen->sleep == SLEEP_NONE;

	if (c->move == MOVE_SLEEP && is_between)
		c->told = TOLD_AWAKE;
	if (c->move == MOVE_WAKE && seen->sleep == SLEEP_OFFLOADED)
		c->level = 1;
	else if (c->move == MOVE_WAKE && (seen->sleep == SLEEP_DISCARDED || is_between))
		c->level = 2;
}

static bool take_page(struct engine_call *c, struct error *e)
{
	struct page_content seen;
	bool is_read = e->kind == ERROR_NONE && page_finish(c->page, &seen, e);

	page_close(c->page);
	c->page = NULL;
	if (!is_read)
		return false;
	if (!c->was_sent)
		c->in_flight = seen.running + seen.waiting;
	weigh_page(c, &seen);
	page_content_release(&seen);
	return true;
}

/* Only who is known to serve nobody is put to sleep. */
static void on_page(struct engine_call *c, const struct error *told)
{
	struct error e = *told;
	bool is_read = take_page(c, &e);

	if (!is_read && c->move == MOVE_SLEEP && c->told != TOLD_ASLEEP) {
		error_wrap(&e, "%s", c->url.text);
		finish(c, &e);
	} else {
		act(c);
	}
}

static void read_page(struct engine_call *c, void (*answered)(struct engine_call *c, const struct error *e))
{
	c->page = page_open(&c->table);
	ask(c, c->metrics_path, NULL, ENGINE_LOOK_TIMEOUT, answered);
}

static void on_first_look(struct engine_call *c, const struct error *told)
{
	struct error e = *told;

	if (take_look(c, &e))
		read_page(c, on_page);
	else
		finish(c, &e);
}

void engine_call_start(struct loop *loop, struct http *http, const struct clock *clock, struct engine_call *c)
{
	c->loop = loop;
	c->http = http;
	c->clock = clock;
	c->began = clock_mono(clock);
	c->step = 0;
	c->was_sent = c->is_cancelled = false;
	c->told = TOLD_NOTHING;
	c->in_flight = READING_UNKNOWN;
	c->lost = (struct error){ 0 };
	c->timer.user = c;
	c->table = page_table_make(c->engine, NULL, &c->arena);
	const struct step *look = look_step(c);
	if (c->move != MOVE_LOOK && !find_step(c->engine, c->move, c->level, 0)) {
		error_set(&c->lost, ERROR_INVALID, "%s: no server of %s sleeps on level %d", http_auth_url(c->server),
			  engine_traits(c->engine).name, c->level);
		refuse(c);
	} else if (look) {
		ask(c, look->path, NULL, ENGINE_LOOK_TIMEOUT, on_first_look);
	} else {
		read_page(c, on_page);
	}
}

void engine_call_cancel(struct engine_call *c)
{
	if (!c->answered && !timer_is_running(&c->timer))
		return;
	c->is_cancelled = true;
	if (timer_is_running(&c->timer))
		timer_start(c->loop, &c->timer, 0, on_poll);
	else
		http_cancel(&c->request);
}
