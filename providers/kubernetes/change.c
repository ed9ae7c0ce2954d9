/* What a call that changes a size asks, once the owner and its machines were read: against that version. */
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

static bool is_victim(const struct exchange *x, const char *id)
{
	for (size_t i = 0; i < x->victim_count; i++)
		if (!strcmp(x->victims[i], id))
			return true;
	return false;
}

static int64_t others_marked(const struct exchange *x)
{
	int64_t count = 0;

	for (size_t i = 0; i < x->list.marked_count; i++)
		count += !is_victim(x, x->list.marked[i].id);
	return count;
}

/*
 * Without those named; but whoever is not named and not marked to go keeps its place, whatever the size is: it may have
 * been lowered for the same machines before, by a call that nobody remembers.
 */
static int64_t size_without(const struct exchange *x)
{
	int64_t victims = (int64_t)x->victim_count, staying = machines_there(&x->list) - victims;
	int64_t size = x->owner.replicas - victims, least = staying - others_marked(x);

	size = size > least ? size : least;
	size = size < x->owner.replicas ? size : x->owner.replicas;
	if (x->call->verb != PROVIDER_CANCEL)
		return size > 0 ? size : 0;
	least = x->call->desired > staying ? x->call->desired : staying;
	least = x->owner.min > least ? x->owner.min : least;
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

/* Whether this very call lowered the size before, and its answer was lost. */
static bool is_repeat(const struct exchange *x)
{
	return !strcmp(x->owner.operation, x->call->token);
}

/* Size and token in one write: a repeat finds its token and lowers nothing. */
static void lower(struct exchange *x)
{
	int64_t size = size_without(x);

	x->at = 0;
	if (size == x->owner.replicas || is_repeat(x)) {
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

/* `value`: as JSON; null takes the mark away. */
static void mark(struct exchange *x, const char *machine, const char *value, void (*then)(struct exchange *x))
{
	buf_clear(&x->path);
	buf_clear(&x->body);
	buf_printf(&x->path, "%s/%s", x->group.list, machine);
	buf_printf(&x->body, "{\"metadata\":{\"annotations\":{\"%s\":%s}}}", x->provider->kind->victim_annotation,
		   value);
	x->is_gone_fine = true;
	object_ask(x, "PATCH", then);
}

static void mark_next(struct exchange *x)
{
	if (!x->provider->kind->victim_annotation || x->at == x->victim_count)
		lower(x);
	else
		mark(x, x->victims[x->at++], "\"" VICTIM_MARK "\"", mark_next);
}

/* A mark that an earlier call left on a machine that stayed: it would go in the place of those named. */
static void unmark_next(struct exchange *x)
{
	while (x->at < x->list.marked_count && is_victim(x, x->list.marked[x->at].id))
		x->at++;
	if (x->at == x->list.marked_count) {
		x->at = 0;
		mark_next(x);
		return;
	}
	const struct marked *m = &x->list.marked[x->at++];
	if (strcmp(m->mark, VICTIM_MARK) != 0) {
		error_set(&x->call->error, ERROR_CONFLICT,
			  "machine %.100s has the annotation %s of somebody else and would go first; do: take it away, "
			  "or let it go",
			  m->id, x->provider->kind->victim_annotation);
		object_finish(x);
		return;
	}
	mark(x, m->id, "null", unmark_next);
}

static bool keeps_min(const struct exchange *x, struct error *e)
{
	int64_t size = size_without(x);

	return size >= x->owner.min || size == x->owner.replicas || is_repeat(x) ||
	       error_set(e, ERROR_INVALID, "size %" PRId64 " would be below its min of %" PRId64 "; lower that", size,
			 x->owner.min);
}

void change_shrink(struct exchange *x)
{
	int64_t going = machines_there(&x->list) - x->owner.replicas, others;

	x->victim_count = choose_victims(x);
	x->at = 0;
	others = others_marked(x);
	if (!keeps_min(x, &x->call->error))
		object_finish(x);
	else if (size_without(x) == x->owner.replicas || is_repeat(x) || (going > 0 && others <= going))
		mark_next(x); /* others that are marked are on their way already */
	else if (going > 0 && others) {
		error_set(&x->call->error, ERROR_CONFLICT, "it is taking machines away");
		object_finish(x);
	} else {
		unmark_next(x);
	}
}

static void grown(struct exchange *x)
{
	object_finish(x);
}

/* Through the scale subresource. */
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
