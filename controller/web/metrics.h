/* The published value as Prometheus text (format 0.0.4). One table of metrics makes the text and its reference. */
#pragma once
#include "base/buf.h"
#include "controller/web/published.h"

/* All metrics that the value has something to say about; a zeroed value can be written. */
void metrics_write(const struct published *p, struct buf *out);
/* docs/metrics.md: name, type, labels, meaning of each. */
void metrics_write_reference(struct buf *out);
