/* What the Resource Manager answers, and what it is asked: errors, agent pools, machines, operations, rights. Pure. */
#pragma once
#include "base/buf.h"
#include "base/decode.h"
#include "base/millis.h"
#include "providers/node_promise.h"

#include <stdint.h>

/* In quotes, escaped; the bytes may hold NUL. */
void azure_write_json(const char *text, size_t len, struct buf *out);

/*
 * Errors as the Resource Manager and AKS write them: {"error":{...}} or the
 * bare {"code","message","details","subcode"}; what happened hides at any
 * depth of details[], or as Code="..." within a message. Pure.
 */

struct azure_failure {
	enum error_kind kind; /* ERROR_NONE: no code that we know */
	millis back_off;      /* how long it lasts; 0: not told */
	char zone[16];	      /* "2"; "": not of one zone, or not told */
	bool is_zonal;
	char code[64], message[300]; /* of the row that fits, else the outermost */
};

/* Of the JSON of an error, wrapped or bare; false when it is no such thing. A spot machine's offer comes back sooner.
 */
bool azure_failure_of(const char *json, size_t len, bool is_spot, struct azure_failure *out) MUST_USE;
/* Sets *e from an answer with a status that is no success. 409 and 412 are ERROR_CONFLICT whatever the code, unless the
 * text is about quota. */
void azure_failure_read(long status, const char *text, size_t len, struct error *e);

/*
 * An AKS agent pool: what the Resource Manager tells of it, and the text
 * that asks for another size. All else in the text goes back as it came,
 * what we do not know too. Pure.
 */

/* Texts live in the arena, "" when not told; `problem` in the text that was read. */
struct azure_pool {
	const char *etag, *state, *type, *mode, *priority, *os, *vm_size, *power;
	const char *zone; /* of a pool in one zone, "" else */
	bool is_autoscaled, has_failed;
	bool is_of_machines; /* of type VirtualMachines */
	bool keeps_stopped;  /* scaleDownMode Deallocate */
	int64_t count;
	size_t zone_count;
	size_t size_count;   /* of a pool of VirtualMachines: how many machine sizes it mixes */
	const char *problem; /* JSON of why it failed; NULL */
	size_t problem_len;
	struct node_promise promise; /* nodeLabels, nodeTaints, and tags as Cluster Autoscaler reads them */
};

bool azure_pool_read(const char *text, size_t len, struct arena *a, struct azure_pool *out, struct error *e) MUST_USE;
/* An operation works on it, and another would be refused. */
bool azure_pool_is_busy(const struct azure_pool *p);
/* With what no call of ours begins: an upgrade of its version or image, a start, a stop, certificates that rotate. */
bool azure_pool_is_owners(const struct azure_pool *p);
/* ERROR_INVALID with the remedy when it is none that we can drive: its own autoscaler, Windows, several sizes, ... */
bool azure_pool_is_ours(const struct azure_pool *p, struct error *e) MUST_USE;
/* The body of the PUT that asks for `count` machines, from the text of the pool as it was read. */
bool azure_pool_write(const char *text, size_t len, int64_t count, struct buf *out, struct error *e) MUST_USE;

/* The machines of an agent pool, page by page, and how an operation went. Pure. */

/* Texts live in the arena, "" when not told. */
struct azure_machine {
	const char *name, *resource, *zone, *vm_size;
	const char *state; /* "Creating", "Deleting", ... */
	const char *vm_state;
	bool has_address;
	millis created_at; /* 0: not told */
};

struct azure_machines {
	struct azure_machine *items;
	size_t count, room;
};

/* Adds a page; *next is where the rest is, "" after the last. */
bool azure_machines_read(const char *text, size_t len, struct arena *a, struct azure_machines *list, const char **next,
			 struct error *e) MUST_USE;

/* An operation that went on after the answer, as its URL tells. */
struct azure_operation {
	bool is_over, has_failed;
	millis ended_at;     /* 0: not told */
	const char *problem; /* JSON of why it failed, in the text that was read; NULL */
	size_t problem_len;
};

/* Of a 2xx. */
bool azure_operation_read(long status, const char *text, size_t len, struct arena *a, struct azure_operation *out,
			  struct error *e) MUST_USE;

/*
 * What Azure's roles let us do, as GET .../Microsoft.Authorization/permissions
 * tells it: for each assignment its actions, less its notActions, both with
 * wildcards. Pure.
 */

struct azure_right {
	struct decoded_list actions, not_actions;
};

struct azure_rights {
	struct decoded_list items; /* of struct azure_right */
};

bool azure_rights_read(const char *text, size_t len, struct arena *a, struct azure_rights *out,
		       struct error *e) MUST_USE;
/* Whether any assignment allows the action: "Microsoft.ContainerService/managedClusters/read". */
bool azure_rights_allow(const struct azure_rights *r, const char *action);
