/*
 * What GPUs tell of themselves: use, memory, power, errors, and which pod
 * holds each. For idleness and health only: a model server takes its memory
 * beforehand and keeps a GPU busy with little, so load is never read from it.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/millis.h"
#include "signals/exposition.h"

#define DEVICE_NOT_TOLD INT64_MIN

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
	int64_t value[DEVICE_QUANTITY_COUNT]; /* or DEVICE_NOT_TOLD */
};

/* All that are known, by node and id; texts live as long as the list. */
struct devices {
	const struct device *items;
	size_t count;
};

/* While they are told, one sample after the other. */
struct device_list;
struct device_list *device_list_new(void);
void device_list_free(struct device_list *l); /* takes NULL */

/* Names of the metrics, for a query or a page. */
struct exposition_names device_names(void);

typedef const char *device_label_fn(const void *of, const char *name); /* NULL without */
/*
 * A sample of the metric with this index among the names. False with ERROR_INVALID for one that cannot be, which is
 * left out, and for more than DEVICES_MOST.
 */
bool device_list_take(struct device_list *l, size_t name, struct exposition_slice value, device_label_fn *label,
		      const void *of, struct error *e) MUST_USE;
enum { DEVICES_MOST = 100000 };
/* Sorted; valid until the next sample, and at most as long as the list. */
struct devices device_list_show(struct device_list *l);

/* A whole page of an exporter. */
bool device_page_read(const char *text, size_t len, struct device_list *l, struct error *e) MUST_USE;

/* Of the GPUs that a pod holds. */
struct device_pod {
	int64_t devices;
	int64_t use_permille; /* of the busiest, DEVICE_NOT_TOLD when none tells */
	int64_t memory_used_mib, memory_mib, power_mw;
};
/* False: no GPU is known to be held by it. */
bool device_pod_find(struct devices d, const char *namespace, const char *pod, struct device_pod *out);

/* Of the GPUs of a pool's nodes. */
struct device_sums {
	int64_t devices, held; /* held by a pod */
	int64_t use_permille;  /* mean over those held that tell it, DEVICE_NOT_TOLD */
	int64_t memory_used_mib, memory_free_mib, power_mw;
	int64_t failing;     /* GPUs with an XID error as their last */
	int64_t last_xid;    /* of one of them */
	int64_t replica_mib; /* memory that a replica takes on a GPU: the most that one does; DEVICE_NOT_TOLD */
	/*
	 * Fragmentation: of the free GPU memory, the permille in which no further replica of the pool fits: on GPUs
	 * that a pod holds, on GPUs that are too small, and on those left over where a replica needs several on one
	 * node. DEVICE_NOT_TOLD while no replica has shown what it takes.
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
