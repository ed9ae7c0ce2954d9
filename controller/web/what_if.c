#include "controller/web/what_if.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/decode.h"
#include "base/json.h"
#include "base/net/process.h"
#include "controller/policy/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAITING_MOST = 4, KEPT_MOST = 20, NICENESS = 10, ARGUMENTS_MOST = 32 };
#define DEADLINE    (10 * MINUTE)
#define OUTPUT_MOST ((size_t)256 << 10)

struct what_ifs {
	struct what_ifs_setup setup;
	struct clock clock;
	struct what_if *newest;
	struct what_if *running;
	struct process process;
	struct arena arena; /* of what runs */
	struct timer start;
	struct buf line; /* of its standard error, not yet ended */
	char last_words[512];
	int64_t last_id;
	bool is_closing;
};

static void start_next(struct timer *t);

static bool is_open(const struct what_if *j)
{
	return j->state == WHAT_IF_QUEUED || j->state == WHAT_IF_RUNNING;
}

static void end(struct what_ifs *w, struct what_if *j, enum what_if_state state)
{
	j->state = state;
	j->ended_at = clock_now(&w->clock);
}

/* --- what the command says --- */

struct figure_row {
	const char *figure;
	struct decoded_text recorded, same, changed;
};

static const struct field row_fields[] = {
	FIELD(struct figure_row, figure, FIELD_STRING, "figure"),
	FIELD(struct figure_row, recorded, FIELD_RAW, "recorded"),
	FIELD(struct figure_row, same, FIELD_RAW, "model_same"),
	FIELD(struct figure_row, changed, FIELD_RAW, "model_with"),
};
static const struct record_spec row_record = { "[]", sizeof(struct figure_row), row_fields, 4 };

static const struct {
	const char *figure;
	size_t offset;
} figures[] = {
	{ "requests", offsetof(struct what_if_figures, requests) },
	{ "late requests", offsetof(struct what_if_figures, late) },
	{ "GPU hours", offsetof(struct what_if_figures, gpu_hours) },
	{ "dollars", offsetof(struct what_if_figures, dollars) },
	{ "machines started", offsetof(struct what_if_figures, starts) },
	{ "late allowed, %", offsetof(struct what_if_figures, allowed) },
	{ "dollars by shadows", offsetof(struct what_if_figures, by_shadows) },
};

static void set(struct what_if_figures *f, size_t offset, const struct decoded_text *text)
{
	int64_t value;

	if (decoded_number(text, 6, &value))
		memcpy((char *)f + offset, &value, sizeof value);
}

static bool take_row(void *user, void *record, struct error *e)
{
	const struct figure_row *r = record;
	struct what_if *j = user;

	(void)e;
	for (size_t i = 0; r->figure && i < sizeof figures / sizeof *figures; i++) {
		if (strcmp(figures[i].figure, r->figure) != 0)
			continue;
		set(&j->recorded, figures[i].offset, &r->recorded);
		set(&j->same, figures[i].offset, &r->same);
		set(&j->changed, figures[i].offset, &r->changed);
	}
	return true;
}

static bool read_result(struct what_if *j, const char *text, size_t len, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&row_record);
	struct decoder *d =
		decoder_open(&(struct decoder_setup){ .name = "replay", .records = plan, .emit = take_row, .user = j });
	bool ok = decoder_feed(d, text, len, e) && decoder_finish(d, e);

	decoder_close(d);
	decode_plan_free(plan);
	return ok;
}

/* {"progress":0.42}, or words. */
static void take_line(struct what_ifs *w, const char *line)
{
	static const char progress[] = "{\"progress\":";
	size_t len = strlen(progress);
	int64_t percent;

	if (strncmp(line, progress, len) != 0)
		snprintf(w->last_words, sizeof w->last_words, "%s", line);
	else if (decimal_parse(line + len, strcspn(line + len, "}"), 2, &percent) == DECIMAL_OK && percent <= 100)
		w->running->percent = percent;
}

static void on_complaint(struct process *p, const char *bytes, size_t len)
{
	struct what_ifs *w = p->user;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != '\n') {
			buf_append(&w->line, &bytes[i], 1);
			continue;
		}
		if (w->line.len)
			take_line(w, w->line.text);
		buf_clear(&w->line);
	}
}

static void on_done(struct process *p)
{
	struct what_ifs *w = p->user;
	struct what_if *j = w->running;
	struct error e = p->error;
	bool ok = e.kind == ERROR_NONE && !p->exit_code && read_result(j, p->output, p->output_len, &e);

	end(w, j, ok ? WHAT_IF_DONE : e.kind == ERROR_CANCELLED ? WHAT_IF_CANCELLED : WHAT_IF_FAILED);
	j->percent = ok ? 100 : j->percent;
	if (j->state == WHAT_IF_FAILED)
		snprintf(j->message, sizeof j->message, "%s",
			 e.kind != ERROR_NONE ? e.message
			 : *w->last_words     ? w->last_words
					      : "it ended without an answer");
	w->running = NULL;
	arena_clear(&w->arena);
	if (!w->is_closing)
		timer_start(w->setup.loop, &w->start, 0, start_next);
}

