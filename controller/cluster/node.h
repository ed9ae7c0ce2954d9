/*
 * A node as the model knows it. Fields are read by anyone and written by the
 * model alone; texts live as long as the node. Times are milliseconds since
 * the epoch, 0 when it has not happened.
 */
#pragma once
#include "base/millis.h"
#include "base/resource.h"
#include "controller/cluster/intern.h"
#include "providers/node_marks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct label_set;
struct resources;
struct taint_set;

struct node {
	const char *name;
	const char *provider_id; /* "" when not told */
	const char *machine_id;	 /* the last parts of it, as machine_of_provider_id() says; "" without */
	const char *zone, *instance_type, *capacity_type; /* "" when not told; "spot", "on-demand", "reserved" */
	const struct label_set *labels;
	const struct taint_set *taints;
	const struct resources *allocatable; /* devices that drivers publish among them */
	const char *hostname;		     /* label kubernetes.io/hostname */
	const char *drained_by; /* annotation preheat.dev/draining: NAMESPACE/LEASE of the Preheat that drains it; ""
				   without */
	int group;		/* index among the groups given, -1 when it is in none */

	bool is_known;	  /* false: a pod names it and no node object was seen yet */
	bool is_ready;	  /* condition Ready is True, and no taint of a start is left */
	bool is_kept_off; /* it would be, and Kubernetes has not taken its taint off yet */
	bool is_starting; /* it would be, but for a taint that is told of its group */
	bool is_cordoned;
	bool is_draining;  /* annotation or taint preheat.dev/draining */
	bool is_leaving;   /* the object is being deleted */
	bool is_protected; /* scale-down-disabled, do-not-disrupt or no-delete: never removed by us */
	enum node_owner owner;
	enum node_interruption interruption;

	millis registered_at;  /* the object was created */
	millis ready_since;    /* 0 while it is not ready; is_kept_off: it is */
	millis unready_since;  /* 0 while it is ready */
	millis cordoned_since; /* as far as was seen; 0 while it is not */
	millis gpu_at;	       /* a GPU became allocatable; 0 while none is */

	int64_t gpus_milli;	 /* allocatable, thousandths of whole GPUs whatever their kind and slicing */
	int64_t gpus_used_milli; /* requested by the pods there, placeholders too */

	/* private to the model */
	struct pod *pods;
	struct device_slice *slices;
	const struct resources *own_allocatable; /* as its object says */
	const struct resources *own_whole;	 /* with all devices that it has, those that are broken, too */
	const struct taint_set *came_taints;	 /* when it was first seen; NULL: none, or it was there before us */
	const struct taint_set *born_taints;	 /* lasting ones that it had when it first taught its group, and has */
	millis told_at;				 /* when its object last came */
	millis taught_at;			 /* when it was first whole; 0: not yet */
	bool was_listed;			 /* it was there before us */
	uint64_t uid[2];
	uint32_t hash, provider_hash;
	uint32_t placeholder_count, low_count;	   /* low_count: pods that are expendable unless a pool selects them */
	enum node_interruption event_interruption; /* as an Event said */
	bool ends;				   /* as the cloud said of its machine */
};

const char *node_interruption_name(enum node_interruption interruption);
/* May new pods of ours run here: known, ready, not cordoned, not leaving, nobody else's, not interrupted. */
bool node_is_usable(const struct node *n);
/* Of gpus_used_milli, what expendable pods do not use: they hold nothing. */
int64_t node_gpus_held_milli(const struct node *n);
/* The value of a label, NULL without. */
const char *node_label(const struct node *n, const char *key);
/* The value of a taint, whatever its effect; NULL without. */
const char *node_taint_value(const struct node *n, const char *key);

/*
 * How much of a whole GPU a unit of a resource is: MIG profiles and shared
 * (time-sliced) devices as NVIDIA's device plugin and its labels show them.
 */

/*
 * All GPUs of a set, in thousandths of whole ones. The labels are those of the node; NULL: unknown, units are taken as
 * whole devices, MIG profiles by their name.
 */
int64_t devices_whole_milli(const struct label_set *labels, const struct resources *set);
