#include "controller/commands/report_collect.h"

#include "controller/commands/command.h"

#include <string.h>

enum { NOTES_MOST = COST_NOTES + 4, HOLDINGS_TOLD = 200 };

struct collected {
	struct report_question *question;
	struct arena *arena;
	struct costs costs;
	struct quota_hour *quota_hours;
	size_t quota_hour_count;
	struct holding *holdings;
	size_t holding_count;
	bool is_simulated;
	const char *notes[NOTES_MOST];
	struct team_report report;
};

static void note(struct collected *c, const char *text)
{
	if (c->report.note_count < NOTES_MOST)
		c->notes[c->report.note_count++] = arena_strdup(c->arena, text, strlen(text));
}

static bool is_of(const struct collected *c, const char *namespace)
{
	return !c->question->namespace || !strcmp(c->question->namespace, namespace);
}

/* --- namespaces --- */

/* Once each, in the order of the pools. */
static void know(struct buf *known, const char **seen, size_t *count, const char *namespace)
{
	for (size_t i = 0; i < *count; i++)
		if (!strcmp(seen[i], namespace))
			return;
	seen[(*count)++] = namespace;
	buf_printf(known, "%s%s", known->len ? ", " : "", namespace);
}

static bool check_namespace(const struct collected *c, struct error *e)
{
	const struct question *q = c->question->question;
	CLEANUP(buf_release) struct buf known = { .cap = 400 };
	size_t count, n = 0;
	const struct history_pool *pools = history_pools(q->history, &count);
	const char **seen = arena_array(c->arena, const char *, count + c->quota_hour_count + c->holding_count + 1);

	for (size_t i = 0; i < count; i++)
		know(&known, seen, &n, pools[i].namespace);
	for (size_t i = 0; i < c->quota_hour_count; i++)
		know(&known, seen, &n, c->quota_hours[i].namespace);
	for (size_t i = 0; i < c->holding_count; i++)
		know(&known, seen, &n, c->holdings[i].namespace);
	for (size_t i = 0; i < n; i++)
		if (is_of(c, seen[i]))
			return true;
	return error_set(e, ERROR_NOT_FOUND, "--namespace: nothing of '%.63s' in %s; there is: %s",
			 c->question->namespace, history_path(q->history), known.text ? known.text : "none");
}

/* --- pools --- */

static void collect_pools(struct collected *c)
{
	size_t count, n = 0;
	const struct history_pool *names = history_pools(c->question->question->history, &count);
	struct team_pool *pools = arena_array(c->arena, struct team_pool, count * CLASS_COUNT + 1);

	for (size_t pool = 0; pool < count; pool++)
		for (int class = 0; class < CLASS_COUNT; class ++) {
			struct team_pool found = {
				names[pool].name, names[pool].namespace, (enum pool_class) class, { 0 }
			};
			for (size_t i = 0; i < c->costs.count; i++)
				if (c->costs.hours[i].pool == pool && (int)c->costs.hours[i].class == class)
					cost_add(&found.sums, &c->costs.hours[i].sums);
			if (!found.sums.watched_ms || !is_of(c, found.namespace))
				continue;
			pools[n++] = found;
			millis most = c->report.total.watched_ms;
			cost_add(&c->report.total, &found.sums);
			/* Pools are watched at the same time. */
			c->report.total.watched_ms = most > found.sums.watched_ms ? most : found.sums.watched_ms;
		}
	c->report.pools = pools;
	c->report.pool_count = n;
}

static const char *time_text(const struct collected *c, millis at, bool for_programs)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (for_programs)
		question_print_time(c->question->question, at, true, &text);
	else
		cost_print_minute(c->question->question, at, &text);
	return arena_strdup(c->arena, text.text, text.len);
}

/* So long that there are a few hundred at most. */
static millis slice_length(millis period)
{
	if (period <= 14 * DAY)
		return HOUR;
	return period <= 400 * DAY ? DAY : 30 * DAY;
}

static void collect_slices(struct collected *c)
{
	const struct cost_period *p = &c->question->period;
	millis length = slice_length(p->to - p->from);
	size_t count, n = (size_t)((p->to - p->from + length - 1) / length);
	const struct history_pool *names = history_pools(c->question->question->history, &count);
	struct team_slice *slices = arena_array(c->arena, struct team_slice, n + 1);

	for (size_t i = 0; i < n; i++)
		slices[i].label = time_text(c, p->from + (millis)i * length, false);
	for (size_t i = 0; i < c->costs.count; i++) {
		const struct cost_hour *h = &c->costs.hours[i];
		size_t at = (size_t)((h->hour * HOUR - p->from) / length);
		for (int k = 0; at < n && k < GPU_STATE_COUNT && is_of(c, names[h->pool].namespace); k++)
			slices[at].gpu_ms[k] += h->sums.gpu_ms[k];
	}
	c->report.slices = slices;
	c->report.slice_count = n;
	c->report.slice_name = length == HOUR ? "hour" : length == DAY ? "day" : "30 days";
}

