/* What /metrics, the API and the page show of the controller; each pool's problems among it. */
#pragma once
#include "controller/web/published.h"

struct controller;

/* What has to happen within a time, or the loop is wedged. */
enum awaited {
	AWAITED_NOTHING,
	AWAITED_TICK,
	AWAITED_QUIET, /* calls under way end */
	AWAITED_BEGIN, /* it holds the lease and has pools to decide on */
};

struct publishing {
	struct arena arena; /* of what is published */
	struct published_pool *pools;
	struct published_group *groups;
	enum awaited awaited; /* as was published last */
	char obstacle[640];
	millis away_since; /* loop_now; the API server cannot be read */
};

/* For the pools and groups of another fleet: nothing is published of it before the next publish_state(). */
void publish_make_room(struct controller *c);
void publish_state(struct controller *c);
