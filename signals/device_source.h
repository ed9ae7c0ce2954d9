/* The GPUs that DCGM exporters tell a Prometheus server of, asked for every interval. */
#pragma once
#include "base/clock.h"
#include "signals/device.h"
#include "signals/prometheus.h"
#include "signals/promql.h"

struct device_source;

struct device_source_settings {
	const char *url; /* everything is copied */
	struct reach_settings reach;
	const struct promql_label *labels;
	size_t label_count;
	millis interval; /* of the controller's clock */
};

/* `clock` must outlive it. Asked at once, and then every interval. */
struct device_source *device_source_open(struct loop *loop, struct http *http, const struct clock *clock,
					 const struct device_source_settings *settings);
void device_source_close(struct device_source *s); /* takes NULL; a call in flight ends by itself */
/* The GPUs of the last answer; none when it is older than READING_GAP intervals. Valid until the loop runs. */
struct devices device_source_show(const struct device_source *s);
/* Of the last answer; ERROR_NONE: all of it made sense, or none came yet. A value that cannot be is left out. */
const struct error *device_source_trouble(const struct device_source *s);
void device_source_advance(struct device_source *s); /* does what is due by the clock; its own timer calls it */
