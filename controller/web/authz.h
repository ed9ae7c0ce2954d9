/*
 * Who may have page and API answered. On a loopback address: whoever is on
 * this machine, or came through kubectl port-forward; but not a page from
 * elsewhere that a browser here was made to open. On any other address: whom
 * the API server knows by a bearer token (TokenReview) and lets do that
 * (SubjectAccessReview on the path and the verb), as controller-runtime does
 * it for metrics. What it said is kept for a short while, under a keyed hash
 * of the token; when it cannot be asked nobody is let in.
 */
#pragma once
#include "base/clock.h"
#include "base/net/server.h"

#include <stdbool.h>

/* How long is believed what the API server said. */
#define AUTHZ_TOKEN_KEPT  MINUTE
#define AUTHZ_ALLOW_KEPT  (5 * MINUTE)
#define AUTHZ_DENIAL_KEPT (30 * SECOND)

/* One question to the API server; completes exactly once, never inside the call. */
struct authz_review {
	bool is_access;	   /* else a token */
	const char *token; /* need not outlive the start, as the next three */
	const char *who;   /* as a token's review told it */
	const char *verb, *path;
	void (*done)(struct authz_review *r);
	void *user;

	struct error error; /* valid inside done(), as what follows: it could not be asked */
	bool is_allowed;    /* the token is known, or the access is allowed */
	const char *told_who;
	const char *name; /* of the user */
};
typedef void authz_ask_fn(void *user, struct authz_review *r);

struct authz_settings {
	const struct clock *clock;
	authz_ask_fn *ask; /* NULL: a loopback address */
	void *ask_user;
};

struct authz;
struct authz *authz_open(const struct authz_settings *s);
/* For server_settings; its user is the authz. */
enum server_verdict authz_admit(void *authz, const struct server_request *q, struct server_wait *w,
				struct server_answer *a);
/* Before the server is closed. Answers under way are no longer waited for. Takes NULL. */
void authz_close(struct authz *g);

/* What a browser tells of where a request comes from: against pages from elsewhere. Pure. */

struct authz_origin {
	const char *host, *origin;	     /* headers of the request; NULL: without */
	const char *fetch_site, *fetch_mode; /* Sec-Fetch-Site and -Mode */
};

/* localhost, 127.x.x.x or [::1], with any port: a name that somebody made point to this machine is none of these. */
bool authz_is_local_host(const char *host);
/* Nothing says that a page of another site asks; following a link from one is no harm. */
bool authz_is_same_site(const struct authz_origin *o);
