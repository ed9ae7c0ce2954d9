#include "controller/cluster/node_devices.h"

#include <stdio.h>
#include <string.h>

#define MOST_MILLI INT64_C(1000000000) /* a million GPUs: sums of these fit */

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The whole number at the start of a text, 0 without. */
static int64_t leading_number(const char *text)
{
	int64_t value = 0;
	for (; *text >= '0' && *text <= '9' && value < 1000; text++)
		value = value * 10 + (*text - '0');
	return value;
}

/* Compute slices of a whole GPU: an A30 has four, all others seven. */
static int64_t slices_of(const struct label_set *labels)
{
	const char *product = label_set_get(labels, "nvidia.com/gpu.product");
	return product != NULL && strstr(product, "A30") != NULL ? 4 : 7;
}

/* Slices of one unit: of "nvidia.com/mig-3g.40gb" 3; under MIG's single strategy every nvidia.com/gpu is such a part.
 */
static int64_t unit_slices(const struct label_set *labels, const char *resource)
{
	if (starts_with(resource, "nvidia.com/mig-"))
		return leading_number(resource + strlen("nvidia.com/mig-"));
	const char *product = label_set_get(labels, "nvidia.com/gpu.product");
	const char *profile = product == NULL ? NULL : strstr(product, "-MIG-");
	return profile == NULL ? 0 : leading_number(profile + strlen("-MIG-"));
}

/* How many share one device. */
static int64_t sharers(const struct label_set *labels, const char *resource)
{
	char key[128];
	size_t len = strlen(resource), suffix = strlen(".shared");
	if (len > suffix && strcmp(resource + len - suffix, ".shared") == 0)
		len -= suffix;
	snprintf(key, sizeof key, "%.*s.replicas", (int)len, resource);
	const char *text = label_set_get(labels, key);
	int64_t value = text == NULL ? 1 : leading_number(text);
	return value < 1 ? 1 : value;
}

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - 500 - b ? INT64_MAX - 500 : a + b;
}

/* In millionths, so that seven sevenths are one. */
static int64_t whole_micro(const struct label_set *labels, const struct resource *r)
{
	int64_t micro = r->milli > INT64_MAX / 7000 ? INT64_MAX / 7 : r->milli * 1000;
	if (!starts_with(r->name, "nvidia.com/"))
		return micro;
	int64_t slices = unit_slices(labels, r->name);
	micro /= sharers(labels, r->name);
	return slices == 0 || slices > 7 ? micro : micro * slices / slices_of(labels);
}

int64_t devices_whole_milli(const struct label_set *labels, const struct resources *set)
{
	int64_t sum = 0;
	for (size_t i = 0; i < intern_count(set); i++)
		if (device_is_gpu(set->items[i].name))
			sum = plus(sum, whole_micro(labels, &set->items[i]));
	return (sum + 500) / 1000 < MOST_MILLI ? (sum + 500) / 1000 : MOST_MILLI;
}
