/* Incidents as answers of the API show them. */
#pragma once
#include "base/record.h"
#include "controller/restore/incident_search.h"
#include "controller/web/api_call.h"

extern const struct record_shape api_incident_shape;

/* The newest, newest first, at most so many; `all`: how many there are. In the arena of the call. */
bool api_incidents(struct api_call *c, const struct incident_question *q, size_t most, struct record_items *items,
		   int64_t *all, struct error *e) MUST_USE;
