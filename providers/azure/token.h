/*
 * Tokens for the Resource Manager: got once for all who ask, renewed before
 * they end, one request in flight for each audience, and none without
 * somebody who waits. Never logged.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/millis.h"
#include "base/net/loop.h"
#include "providers/azure/place.h"

struct http;
struct http_tls;
struct tokens;
struct token_slot;

/* Whoever waits for a token; embedded in what asks, which stays its owner. */
struct token_wait {
	void (*done)(struct token_wait *w); /* once, from the loop; may ask again */
	void *user;
	const char *token; /* valid inside done(); NULL: see error */
	struct error error;

	struct token_slot *slot; /* private; NULL: waits for nothing */
	struct token_wait *next;
	bool is_cancelled;
};

struct tokens *tokens_open(struct loop *loop, struct http *http, const struct http_tls *tls);
void tokens_close(struct tokens *t); /* nobody may wait; takes NULL */
void token_ask(struct tokens *t, const struct azure_place *place, struct token_wait *w);
/* done() comes soon, as ERROR_CANCELLED. Nothing when it waits for nothing. */
void token_cancel(struct token_wait *w);
/* It was not accepted: whoever asks next gets another. */
void token_refused(struct tokens *t, const struct azure_place *place, const char *token);

/*
 * How a token is asked for, and what the answer says: workload identity,
 * client secret, client certificate, managed identity. No network; files of
 * the environment are read anew each time, as they change under us.
 */

enum azure_method { AZURE_SECRET, AZURE_CERTIFICATE, AZURE_FEDERATED, AZURE_MANAGED };

/* The first of these for which the environment has all. What is there by halves is ERROR_AUTH. */
bool azure_method_choose(const struct azure_environment *env, enum azure_method *out, struct error *e) MUST_USE;
const char *azure_method_name(enum azure_method method);

struct token_request {
	struct buf url, body; /* body empty: a GET with the header Metadata: true, through no proxy */
};

/* `now` is the wall clock. ERROR_AUTH when a file of the environment is not to be had. */
bool token_request_write(const struct azure_environment *env, const struct azure_place *place, millis now,
			 struct token_request *out, struct error *e) MUST_USE;
void token_request_release(struct token_request *r); /* wipes what is secret */

/* Of a 200: the token, and how long it lives. */
bool token_answer_read(const char *text, size_t len, struct arena *a, const char **token, millis *lives,
		       struct error *e) MUST_USE;
/* Of any other status. */
void token_refusal_read(long status, const char *text, size_t len, struct error *e);
/* How long to wait before a managed identity is asked again: `tries` so far, the first `since` ago; -1: no more. */
millis token_imds_wait(long status, int tries, millis since);

/* What a token says of whom it is for; texts live in the arena, "" when it does not say. No secret in it. */
struct token_claims {
	const char *application, *object, *tenant;
};
bool token_claims_read(const char *token, struct arena *a, struct token_claims *out) MUST_USE;
