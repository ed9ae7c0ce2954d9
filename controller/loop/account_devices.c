/* The GPUs that exporters tell of, by the pod that holds them. */
#include "controller/loop/account_parts.h"

#include <stdlib.h>
#include <string.h>

static int order(const char *namespace, const char *pod, const struct device_use *u)
{
	int by_pod = strcmp(pod, u->pod);

	return by_pod ? by_pod : strcmp(namespace, u->namespace);
}

static int by_pod(const void *left, const void *right)
{
	const struct device_use *a = left;

	return order(a->namespace, a->pod, right);
}

static size_t device_count(const struct controller *c)
{
	size_t count = 0;

	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		count += c->pools[i].owns_devices ? device_source_show(c->pools[i].devices).count : 0;
	return count;
}

static size_t list(const struct controller *c, struct device_use *out)
{
	size_t count = 0;

	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		if (!c->pools[i].owns_devices)
			continue;
		struct devices d = device_source_show(c->pools[i].devices);
		for (size_t k = 0; k < d.count; k++) {
			const struct device *g = &d.items[k];
			int64_t use = g->value[DEVICE_USE];
			if (*g->pod && use != DEVICE_NOT_TOLD)
				out[count++] = (struct device_use){ g->namespace, g->pod, 1, use > 0 };
		}
	}
	return count;
}

struct device_uses device_uses_read(const struct controller *c, struct arena *a)
{
	struct device_uses u = { .items = arena_array(a, struct device_use, device_count(c) + 1) };
	size_t told = list(c, u.items);

	if (told)
		qsort(u.items, told, sizeof *u.items, by_pod);
	for (size_t i = 0; i < told; i++) {
		struct device_use *last = u.count ? &u.items[u.count - 1] : NULL;
		if (!last || by_pod(last, &u.items[i]) != 0) {
			u.items[u.count++] = u.items[i];
			continue;
		}
		last->told += u.items[i].told;
		last->in_use += u.items[i].in_use;
	}
	return u;
}

const struct device_use *device_uses_find(const struct device_uses *u, const char *namespace, const char *pod)
{
	const struct device_use wanted = { .namespace = namespace, .pod = pod };

	return u->count ? bsearch(&wanted, u->items, u->count, sizeof *u->items, by_pod) : NULL;
}
