/*
 * Any bytes as a manifest: refused with findings, or a fleet whose numbers keep
 * their bounds and whose kept text reads as the same fleet again.
 */
#include "controller/manifest/manifest.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_fleet(const struct fleet_spec *f)
{
	require(f->pool_count && f->group_count);
	for (size_t i = 0; i < f->group_count; i++) {
		const struct group_spec *g = &f->groups[i];
		require(g->min_nodes >= 0 && g->min_nodes <= g->max_nodes && g->standby_max_nodes <= g->max_nodes);
		require(g->gpus_per_node > 0 && g->price_per_hour >= 0 && *g->name && *g->settings == '{');
	}
	for (size_t i = 0; i < f->pool_count; i++) {
		const struct pool_spec *p = &f->pools[i];
		require(p->group_count && p->max_sequences > 0 && p->tokens_per_second > 0 &&
			p->inter_token_latency_us > 0 && p->prefill_tokens_per_second > 0);
		require(p->objective_wait > 0 && p->objective_late_ppm > 0 && p->lead_time.p50 <= p->lead_time.p95);
		require(!p->headroom_max || p->headroom_min <= p->headroom_max);
		for (size_t k = 0; k < p->group_count; k++)
			require(p->groups[k] < f->group_count && replicas_per_node(&f->groups[p->groups[k]], p) > 0);
		for (size_t k = 0; k < p->schedule_count; k++)
			require(p->schedule[k].days && p->schedule[k].from <= 1440 && p->schedule[k].to < 1440);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings f = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	struct manifest m, again;
	struct error e = { 0 };

	buf_append(&text, bytes, len);
	if (!manifest_load_text("fuzz", text.text, &a, &m, &f, &e)) {
		require(f.count && e.kind == ERROR_INVALID && *e.message);
		return 0;
	}
	check_fleet(&m.fleet);
	require(manifest_load_text("kept", m.text, &a, &again, &f, &e));
	require(again.fleet.pool_count == m.fleet.pool_count && again.fleet.group_count == m.fleet.group_count);
	require(again.text_len == m.text_len && !memcmp(again.text, m.text, m.text_len));
	return 0;
}
