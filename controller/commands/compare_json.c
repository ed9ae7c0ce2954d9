#include "controller/commands/compare.h"

#include "base/file.h"
#include "base/json.h"

#include <inttypes.h>

static void put_score(const struct score *s, struct buf *out)
{
	buf_printf(out, "\"requests\": %" PRId64 ", \"late\": %" PRId64 ", \"late_share\": %.8f, ", s->requests,
		   s->late, score_late_share(s));
	buf_text(out, "\"wait_p50_s\": ");
	score_write_wait(s, s->wait_p50, out);
	buf_text(out, ", \"wait_p99_s\": ");
	score_write_wait(s, s->wait_p99, out);
	buf_printf(out, ", \"gpu_hours\": %.4f, \"dollars\": %.4f, ", score_gpu_hours(s), score_dollars(s));
	buf_printf(out, "\"starts\": %" PRId64 ", \"removals\": %" PRId64, s->starts, s->removals);
}

static void put_head(const char *pool, const char *policy, const char *setting, struct buf *out)
{
	buf_text(out, "\n  { \"pool\": ");
	json_write_text(pool, out);
	buf_text(out, ", \"policy\": ");
	json_write_text(policy, out);
	buf_text(out, ", \"setting\": ");
	json_write_text(setting, out);
}

/* Of a sweep that was interrupted, the best of a family says little. */
static void put_completeness(const struct compare_result *r, struct buf *out)
{
	buf_printf(out, ", \"sweep_complete\": %s", r->comparison.is_stopped ? "false" : "true");
}

static const char *yes(bool is)
{
	return is ? "true" : "false";
}

/* What the row is among those of its family, and among all. */
static void put_marks(const struct compare_result *r, size_t pool, long row, const struct pool_spec *spec,
		      struct buf *out)
{
	const struct compare_row *c = &r->comparison.rows[row];
	const struct score *s = &c->pools[pool].scored;
	struct compare_filter family = { c->policy, false }, hot = { c->policy, true };
	int64_t ppm = spec->objective_late_ppm;

	buf_printf(out, ", \"is_default\": %s, \"uses_standby\": %s, \"uses_lent\": %s", yes(c->is_default),
		   yes(c->uses_standby), yes(c->uses_lent));
	buf_printf(out, ", \"meets_objective\": %s", yes((double)s->late * 1e6 <= (double)ppm * (double)s->requests));
	if (!c->is_rival)
		return;
	buf_printf(out, ", \"is_cheapest\": %s, \"is_cheapest_hot\": %s",
		   yes(compare_cheapest(&r->comparison, pool, &family, ppm, false) == row),
		   yes(compare_cheapest(&r->comparison, pool, &hot, ppm, false) == row));
	if (r->setup->simulation->warm_up)
		buf_printf(out, ", \"is_tuned\": %s, \"is_tuned_hot\": %s",
			   yes(compare_first_choice(&r->comparison, pool, &family, ppm) == row),
			   yes(compare_first_choice(&r->comparison, pool, &hot, ppm) == row));
}

static void put_row(const struct compare_result *r, size_t pool, size_t row, struct buf *out)
{
	const struct pool_spec *spec = &r->setup->simulation->world.fleet->pools[pool];
	const struct compare_row *c = &r->comparison.rows[row];

	put_head(spec->name, c->policy, c->setting, out);
	put_completeness(r, out);
	put_marks(r, pool, (long)row, spec, out);
	buf_text(out, ",\n    ");
	put_score(&c->pools[pool].whole, out);
	buf_text(out, ",\n    \"scored\": { ");
	put_score(&c->pools[pool].scored, out);
	buf_text(out, " } },");
}

/* The bound has no run behind it: it counts for the scored part only. */
static void put_oracle(const struct compare_result *r, size_t pool, struct buf *out)
{
	const struct pool_spec *spec = &r->setup->simulation->world.fleet->pools[pool];
	const struct oracle_bound *b = &r->oracles[pool];

	put_head(spec->name, "oracle", "dual bound", out);
	put_completeness(r, out);
	buf_printf(out, ", \"price_replica_s\": %.6g,\n    \"scored\": { ", b->price);
	buf_printf(out, "\"late_share\": %.8f, \"gpu_hours\": %.4f, \"starts\": %" PRId64 " } },", b->late_share,
		   b->replica_hours * (double)spec->gpus_per_replica, b->starts);
}

void compare_json(const struct compare_result *r, struct buf *out)
{
	buf_text(out, "[");
	for (size_t pool = 0; pool < r->comparison.pool_count; pool++) {
		for (size_t row = 0; row < r->comparison.row_count; row++)
			put_row(r, pool, row, out);
		put_oracle(r, pool, out);
	}
	if (out->len > 1)
		out->text[--out->len] = '\0';
	buf_text(out, "\n]\n");
}

bool compare_write(const struct compare_result *r, const char *path, struct error *e)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	compare_json(r, &out);
	return file_write(path, out.text, out.len, e);
}
