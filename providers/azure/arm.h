/*
 * Requests to the Resource Manager: each with a token, asked again once when
 * the token was not accepted, and with its refusal read. Tokens are got once
 * for all who need one, renewed before they end, one request in flight for
 * each audience, and none without somebody who waits. Never logged.
 */
#pragma once
#include "base/net/http.h"
#include "providers/azure/token.h"

struct arm;
struct token_slot;

struct arm_request {
	/* filled in by the caller, and kept until done() */
	const char *method, *url; /* the url was found to be safe to show a token */
	const char *if_match;	  /* may be NULL */
	const char *body;	  /* NULL: none */
	size_t body_len;
	bool is_write; /* part of a change: see http_write_until() */
	millis timeout;
	void (*done)(struct arm_request *r); /* once, from the loop; may start it again */
	void *user;

	/* Valid inside done(): ERROR_NONE on any 2xx. `http` is the last answer, its status 0 when there was none. */
	struct error error;
	millis retry_after; /* what it told; -1: nothing */
	struct http_request http;
	bool is_active; /* from arm_start() until done() */

	/* private */
	struct arm *arm;
	struct token_slot *slot;
	struct arm_request *next; /* of those who wait for the same token */
	struct buf match, bearer;
	const char *headers[4];
	millis ends_at;
	struct timer timer;
	bool waits, gives_up, was_refused;
};

struct arm *arm_open(struct loop *loop, struct http *http);
void arm_close(struct arm *arm); /* no request may be under way */
void arm_start(struct arm *arm, const struct azure_place *place, struct arm_request *r);
/* done() comes soon, as ERROR_CANCELLED. Nothing when it is not under way. */
void arm_cancel(struct arm_request *r);

/*
 * How often AKS takes a PUT of an agent pool: 20 at once, one more a minute
 * (learn.microsoft.com/azure/aks/quotas-skus-regions). Asking beyond it brings only a refusal, which
 * counts too. Pure.
 */
struct put_bucket {
	millis full_at; /* when nothing will be missing any more, by a clock that never goes back; 0: now */
};

/* Takes one; false when there is none, and then in how long there will be. */
bool put_bucket_take(struct put_bucket *b, millis now, millis *wait);
/* AKS refused one, so that there is none for so long (0: not told); others write the pool, too, or we did in an earlier
 * life. Returns the time. */
millis put_bucket_empty(struct put_bucket *b, millis now, millis wait);
