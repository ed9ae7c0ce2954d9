/* GET /api/v1/pools/{namespace}/{name}/lead-time: how long starts took, by stage. */
#include "controller/web/api_parts.h"
#include "state/lead_time.h"

#include <string.h>

static const char *const kinds[] = { "cold", "wake", "refill", "reclaim", "place", NULL };
static const char *const stages[] = { "provision", "register", "device", "image", "load", "total", NULL };

static const struct api_member bar_members[] = {
	{ "upToSeconds", API_NUMBER, .may_be_null = true,
	  .help = "and more than the bar before; null: without an end" },
	{ "count", API_COUNT, .help = "replicas" },
};
static const struct api_shape bar_shape = API_SHAPE("LeadTimeBar", bar_members);

static const struct api_member group_members[] = {
	{ "group", API_TEXT, .help = "the node group" },
	{ "instanceType", API_TEXT, .may_be_null = true, .help = "of the manifest in force" },
	{ "zone", API_TEXT, .may_be_null = true, .help = "of the manifest in force" },
	{ "capacityType", API_TEXT, .may_be_null = true, .help = "of the manifest in force" },
	{ "samples", API_COUNT, .help = "replicas" },
	{ "p50Seconds", API_NUMBER, .may_be_null = true, .help = "median" },
	{ "p95Seconds", API_NUMBER, .may_be_null = true, .help = "95th percentile" },
};
static const struct api_shape group_shape = API_SHAPE("LeadTimeOffering", group_members);

static const struct api_member stage_members[] = {
	{ "stage", API_TEXT, .help = "or total: from asking to serving", .choices = stages },
	{ "samples", API_COUNT, .help = "replicas" },
	{ "meanSeconds", API_NUMBER, .may_be_null = true, .help = "exact" },
	{ "p50Seconds", API_NUMBER, .may_be_null = true, .help = "median, within 15 %" },
	{ "p95Seconds", API_NUMBER, .may_be_null = true, .help = "95th percentile, within 15 %" },
	{ "p99Seconds", API_NUMBER, .may_be_null = true, .help = "99th percentile, within 15 %" },
	{ "histogram", API_LIST, .help = "from the first bar with replicas to the last", .of = &bar_shape },
	{ "byOffering", API_LIST, .help = "the same by node group", .of = &group_shape },
};
static const struct api_shape stage_shape = API_SHAPE("LeadTimeStage", stage_members);

static const struct api_member kind_members[] = {
	{ "kind", API_TEXT, .help = "how capacity comes to be ready", .choices = kinds },
	{ "samples", API_COUNT, .help = "that serve" },
};
static const struct api_shape kind_shape = API_SHAPE("StartKind", kind_members);

static const struct api_member members[] = {
	{ "from", API_TIME, .help = "whole days in UTC that have a part in this time" },
	{ "to", API_TIME, .help = "up to then" },
	{ "kind", API_TEXT, .help = "that stages and total are of", .choices = kinds },
	{ "kinds", API_LIST, .help = "those that were seen", .of = &kind_shape },
	{ "stages", API_LIST, .help = "those that were told apart; none where only the total is known",
	  .of = &stage_shape },
	{ "total", API_OBJECT, .help = "from asking to serving", .of = &stage_shape },
};
static const struct api_shape shape = API_SHAPE("LeadTime", members);

/* Sums of what fits. */
struct distribution {
	int64_t count[LEAD_BUCKETS], samples, ms;
};

struct told {
	const struct history_pool *pool;
	const struct fleet_spec *fleet;
	const struct lead_row *rows;
	size_t count;
	enum start_kind kind;
};

enum { ANY_GROUP = -1 };

static void sum_up(const struct told *t, int64_t stage, int64_t group, struct distribution *d)
{
	*d = (struct distribution){ 0 };
	for (size_t i = 0; i < t->count; i++) {
		const struct lead_row *r = &t->rows[i];
		if (r->kind != t->kind || r->stage != stage || (group != ANY_GROUP && (size_t)group != r->group))
			continue;
		d->count[r->bucket] += r->samples;
		d->samples += r->samples;
		d->ms += r->ms;
	}
}

/* Between the edges of the bucket that has it. */
static int64_t quantile(const struct distribution *d, int64_t percent)
{
	int64_t seen = 0;

	for (int64_t b = 0; b < LEAD_BUCKETS; b++) {
		millis low = b ? lead_bucket_upto(b - 1) : 0;
		bool is_last = b == LEAD_BUCKETS - 1;

		if ((seen + d->count[b]) * 100 >= d->samples * percent && d->count[b])
			return is_last ? low
				       : low + (lead_bucket_upto(b) - low) * (d->samples * percent - seen * 100) /
							 (d->count[b] * 100);
		seen += d->count[b];
	}
	return ABSENT;
}

