#include "controller/web/recommendations.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/decode.h"
#include "base/file.h"
#include "base/net/process.h"
#include "base/quantity.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NICENESS = 10, ITEMS_MOST = 16 };
#define DEADLINE    (10 * MINUTE)
#define OUTPUT_MOST ((size_t)64 << 10)

struct recommendations {
	struct recommendations_setup setup;
	struct clock clock;
	struct arena arena; /* of what is shown */
	struct recommended shown;
	millis ended_at; /* of the last try, whatever came of it */
	char message[512];
	struct process process;
	struct timer start;
	const char *argv[9]; /* of the command */
};

/* --- what the command says --- */

struct advice_row {
	const char *namespace, *pool, *change, *needs;
	struct decoded_text saves, dollars;
	int64_t late_ppm, late_with_ppm, allowed_ppm;
};

static const struct field row_fields[] = {
	FIELD(struct advice_row, namespace, FIELD_STRING, "namespace"),
	FIELD(struct advice_row, pool, FIELD_STRING, "pool"),
	FIELD(struct advice_row, change, FIELD_STRING, "change"),
	FIELD(struct advice_row, needs, FIELD_STRING, "needs"),
	FIELD(struct advice_row, saves, FIELD_RAW, "saves_dollars_a_day"),
	FIELD(struct advice_row, dollars, FIELD_RAW, "dollars_a_day"),
	FIELD(struct advice_row, late_ppm, FIELD_INT, "late_ppm"),
	FIELD(struct advice_row, late_with_ppm, FIELD_INT, "late_with_ppm"),
	FIELD(struct advice_row, allowed_ppm, FIELD_INT, "allowed_ppm"),
};
static const struct record_spec row_record = { "[]", sizeof(struct advice_row), row_fields,
					       sizeof row_fields / sizeof *row_fields };

struct reading {
	struct arena *arena;
	struct recommendation *items;
	size_t count;
};

static bool take_dollars(const struct decoded_text *text, int64_t *micro)
{
	bool is_negative = text->len && *text->text == '-';
	size_t sign = is_negative ? 1 : 0;

	if (!text->text || decimal_parse(text->text + sign, text->len - sign, 6, micro) != DECIMAL_OK)
		return false;
	*micro = is_negative ? -*micro : *micro;
	return true;
}

static const char *keep(struct arena *a, const char *text)
{
	return arena_strdup(a, text, strlen(text));
}

static bool take_row(void *user, void *record, struct error *e)
{
	const struct advice_row *row = record;
	struct reading *r = user;
	struct recommendation *to = &r->items[r->count];

	if (r->count == ITEMS_MOST)
		return true;
	if (!row->namespace || !row->pool || !row->change || !take_dollars(&row->saves, &to->saves) ||
	    !take_dollars(&row->dollars, &to->dollars))
		return error_set(e, ERROR_INVALID, "found a row without namespace, pool, change or dollars");
	to->namespace = keep(r->arena, row->namespace);
	to->pool = keep(r->arena, row->pool);
	to->change = keep(r->arena, row->change);
	to->needs = row->needs ? keep(r->arena, row->needs) : NULL;
	to->late_ppm = row->late_ppm;
	to->late_with_ppm = row->late_with_ppm;
	to->allowed_ppm = row->allowed_ppm;
	r->count++;
	return true;
}

static bool read_rows(const char *text, size_t len, struct arena *a, struct recommended *out, struct error *e)
{
	struct reading r = { a, arena_array(a, struct recommendation, ITEMS_MOST), 0 };
	struct decode_plan *plan = decode_plan_new(&row_record);
	struct decoder *d = decoder_open(
		&(struct decoder_setup){ .name = "advise", .records = plan, .emit = take_row, .user = &r });
	bool ok = decoder_feed(d, text, len, e) && decoder_finish(d, e);

	decoder_close(d);
	decode_plan_free(plan);
	if (ok) {
		out->items = r.items;
		out->count = r.count;
	}
	return ok;
}

/* --- beside the history --- */