/* --- quotas and pods --- */

static bool is_same(const struct quota_hour *a, const struct quota_hour *b)
{
	return !strcmp(a->namespace, b->namespace) && !strcmp(a->name, b->name) && !strcmp(a->resource, b->resource);
}

static void collect_quotas(struct collected *c)
{
	struct quota_hour *quotas = arena_array(c->arena, struct quota_hour, c->quota_hour_count + 1);
	size_t n = 0;

	for (size_t i = 0; i < c->quota_hour_count; i++) {
		const struct quota_hour *q = &c->quota_hours[i];
		size_t k = 0;

		if (!is_of(c, q->namespace))
			continue;
		while (k < n && !is_same(&quotas[k], q))
			k++;
		if (k == n)
			quotas[n++] = (struct quota_hour){ .namespace = q->namespace,
							   .name = q->name,
							   .resource = q->resource };
		quotas[k].hard = q->hard;
		quotas[k].used_most = q->used_most > quotas[k].used_most ? q->used_most : quotas[k].used_most;
		quotas[k].watched_ms += q->watched_ms;
		quotas[k].hard_gpu_ms += q->hard_gpu_ms;
		quotas[k].used_gpu_ms += q->used_gpu_ms;
	}
	c->report.quotas = quotas;
	c->report.quota_count = n;
}

static void collect_holdings(struct collected *c)
{
	const char **since = arena_array(c->arena, const char *, HOLDINGS_TOLD);
	struct holding *told = arena_array(c->arena, struct holding, HOLDINGS_TOLD);
	size_t n = 0, left_out = 0;

	for (size_t i = 0; i < c->holding_count; i++) {
		if (!is_of(c, c->holdings[i].namespace))
			continue;
		if (n == HOLDINGS_TOLD) {
			left_out++;
			continue;
		}
		told[n] = c->holdings[i];
		since[n++] = time_text(c, c->holdings[i].since, false);
	}
	c->report.holdings = told;
	c->report.holding_since = since;
	c->report.holding_count = n;
	if (!left_out)
		return;
	CLEANUP(buf_release) struct buf text = { 0 };
	buf_printf(&text, "%zu more pods held GPUs for nothing; those that held most are told.", left_out);
	note(c, text.text);
}

/* --- all --- */

static void note_what_is_missing(struct collected *c)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	const struct cost_period *p = &c->question->period;
	millis watched = c->report.total.watched_ms;

	if (c->is_simulated)
		note(c, "A simulation has no namespaces' quotas and no pods that hold GPUs; both are told of live "
			"histories.");
	else if (!c->report.quota_count)
		note(c, "No GPU quota was seen.");
	if (c->report.pool_count && watched < (p->to - p->from) - (p->to - p->from) / 50) {
		buf_printf(&text, "Recorded are %.1f of the %.1f hours.", (double)watched / HOUR,
			   (double)(p->to - p->from) / HOUR);
		note(c, text.text);
	}
	const char *notes[COST_NOTES];
	size_t count = costs_notes(c->question->question, &c->costs, notes);
	for (size_t i = 0; i < count; i++)
		note(c, notes[i]);
}

static bool read_all(struct collected *c, struct error *e)
{
	struct question *q = c->question->question;
	struct cost_period *p = &c->question->period;

	if (!costs_are_simulated(q, &c->is_simulated, e) || !costs_read(q, p, &c->costs, e))
		return false;
	const struct usage_filter all = { p->from, p->to, NULL };
	return history_quota_hours(q->history, &all, &q->arena, &c->quota_hours, &c->quota_hour_count, e) &&
	       history_holdings(q->history, &all, &q->arena, &c->holdings, &c->holding_count, e) &&
	       check_namespace(c, e);
}

bool report_collect(struct report_question *question, struct team_report *out, struct error *e)
{
	struct question *q = question->question;
	struct collected *c = arena_new(&q->arena, struct collected);
	CLEANUP(buf_release) struct buf period = { 0 };

	c->question = question;
	c->arena = &q->arena;
	if (!read_all(c, e))
		return false;
	cost_period_text(q, &question->period, &period);
	c->report.program = command_version_text();
	c->report.source = history_path(q->history);
	c->report.namespace = question->namespace;
	c->report.period = arena_strdup(&q->arena, period.text, period.len);
	c->report.from = time_text(c, question->period.from, true);
	c->report.to = time_text(c, question->period.to, true);
	collect_pools(c);
	collect_slices(c);
	collect_quotas(c);
	collect_holdings(c);
	note_what_is_missing(c);
	c->report.notes = c->notes;
	*out = c->report;
	return true;
}
