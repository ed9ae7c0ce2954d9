#include "signals/prometheus_replica.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_key(const void *left, const void *right)
{
	const struct prometheus_replica *const *a = left, *const *b = right;

	return strcmp((*a)->key, (*b)->key);
}

static int by_pod(const void *left, const void *right)
{
	const struct prometheus_replica *const *a = left, *const *b = right;

	return strcmp((*a)->pod, (*b)->pod);
}

static int by_address(const void *left, const void *right)
{
	const struct prometheus_replica *const *a = left, *const *b = right;

	return strcmp((*a)->address, (*b)->address);
}

typedef int order_fn(const void *left, const void *right);

static struct prometheus_replica *find(struct prometheus_replica *const *sorted, size_t count,
				       const struct prometheus_replica *like, order_fn *order)
{
	struct prometheus_replica *const *found =
		count ? bsearch(&like, sorted, count, sizeof(struct prometheus_replica *), order) : NULL;

	return found ? *found : NULL;
}

struct prometheus_replica *replica_set_find(const struct replica_set *s, const char *key)
{
	const struct prometheus_replica like = { .key = (char *)(uintptr_t)key };

	return find(s->by_key, s->count, &like, by_key);
}

/* "10.1.2.3:8000" and "[fd00::1]:8000" without the port. */
static void host_of(const char *instance, char *out, size_t size)
{
	const char *from = instance[0] == '[' ? instance + 1 : instance;
	size_t len = instance[0] == '[' ? strcspn(from, "]") : strcspn(from, ":");

	snprintf(out, size, "%.*s", (int)(len < size ? len : size - 1), from);
}

struct prometheus_replica *replica_set_owner(const struct replica_set *s, const struct prometheus_series *series)
{
	char host[80] = "";
	const char *pod = prometheus_label(series, "pod"), *namespace = prometheus_label(series, "namespace");
	const char *instance = prometheus_label(series, "instance");
	const struct prometheus_replica like = { .pod = (char *)(uintptr_t)pod, .address = host };

	if (pod) {
		struct prometheus_replica *r = find(s->by_pod, s->count, &like, by_pod);
		return r && (!namespace || !strcmp(namespace, r->namespace)) ? r : NULL;
	}
	if (!instance)
		return NULL;
	host_of(instance, host, sizeof host);
	return host[0] ? find(s->by_address, s->count, &like, by_address) : NULL;
}

static struct prometheus_replica **sorted(struct prometheus_replica *const *items, size_t count, order_fn *order)
{
	struct prometheus_replica **made = calloc(count + 1, sizeof(struct prometheus_replica *));

	if (!made)
		abort();
	if (count) {
		memcpy(made, items, count * sizeof(struct prometheus_replica *));
		qsort(made, count, sizeof(struct prometheus_replica *), order);
	}
	return made;
}

static void forget(struct replica_set *s)
{
	free(s->by_key);
	free(s->by_pod);
	free(s->by_address);
}

void replica_set_renew(struct replica_set *s, const struct source_target *targets, size_t count, millis at)
{
	struct prometheus_replica **now = calloc(count + 1, sizeof(struct prometheus_replica *));

	if (!now)
		abort();
	for (size_t i = 0; i < count; i++) {
		now[i] = replica_set_find(s, targets[i].key);
		if (!now[i])
			now[i] = replica_new(&targets[i]);
		if (targets[i].is_ready && !now[i]->ready_at)
			now[i]->ready_at = at + 1; /* 0 says never */
		now[i]->is_ready = targets[i].is_ready;
	}
	struct prometheus_replica **kept = sorted(now, count, by_key);
	for (size_t i = 0; i < s->count; i++)
		if (!find(kept, count, s->by_key[i], by_key))
			replica_free(s->by_key[i]);
	forget(s);
	*s = (struct replica_set){ kept, sorted(now, count, by_pod), sorted(now, count, by_address), count };
	free(now);
}

void replica_set_release(struct replica_set *s)
{
	for (size_t i = 0; i < s->count; i++)
		replica_free(s->by_key[i]);
	forget(s);
	*s = (struct replica_set){ 0 };
}
