/*
 * The pod template of a pool's workload, a Deployment or StatefulSet: which images its pods run, where they may stand
 * and who pulls for them. Read for pods of ours that stand in for them.
 */
#pragma once
#include "base/decode.h"
#include "controller/cluster/verbs.h"

struct controller;

struct template_container {
	const char *image, *pull_policy; /* NULL: not given */
	struct decoded_map limits;
};

/* Texts are JSON as the API server wrote it; without text where the key is not given. */
struct pod_template {
	struct decoded_list containers, init_containers; /* of struct template_container */
	struct decoded_text node_selector, tolerations, affinity, pull_secrets, runtime_class, service_account;
};

/* Gets the workload that the pool's manifest names; `call` is the caller's until done(). */
void pod_template_get(struct controller *c, size_t pool, struct object_call *call,
		      void (*done)(struct object_call *call), void *user);
/* Of an answer without error. In the arena. False with ERROR_INVALID in `e`. */
bool pod_template_read(const struct object_call *call, struct arena *a, struct pod_template *out,
		       struct error *e) MUST_USE;
/* ,"key":value where the template gives one. */
void pod_template_write(const char *key, const struct decoded_text *value, struct buf *out);
