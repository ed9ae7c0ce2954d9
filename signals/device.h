/*
 * What GPUs tell of themselves: use, memory, power, errors, and which pod
 * holds each. For idleness and health only: a model server takes its memory
 * beforehand and keeps a GPU busy with little, so load is never read from it.
 */
#pragma once
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/millis.h"
#include "signals/exposition.h"
#include "signals/prometheus.h"

#define DEVICE_UNKNOWN INT64_MIN

enum device_quantity {
	DEVICE_USE,	    /* permille of the time in which something ran on it */
	DEVICE_MEMORY_USED, /* MiB */
	DEVICE_MEMORY_FREE, /* MiB */
	DEVICE_POWER,	    /* milliwatts */
	DEVICE_XID,	    /* code of the last error, 0: none */
	DEVICE_QUANTITY_COUNT
};

/* A GPU, or a slice of one. */
struct device {
	const char *node, *id;		      /* as the exporter names them */
	const char *namespace, *pod;	      /* that holds it; "" nobody */
	int64_t value[DEVICE_QUANTITY_COUNT]; /* or DEVICE_UNKNOWN */
};

/* All that are known, by node and id; texts live as long as the list. */
struct devices {
	const struct device *items;
	size_t count;
};

/* Gathers them, one sample after the other. */
struct device_list;
struct device_list *device_list_new(void);
void device_list_free(struct device_list *l); /* takes NULL */

typedef const char *device_label_fn(const void *of, const char *name); /* NULL without */
/*
 * A sample of the metric of this name; of any other nothing is kept. False with ERROR_INVALID for an impossible value,
 * which is left out, and for more than DEVICES_MOST.
 */
bool device_list_take(struct device_list *l, const char *name, struct exposition_slice value, device_label_fn *label,
		      const void *of, struct error *e) MUST_USE;
enum { DEVICES_MOST = 100000 };
/* Sorted; valid until the next sample, and at most as long as the list. */
struct devices device_list_show(struct device_list *l);

/* Of the GPUs of a pool's nodes. */
struct device_sums {
	int64_t devices, held; /* held by a pod */
	int64_t use_permille;  /* mean over those held that tell it, DEVICE_UNKNOWN */
	int64_t memory_used_mib, memory_free_mib, power_mw;
	int64_t failing;     /* GPUs with an XID error as their last */
	int64_t last_xid;    /* of one of them */
	int64_t replica_mib; /* memory that a replica takes on a GPU: the most that one does; DEVICE_UNKNOWN */
	/*
	 * Fragmentation: of the free GPU memory, the permille in which no further replica of the pool fits: on GPUs
	 * that a pod holds, on GPUs that are too small, and on those left over where a replica needs several on one
	 * node. DEVICE_UNKNOWN while no replica has shown what it takes.
	 */
	int64_t stranded_permille;
};

struct device_question {
	bool (*is_pools_node)(void *user, const char *node);
	bool (*is_replica)(void *user, const char *namespace, const char *pod);
	void *user;
	int64_t gpus_per_replica;
};
struct device_sums device_sum(struct devices d, const struct device_question *q);

/* The GPUs that DCGM exporters tell a Prometheus server of, asked for every interval. */

struct device_source;

struct device_source_settings {
	const char *url; /* everything is copied */
	struct http_auth_settings reach;
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
