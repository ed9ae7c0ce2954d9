/* What the cluster's API says of groups that are objects there. Pure reading: no call is made here. */
#pragma once
#include "providers/provider.h"

/* The object whose replicas are the machines asked for. */
struct owner_object {
	bool has_replicas;
	int64_t replicas, min, max; /* max 0: not told */
	const char *resource_version;
	const char *operation; /* the token of our last change of the size; "" without */
	bool is_paused;	       /* its own controller leaves it alone */
};

/* How one kind is read: its fields, by kind. */
enum object_kind { OBJECT_NODE_POOL, OBJECT_MACHINE_DEPLOYMENT, OBJECT_NODE, OBJECT_KIND_COUNT };

/* The annotation that keeps the token, so that a repeat lowers nothing twice. */
#define OPERATION_ANNOTATION "preheat.dev/operation"

bool owner_read(enum object_kind kind, const char *text, size_t len, struct arena *a, struct owner_object *out,
		struct error *e) MUST_USE;

/* What we write into the annotation of a machine that shall go. */
#define VICTIM_MARK "preheat"

/* A machine that its controller will take first when the size falls, and what the annotation says. */
struct marked {
	const char *id, *mark;
};

/* Machines in pages; zeroed at first, in the arena. */
struct machine_list {
	struct machine *machines;
	size_t count, room;
	struct launch_failure *failures;
	size_t failure_count;
	struct marked *marked;
	size_t marked_count;
	const char *more; /* the token of the next page; "" after the last */
};

/* Appends a page. A machine twice, or without a name, refuses the page. */
bool machine_list_read(enum object_kind kind, const char *text, size_t len, struct arena *a, struct machine_list *list,
		       struct error *e) MUST_USE;
/* The version of an API group that the server prefers ("v1beta1"); ERROR_INVALID when it tells none. */
bool preferred_version_read(const char *text, size_t len, struct arena *a, const char **out, struct error *e) MUST_USE;
