/* A history for tests of the API, in a folder of its own, and what is asked of it. */
#pragma once
#include "base/random.h"
#include "controller/web/api_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char made_manifest[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  nodeGroups: [ { name: spot, capacityType: spot, pricePerHour: 0.5 }, { name: od, pricePerHour: 1.2 } ]\n"
	"---\n"
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: batch, namespace: llm }\n"
	"spec:\n"
	"  mode: act\n"
	"  class: batch\n"
	"  objective: { queueWait: 1h, attainment: 95% }\n"
	"  nodeGroups: [ { name: od, pricePerHour: 1.2 } ]\n";

static const millis TICK = 15000, BEGUN = INT64_C(1704067200000); /* 2024-01-01 */

struct made {
	struct arena arena;
	struct manifest manifest;
	struct history *history;
	char folder[40], path[64];
};

static inline void made_tick(struct made *m, int64_t t)
{
	struct random r = random_stream((uint64_t)t, "api-test");
	struct scrape_input scrapes[3] = { { 0 } };
	struct group_input inputs[2] = { { .ready = 2, .billed_gpus_milli = 4000, .nodes = 4 } };
	struct group_decision decisions[2][2] = { { { 0 } } };
	struct pool_snapshot snapshots[2];
	struct pool_plan plans[2];
	struct error e = { 0 };

	for (size_t p = 0; p < 2; p++) {
		size_t count = m->manifest.fleet.pools[p].group_count;
		int64_t arrived = (int64_t)(random_next(&r) % 200);

		snapshots[p] = (struct pool_snapshot){
			.scrapes = scrapes, .scrape_count = 3, .groups = inputs, .group_count = count
		};
		plans[p] = (struct pool_plan){ .groups = decisions[p], .group_count = count };
		plans[p].decision = (struct pool_decision){ .ready = 5,
							    .decided = 5,
							    .wished = 5,
							    .demand_milli = 4000,
							    .running_milli = 90000,
							    .arrived = arrived,
							    .started = arrived,
							    .late = arrived / 50,
							    .hold_ms = 60000,
							    .dollars_per_hour = 6000000 };
		if ((random_next(&r) % 7) == 0) {
			decisions[p][0].cold = 1 + (int64_t)(random_next(&r) % 3);
			plans[p].decision.decided += decisions[p][0].cold;
		}
		if ((random_next(&r) % 9) == 0)
			plans[p].decision.held_by = LIMIT_BUDGET;
	}
	const struct snapshot s = { t, BEGUN + (t + 1) * TICK, TICK, &m->manifest.fleet, snapshots };
	assert_true(history_append(m->history, &s, &(struct plan){ plans, 2 }, &e));
}

static inline void made_begin(struct made *m, int64_t ticks)
{
	struct findings findings = { 0 };
	struct error e = { 0 };

	*m = (struct made){ .folder = "/tmp/preheat-api-XXXXXX" };
	assert_non_null(mkdtemp(m->folder));
	snprintf(m->path, sizeof m->path, "%s/history.db", m->folder);
	bool ok = manifest_load_text("made", made_manifest, &m->arena, &m->manifest, &findings, &e);
	findings_release(&findings);
	assert_string_equal(e.message, "");
	assert_true(ok);
	m->history = history_create(&(struct history_setup){ m->path, made_manifest, &m->manifest.fleet, "0.1.0",
							     "preheat", "a test", 1, HOUR },
				    &e);
	assert_non_null(m->history);
	for (int64_t t = 0; t < ticks; t++)
		made_tick(m, t);
}

static inline void made_end(struct made *m)
{
	struct error e = { 0 };

	if (m->history)
		assert_true(history_finish(m->history, &e));
	unlink(m->path);
	assert_int_equal(rmdir(m->folder), 0);
	arena_release(&m->arena);
}

static inline const char *made_verb(int64_t verb)
{
	return verb ? "?" : "resize";
}

/* "/api/v1/pools?a=b&c=d": the answer, to be freed; no escapes. */
static inline char *ask_with(struct web_api *api, const char *method, const char *url, const char *body, int *status)
{
	char text[1024];
	struct server_pair pairs[16];
	struct api_request r = {
		.method = method, .path = text, .pairs = pairs, .body = body, .body_len = strlen(body)
	};
	struct api_reply reply;

	snprintf(text, sizeof text, "%s", url);
	char *query = strchr(text, '?');
	if (query)
		*query++ = '\0';
	for (char *at = query ? strtok(query, "&") : NULL; at; at = strtok(NULL, "&")) {
		char *equals = strchr(at, '=');

		if (equals)
			*equals = '\0';
		assert_true(r.pair_count < 16);
		pairs[r.pair_count++] = (struct server_pair){ at, equals ? equals + 1 : "" };
	}
	api_serve(api, &r, &reply);
	*status = reply.status;
	buf_release(&reply.allow);
	return reply.body.text;
}

static inline char *ask(struct web_api *api, const char *url, int *status)
{
	return ask_with(api, "GET", url, "", status);
}
