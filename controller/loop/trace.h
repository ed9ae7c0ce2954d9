/*
 * What a scale-up came to, as spans of OpenTelemetry. A trace is a tick: its
 * decisions, the calls to clouds that they led to, and the stages of the
 * machines and replicas that were asked for, minutes later. Ids follow from
 * the time of the decision, so nothing has to be kept to know what belongs
 * together.
 */
#pragma once
#include "controller/loop/node_group.h"
#include "controller/loop/starts.h"

struct controller;

enum { TRACE_ID_TEXT = 33 };

/* The trace of the tick decided last, in hexadecimal, for log lines; false without a collector. */
bool trace_id(const struct controller *c, char out[TRACE_ID_TEXT]);

/* The tick that was just decided and acted on; `micros` is how long that took. Nothing without a collector. */
void trace_tick(struct controller *c, int64_t micros);
/* A call that changes a cloud is over; begun at `from`. */
void trace_call(struct controller *c, const struct node_group *g, const struct provider_call *call, millis from);
/* A stage of a start is over, or the start: `event` as the policy is told. */
void trace_start(struct controller *c, const struct start *s, const struct event_input *event, millis at);
