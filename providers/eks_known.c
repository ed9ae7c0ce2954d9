#include "providers/eks_known.h"

#include "base/alloc.h"
#include "providers/eks_group.h"
#include "providers/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const millis REFUSAL_KEPT = 30 * SECOND;
enum { RESIZER_ASKS = 3 }; /* an activity may show later than the size */

struct eks_known *eks_known_of(struct eks_known **list, const char *settings, const char *group)
{
	struct eks_known *k = *list;

	while (k && strcmp(k->settings, settings) != 0)
		k = k->next;
	if (k && strcmp(k->group, group) != 0) {
		free(k->group);
		k->group = xstrdup(group);
	}
	if (k)
		return k;
	k = xcalloc(1, sizeof *k);
	k->settings = xstrdup(settings);
	k->group = xstrdup(group);
	k->asked = EKS_NONE_ASKED;
	k->next = *list;
	*list = k;
	return k;
}

void eks_known_release(struct eks_known *list)
{
	for (struct eks_known *k = list, *next; k; k = next) {
		next = k->next;
		arena_release(&k->arena);
		arena_release(&k->looked);
		for (size_t i = 0; i < k->ended_count; i++)
			free(k->ended[i].id);
		free(k->ended);
		free(k->settings);
		free(k->group);
		free(k);
	}
}

struct eks_nodegroup eks_nodegroup_copy(struct arena *a, const struct eks_nodegroup *n)
{
	struct eks_nodegroup c = *n;

	c.group = text_keep(a, n->group);
	c.status = text_keep(a, n->status);
	c.capacity_type = text_keep(a, n->capacity_type);
	c.image = text_keep(a, n->image);
	c.ailment = text_keep(a, n->ailment);
	c.pool.state = text_keep(a, n->pool.state);
	c.promise = (struct node_promise){ 0 };
	promise_add(&c.promise, a, &n->promise);
	return c;
}

void eks_known_forget(struct eks_known *k)
{
	arena_release(&k->arena);
	k->nodegroup = (struct eks_nodegroup){ 0 };
	k->refusal = (struct error){ 0 };
	k->until = 0;
}

void eks_known_found(struct eks_known *k, const struct eks_nodegroup *found, millis now, millis jitter)
{
	/* What is no settled state is looked at until it is. */
	bool is_settled = !*found->status || !strcmp(found->status, "ACTIVE");

	eks_known_forget(k);
	k->nodegroup = eks_nodegroup_copy(&k->arena, found);
	k->read_at = now;
	k->until = now + (is_settled ? EKS_KNOWN_FOR + jitter : 0);
}

void eks_known_refused(struct eks_known *k, const struct error *e, millis now)
{
	if (e->kind != ERROR_NOT_FOUND && e->kind != ERROR_AUTH && e->kind != ERROR_INVALID)
		return;
	eks_known_forget(k);
	k->refusal = *e;
	k->until = now + REFUSAL_KEPT;
}

void eks_known_sized(struct eks_known *k, int64_t desired)
{
	bool is_ours = desired == k->asked;

	if (is_ours)
		k->resizer_asks = 0;
	if (is_ours || !k->shown_at || desired == k->desired)
		return;
	k->resized_after = k->shown_at;
	k->resizer_asks = RESIZER_ASKS;
	k->resized_by[0] = '\0';
}

void eks_known_resizer(struct eks_known *k, const char *who)
{
	snprintf(k->resized_by, sizeof k->resized_by, "%s", who);
	k->resizer_asks = *who ? 0 : k->resizer_asks - 1;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *name_in(struct arena *a, const char *region, const char *name)
{
	return text_printf(a, "%s %s", region, name);
}

const char *eks_known_twin(const struct eks_known *k, const char *auto_scaling_group, const char *region, millis at)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const char *name = name_in(&a, region, auto_scaling_group);

	/* Later entries stand before earlier ones. */
	for (const struct eks_known *o = k->next; o; o = o->next)
		if (o->auto_scaling_group && !strcmp(o->auto_scaling_group, name) && at - o->shown_at < LAG_MOST &&
		    strcmp(o->group, k->group) != 0)
			return o->group;
	return NULL;
}

void eks_known_looked(struct eks_known *k, const struct eks_group *g, const char *region, millis at)
{
	if (g->desired == k->asked)
		k->asked = EKS_NONE_ASKED;
	k->shown_at = at;
	arena_clear(&k->looked);
	k->auto_scaling_group = name_in(&k->looked, region, g->name);
	k->desired = g->desired;
	k->max = g->max;
	k->staying = arena_array(&k->looked, const char *, g->instance_count + 1);
	k->staying_count = 0;
	for (size_t i = 0; i < g->instance_count; i++)
		if (!eks_is_ending(&g->instances[i]))
			k->staying[k->staying_count++] = text_keep(&k->looked, g->instances[i].id);
	qsort(k->staying, k->staying_count, sizeof *k->staying, by_text);
}

bool eks_known_has_moved(const struct eks_known *k, const struct eks_group *g)
{
	size_t stay = 0;

	for (size_t i = 0; i < g->instance_count && k->staying_count; i++)
		stay += !eks_is_ending(&g->instances[i]) &&
			bsearch(&g->instances[i].id, k->staying, k->staying_count, sizeof *k->staying, by_text);
	return g->desired != k->desired || g->max != k->max || stay < k->staying_count;
}

static void forget_ended(struct eks_known *k, size_t at)
{
	free(k->ended[at].id);
	k->ended[at] = k->ended[--k->ended_count];
}

void eks_known_ended(struct eks_known *k, const char *id, millis now)
{
	for (size_t i = k->ended_count; i-- > 0;)
		if (k->ended[i].until <= now)
			forget_ended(k, i);
	k->ended = xgrow(k->ended, k->ended_count, &k->ended_room, sizeof *k->ended);
	k->ended[k->ended_count++] = (struct eks_ended){ xstrdup(id), now + LAG_MOST };
}

void eks_known_stays(struct eks_known *k, const char *id)
{
	for (size_t i = k->ended_count; i-- > 0;)
		if (!strcmp(k->ended[i].id, id))
			forget_ended(k, i);
}

const char *const *eks_known_endings(const struct eks_known *k, millis now, struct arena *a, size_t *count)
{
	const char **ids = arena_array(a, const char *, k->ended_count);

	*count = 0;
	for (size_t i = 0; i < k->ended_count; i++)
		if (k->ended[i].until > now)
			ids[(*count)++] = text_keep(a, k->ended[i].id);
	return ids;
}