static const char *path_beside(const char *history, struct arena *a)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_printf(&path, "%s.advice.json", history);
	return arena_strdup(a, path.text, path.len);
}

/* The file is what the command said; its time is when. */
bool recommendations_read(const char *history, struct arena *a, struct recommended *out, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	const char *path = path_beside(history, a);
	struct stat st;

	*out = (struct recommended){ .message = "" };
	if (stat(path, &st))
		return true;
	if (!file_read(path, OUTPUT_MOST, &text, e))
		return false;
	if (!read_rows(text.text, text.len, a, out, e))
		return error_wrap(e, "%s", path);
	out->state = RECOMMEND_TRIED;
	out->tried_at = (millis)st.st_mtime * SECOND;
	return true;
}

/* --- trying --- */

/* Those of before stay when there are no new ones. */
static bool take_output(struct recommendations *r, const struct process *p, struct error *e)
{
	struct arena a = { 0 };
	struct recommended found = { .state = RECOMMEND_TRIED, .tried_at = r->ended_at, .message = "" };
	struct error unkept;

	if (!read_rows(p->output, p->output_len, &a, &found, e)) {
		arena_release(&a);
		return false;
	}
	arena_release(&r->arena);
	r->arena = a;
	r->shown = found;
	/* A folder that takes no files costs no more than another try after the next restart. */
	if (r->setup.is_kept)
		(void)!file_write(path_beside(r->setup.history, &r->arena), p->output, p->output_len, &unkept);
	return true;
}

/* The first line is the command's one message. */
static void fail(struct recommendations *r, const struct process *p, const struct error *e)
{
	const char *words = e->kind != ERROR_NONE ? e->message
			    : *p->complaint	  ? p->complaint
						  : "it ended without an answer";

	snprintf(r->message, sizeof r->message, "%.*s", (int)strcspn(words, "\n"), words);
	r->shown.state = RECOMMEND_FAILED;
	r->shown.message = r->message;
}

static void on_done(struct process *p)
{
	struct recommendations *r = p->user;
	struct error e = p->error;

	r->ended_at = clock_now(&r->clock);
	if (e.kind != ERROR_NONE || p->exit_code || !take_output(r, p, &e))
		fail(r, p, &e);
}

static void start(struct timer *t)
{
	struct recommendations *r = t->user;
	const char *argv[] = { r->setup.program, "advise", "--from",	     "-7d", "--output",
			       "json",		 "--db",   r->setup.history, NULL };

	memcpy(r->argv, argv, sizeof argv);
	r->process = (struct process){ .argv = r->argv,
				       .timeout = DEADLINE,
				       .max_output = OUTPUT_MOST,
				       .niceness = NICENESS,
				       .done = on_done,
				       .user = r };
	process_start(r->setup.loop, &r->process);
}

void recommendations_ask(struct recommendations *r)
{
	if (r->shown.state == RECOMMEND_TRYING)
		return;
	r->shown.state = RECOMMEND_TRYING;
	timer_start(r->setup.loop, &r->start, 0, start);
}

const struct recommended *recommendations_look(struct recommendations *r)
{
	millis pause = r->shown.state == RECOMMEND_FAILED ? HOUR : DAY;

	if (!r->ended_at || clock_now(&r->clock) - r->ended_at >= pause)
		recommendations_ask(r);
	return &r->shown;
}

struct recommendations *recommendations_open(const struct recommendations_setup *setup)
{
	struct recommendations *r = xcalloc(1, sizeof *r);
	struct error unread;

	r->setup = *setup;
	r->clock = clock_open();
	r->start.user = r;
	if (!setup->is_kept || !recommendations_read(setup->history, &r->arena, &r->shown, &unread))
		r->shown = (struct recommended){ .message = "" };
	r->ended_at = r->shown.tried_at;
	return r;
}

void recommendations_close(struct recommendations *r)
{
	if (!r)
		return;
	timer_stop(&r->start);
	process_cancel(&r->process);
	while (r->process.run && loop_once(r->setup.loop))
		;
	arena_release(&r->arena);
	free(r);
}