/* --- the queue --- */

static const char *time_text(struct arena *a, millis at)
{
	char text[64];
	struct tm tm;
	time_t seconds = (time_t)(at / SECOND);

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return arena_strdup(a, text, strlen(text));
}

static const char *of_pool(struct arena *a, const struct what_if_request *r, const char *value)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, "%s=%s", r->pool, value);
	return arena_strdup(a, text.text, text.len);
}

static const char **arguments(struct what_ifs *w, const struct what_if_request *r)
{
	const char **argv = arena_array(&w->arena, const char *, ARGUMENTS_MOST);
	const struct {
		const char *option, *value;
	} changes[] = { { "--objective", r->objective },
			{ "--violation-cost", r->violation_cost },
			{ "--budget", r->budget },
			{ "--max", r->max } };
	const char *always[] = { w->setup.program,
				 "replay",
				 "--progress",
				 "--output",
				 "json",
				 "--db",
				 w->setup.history,
				 "--pool",
				 r->pool,
				 "--from",
				 time_text(&w->arena, r->from),
				 "--to",
				 time_text(&w->arena, r->to) };
	size_t n = sizeof always / sizeof *always;

	memcpy(argv, always, sizeof always);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		if (*changes[i].value) {
			argv[n++] = changes[i].option;
			argv[n++] = of_pool(&w->arena, r, changes[i].value);
		}
	return argv;
}

/* The oldest that waits. */
static struct what_if *next_of(const struct what_ifs *w)
{
	struct what_if *found = NULL;

	for (struct what_if *j = w->newest; j; j = j->next)
		if (j->state == WHAT_IF_QUEUED)
			found = j;
	return found;
}

static void start_next(struct timer *t)
{
	struct what_ifs *w = t->user;
	struct what_if *j = next_of(w);

	if (!j || w->running)
		return;
	j->state = WHAT_IF_RUNNING;
	w->running = j;
	buf_clear(&w->line);
	*w->last_words = '\0';
	w->process = (struct process){ .argv = arguments(w, &j->request),
				       .timeout = DEADLINE,
				       .max_output = OUTPUT_MOST,
				       .niceness = NICENESS,
				       .on_complaint = on_complaint,
				       .done = on_done,
				       .user = w };
	process_start(w->setup.loop, &w->process);
}

/* Those that ended longest ago. */
static void drop_old(struct what_ifs *w)
{
	int kept = 0;

	for (struct what_if **at = &w->newest; *at;) {
		struct what_if *j = *at;

		if (is_open(j) || ++kept <= KEPT_MOST) {
			at = &j->next;
			continue;
		}
		*at = j->next;
		free(j);
	}
}

static bool is_same(const struct what_if_request *a, const struct what_if_request *b)
{
	return !strcmp(a->pool, b->pool) && !strcmp(a->objective, b->objective) &&
	       !strcmp(a->violation_cost, b->violation_cost) && !strcmp(a->budget, b->budget) &&
	       !strcmp(a->max, b->max) && a->from == b->from && a->to == b->to;
}

static bool check_room(const struct what_ifs *w, const struct what_if_request *r, struct error *e)
{
	int waiting = 0;

	for (const struct what_if *j = w->newest; j; j = j->next) {
		waiting += j->state == WHAT_IF_QUEUED;
		if (is_open(j) && is_same(&j->request, r))
			return error_set(e, ERROR_CONFLICT, "the same one %s already: what-if %" PRId64,
					 j->state == WHAT_IF_QUEUED ? "waits" : "runs", j->id);
	}
	return waiting < WAITING_MOST ||
	       error_set(e, ERROR_THROTTLED, "%d wait already; wait for one, or cancel it", WAITING_MOST);
}

const struct what_if *what_ifs_add(struct what_ifs *w, const struct what_if_request *r, struct error *e)
{
	static const struct what_if_figures unknown = { ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT };

	if (!check_room(w, r, e))
		return NULL;
	struct what_if *j = xcalloc(1, sizeof *j);
	j->id = ++w->last_id;
	j->request = *r;
	j->asked_at = clock_now(&w->clock);
	j->recorded = j->same = j->changed = unknown;
	j->next = w->newest;
	w->newest = j;
	drop_old(w);
	timer_start(w->setup.loop, &w->start, 0, start_next);
	return j;
}

const struct what_if *what_ifs_all(const struct what_ifs *w)
{
	return w->newest;
}

