#include "controller/commands/reviews.h"

#include "controller/cluster/verbs.h"

#include <stdlib.h>

struct asked {
	struct gate_review *review;
	struct token_review token;
	struct access_review access;
	struct timer timer;
};

static void token_told(struct token_review *t)
{
	struct asked *a = t->user;
	struct gate_review *r = a->review;

	r->error = t->error;
	r->is_allowed = t->is_known;
	r->told_who = t->who;
	r->done(r);
	free(a);
}

static void access_told(struct access_review *t)
{
	struct asked *a = t->user;
	struct gate_review *r = a->review;

	r->error = t->error;
	r->is_allowed = t->is_allowed;
	r->done(r);
	free(a);
}

static void refused(struct timer *t)
{
	struct asked *a = t->user;

	a->review->done(a->review);
	free(a);
}

void reviews_ask(void *api, struct gate_review *r)
{
	struct asked *a = calloc(1, sizeof *a);

	if (!a)
		abort();
	a->review = r;
	a->token = (struct token_review){ .token = r->token, .done = token_told, .user = a };
	a->access = (struct access_review){
		.who = r->who, .verb = r->verb, .path = r->path, .done = access_told, .user = a
	};
	a->timer.user = a;
	if (!r->is_access)
		token_review_start(api, &a->token);
	else if (!access_review_start(api, &a->access, &r->error))
		timer_start(api_loop(api), &a->timer, 0, refused);
}
