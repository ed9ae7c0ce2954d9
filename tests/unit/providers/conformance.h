/*
 * What every provider must do, whatever its cloud's wire looks like. A cloud
 * gives a wire: a server that answers as that cloud would, out of a modelled
 * group, and the texts of good and of spoiled answers.
 */
#pragma once
#include "base/buf.h"
#include "base/net/loop.h"
#include "tests/unit/providers/modelled_cloud.h"

struct wire_server;

/* How a provider whose groups are objects of a cluster gets there. */
struct cluster_way {
	struct cluster_door (*open)(struct http *http, const char *url);
	void (*close)(struct cluster_door *door);
};

struct wire {
	const char *provider; /* its name in providers/list.def */
	/* Answers for the group "g" of the model, on the loop. */
	struct wire_server *(*open)(struct loop *loop, struct modelled_cloud *cloud);
	void (*close)(struct wire_server *s);
	const char *(*url)(const struct wire_server *s);
	/* Settings that name a server by its URL, as JSON. */
	void (*settings)(const char *url, struct buf *out);
	/* The same for a group that is not there; NULL: its name in the manifest is enough. */
	void (*settings_of_none)(const char *url, struct buf *out);
	const char *const *bad_settings; /* each must be ERROR_INVALID; NULL-terminated */
	const char *described;		 /* body of a good answer to describe */
	/* Bodies of the answers that a description takes beside the first; NULL-terminated, NULL: none. */
	const char *const *described_more;
	int64_t max;		       /* what the cloud bounds every group by; 0: it tells the model's */
	bool has_no_min;	       /* the cloud bounds no group from below */
	const struct cluster_way *way; /* NULL: it is no object. An API server knows no stock-out and no quota. */
	const char *const *spoiled;    /* bodies of answers to describe that make no sense; NULL-terminated */
};

/* The cmocka group; returns the number of failed tests. */
int conformance_run(const struct wire *wire);
