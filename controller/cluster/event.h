/*
 * Events of events.k8s.io/v1 on the objects concerned. Equal ones (object,
 * reason, note) become a series, at most one call a minute; the queue is
 * bounded and what does not fit is counted. Telling never blocks and never fails.
 */
#pragma once
#include "controller/cluster/api.h"

struct events;

struct event {
	const char *api_version, *kind, *name_space, *name, *uid; /* regarding; name_space NULL: cluster-scoped */
	bool is_warning;
	const char *reason; /* "TriggeredScaleUp", at most 128 bytes */
	const char *action; /* "ScaleUp" */
	const char *note;   /* cut to EVENT_NOTE_BYTES at a character */
};

#define EVENT_NOTE_BYTES ((size_t)1024)
#define EVENT_QUEUE	 128
#define EVENT_SERIES	 256 /* remembered for deduplication */

struct events_setup {
	struct api *api;
	const char *controller; /* "preheat.dev/controller" */
	const char *instance;	/* of this replica */
	const char *name_space; /* of events on cluster-scoped objects; NULL: "default" */
};

struct events *events_open(const struct events_setup *s);
void events_tell(struct events *v, const struct event *told); /* takes NULL */
/* Drops what is queued; its call in flight still completes: run the loop until api_active() is 0; frees itself. */
void events_close(struct events *v);

struct event_counts {
	int64_t told, sent, repeated, dropped, failed;
	size_t waiting; /* to be sent first, at this moment */
};
struct event_counts event_counts(const struct events *v); /* of NULL: zeros */
