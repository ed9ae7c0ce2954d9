#include "controller/web/gate_local.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* "localhost:8081" without the port. */
static bool name_of(const char *host, char *out, size_t room)
{
	const char *end = *host == '[' ? strchr(host, ']') : NULL;
	size_t len = end ? (size_t)(end + 1 - host) : strcspn(host, ":");
	const char *rest = host + len;

	if (len >= room || (*rest && (*rest != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1))))
		return false;
	snprintf(out, room, "%.*s", (int)len, host);
	return true;
}

bool gate_is_local_host(const char *host)
{
	struct in_addr v4;
	char name[64];

	if (!host || !name_of(host, name, sizeof name))
		return false;
	if (inet_pton(AF_INET, name, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0;
}

static bool is_of_host(const char *origin, const char *host)
{
	size_t scheme = strncasecmp(origin, "http://", 7) == 0 ? 7 : strncasecmp(origin, "https://", 8) == 0 ? 8 : 0;

	return scheme && host && strcasecmp(origin + scheme, host) == 0;
}

bool gate_is_same_site(const struct gate_origin *o)
{
	if (o->origin && !is_of_host(o->origin, o->host))
		return false;
	return !o->fetch_site || strcmp(o->fetch_site, "same-origin") == 0 || strcmp(o->fetch_site, "none") == 0 ||
	       (o->fetch_mode && strcmp(o->fetch_mode, "navigate") == 0);
}
