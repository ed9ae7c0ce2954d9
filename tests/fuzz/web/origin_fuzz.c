/* Any Host and Origin: what is taken for this machine is written as one of its names, and no other site for ours. */
#include "controller/web/authz.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool begins(const char *text, const char *with)
{
	return strncasecmp(text, with, strlen(with)) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *host = calloc(1, len + 1), *origin;

	memcpy(host, bytes, len);
	origin = strchr(host, '\n');
	if (origin)
		*origin++ = '\0';
	if (authz_is_local_host(host) && !begins(host, "localhost") && !begins(host, "127.") && !begins(host, "[::1]"))
		abort();
	if (strpbrk(host, "@/") && authz_is_local_host(host))
		abort();
	if (origin && authz_is_same_site(&(struct authz_origin){ .host = host, .origin = origin }) &&
	    !begins(origin, "http://") && !begins(origin, "https://"))
		abort();
	if (origin && strlen(origin) < strlen(host) &&
	    authz_is_same_site(&(struct authz_origin){ .host = host, .origin = origin }))
		abort();
	free(host);
	return 0;
}
