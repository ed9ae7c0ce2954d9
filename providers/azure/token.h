/*
 * Tokens for the Resource Manager: got once for all who ask, renewed before
 * they end, one request in flight for each audience, and none without
 * somebody who waits. Never logged.
 */
#pragma once
#include "base/arena.h"
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
