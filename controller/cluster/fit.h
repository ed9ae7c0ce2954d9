/*
 * The scheduler's filters: whether a pod may run on a node, and if not, why. Nodes are those that there are, and nodes
 * to come as a node group's template says; pods may be put onto either in thought, and count from then on. As
 * kube-scheduler does (pkg/scheduler/framework/plugins: nodeunschedulable, tainttoleration, nodeaffinity, nodeports,
 * noderesources, volumebinding, volumezone, podtopologyspread, interpodaffinity, dynamicresources). Not looked at:
 * limits of attached volumes, ReadWriteOncePod, capacities of storage drivers, and which devices a claim would get.
 */
#pragma once
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct label_set;
struct node;
struct pod;
struct pod_shape;
struct requirement_set;
struct residents;
struct resources;
struct taint_set;

enum { FIT_WHY_SIZE = 400 };

struct fit_node {
	const char *name, *hostname; /* NULL: not known */
	const struct label_set *labels;
	const struct taint_set *taints;
	const struct taint_set *cloud_taints; /* of these, those that only a cloud tells of; NULL: none */
	const struct resources *allocatable;
	const struct node *node;	   /* NULL: one to come */
	const struct residents *residents; /* of one to come: what it will run beside; or NULL */
	int group;			   /* -1: of none */
	bool is_guess;			   /* what is not told may be there all the same */
	struct fit_seat *seats;		   /* pods put there in thought */
};

bool fit_requirements(const struct requirement_set *set, const struct fit_node *n);
/* What a shape asks of the node alone: resources (beside what runs there), labels, taints. */
bool fit_shape(const struct pod_shape *s, const struct fit_node *n, char why[FIT_WHY_SIZE]);
struct fit_node fit_node_of(const struct node *n);

/* All nodes and pods at one instant, and what is put there in thought. Lives in the arena but for what
 * fit_release() frees; the model must not change meanwhile. */
struct fit;
struct fit *fit_new(const struct cluster *c, struct arena *a);
void fit_release(struct fit *f); /* takes NULL */
/* It will be asked about a pod that does not wait, too. Before anybody sits down; who waits need not be told. */
void fit_expect(struct fit *f, const struct pod *p);
/* Whether where it fits changes with who sits where; of one that waits, or was told of. */
bool fit_minds_others(struct fit *f, const struct pod *p);
/* The pods of a node that there is are gone from there, from now on; the node stays. */
void fit_empty(struct fit *f, const struct node *n);

/* Whether the pod may run anywhere, as far as no node matters. */
enum fit_verdict {
	FIT_MAY,
	FIT_NEVER,  /* as long as nothing else changes: `why` says what is missing */
	FIT_UNKNOWN /* what it needs has not been read yet */
};
enum fit_verdict fit_anywhere(const struct fit *f, const struct pod *p, char why[FIT_WHY_SIZE]);
/* After fit_anywhere() said FIT_MAY. */
bool fit_pod(struct fit *f, const struct pod *p, const struct fit_node *n, char why[FIT_WHY_SIZE]);

/* A node of the group has room for the pod, and the scheduler gives it none of its devices. */
bool fit_was_refused(const struct cluster *c, const struct pod *p, int group);

/* A node to come is there from now on; until it is taken away, the youngest first, and nobody sits there any more. */
void fit_add(struct fit *f, const struct fit_node *n);
void fit_take_away(struct fit *f, const struct fit_node *n);
/* The pod sits there, until it leaves: whoever sat down last. */
void fit_sit(struct fit *f, const struct pod *p, struct fit_node *n);
void fit_leave(struct fit *f, struct fit_node *n);
