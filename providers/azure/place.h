/*
 * Where Azure is: its clouds, and which addresses may be shown a token.
 * Pure.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"

/* What the environment says of Azure, by the names that Azure's own libraries read. NULL: not there, or empty. */

struct azure_environment {
	const char *tenant, *client, *secret, *certificate, *token_file; /* AZURE_TENANT_ID, ... */
	const char *authority;						 /* AZURE_AUTHORITY_HOST */
	const char *imds;						 /* AZURE_POD_IDENTITY_AUTHORITY_HOST */
	const char *cloud;						 /* AZURE_ENVIRONMENT */
	const char *endpoint, *audience; /* AZURE_RESOURCE_MANAGER_ENDPOINT, ..._AUDIENCE: of no known cloud */
	const char *ca_file;		 /* SSL_CERT_FILE, as OpenSSL has it */
};

struct azure_environment azure_environment_read(void);

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
