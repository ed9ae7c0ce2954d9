/*
 * What a cloud says of a node that is new in a group, as its providers gather it. Each label has its key once, each
 * taint its key and effect, each resource its name. Pure; texts and lists live in the arena that they are gathered in.
 */
#pragma once
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

enum { PROMISE_MOST = 64 }; /* labels, taints, resources */

struct promised_pair {
	const char *key, *value;
};

struct promised_taint {
	const char *key, *value, *effect; /* value "": none; effect: "NoSchedule" */
};

struct node_promise {
	struct promised_pair *labels, *resources; /* of resources a quantity of Kubernetes: "8", "100Gi" */
	struct promised_taint *taints;
	size_t label_count, resource_count, taint_count;
	/* What makes no sense there and was left out: the first as a phrase, and how many; NULL: nothing. */
	const char *unread;
	size_t unread_count;
};

/* Each keeps what it finds under the same name, so that who knows best goes first. Nothing is added to a copy of one.
 */
void promise_label(struct node_promise *p, struct arena *a, const char *key, const char *value);
void promise_taint(struct node_promise *p, struct arena *a, const char *key, const char *value, const char *effect);
/* By a tag as Cluster Autoscaler reads it of a group without nodes, where it is one:
 * k8s.io/cluster-autoscaler/node-template/{label,taint,resources}/NAME; Azure's have '_' for '/' and "~2" for '_'. */
void promise_tag(struct node_promise *p, struct arena *a, const char *tag, const char *value);
void promise_tag_of_resource(struct node_promise *p, struct arena *a, const char *tag, const char *value);
/* Its value is a taint as kubectl writes it: "KEY=VALUE:EFFECT", "KEY:EFFECT". */
void promise_written_taint(struct node_promise *p, struct arena *a, const char *text);
/* All of it, its texts copied. */
void promise_add(struct node_promise *p, struct arena *a, const struct node_promise *more);
