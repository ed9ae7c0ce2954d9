#include "controller/loop/trace.h"

#include "base/net/otlp.h"
#include "controller/loop/controller_state.h"

#include <inttypes.h>
#include <stdio.h>

static struct otlp_trace_id trace_of(const struct controller *c, millis decided_at)
{
	struct random r = random_stream(c->settings.trace_seed ^ (uint64_t)decided_at, "trace");
	struct otlp_trace_id id = { random_next(&r), random_next(&r) };

	return id;
}

bool trace_id(const struct controller *c, char out[TRACE_ID_TEXT])
{
	struct otlp_trace_id id = trace_of(c, c->snapshot.now);

	snprintf(out, TRACE_ID_TEXT, "%016" PRIx64 "%016" PRIx64, id.high, id.low);
	return c->settings.traces != NULL;
}

static uint64_t span_of(struct otlp_trace_id trace, const char *what)
{
	struct random r = random_stream(trace.low, what);

	return random_next(&r) | 1; /* 0 is no id */
}

static struct otlp_attribute text(const char *key, const char *value)
{
	return (struct otlp_attribute){ .key = key, .text = value };
}

static struct otlp_attribute number(const char *key, int64_t value)
{
	return (struct otlp_attribute){ .key = key, .integer = value };
}

static void trace_decision(struct controller *c, struct otlp_trace_id trace, size_t pool)
{
	const struct pool_decision *d = &c->plan.pools[pool].decision;
	char name[160];

	snprintf(name, sizeof name, "decide %.130s", fleet_of(c)->pools[pool].name);
	const struct otlp_attribute attributes[] = {
		text("preheat.pool", c->pools[pool]->key),
		number("preheat.ready", d->ready),
		number("preheat.on_the_way", d->on_the_way),
		number("preheat.wished", d->wished),
		number("preheat.decided", d->decided),
		text("preheat.held_by", limit_name((enum limit)d->held_by)),
		number("preheat.waiting", d->waiting_now),
	};
	size_t count = sizeof attributes / sizeof *attributes - (d->waiting_now == ABSENT);
	otlp_add(c->settings.traces, &(struct otlp_span){ .trace = trace,
							  .id = span_of(trace, c->pools[pool]->key),
							  .parent = span_of(trace, "tick"),
							  .name = name,
							  .kind = OTLP_INTERNAL,
							  .from = c->snapshot.now,
							  .to = c->snapshot.now,
							  .attributes = attributes,
							  .attribute_count = count });
}

void trace_tick(struct controller *c, int64_t micros)
{
	if (!c->settings.traces)
		return;
	struct otlp_trace_id trace = trace_of(c, c->snapshot.now);
	const struct otlp_attribute attributes[] = {
		number("preheat.tick", c->tick.number - 1),
		number("preheat.pools", (int64_t)c->plan.pool_count),
		number("preheat.took_us", micros),
	};
	otlp_add(c->settings.traces, &(struct otlp_span){ .trace = trace,
							  .id = span_of(trace, "tick"),
							  .name = "tick",
							  .kind = OTLP_INTERNAL,
							  .from = c->snapshot.now,
							  .to = c->snapshot.now + (micros + 999) / 1000,
							  .attributes = attributes,
							  .attribute_count = sizeof attributes / sizeof *attributes });
	for (size_t i = 0; i < c->plan.pool_count; i++)
		trace_decision(c, trace, i);
}

void trace_call(struct controller *c, const struct node_group *g, const struct provider_call *call, millis from)
{
	if (!c->settings.traces)
		return;
	const struct group_spec *spec = &fleet_of(c)->groups[g->index];
	struct otlp_trace_id trace = trace_of(c, c->snapshot.now);
	char name[160];

	snprintf(name, sizeof name, "%s %.130s", provider_verb_name(call->verb), spec->name);
	const struct otlp_attribute attributes[] = {
		text("preheat.group", spec->name),
		text("preheat.provider", spec->provider),
		text("preheat.token", call->token),
		number("preheat.desired", call->desired),
		number("preheat.machines", (int64_t)call->id_count),
		text("error.type", error_kind_name(call->error.kind)),
	};
	bool has_failed = call->error.kind != ERROR_NONE;
	size_t count = sizeof attributes / sizeof *attributes - !has_failed;
	otlp_add(c->settings.traces, &(struct otlp_span){ .trace = trace,
							  .id = span_of(trace, call->token),
							  .parent = span_of(trace, "tick"),
							  .name = name,
							  .kind = OTLP_CLIENT,
							  .from = from,
							  .to = clock_now(c->clock),
							  .attributes = attributes,
							  .attribute_count = count,
							  .failure = has_failed ? call->error.message : NULL });
}

static const char *failure_of(const struct event_input *event)
{
	if (event->what == EVENT_REFUSED)
		return error_kind_name((enum error_kind)event->value);
	return event->what == EVENT_STUCK ? "stuck" : NULL;
}

void trace_start(struct controller *c, const struct start *s, const struct event_input *event, millis at)
{
	if (!c->settings.traces || (s->is_adopted && event->what == EVENT_STAGE))
		return;
	struct otlp_trace_id trace = trace_of(c, s->asked_at);
	bool is_stage = event->what == EVENT_STAGE;
	const char *pool = c->pools[s->pool]->key;
	char name[160], what[200];

	if (is_stage)
		snprintf(name, sizeof name, "stage %s", stage_name((enum stage)event->stage));
	else
		snprintf(name, sizeof name, "%s %.130s", s->kind == START_REFILL ? "refill" : "start",
			 fleet_of(c)->pools[s->pool].name);
	snprintf(what, sizeof what, "%s %" PRId64, name, ++c->spans);
	const struct otlp_attribute attributes[] = {
		text("preheat.pool", pool),
		text("preheat.machine", s->machine),
		text("k8s.pod.uid", s->pod),
	};
	otlp_add(c->settings.traces,
		 &(struct otlp_span){ .trace = trace,
				      .id = span_of(trace, what),
				      .parent = span_of(trace, pool),
				      .name = name,
				      .kind = OTLP_INTERNAL,
				      .from = is_stage ? at - event->value : s->asked_at,
				      .to = at ? at : clock_now(c->clock),
				      .attributes = attributes,
				      .attribute_count = sizeof attributes / sizeof *attributes - !s->pod[0],
				      .failure = failure_of(event) });
}