static struct what_if *find(const struct what_ifs *w, int64_t id)
{
	struct what_if *j = w->newest;

	while (j && j->id != id)
		j = j->next;
	return j;
}

const struct what_if *what_ifs_find(const struct what_ifs *w, int64_t id)
{
	return find(w, id);
}

void what_ifs_cancel(struct what_ifs *w, int64_t id)
{
	struct what_if *j = find(w, id);

	if (j && j->state == WHAT_IF_QUEUED)
		end(w, j, WHAT_IF_CANCELLED);
	if (j && j == w->running)
		process_cancel(&w->process);
}

struct what_ifs *what_ifs_open(const struct what_ifs_setup *setup)
{
	struct what_ifs *w = xcalloc(1, sizeof *w);

	w->setup = *setup;
	w->clock = clock_open();
	w->start.user = w;
	w->line.cap = sizeof w->last_words;
	return w;
}

void what_ifs_close(struct what_ifs *w)
{
	if (!w)
		return;
	w->is_closing = true;
	timer_stop(&w->start);
	if (w->running)
		process_cancel(&w->process);
	while (w->running && loop_once(w->setup.loop))
		;
	for (struct what_if *j = w->newest, *next; j; j = next) {
		next = j->next;
		free(j);
	}
	arena_release(&w->arena);
	buf_release(&w->line);
	free(w);
}

/* --- the body --- */

static const struct key {
	const char *path;
	enum json_type type;
	size_t offset;
} keys[] = {
	{ "pool", JSON_STRING, offsetof(struct what_if_body, pool) },
	{ "objective>queueWait", JSON_STRING, offsetof(struct what_if_body, queue_wait) },
	{ "objective>attainment", JSON_STRING, offsetof(struct what_if_body, attainment) },
	{ "objective>violationCost", JSON_NUMBER, offsetof(struct what_if_body, violation_cost) },
	{ "budgetDollarsPerHour", JSON_NUMBER, offsetof(struct what_if_body, budget) },
	{ "max", JSON_NUMBER, offsetof(struct what_if_body, max) },
	{ "from", JSON_STRING, offsetof(struct what_if_body, from) },
	{ "to", JSON_STRING, offsetof(struct what_if_body, to) },
};

struct reading {
	struct arena *arena;
	struct what_if_body *body;
	bool was_object;
};

static const struct key *find_key(const char *path)
{
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(keys[i].path, path))
			return &keys[i];
	return NULL;
}

static bool take_container(struct reading *r, const struct json_event *v, struct error *e)
{
	bool is_body = !v->depth && !v->is_array,
	     is_objective = v->depth == 1 && !v->is_array && !strcmp(v->path, "objective");

	if (v->type == JSON_CLOSE || is_objective || (is_body && !r->was_object)) {
		r->was_object |= is_body && v->type == JSON_OPEN;
		return true;
	}
	return error_set(e, ERROR_INVALID,
			 "found %s at '%.60s'; allowed: an object with pool, objective, budgetDollarsPerHour, "
			 "max, from, to",
			 v->is_array ? "a list" : "an object", v->path);
}

static bool take_value(void *user, const struct json_event *v, struct error *e)
{
	struct reading *r = user;

	if (v->type == JSON_OPEN || v->type == JSON_CLOSE)
		return take_container(r, v, e);
	const struct key *k = v->depth ? find_key(v->path) : NULL;
	if (!k)
		return error_set(e, ERROR_INVALID,
				 "found the key '%.60s'; allowed: pool, objective with queueWait, attainment or "
				 "violationCost, budgetDollarsPerHour, max, from, to",
				 v->path);
	const char **value = (const char **)((char *)r->body + k->offset);
	if (v->type == JSON_NULL)
		return true;
	if (v->type != k->type || v->len >= WHAT_IF_NAME || memchr(v->text, '\0', v->len))
		return error_set(e, ERROR_INVALID, "%s: found %.*s; allowed: %s", k->path,
				 (int)(v->len < 60 ? v->len : 60), v->text,
				 k->type == JSON_STRING ? "a text" : "a number");
	if (*value)
		return error_set(e, ERROR_INVALID, "%s: found twice; give it once", k->path);
	*value = arena_strdup(r->arena, v->text, v->len);
	return true;
}

bool what_if_body_read(const char *text, size_t len, struct arena *a, struct what_if_body *out, struct error *e)
{
	struct reading r = { .arena = a, .body = out };

	*out = (struct what_if_body){ 0 };
	struct json *j = json_open("body", take_value, &r);
	bool ok = json_feed(j, text, len, e) && json_finish(j, e);
	json_close(j);
	if (ok && !r.was_object)
		return error_set(e, ERROR_INVALID,
				 "body: found nothing; allowed: an object with pool and what shall be other");
	return ok;
}