static void write_histogram(const struct distribution *d, struct buf *out)
{
	int64_t last = LEAD_BUCKETS - 1;
	bool has_begun = false;

	while (last >= 0 && !d->count[last])
		last--;
	member_list(out, "histogram");
	for (int64_t b = 0; b <= last; b++) {
		has_begun |= d->count[b] > 0;
		if (!has_begun)
			continue;
		item_begin(out);
		member_scaled(out, "upToSeconds", b == LEAD_BUCKETS - 1 ? ABSENT : lead_bucket_upto(b), 3);
		member_count(out, "count", d->count[b]);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
}

static const struct group_spec *find_group(const struct fleet_spec *fleet, const char *name)
{
	for (size_t i = 0; i < fleet->group_count; i++)
		if (!strcmp(fleet->groups[i].name, name))
			return &fleet->groups[i];
	return NULL;
}

static void write_groups(const struct told *t, int64_t stage, struct buf *out)
{
	member_list(out, "byOffering");
	for (size_t i = 0; i < t->pool->group_count; i++) {
		const struct group_spec *g = find_group(t->fleet, t->pool->groups[i]);
		struct distribution d;

		sum_up(t, stage, (int64_t)i, &d);
		if (!d.samples)
			continue;
		item_begin(out);
		member_text(out, "group", t->pool->groups[i]);
		member_text(out, "instanceType", g && *g->instance_type ? g->instance_type : NULL);
		member_text(out, "zone", g && *g->zone ? g->zone : NULL);
		member_text(out, "capacityType", g ? capacity_type_name(g->capacity_type) : NULL);
		member_count(out, "samples", d.samples);
		member_scaled(out, "p50Seconds", quantile(&d, 50), 3);
		member_scaled(out, "p95Seconds", quantile(&d, 95), 3);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
}

static void write_stage(const struct told *t, int64_t stage, const struct distribution *d, struct buf *out)
{
	member_text(out, "stage", stages[stage]);
	member_count(out, "samples", d->samples);
	member_scaled(out, "meanSeconds", d->samples ? d->ms / d->samples : ABSENT, 3);
	member_scaled(out, "p50Seconds", quantile(d, 50), 3);
	member_scaled(out, "p95Seconds", quantile(d, 95), 3);
	member_scaled(out, "p99Seconds", quantile(d, 99), 3);
	write_histogram(d, out);
	write_groups(t, stage, out);
}

static void write_stages(const struct told *t, struct buf *out)
{
	struct distribution d;

	member_list(out, "stages");
	for (int64_t stage = 0; stage < STAGE_COUNT; stage++) {
		sum_up(t, stage, ANY_GROUP, &d);
		if (!d.samples)
			continue;
		item_begin(out);
		write_stage(t, stage, &d, out);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
	sum_up(t, LEAD_TOTAL, ANY_GROUP, &d);
	member_object(out, "total");
	write_stage(t, LEAD_TOTAL, &d, out);
	bracket_end(out, '}');
}

static void write_kinds(const struct told *t, struct buf *out)
{
	member_list(out, "kinds");
	for (int k = 0; k < START_KIND_COUNT; k++) {
		struct told of = *t;
		struct distribution d;

		of.kind = (enum start_kind)k;
		sum_up(&of, LEAD_TOTAL, ANY_GROUP, &d);
		if (!d.samples)
			continue;
		item_begin(out);
		member_text(out, "kind", kinds[k]);
		member_count(out, "samples", d.samples);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
}

static enum start_kind kind_of(const char *text)
{
	int k = 0;

	while (text && kinds[k] && strcmp(kinds[k], text) != 0)
		k++;
	return text && kinds[k] ? (enum start_kind)k : START_COLD;
}

static bool write_lead_time(struct api_call *c, struct buf *out, struct error *e)
{
	struct told t = { .kind = kind_of(api_value(c, "kind")->text) };
	struct lead_question q;
	struct lead_row *rows;
	size_t count;

	if (!api_pool(c, &q.pool, e) || !api_period(c, 28 * 24 * HOUR, &q.from, &q.to, e) ||
	    !lead_read(c->history, &q, &c->arena, &rows, &t.count, e))
		return false;
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	if (!fleet)
		return false;
	t.rows = rows;
	t.fleet = &fleet->manifest.fleet;
	t.pool = &history_pools(c->history, &count)[q.pool];
	buf_text(out, "{");
	member_time(out, "from", q.from);
	member_time(out, "to", q.to);
	member_text(out, "kind", kinds[t.kind]);
	write_kinds(&t, out);
	write_stages(&t, out);
	buf_text(out, "}\n");
	return true;
}

static const struct api_parameter parameters[] = {
	{ "from", PARAMETER_TIME, .help = "from the day of this time on (default: 28 days before to)" },
	{ "to", PARAMETER_TIME, .help = "up to the day of this time (default: the end of the history)" },
	{ "kind", PARAMETER_CHOICE, .choices = "cold|wake|refill|reclaim|place", .help = "of starts (default: cold)" },
};

const struct api_route api_route_lead_time = {
	.method = "GET",
	.path = "/api/v1/pools/{namespace}/{name}/lead-time",
	.name = "getLeadTime",
	.summary = "How long starts took, by stage and node group",
	API_PARAMETERS(parameters),
	.needs_history = true,
	.answer = &shape,
	.write = write_lead_time,
};
