#include "controller/loop/status.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/objects.h"
#include "controller/web/status_object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What only moved is written every so many ticks; after failures it is waited for at most so many. */
enum { TICKS_QUIET = 4, TICKS_FAILED = 16 };

struct status_target {
	struct controller *controller;
	struct status_target *next;
	char *namespace, *name, *uid;
	struct conditions kept;
	struct object_call call;
	struct buf body, meaning, sent_meaning; /* body: what is under way, or was written last */
	bool is_calling, is_adopted, is_wanted;
	int64_t quiet, failures;
};

struct told_condition {
	const char *type, *status;
	millis since;
};

static const struct field condition_fields[] = {
	FIELD(struct told_condition, type, FIELD_STRING, "type"),
	FIELD(struct told_condition, status, FIELD_STRING, "status"),
	FIELD(struct told_condition, since, FIELD_TIME, "lastTransitionTime"),
};

static const struct record_spec condition_record = { "", sizeof(struct told_condition), condition_fields, 3 };

struct told_status {
	struct decoded_list conditions;
};

static const struct field told_fields[] = {
	{ .path = "status>conditions",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct told_status, conditions),
	  .of = &condition_record },
};

static const struct record_spec told_record = { "", sizeof(struct told_status), told_fields, 1 };

static void release(struct status_target *t)
{
	free(t->namespace);
	free(t->name);
	free(t->uid);
	buf_release(&t->body);
	buf_release(&t->meaning);
	buf_release(&t->sent_meaning);
	free(t);
}

/* Another object of the same name has had no conditions yet. */
static void take_uid(struct status_target *t, const char *uid)
{
	if (t->uid && !strcmp(t->uid, uid))
		return;
	if (t->uid) {
		t->kept = (struct conditions){ 0 };
		buf_clear(&t->sent_meaning);
		t->failures = 0;
	}
	free(t->uid);
	t->uid = xstrdup(uid);
}

static struct status_target *find(struct controller *c, const char *namespace, const char *name)
{
	struct status_target *t = c->statuses;

	while (t && (strcmp(t->namespace, namespace) != 0 || strcmp(t->name, name) != 0))
		t = t->next;
	if (t)
		return t;
	t = xcalloc(1, sizeof *t);
	*t = (struct status_target){
		.controller = c, .next = c->statuses, .namespace = xstrdup(namespace), .name = xstrdup(name)
	};
	c->statuses = t;
	return t;
}

/* Conditions keep the time of their last change over a restart: it stands in the object. */
static void adopt(struct status_target *t)
{
	struct decode_plan *plan = decode_plan_new(&told_record);
	struct arena a = { 0 };
	struct told_status told;
	struct error e = { 0 };

	if (decode_record(plan, t->call.response, t->call.response_len, &a, &told, &e)) {
		const struct told_condition *items = told.conditions.items;
		for (size_t i = 0; i < told.conditions.count; i++)
			if (items[i].type && items[i].status && items[i].since > 0)
				condition_adopt(&t->kept, items[i].type, items[i].status, items[i].since);
	}
	arena_release(&a);
	decode_plan_free(plan);
	t->is_adopted = true;
}

static void note_failure(struct status_target *t, const struct error *e)
{
	t->failures += t->failures < TICKS_FAILED;
	t->quiet = 0;
	buf_clear(&t->sent_meaning);
	if (t->failures == 1 && e->kind != ERROR_CANCELLED && e->kind != ERROR_NOT_FOUND)
		log_warn("status-not-written", LOG_S("namespace", t->namespace), LOG_S("name", t->name), LOG_E(e),
			 LOG_END);
}

static void answered(struct object_call *call)
{
	struct status_target *t = call->user;

	t->is_calling = false;
	if (call->error.kind != ERROR_NONE) {
		note_failure(t, &call->error);
		return;
	}
	t->failures = 0;
	if (call->verb == OBJECT_PATCH)
		return;
	adopt(t);
	if (!t->controller->published.plan)
		status_write(t->controller); /* no tick will; may free t */
}

static void call(struct status_target *t, enum object_verb verb)
{
	t->is_calling = true;
	t->quiet = 0;
	t->call = (struct object_call){ .verb = verb,
					.object = { .api_version = "preheat.dev/v1alpha1",
						    .plural = "warmpools",
						    .name_space = t->namespace,
						    .name = t->name,
						    .subresource = "status" },
					.body = verb == OBJECT_PATCH ? t->body.text : NULL,
					.done = answered,
					.user = t };
	object_start(t->controller->api, &t->call);
}

