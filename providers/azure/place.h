/*
 * Where Azure is: its clouds, and which addresses may be shown a token.
 * Pure.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "providers/azure/environment.h"

struct azure_place {
	const char *endpoint;  /* of the Resource Manager, without a slash at its end */
	const char *audience;  /* what a token is asked for; ends with a slash */
	const char *authority; /* who gives tokens, without a slash at its end */
};

/*
 * The environment's cloud, or `wanted` (may be NULL): the Resource Manager of a known cloud, the environment's own, or
 * one on this very machine. Any other would be handed our token, so it is ERROR_INVALID.
 */
bool azure_place_find(const struct azure_environment *env, const char *wanted, struct arena *a, struct azure_place *out,
		      struct error *e) MUST_USE;
/* https, or http to this very machine; a host, no user, nothing that is no URL. */
bool azure_url_is_safe(const char *url);
/* The same scheme and port, and the same host or one below it ("eastus.management.azure.com"). */
bool azure_url_is_below(const char *url, const char *endpoint);
