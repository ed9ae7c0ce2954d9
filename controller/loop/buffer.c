#include "controller/loop/buffer.h"

#include "base/json.h"
#include "controller/loop/objects.h"
#include "controller/loop/parts.h"

#include <stdio.h>
#include <string.h>

/* Of the world: somebody may have changed it. */
static const millis LOOK_AGAIN = MINUTE, AGAIN = 10 * SECOND;

/* Newest first. Karpenter's pages name the second, its code and Cluster Autoscaler the first. */
static const char *const versions[] = { "autoscaling.x-k8s.io/v1beta1", "autoscaling.x-k8s.io/v1alpha1" };
enum { VERSIONS = sizeof versions / sizeof *versions };

void buffer_want(struct controller *c, size_t pool, int64_t replicas)
{
	bool is_driven = is_buffered(c, pool) && fleet_of(c)->pools[pool].mode == MODE_ACT;

	c->pools[pool].buffer.wanted = !is_driven ? ABSENT : replicas > 0 ? replicas : 0;
}

static void failed(struct live_pool *p, const struct error *why)
{
	struct controller *c = p->controller;

	p->buffer.quiet_until = loop_now(c->loop) + AGAIN;
	if (why->kind != ERROR_CANCELLED)
		log_warn("capacity-buffer-not-applied", LOG_S("pool", fleet_of(c)->pools[p->index].name), LOG_E(why),
			 LOG_END);
}

static void looked_up(struct plural_call *call)
{
	struct live_pool *p = call->user;
	struct buffer *b = &p->buffer;

	b->is_calling = false;
	b->is_found = call->error.kind == ERROR_NONE && call->plural;
	if (call->error.kind == ERROR_NOT_FOUND && b->version + 1 < VERSIONS) {
		b->version++;
	} else if (!b->is_found) {
		struct error e = call->error;
		if (e.kind == ERROR_NOT_FOUND)
			error_set(&e, ERROR_NOT_FOUND,
				  "the server knows no CapacityBuffer; do: switch it on at the autoscaler, or set "
				  "workload.warm to placeholders");
		b->version = 0;
		failed(p, &e);
		events_of_buffer(p->controller, p->index, &e);
	}
	act_soon(p->controller);
}

static void look_up(struct controller *c, struct live_pool *p)
{
	struct buffer *b = &p->buffer;

	b->is_calling = true;
	b->lookup = (struct plural_call){
		.api_version = versions[b->version], .kind = "CapacityBuffer", .done = looked_up, .user = p
	};
	plural_start(c->api, &b->lookup);
}

static void applied(struct object_call *call)
{
	struct live_pool *p = call->user;
	struct buffer *b = &p->buffer;

	b->is_calling = false;
	if (call->error.kind == ERROR_NONE) {
		if (b->is != b->asked)
			log_info("capacity-buffer-applied",
				 LOG_S("pool", fleet_of(p->controller)->pools[p->index].name), LOG_I("to", b->asked),
				 b->is == ABSENT ? LOG_END : LOG_I("from", b->is), LOG_END);
		b->is = b->asked;
		b->told_at = loop_now(p->controller->loop);
	} else {
		b->is = ABSENT; /* it may have come to pass all the same */
		b->is_found = call->error.kind != ERROR_NOT_FOUND;
		failed(p, &call->error);
	}
	act_soon(p->controller);
}

static void write_body(const struct controller *c, struct live_pool *p)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[p->index];
	const struct target_text *t = &c->manifest.pools[p->index].spec.workload.target;
	struct buffer *b = &p->buffer;
	int group = (int)strcspn(t->api_version, "/");

	snprintf(b->name, sizeof b->name, "%.200s-preheat", spec->name);
	buf_clear(&b->body);
	buf_printf(
		&b->body,
		"{\"apiVersion\":\"%s\",\"kind\":\"CapacityBuffer\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
		"\"labels\":{\"app.kubernetes.io/managed-by\":\"preheat\"}",
		versions[b->version], b->name, spec->namespace);
	objects_write_owner(c, spec, &b->body);
	buf_printf(&b->body,
		   "},\"spec\":{\"provisioningStrategy\":\"buffer.x-k8s.io/active-capacity\",\"scalableRef\":{"
		   "\"apiGroup\":\"%.*s\",\"kind\":\"%s\",\"name\":",
		   group, t->api_version, t->kind);
	json_write_text(t->name, &b->body);
	buf_printf(&b->body, "},\"replicas\":%lld}}", (long long)b->asked);
}

static void apply(struct controller *c, struct live_pool *p)
{
	struct buffer *b = &p->buffer;

	b->asked = b->wanted;
	write_body(c, p);
	b->is_calling = true;
	b->call = (struct object_call){ .verb = OBJECT_APPLY,
					.object = { .api_version = versions[b->version],
						    .plural = "capacitybuffers",
						    .name_space = fleet_of(c)->pools[p->index].namespace,
						    .name = b->name },
					.body = b->body.text,
					.done = applied,
					.user = p };
	object_start(c->api, &b->call);
}

static void drive_pool(struct controller *c, struct live_pool *p)
{
	struct buffer *b = &p->buffer;
	millis age = clock_real(c->clock, LOOK_AGAIN);

	if (b->is_calling || b->wanted == ABSENT || loop_now(c->loop) < b->quiet_until)
		return;
	if (!b->is_found)
		look_up(c, p);
	else if (b->is != b->wanted || loop_now(c->loop) - b->told_at > (age > SECOND ? age : SECOND))
		apply(c, p);
}

void buffer_drive(struct controller *c)
{
	for (size_t i = 0; !c->context.is_barred && i < fleet_of(c)->pool_count; i++)
		drive_pool(c, &c->pools[i]);
}

void buffer_stop(struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		if (c->pools[i].buffer.is_calling) {
			api_cancel(&c->pools[i].buffer.lookup.call);
			api_cancel(&c->pools[i].buffer.call.call);
		}
}

bool buffers_are_idle(const struct controller *c)
{
	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		if (c->pools[i].buffer.is_calling)
			return false;
	return true;
}
