/*
 * One request to the Resource Manager: with a token, asked again once when
 * the token was not accepted, and with its refusal read.
 */
#pragma once
#include "base/net/http.h"
#include "providers/azure/token.h"

struct arm_request {
	/* filled in by the caller, and kept until done() */
	const char *method, *url; /* the url was found to be safe to show a token */
	const char *if_match;	  /* may be NULL */
	const char *body;	  /* NULL: none */
	size_t body_len;
	millis timeout;
	void (*done)(struct arm_request *r); /* once, from the loop; may start it again */
	void *user;

	/* Valid inside done(): ERROR_NONE on any 2xx. `http` is the last answer, its status 0 when there was none. */
	struct error error;
	millis retry_after; /* what it told; -1: nothing */
	struct http_request http;

	/* private */
	struct tokens *tokens;
	struct http *client;
	struct azure_place place;
	struct token_wait wait;
	struct buf match, bearer;
	const char *headers[4];
	millis ends_at;
	struct loop *loop;
	struct timer timer;
	bool was_refused, is_active;
};

/* What all requests of a provider go through. */
struct arm {
	struct loop *loop;
	struct http *http;
	struct tokens *tokens;
	struct http_tls tls;
};

void arm_start(struct arm *arm, const struct azure_place *place, struct arm_request *r);
/* done() comes soon, as ERROR_CANCELLED. Nothing when it is not under way. */
void arm_cancel(struct arm_request *r);
