#include "providers/exchange.h"

#include "base/alloc.h"
#include "base/text.h"
#include "providers/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool provider_verb_changes(enum provider_verb verb)
{
	return verb != PROVIDER_DESCRIBE && verb != PROVIDER_CHECK;
}

static bool is_sound(const struct exchange_kind *k, struct provider_call *c)
{
	if (c->verb == PROVIDER_PROTECT && !k->protects)
		return error_set(&c->error, ERROR_INVALID, "its machines cannot be protected");
	if (provider_verb_changes(c->verb) && (!c->token || !*c->token))
		return error_set(&c->error, ERROR_INVALID, "a call that changes something needs a token");
	if (c->desired < 0)
		return error_set(&c->error, ERROR_INVALID, "%" PRId64 " machines cannot be asked for", c->desired);
	for (size_t i = 0; i < c->id_count; i++)
		if (!c->ids[i] || !*c->ids[i])
			return error_set(&c->error, ERROR_INVALID, "a machine without an id was named");
	return true;
}

static millis deadline_of(const struct exchange_kind *k, const struct provider_call *c)
{
	if (c->timeout)
		return c->timeout;
	if (c->verb == PROVIDER_CANCEL && k->cancel_deadline)
		return k->cancel_deadline;
	return provider_verb_changes(c->verb) ? k->change_deadline : k->read_deadline;
}

static void begin(struct timer *t)
{
	struct exchange *x = t->user;

	if (x->call->error.kind != ERROR_NONE)
		exchange_finish(x);
	else
		x->provider->kind->begin(x);
}

void exchange_start(struct provider *p, struct provider_call *c)
{
	struct exchange *x = xcalloc(1, p->kind->size);

	assert(!c->exchange);
	provider_call_release(c);
	c->error = (struct error){ 0 };
	c->retry_after = 0;
	c->launched = 0;
	c->was_taken = false;
	c->exchange = x;
	x->provider = p;
	x->call = c;
	x->timer.user = x;
	x->deadline = deadline_of(p->kind, c);
	x->ends_at = loop_now(p->loop) + x->deadline;
	p->active++;
	(void)(is_sound(p->kind, c) && p->kind->accepts(x)); /* what was wrong is told from the loop */
	timer_start(p->loop, &x->timer, 0, begin);
}

void exchange_cancel(struct provider *p, struct provider_call *c)
{
	struct exchange *x = c->exchange;

	if (!x || x->is_cancelled)
		return;
	x->is_cancelled = true;
	if (p->kind->cancel(x))
		return;
	error_set(&c->error, ERROR_CANCELLED, "cancelled");
	timer_start(p->loop, &x->timer, 0, begin);
}

void exchange_finish(struct exchange *x)
{
	struct provider_call *c = x->call;

	x->provider->kind->end(x);
	if (c->error.kind != ERROR_NONE) {
		c->description = (struct group_description){ 0 };
		error_wrap(&c->error, "group %s: %s", c->group, provider_verb_name(c->verb));
	}
	c->exchange = NULL;
	x->provider->active--;
	timer_stop(&x->timer);
	free(x);
	c->done(c); /* may start it anew, and may free it */
}

millis exchange_left(const struct exchange *x)
{
	millis left = x->ends_at - loop_now(x->provider->loop);

	return left > 1 ? left : 1;
}

static int by_age(const void *left, const void *right)
{
	const struct machine *a = left, *b = right;

	if (a->launched_at != b->launched_at)
		return a->launched_at < b->launched_at ? -1 : 1;
	return strcmp(a->id, b->id);
}

void group_description_caution(struct group_description *d, struct arena *a, const char *text)
{
	const char **list = arena_array(a, const char *, d->caution_count + 1);

	if (d->caution_count)
		memcpy(list, d->cautions, d->caution_count * sizeof(const char *));
	list[d->caution_count++] = text;
	d->cautions = list;
}

void group_description_promise(struct group_description *d, struct arena *a, const struct node_promise *p)
{
	d->promise = *p;
	if (p->unread)
		group_description_caution(
			d, a,
			text_printf(a,
				    "%zu of what the cloud says of new nodes makes no sense there and "
				    "is left out: %s",
				    p->unread_count, p->unread));
}

static int by_number(const void *left, const void *right)
{
	const struct launch_failure *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

void group_description_sort(struct group_description *d)
{
	if (d->machine_count)
		qsort(d->machines, d->machine_count, sizeof *d->machines, by_age);
	if (d->failure_count)
		qsort(d->failures, d->failure_count, sizeof *d->failures, by_number);
}

static int by_id(const void *left, const void *right)
{
	const struct machine *const *a = left, *const *b = right;

	return strcmp((*a)->id, (*b)->id);
}

bool group_description_check(struct group_description *d, struct arena *a, struct error *e)
{
	const struct machine **sorted = arena_array(a, const struct machine *, d->machine_count);
	char shown[QUOTE_ROOM];

	group_description_sort(d);
	for (size_t i = 0; i < d->machine_count; i++)
		sorted[i] = &d->machines[i];
	if (d->machine_count)
		qsort(sorted, d->machine_count, sizeof(struct machine *), by_id);
	for (size_t i = 1; i < d->machine_count; i++)
		if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0)
			return error_set(e, ERROR_INVALID, "machine %s is listed twice",
					 quote(shown, sorted[i]->id, strlen(sorted[i]->id)));
	return true;
}