/* What a reader would call a change, as against figures that move all the time. */
static void write_meaning(const struct controller *c, size_t pool, const struct conditions *kept, struct buf *out)
{
	const struct pool_plan *plan = &c->plan.pools[pool];
	const struct pool_decision *d = &plan->decision;

	buf_clear(out);
	buf_printf(out, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
		   c->publishing.pools[pool].generation, d->ready, d->standby, d->on_the_way, d->draining, d->wished,
		   d->decided, d->held_by);
	for (size_t i = 0; i < plan->group_count; i++)
		buf_printf(out, " %" PRId64 " %" PRId64 " %" PRId64, plan->groups[i].nodes,
			   plan->groups[i].nodes_desired, plan->groups[i].blocked_until);
	for (size_t i = 0; i < CONDITION_COUNT; i++)
		buf_printf(out, " %d", (int)kept->items[i].status);
}

/* `t->body` and `t->meaning` say what is so now. */
static void send_when_due(struct status_target *t)
{
	bool is_news = !t->sent_meaning.len || strcmp(t->meaning.text, t->sent_meaning.text) != 0;

	t->quiet++;
	if (t->quiet <= t->failures || (!is_news && t->quiet < TICKS_QUIET))
		return;
	buf_clear(&t->sent_meaning);
	buf_append(&t->sent_meaning, t->meaning.text, t->meaning.len);
	call(t, OBJECT_PATCH);
}

/* Whether its status may be written now; it is found out first what it was. */
static bool is_open(struct status_target *t)
{
	t->is_wanted = true;
	if (t->is_calling)
		return false;
	if (t->is_adopted)
		return true;
	if (++t->quiet > t->failures)
		call(t, OBJECT_GET);
	return false;
}

static void write_pools(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		const struct pool_spec *spec = &fleet_of(c)->pools[i];
		const struct pool_object *o = objects_find(c, spec->namespace, spec->name);
		if (!o)
			continue;
		struct status_target *t = find(c, o->namespace, o->name);
		if (!t->is_calling)
			take_uid(t, o->uid);
		if (!is_open(t))
			continue;
		buf_clear(&t->body);
		status_object_write(&c->published, i, &t->kept, &t->body);
		write_meaning(c, i, &t->kept, &t->meaning);
		send_when_due(t);
	}
}

static void tell_refused(struct controller *c, const struct status_target *t, const char *why)
{
	events_tell(c->events, &(struct event){ .api_version = "preheat.dev/v1alpha1",
						.kind = "WarmPool",
						.name_space = t->namespace,
						.name = t->name,
						.uid = t->uid,
						.is_warning = true,
						.reason = "Refused",
						.action = "Check",
						.note = why });
}

/* Refused ones are said so once: nothing about them moves. */
static void write_refused(struct controller *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct published_counts refused = objects_refused(c, &a);

	for (size_t i = 0; i < refused.count; i++) {
		const struct published_count *r = &refused.items[i];
		if (objects_find(c, r->labels[0], r->labels[1]))
			continue; /* what it said before is decided on */
		struct status_target *t = find(c, r->labels[0], r->labels[1]);
		const struct pool_object *o = objects_named(c, r->labels[0], r->labels[1]);
		if (!t->is_calling)
			take_uid(t, o->uid);
		if (!is_open(t))
			continue;
		buf_clear(&t->meaning);
		buf_printf(&t->meaning, "refused %" PRId64 " %s", r->count, r->labels[2]);
		if (t->sent_meaning.len && !strcmp(t->meaning.text, t->sent_meaning.text))
			continue;
		buf_clear(&t->body);
		tell_refused(c, t, r->labels[2]);
		status_refused_write(r->labels[2], r->count, clock_now(c->clock), &t->kept, &t->body);
		send_when_due(t);
	}
}

static void forget_gone(struct controller *c)
{
	struct status_target **at = &c->statuses;

	while (*at) {
		struct status_target *t = *at;
		if (t->is_wanted || t->is_calling) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		release(t);
	}
}

void status_write(struct controller *c)
{
	if (c->context.is_barred || c->is_stopping)
		return;
	for (struct status_target *t = c->statuses; t; t = t->next)
		t->is_wanted = false;
	if (c->published.plan)
		write_pools(c);
	write_refused(c);
	forget_gone(c);
}

void status_stop(struct controller *c)
{
	for (struct status_target *t = c->statuses; t; t = t->next)
		if (t->is_calling)
			api_cancel(&t->call.call);
}

bool status_is_idle(const struct controller *c)
{
	const struct status_target *t = c->statuses;

	while (t && !t->is_calling)
		t = t->next;
	return !t;
}

void status_free(struct controller *c)
{
	while (c->statuses) {
		struct status_target *t = c->statuses;
		c->statuses = t->next;
		release(t);
	}
}
