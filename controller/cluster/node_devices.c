#include "controller/cluster/node_devices.h"

#include "base/decimal.h"

#include <stdio.h>
#include <string.h>

#define MOST_MILLI INT64_C(1000000000) /* a million GPUs: sums of these fit */

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool device_is_gpu(const char *resource)
{
	static const char *const names[] = { "nvidia.com/gpu",	     "nvidia.com/gpu.shared", "amd.com/gpu",
					     "habana.ai/gaudi",	     "gpu.intel.com/i915",    "gpu.intel.com/xe",
					     "microsoft.com/directx" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(resource, names[i]) == 0)
			return true;
	return starts_with(resource, "nvidia.com/mig-");
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

struct suffix {
	const char *text;
	int64_t numerator, divisor; /* thousandths of one, in thousandths of a unit */
};

bool amount_milli(const char *text, int64_t *out)
{
	static const struct suffix suffixes[] = {
		{ "Ki", INT64_C(1) << 10, 1 },
		{ "Mi", INT64_C(1) << 20, 1 },
		{ "Gi", INT64_C(1) << 30, 1 },
		{ "Ti", INT64_C(1) << 40, 1 },
		{ "Pi", INT64_C(1) << 50, 1 },
		{ "n", 1, 1000000000 },
		{ "u", 1, 1000000 },
		{ "m", 1, 1000 },
		{ "k", 1000, 1 },
		{ "M", 1000000, 1 },
		{ "G", 1000000000, 1 },
		{ "T", INT64_C(1000000000000), 1 },
		{ "P", INT64_C(1000000000000000), 1 },
	};
	size_t len = strlen(text);
	struct suffix unit = { "", 1, 1 };
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		size_t tail = strlen(suffixes[i].text);
		if (len > tail && memcmp(text + len - tail, suffixes[i].text, tail) == 0) {
			unit = suffixes[i];
			break;
		}
	}
	int64_t milli = 0;
	if (decimal_parse(text, len - strlen(unit.text), 3, &milli) != DECIMAL_OK)
		return false;
	*out = milli > INT64_MAX / unit.numerator ? INT64_MAX : milli * unit.numerator / unit.divisor;
	return true;
}
