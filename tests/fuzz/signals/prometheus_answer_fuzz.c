/* Any bytes as an answer of Prometheus, cut anywhere, and as a page of GPUs. */
#include "signals/device.h"
#include "signals/prometheus.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100 };

struct seen {
	int64_t samples;
	struct device_list *devices;
};

static const char *label_of(const void *of, const char *name)
{
	return prometheus_label(of, name);
}

static bool on_sample(void *user, const struct prometheus_sample *s, struct error *e)
{
	struct seen *seen = user;
	char text[60];
	struct error refusal;

	(void)e;
	if (++seen->samples > MOST)
		abort();
	if (!s->series)
		return true;
	if (strlen(prometheus_series_text(s->series, text, sizeof text)) >= sizeof text)
		abort();
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			abort();
	return device_list_take(seen->devices, seen->samples % 2 ? "DCGM_FI_DEV_GPU_UTIL" : "DCGM_FI_DEV_FB_USED",
				s->value, label_of, s->series, &refusal) ||
	       true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *text = (const char *)bytes;
	struct seen seen = { 0, device_list_new() };
	struct prometheus_answer *a = prometheus_answer_open(MOST, on_sample, &seen);
	struct prometheus_notes notes;
	struct error e = { 0 };
	size_t cut = len ? bytes[0] % len : 0;

	if (prometheus_answer_feed(a, text, cut, &e) && prometheus_answer_feed(a, text + cut, len - cut, &e) &&
	    prometheus_answer_finish(a, &notes, &e) && notes.samples != seen.samples)
		abort();
	prometheus_answer_close(a);
	if (device_list_show(seen.devices).count > (size_t)seen.samples)
		abort();
	device_list_free(seen.devices);
	return 0;
}
