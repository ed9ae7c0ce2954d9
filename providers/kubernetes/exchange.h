/* What a call of this folder holds while it is under way; nobody else includes this. */
#pragma once
#include "base/net/loop.h"
#include "providers/kubernetes/group.h"

struct wish {
	char *group;
	int64_t size;
};

struct provider {
	const struct object_provider *kind;
	struct loop *loop;
	struct cluster_door cluster;
	struct wish *wishes; /* of groups without an owner */
	size_t wish_count, active;
};

struct exchange {
	struct provider *provider;
	struct provider_call *call;
	struct object_group group;
	struct owner_object owner;
	struct machine_list list;
	const char **victims;
	size_t victim_count, at;
	struct cluster_call request;
	struct buf path, body;
	struct timer at_once;
	void (*then)(struct exchange *x);
	bool is_asking, is_cancelled;
	bool is_gone_fine; /* a 404 is what we want */
	bool is_told;	   /* nothing is to be asked */
};

/* The size that is wished for a group, 0 at first. */
int64_t *wish_of(struct provider *p, const char *group);
