#include "base/resource.h"

#include "base/quantity.h"

#include <stdio.h>
#include <string.h>

bool device_is_gpu(const char *resource)
{
	static const char *const names[] = { "nvidia.com/gpu",	     "nvidia.com/gpu.shared", "amd.com/gpu",
					     "habana.ai/gaudi",	     "gpu.intel.com/i915",    "gpu.intel.com/xe",
					     "microsoft.com/directx" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(resource, names[i]) == 0)
			return true;
	return strncmp(resource, "nvidia.com/mig-", strlen("nvidia.com/mig-")) == 0 || device_is_driver(resource);
}

/* gpu.nvidia.com, gpu.amd.com, gpu.intel.com: whoever makes GPUs names its driver so. */
bool device_is_driver(const char *resource)
{
	return strncmp(resource, "gpu.", strlen("gpu.")) == 0 && strchr(resource, '/') == NULL;
}

bool device_driver_of(const char *resource, char driver[DEVICE_NAME_SIZE])
{
	const char *slash = strchr(resource, '/');
	bool is_named_after_it = strncmp(resource, "gpu.", strlen("gpu.")) == 0;

	if (slash == NULL || (!is_named_after_it && strcmp(slash, "/gpu") != 0) ||
	    slash - resource > DEVICE_NAME_SIZE / 2)
		return false;
	snprintf(driver, DEVICE_NAME_SIZE, "%s%.*s", is_named_after_it ? "" : "gpu.", (int)(slash - resource),
		 resource);
	return true;
}

bool device_other_name(const char *name, char other[DEVICE_NAME_SIZE])
{
	if (!device_is_driver(name))
		return device_driver_of(name, other);
	return snprintf(other, DEVICE_NAME_SIZE, "%s/gpu", name + strlen("gpu.")) < DEVICE_NAME_SIZE;
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
