#include "controller/commands/compare.h"

#include "base/human.h"
#include "base/table.h"
#include "controller/simulation/rivals/rival.h"

#include <string.h>

static const struct table_column columns[] = {
	{ .name = "policy" },
	{ .name = "chosen" },
	{ .name = "late", .is_right = true },
	{ .name = "met" },
	{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "dollars", .is_right = true },
	{ .name = "starts", .is_right = true },
	{ .name = "against", .title = "AGAINST OURS", .is_right = true },
	{ .name = "setting" },
};

struct sheet {
	const struct compare_result *result;
	const struct pool_spec *spec;
	size_t pool;
	struct table *table;
};

static const struct score *score_of(const struct sheet *s, size_t row)
{
	return &s->result->comparison.rows[row].pools[s->pool].scored;
}

static void put_ratio(struct table *t, double value, double ours)
{
	char text[32];

	if (ours <= 0) {
		table_absent(t);
		return;
	}
	snprintf(text, sizeof text, "%.3f", value / ours);
	table_value(t, text, text);
}

static void put_row(const struct sheet *s, long row, const char *chosen)
{
	struct table *t = s->table;

	if (row == NO_ROW)
		return;
	const struct compare_row *c = &s->result->comparison.rows[row];
	const struct score *score = score_of(s, (size_t)row);
	bool is_met = (double)score->late * 1e6 <= (double)s->spec->objective_late_ppm * (double)score->requests;

	table_text(t, c->policy);
	table_text(t, chosen);
	table_text(t, human_share(score_late_share(score)).text);
	table_text(t, is_met ? "yes" : "NO");
	table_style(t, is_met ? STYLE_GOOD : STYLE_BAD);
	table_decimal(t, score_gpu_hours(score), 1);
	table_text(t, human_dollars(score_dollars(score)).text);
	table_count(t, score->starts);
	put_ratio(t, compare_cost(score), compare_cost(score_of(s, 0)));
	table_text(t, c->setting[0] ? c->setting : "-");
}

static long default_row(const struct comparison *c, const char *policy)
{
	for (size_t i = 0; i < c->row_count; i++)
		if (c->rows[i].is_default && !strcmp(c->rows[i].policy, policy))
			return (long)i;
	return NO_ROW;
}

/* As somebody would tune it: on what came before the scored part. */
static void put_first_choice(const struct sheet *s, const char *policy)
{
	const struct comparison *c = &s->result->comparison;
	struct compare_filter all = { policy, false }, hot = { policy, true };
	millis tuned = s->result->setup->simulation->warm_up;
	long any = compare_first_choice(c, s->pool, &all, s->spec->objective_late_ppm);
	long only_hot = compare_first_choice(c, s->pool, &hot, s->spec->objective_late_ppm);

	if (!tuned)
		return;
	if (any != only_hot)
		put_row(s, only_hot, "tuned, hot");
	put_row(s, any, any == only_hot ? "tuned" : "tuned, tiers");
}

static void put_family(const struct sheet *s, const char *policy)
{
	const struct comparison *c = &s->result->comparison;
	struct compare_filter all = { policy, false }, hot = { policy, true };
	int64_t ppm = s->spec->objective_late_ppm;
	long best = compare_cheapest(c, s->pool, &all, ppm, false),
	     best_hot = compare_cheapest(c, s->pool, &hot, ppm, false);

	if (best == NO_ROW)
		put_row(s, compare_least_late(c, s->pool, &all, false), "least late");
	else if (best != best_hot)
		put_row(s, best_hot, "cheapest, hot");
	put_row(s, best, best == best_hot ? "cheapest" : "cheapest, tiers");
	put_first_choice(s, policy);
	put_row(s, default_row(c, policy), "default");
}

static void put_oracle(const struct sheet *s)
{
	const struct oracle_bound *b = &s->result->oracles[s->pool];
	double hours = b->replica_hours * (double)s->spec->gpus_per_replica;
	struct table *t = s->table;

	table_text(t, "oracle");
	table_text(t, "bound");
	table_text(t, human_share(b->late_share).text);
	table_absent(t);
	table_decimal(t, hours, 1);
	table_absent(t);
	table_count(t, b->starts);
	put_ratio(t, hours, score_gpu_hours(score_of(s, 0)));
	table_text(t, "knows every arrival; cold starts only");
}

static void print_frontier(const struct sheet *s, FILE *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct compare_filter all = { NULL, false };
	const struct compare_point *points;
	size_t count = compare_frontier(&s->result->comparison, s->pool, &all, &a, &points);
	const struct score *ours = score_of(s, 0);
	double cost = compare_frontier_cost(points, count, score_late_share(ours));

	if (cost > 0)
		fprintf(out, "At %s late the cheapest rivals of all, chosen in hindsight, cost %.3f of ours.\n",
			human_share(score_late_share(ours)).text, cost / compare_cost(ours));
}

static void print_pool(const struct compare_result *r, size_t pool, FILE *out)
{
	const struct fleet_spec *fleet = r->setup->simulation->world.fleet;
	struct sheet s = { .result = r, .spec = &fleet->pools[pool], .pool = pool };

	if (!score_of(&s, 0)->requests) {
		fprintf(out, "\nPool %s had no traffic to compare on.\n", s.spec->name);
		return;
	}
	s.table = table_new(columns, sizeof columns / sizeof *columns);
	fprintf(out, "\nPool %s against %zu settings of other autoscalers%s, at most %s late%s\n", s.spec->name,
		r->comparison.row_count - 1,
		r->comparison.is_stopped ? " (PARTIAL: interrupted before the others)" : "",
		human_share((double)s.spec->objective_late_ppm / 1e6).text,
		r->setup->simulation->warm_up ? ", after the warm-up" : "");
	put_row(&s, 0, "untuned");
	for (size_t i = 0; i < rival_count(); i++)
		put_family(&s, rival_at(i)->name);
	put_oracle(&s);
	table_print(s.table, TABLE_PLAIN, out);
	table_free(s.table);
	print_frontier(&s, out);
}

void compare_print(const struct compare_result *r, FILE *out)
{
	if (r->comparison.is_stopped)
		fprintf(out, "\nThe comparison was interrupted; these are the runs that were done.\n");
	for (size_t i = 0; i < r->comparison.pool_count; i++)
		print_pool(r, i, out);
	fputs("\ncheapest: of the settings that kept the objective, known only afterwards. tuned: the cheapest that "
	      "kept it\n"
	      "in the warm-up, as somebody would choose after the first day. default: as documented "
	      "(docs/simulator.md).\n",
	      out);
}

/* "hpa + standby": rivals with stopped or lent machines are another family to whoever reads the chart. */
static const char *family_of(const struct compare_row *row, struct buf *out)
{
	buf_clear(out);
	buf_text(out, row->policy);
	if (row->is_rival && row->uses_standby)
		buf_text(out, " + standby");
	if (row->is_rival && row->uses_lent)
		buf_text(out, " + lent");
	return out->text;
}

void compare_report(const struct compare_result *r, struct report *report)
{
	CLEANUP(buf_release) struct buf family = { 0 };

	for (size_t pool = 0; pool < r->comparison.pool_count; pool++) {
		for (size_t i = 0; i < r->comparison.row_count; i++) {
			const struct compare_row *row = &r->comparison.rows[i];
			const struct score *s = &row->pools[pool].scored;

			report_add_rival(report, &(struct report_rival){ .pool = pool,
									 .family = family_of(row, &family),
									 .setting = row->setting,
									 .dollars = score_dollars(s),
									 .gpu_hours = score_gpu_hours(s),
									 .late_share = score_late_share(s) });
		}
	}
}
