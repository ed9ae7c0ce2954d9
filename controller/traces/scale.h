/* The two halves of trace_scale(); both fill a zeroed trace. */
#pragma once
#include "controller/traces/trace.h"

enum { SCALE_PLAIN_UP_TO = 6, SCALE_GROUP = 5 };

bool scale_requests(const struct trace *in, const struct trace_scaling *how, struct trace *out, struct error *e);
bool scale_bins(const struct trace *in, const struct trace_scaling *how, struct trace *out, struct error *e);
