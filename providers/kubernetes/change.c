/* What a call that changes a size asks, once the owner and its machines were read. */
#include "base/json_write.h"
#include "providers/kubernetes/exchange.h"

#include <inttypes.h>
#include <string.h>

static bool is_named(const struct provider_call *c, const char *id)
{
	for (size_t i = 0; i < c->id_count; i++)
		if (!strcmp(c->ids[i], id))
			return true;
	return false;
}

/* Of those named: there, and not going already; a start that is cancelled must not run by now. */
static size_t choose_victims(struct exchange *x)
{
	size_t count = 0;

	x->victims = arena_array(&x->call->arena, const char *, x->list.count + 1);
	for (size_t i = 0; i < x->list.count; i++) {
		const struct machine *m = &x->list.machines[i];
		if (is_named(x->call, m->id) && m->state != MACHINE_TERMINATING &&
		    !(x->call->verb == PROVIDER_CANCEL && m->state == MACHINE_RUNNING))
			x->victims[count++] = m->id;
	}
	return count;
}

static int64_t size_without(const struct exchange *x)
{
	int64_t size = x->owner.replicas - (int64_t)x->victim_count;
	int64_t least = machines_there(&x->list) - (int64_t)x->victim_count;

	if (x->call->verb != PROVIDER_CANCEL)
		return size > 0 ? size : 0;
	least = x->call->desired > least ? x->call->desired : least;
	return size > least ? least : size > 0 ? size : 0;
}

static void delete_next(struct exchange *x)
{
	if (!x->provider->kind->deletes_victims || x->at == x->victim_count) {
		object_finish(x);
		return;
	}
	buf_clear(&x->path);
	buf_clear(&x->body);
	buf_printf(&x->path, "%s/%s", x->group.list, x->victims[x->at++]);
	x->is_gone_fine = true;
	object_ask(x, "DELETE", delete_next);
}

/* Size and token in one write against the version that was read: a repeat finds its token and lowers nothing. */
static void lower(struct exchange *x)
{
	int64_t size = size_without(x);

	x->at = 0;
	if (size == x->owner.replicas || !strcmp(x->owner.operation, x->call->token)) {
		delete_next(x);
		return;
	}
	buf_clear(&x->path);
	buf_clear(&x->body);
	buf_text(&x->path, x->group.owner);
	buf_text(&x->body, "{\"metadata\":{\"resourceVersion\":");
	json_write_text(x->owner.resource_version, &x->body);
	buf_text(&x->body, ",\"annotations\":{\"" OPERATION_ANNOTATION "\":");
	json_write_text(x->call->token, &x->body);
	buf_printf(&x->body, "}},\"spec\":{\"replicas\":%" PRId64 "}}", size);
	x->is_gone_fine = false;
	object_ask(x, "PATCH", delete_next);
}

static void annotate_next(struct exchange *x)
{
	if (!x->provider->kind->victim_annotation || x->at == x->victim_count) {
		lower(x);
		return;
	}
	buf_clear(&x->path);
	buf_clear(&x->body);
	buf_printf(&x->path, "%s/%s", x->group.list, x->victims[x->at++]);
	buf_printf(&x->body, "{\"metadata\":{\"annotations\":{\"%s\":\"preheat\"}}}",
		   x->provider->kind->victim_annotation);
	x->is_gone_fine = true;
	object_ask(x, "PATCH", annotate_next);
}

void change_shrink(struct exchange *x)
{
	x->victim_count = choose_victims(x);
	x->at = 0;
	annotate_next(x);
}

static void grown(struct exchange *x)
{
	object_finish(x);
}

/* Through the scale subresource, against the version that was read. */
void change_grow(struct exchange *x)
{
	if (x->call->desired <= x->owner.replicas) {
		object_finish(x);
		return;
	}
	if (x->owner.max && x->call->desired > x->owner.max) {
		error_set(&x->call->error, ERROR_INVALID, "%" PRId64 " machines are above its max of %" PRId64,
			  x->call->desired, x->owner.max);
		object_finish(x);
		return;
	}
	buf_clear(&x->path);
	buf_clear(&x->body);
	buf_printf(&x->path, "%s/scale", x->group.owner);
	buf_text(&x->body, "{\"metadata\":{\"resourceVersion\":");
	json_write_text(x->owner.resource_version, &x->body);
	buf_printf(&x->body, "},\"spec\":{\"replicas\":%" PRId64 "}}", x->call->desired);
	object_ask(x, "PATCH", grown);
}
