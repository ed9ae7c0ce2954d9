/* What a call of this folder holds while it is under way; nobody else includes this. */
#pragma once
#include "base/net/loop.h"
#include "providers/kubernetes/group.h"

/* What we wish of a group that nobody is asked for. Lives as long as the provider. */
struct recommendation {
	char *group;
	int64_t size;	/* 0 once that many were there */
	char **leaving; /* machines that were released, and are the other autoscaler's to remove */
	size_t leaving_count;
};

struct provider {
	const struct object_provider *kind;
	struct loop *loop;
	struct cluster_door cluster;
	struct recommendation *wishes; /* of groups without an owner */
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
	millis ends_at; /* loop_now */
	int pages;
	void (*then)(struct exchange *x);
	bool is_asking, is_cancelled;
	bool is_gone_fine; /* a 404 is what we want */
	bool is_told;	   /* nothing is to be asked */
};

/* group.c: a request with what is in path and body, unless the call's time is over; the end of the call. */
void object_ask(struct exchange *x, const char *method, void (*then)(struct exchange *x));
void object_finish(struct exchange *x);
int64_t machines_there(const struct machine_list *list); /* without those that go */

/* check.c */
void object_check(struct exchange *x);

/* wish.c */
struct recommendation *wish_of(struct provider *p, const char *group); /* made when there is none; valid until the next one */
/* What a call that changes something makes of it. */
void wish_change(struct recommendation *w, const struct provider_call *c);
/* Machines that leave are shown as such, those gone forgotten. Returns the size that is asked for. */
int64_t wish_settle(struct recommendation *w, struct machine_list *list);
void wishes_free(struct provider *p);

/* change.c */
void change_grow(struct exchange *x);	/* the owner was read */
void change_shrink(struct exchange *x); /* and its machines */
