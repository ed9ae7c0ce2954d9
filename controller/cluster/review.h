/*
 * Asking the API server who somebody is, and what they may do. Nothing is
 * stored by it: both pass the gate as reads do. Each completes exactly once,
 * from the loop; its memory and what it points to belongs to the caller.
 */
#pragma once
#include "controller/cluster/api.h"

#define REVIEW_TIMEOUT (10 * SECOND) /* of all attempts */

struct token_review {
	const char *token; /* need not outlive the start */
	void (*done)(struct token_review *t);
	void *user;

	struct error error; /* valid inside done(), as what follows. ERROR_AUTH: we may not ask */
	bool is_known;
	const char *name; /* of the user; NULL when not known */
	const char *who;  /* all that is known of the user, JSON, for access_review */
	const char *why;  /* the server's word on a token that it does not take; NULL: none */

	struct api_call call; /* private from here; zeroed at first */
	struct buf body;
	struct arena arena;
};
void token_review_start(struct api *a, struct token_review *t);

struct access_review {
	const char *who;	 /* as a token_review told it; need not outlive the start, as the next two */
	const char *verb, *path; /* "get", "/api/v1/pools": nothing of the API server's own */
	void (*done)(struct access_review *r);
	void *user;

	struct error error;
	bool is_allowed;
	const char *why; /* the server's reason; NULL: none */

	struct api_call call;
	struct buf body;
	struct arena arena;
};
/* False when `who` is no user: then done() does not come. */
bool access_review_start(struct api *a, struct access_review *r, struct error *e) MUST_USE;
