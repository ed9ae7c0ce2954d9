#include "state/record_check.h"

#include "base/millis.h"

#include <string.h>

/* A pool of 100,000 nodes of 1,024 GPUs is the largest that a manifest can ask for. */
static const int64_t REPLICAS_MOST = 102400000;
static const int64_t READ_MOST = INT64_C(1000000000000);	/* requests or tokens of one reading, ms of an event */
static const int64_t WORK_MOST = INT64_C(1000000000000000);	/* replica-milliseconds */
static const int64_t YEAR_10000 = INT64_C(253402300800) * 1000; /* and as far before 1970 */

struct list {
	const struct record_info *info;
	const void *values;
	size_t count;
	int64_t most; /* of a number that is no time */
};

/* Only these may be untold. */
static bool may_be_absent(const char *field)
{
	static const char *const names[] = { "started", "late", "inter_token_latency_us", "kv_cache_permille",
					     "queue_waiting" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], field))
			return true;
	return false;
}

static bool refuse(const struct record_info *of, const struct field_info *f, int64_t value, struct error *e)
{
	if (value == ABSENT)
		return error_set(e, ERROR_INVALID, "the stored input makes no sense: %s.%s is absent", of->name,
				 f->name);
	return error_set(e, ERROR_INVALID, "the stored input makes no sense: %s.%s is %lld", of->name, f->name,
			 (long long)value);
}

static bool is_possible(const struct field_info *f, int64_t value, int64_t most)
{
	if (value == ABSENT)
		return may_be_absent(f->name);
	if (!strncmp(f->unit, "enum:", 5))
		return field_enum_name(f->unit + 5, value) != NULL;
	if (!strcmp(f->unit, "time"))
		return value >= -YEAR_10000 && value < YEAR_10000;
	return value >= 0 && value <= most;
}

static bool check_list(const struct list *l, struct error *e)
{
	const int64_t *v = l->values;

	for (size_t i = 0; i < l->count; i++)
		for (size_t f = 0; f < l->info->count; f++, v++)
			if (!is_possible(&l->info->fields[f], *v, l->most))
				return refuse(l->info, &l->info->fields[f], *v, e);
	return true;
}

static bool check_groups(const struct pool_snapshot *s, struct error *e)
{
	for (size_t i = 0; i < s->start_count; i++)
		if ((uint64_t)s->starts[i].group >= s->group_count)
			return refuse(&start_input_info, &start_input_info.fields[0], s->starts[i].group, e);
	for (size_t i = 0; i < s->event_count; i++)
		if ((uint64_t)s->events[i].group >= s->group_count)
			return refuse(&event_input_info, &event_input_info.fields[0], s->events[i].group, e);
	return true;
}

static bool check_times(const struct record_key *k, struct error *e)
{
	if (k->interval <= 0 || k->interval > DAY)
		return error_set(e, ERROR_INVALID,
				 "the tick makes no sense: it is %lld ms long; allowed: from 1 ms to a day",
				 (long long)k->interval);
	return (k->now >= -YEAR_10000 && k->now < YEAR_10000) ||
	       error_set(e, ERROR_INVALID, "the tick makes no sense: it ends %lld ms after 1970", (long long)k->now);
}

bool record_check_input(const struct record_key *k, const struct pool_snapshot *s, struct error *e)
{
	const struct list lists[] = {
		{ &pool_input_info, &s->input, 1, REPLICAS_MOST },
		{ &scrape_input_info, s->scrapes, s->scrape_count, READ_MOST },
		{ &group_input_info, s->groups, s->group_count, REPLICAS_MOST * 1000 },
		{ &start_input_info, s->starts, s->start_count, REPLICAS_MOST },
		{ &event_input_info, s->events, s->event_count, READ_MOST },
		{ &deadline_input_info, s->deadlines, s->deadline_count, WORK_MOST },
	};

	if (!check_times(k, e))
		return false;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (!check_list(&lists[i], e))
			return false;
	if (s->scrape_count > SCRAPES_MAX)
		return error_set(e, ERROR_INVALID,
				 "the stored input makes no sense: %zu readings in one tick; allowed: up to %d",
				 s->scrape_count, SCRAPES_MAX);
	return check_groups(s, e);
}
