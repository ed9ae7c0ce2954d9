#include "controller/commands/recorded_fleet.h"

#include "base/json.h"
#include "base/table.h"
#include "base/terminal.h"
#include "controller/simulation/simulate.h"

#include <inttypes.h>

static bool has_traffic(const struct recorded_fleet *r)
{
	return r->recorded.arrived > 0 || r->recorded.started > 0;
}

bool recorded_fleet_fits(struct recorded_fleets f)
{
	for (size_t i = 0; f.pools && i < f.fleet->pool_count; i++)
		if (has_traffic(&f.pools[i]) && !f.pools[i].fits)
			return false;
	return true;
}

/* What stands in for measurements, most telling first. */
static void put_reasons(const struct measured *m, FILE *out)
{
	const char *between = " Not measured, so taken from the manifest: ", *end = "";

	if (!m->slots) {
		fprintf(out, "%show many sequences a replica holds (too seldom full)", between);
		between = ", ";
		end = ".";
	}
	if (m->has_starts && !m->lead.p50) {
		fprintf(out, "%slead times (%s starts)", between, human_count(m->lead_samples).text);
		between = ", ";
		end = ".";
	}
	if (!m->service) {
		fprintf(out, "%sservice times (no request was seen to complete)", between);
		end = ".";
	}
	fputs(end, out);
	if (m->blind_ticks * 50 > m->ticks)
		fprintf(out, " Signals were missing in %s of the ticks: what arrived then is unknown.",
			human_share((double)m->blind_ticks / (double)m->ticks).text);
	if (!m->has_tokens && m->service)
		fputs(" Requests came without their tokens: each counts as the mean.", out);
}

static void print_misfit(const char *pool, const struct measured *m, const struct recorded_fleet *r, FILE *out)
{
	fprintf(out, "The model does not fit pool %s: ", pool);
	if (r->hours_ratio > 1.1 || r->hours_ratio * 1.1 < 1)
		fprintf(out, "it has %.2f of the recorded GPU hours (allowed: within a tenth). ", r->hours_ratio);
	else
		fprintf(out, "%s late where %s was recorded (allowed: within 1.5 times). ",
			human_share(r->model_late_share).text, human_share(r->late_share).text);
	fputs("No verdict on this recording.", out);
	put_reasons(m, out);
	putc('\n', out);
}

static void print_measured(const struct pool_spec *spec, const struct measured *m, FILE *out)
{
	fprintf(out, "Measured, pool %s: ", spec->name);
	if (m->slots)
		fprintf(out, "%s sequences a replica (manifest: %s)", human_count(m->slots).text,
			human_count(spec->max_sequences).text);
	else
		fprintf(out, "replicas too seldom full to tell, %s sequences as in the manifest",
			human_count(spec->max_sequences).text);
	if (m->service)
		fprintf(out, ", %s a request", human_duration(m->service).text);
	if (m->lead.p50)
		fprintf(out, ", %s starts of %s (p95 %s)", human_count(m->lead_samples).text,
			human_duration(m->lead.p50).text, human_duration(m->lead.p95).text);
	fputs(".\n", out);
}

static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "fleet" },
	{ .name = "late", .is_right = true },
	{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "dollars", .is_right = true },
};

static void put_row(struct table *t, const struct pool_spec *pool, const char *fleet, double late, double hours,
		    double dollars)
{
	table_text(t, pool->name);
	table_text(t, fleet);
	table_text(t, human_share(late).text);
	table_decimal(t, hours, 1);
	pool->is_unpriced ? table_absent(t) : table_text(t, human_dollars(dollars).text);
}

static void print_fleets(struct recorded_fleets f, FILE *out)
{
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < f.fleet->pool_count; i++) {
		const struct recorded_fleet *r = &f.pools[i];
		const struct pool_spec *pool = &f.fleet->pools[i];

		if (!has_traffic(r))
			continue;
		put_row(t, pool, "as recorded", r->late_share, r->gpu_hours, r->dollars);
		put_row(t, pool, "the same, modelled", r->model_late_share, r->model_gpu_hours, r->model_dollars);
	}
	table_print(t, TABLE_PLAIN, out);
	table_free(t);
}

/* Prometheus tells of servers, and not of machines. */
static void print_unseen(const char *pool, FILE *out)
{
	fprintf(out,
		"Pool %s: the hours of \"as recorded\" are of replicas that served. Machines that started or stood "
		"idle were "
		"billed too and are not in this recording; the comparison counts them.\n",
		pool);
}

void recorded_fleet_print(struct recorded_fleets f, FILE *out)
{
	for (size_t i = 0; i < f.fleet->pool_count; i++)
		if (calibration_measured(f.measured, i)->ticks)
			print_measured(&f.fleet->pools[i], calibration_measured(f.measured, i), out);
	if (f.pools) {
		fputs("\nThe fleet you had:\n", out);
		print_fleets(f, out);
		for (size_t i = 0; i < f.fleet->pool_count; i++)
			if (has_traffic(&f.pools[i]) && calibration_measured(f.measured, i)->has_unseen_starts)
				print_unseen(f.fleet->pools[i].name, out);
		for (size_t i = 0; i < f.fleet->pool_count; i++)
			if (has_traffic(&f.pools[i]) && !f.pools[i].fits)
				print_misfit(f.fleet->pools[i].name, calibration_measured(f.measured, i), &f.pools[i],
					     out);
	}
	putc('\n', out);
}

void recorded_fleet_json(struct recorded_fleets f, struct buf *out)
{
	buf_text(out, "{");
	for (size_t i = 0; f.pools && i < f.fleet->pool_count; i++) {
		const struct recorded_fleet *r = &f.pools[i];
		const struct measured *m = calibration_measured(f.measured, i);

		buf_text(out, i ? ",\n    " : "\n    ");
		json_write_text(f.fleet->pools[i].name, out);
		buf_printf(out,
			   ": { \"slots\": %" PRId64 ", \"service_s\": %.3f, \"lead_p50_s\": %.3f, "
			   "\"lead_p95_s\": %.3f, \"lead_samples\": %" PRId64 ", \"has_unseen_starts\": %s,\n      ",
			   m->slots, (double)m->service / 1000, (double)m->lead.p50 / 1000, (double)m->lead.p95 / 1000,
			   m->lead_samples, m->has_unseen_starts ? "true" : "false");
		buf_printf(out, "\"gpu_hours\": %.4f, \"dollars\": ", r->gpu_hours);
		score_write_dollars(&f.fleet->pools[i], (int64_t)(r->dollars * 1e6), out);
		buf_printf(out, ", \"late_share\": %.8f,\n      \"model_gpu_hours\": %.4f, \"model_dollars\": ",
			   r->late_share, r->model_gpu_hours);
		score_write_dollars(&f.fleet->pools[i], (int64_t)(r->model_dollars * 1e6), out);
		buf_printf(out, ", \"model_late_share\": %.8f, \"model_fits\": %s }", r->model_late_share,
			   r->fits ? "true" : "false");
	}
	buf_text(out, "\n  }");
}
