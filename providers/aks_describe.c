#include "base/clock.h"
#include "base/quote.h"
#include "providers/aks_exchange.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST = 1000 };

/* Node.spec.providerID has the resource group in lower case, machines do not. */
static const char *provider_id(const char *resource, struct arena *a)
{
	static const char scheme[] = "azure://", mark[] = "/resourcegroups/";
	size_t len = strlen(resource);

	if (!len)
		return "";
	char *id = arena_alloc(a, sizeof scheme + len, 1);
	memcpy(id, scheme, sizeof scheme - 1);
	memcpy(id + sizeof scheme - 1, resource, len + 1);
	char *at = strcasestr(id, mark);
	for (char *c = at ? at + sizeof mark - 1 : NULL; c && *c && *c != '/'; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return id;
}

/* `is_coming`: AKS works on the pool, and other machines of it have addresses. */
static enum machine_state state_of(const struct azure_machine *m, bool is_coming)
{
	if (strcasecmp(m->state, "Creating") == 0 || (is_coming && !m->has_address))
		return MACHINE_PENDING;
	if (strcasecmp(m->state, "Deleting") == 0 || strcasecmp(m->vm_state, "Deleted") == 0)
		return MACHINE_TERMINATING;
	return MACHINE_RUNNING;
}

static int by_age(const void *left, const void *right)
{
	const struct machine *a = left, *b = right;

	if (a->launched_at != b->launched_at)
		return a->launched_at < b->launched_at ? -1 : 1;
	return strcmp(a->id, b->id);
}

static int by_name(const void *left, const void *right)
{
	const struct azure_machine *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static bool are_different(struct exchange *x)
{
	const struct azure_machines *list = &x->machines;
	char shown[QUOTE_ROOM];

	if (list->count)
		qsort(list->items, list->count, sizeof *list->items, by_name);
	for (size_t i = 1; i < list->count; i++)
		if (strcmp(list->items[i - 1].name, list->items[i].name) == 0)
			return error_set(&x->call->error, ERROR_INVALID, "machine %s is listed twice",
					 quote(shown, list->items[i].name, strlen(list->items[i].name)));
	return true;
}

static void fill_machines(struct exchange *x, struct group_description *d)
{
	const struct azure_machines *list = &x->machines;
	bool is_coming = false;

	for (size_t i = 0; d->is_busy && i < list->count; i++)
		is_coming |= list->items[i].has_address;
	d->machines = arena_array(&x->call->arena, struct machine, list->count);
	d->machine_count = list->count;
	for (size_t i = 0; i < list->count; i++) {
		const struct azure_machine *m = &list->items[i];
		d->machines[i] = (struct machine){ .id = m->name,
						   .provider_id = provider_id(m->resource, &x->call->arena),
						   .zone = m->zone,
						   .instance_type = *m->vm_size ? m->vm_size : x->pool.vm_size,
						   .state = state_of(m, is_coming),
						   .launched_at = m->created_at > 0 ? m->created_at : 0 };
	}
	if (list->count)
		qsort(d->machines, list->count, sizeof *d->machines, by_age);
}

static struct machine *find(struct group_description *d, const char *id)
{
	for (size_t i = 0; i < d->machine_count; i++)
		if (strcmp(d->machines[i].id, id) == 0)
			return &d->machines[i];
	return NULL;
}

static int64_t alive(const struct group_description *d)
{
	int64_t count = 0;

	for (size_t i = 0; i < d->machine_count; i++)
		count += d->machines[i].state != MACHINE_TERMINATING;
	return count;
}

/*
 * A pool that deallocates has more machines than its count; which of them are stopped only the cluster knows, by nodes
 * that are not ready. Those are stopped as far as the surplus goes, and otherwise on their way back.
 */
static void mark_stopped(struct exchange *x, struct group_description *d, bool is_busy)
{
	const struct provider_call *c = x->call;
	int64_t surplus = alive(d) - x->pool.count;

	if (!azure_pool_keeps_stopped(&x->pool))
		return;
	d->standby = surplus > 0 ? surplus : 0;
	for (size_t i = 0; i < c->unready_count; i++) {
		struct machine *m = find(d, c->unready[i]);
		if (!m || m->state != MACHINE_RUNNING)
			continue;
		if (surplus > 0) {
			m->state = is_busy ? MACHINE_STOPPING : MACHINE_STOPPED;
			m->is_standby = true;
			surplus--;
		} else if (is_busy) {
			m->state = MACHINE_WAKING;
		}
	}
}

static char *keep(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		abort();
	return copy;
}

static struct aks_memory *memory_of(struct exchange *x)
{
	struct provider *p = x->provider;
	struct aks_memory *m = p->memories;

	while (m && strcmp(m->key, x->pool_url) != 0)
		m = m->next;
	if (m)
		return m;
	m = calloc(1, sizeof *m);
	if (!m)
		abort();
	*m = (struct aks_memory){ .next = p->memories, .key = keep(x->pool_url), .failed_write = keep("") };
	p->memories = m;
	return m;
}

/*
 * One failure has one id as long as nobody writes the pool, whoever told of it: the operation first, then the pool.
 * `mark` stands for the writing where there is no eTag.
 */
static const struct aks_memory *name_failure(struct exchange *x, const char *mark)
{
	struct aks_memory *m = memory_of(x);
	struct provider *p = x->provider;
	struct clock now = clock_open();
	const char *write = *x->pool.etag ? x->pool.etag : mark;

	if (m->failure && strcmp(m->failed_write, write) == 0)
		return m;
	free(m->failed_write);
	m->failed_write = keep(write);
	m->failed_at = x->operation_ended_at > 0 ? x->operation_ended_at : clock_now(&now);
	p->last_failure = clock_now(&now) > p->last_failure ? clock_now(&now) : p->last_failure + 1;
	m->failure = p->last_failure;
	return m;
}

/* AKS alone chooses the zone, and who asks again may meet the same one: then the pool as a whole has none for now. */
static const millis OTHER_ZONES_AFTER = 10 * MINUTE;

static void place_failure(const struct exchange *x, const struct azure_failure *f, struct launch_failure *out)
{
	bool is_one_of_many = f->is_zonal && x->pool.zone_count > 1;

	out->back_off = f->back_off;
	if (is_one_of_many && out->back_off > OTHER_ZONES_AFTER)
		out->back_off = OTHER_ZONES_AFTER;
	out->zone = "";
	if (f->is_zonal && !is_one_of_many)
		out->zone = *f->zone ? arena_strdup(&x->call->arena, f->zone, strlen(f->zone)) : x->pool.zone;
}

static void fill_failure(struct exchange *x, struct group_description *d)
{
	const struct azure_failure *f = x->operation_failed ? &x->operation_failure : &x->pool_failure;
	int64_t missing = d->desired - alive(d);
	struct arena *a = &x->call->arena;
	char said[sizeof f->code + sizeof f->message + 2];

	if ((!x->operation_failed && !x->pool_failed) || missing <= 0)
		return;
	snprintf(said, sizeof said, "%s%s%s", f->code, *f->code && *f->message ? ": " : "", f->message);
	const struct aks_memory *m = name_failure(x, said);
	d->failures = arena_new(a, struct launch_failure);
	d->failure_count = 1;
	*d->failures = (struct launch_failure){
		.id = m->failure,
		.at = m->failed_at,
		.kind = f->kind == ERROR_NONE ? ERROR_UNAVAILABLE : f->kind,
		.message = arena_strdup(a, said, strlen(said)),
		.count = missing,
		.instance_type = x->pool.vm_size,
	};
	place_failure(x, f, d->failures);
}

static void fill_abilities(struct exchange *x, struct group_description *d)
{
	d->abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS;
	if (azure_pool_keeps_stopped(&x->pool)) {
		d->abilities |= PROVIDER_HAS_STANDBY | PROVIDER_STOPS_NAMED;
		d->lacks =
			"machines stand by only once they have served, as AKS buys none that start stopped; and only "
			"the highest numbers of a scale set in one zone, as AKS stops no others for certain: the rest "
			"is deleted when it is released";
	} else {
		d->lacks = "its scaleDownMode is Delete, so no machine stands by; az aks nodepool update "
			   "--scale-down-mode Deallocate changes that (managed OS disks only)";
	}
}

bool aks_describe(struct exchange *x)
{
	bool is_system = strcasecmp(x->pool.mode, "System") == 0;
	struct group_description d = { .min = is_system, .max = MOST, .desired = x->pool.count };

	if (!are_different(x))
		return error_wrap(&x->call->error, "answer");
	d.is_busy = x->operation_open || azure_pool_is_busy(&x->pool);
	fill_machines(x, &d);
	mark_stopped(x, &d, d.is_busy);
	if (!d.is_busy)
		fill_failure(x, &d);
	fill_abilities(x, &d);
	x->call->description = d;
	return true;
}

const struct machine *aks_machine(const struct exchange *x, const char *id)
{
	const struct machine *m = find(&x->call->description, id);

	return m && m->state != MACHINE_TERMINATING ? m : NULL;
}

static void describe(struct exchange *x)
{
	if (!aks_describe(x))
		x->call->description = (struct group_description){ 0 };
	aks_finish(x);
}

static void read_machines(struct exchange *x)
{
	aks_read_machines(x, describe);
}

static void read_pending(struct exchange *x)
{
	aks_read_pending(x, read_machines);
}

void aks_begin_describe(struct exchange *x)
{
	aks_read_pool(x, read_pending);
}
