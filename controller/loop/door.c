#include "controller/loop/door.h"

#include "controller/cluster/api.h"

#include <stdlib.h>

static void answered(struct api_call *a)
{
	struct cluster_call *c = a->user;

	c->error = a->error;
	c->response = a->response;
	c->response_len = a->response_len;
	c->retry_after = a->retry_after;
	c->exchange = NULL;
	c->done(c);
	free(a);
}

static void start(void *user, struct cluster_call *c)
{
	struct api_call *a = calloc(1, sizeof *a);

	if (!a)
		abort();
	c->exchange = a;
	*a = (struct api_call){ .method = c->method,
				.path = c->path,
				.body = c->body,
				.content_type = c->content_type,
				.effect = c->changes ? API_WRITE : API_READ,
				.timeout = c->timeout,
				.done = answered,
				.user = c };
	api_start(user, a);
}

static void cancel(void *user, struct cluster_call *c)
{
	(void)user;
	if (c->exchange)
		api_cancel(c->exchange);
}

struct cluster_door door_open(struct api *a)
{
	return (struct cluster_door){ .start = start, .cancel = cancel, .user = a };
}
