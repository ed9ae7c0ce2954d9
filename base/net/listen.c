#include "base/net/listen.h"

#include "base/quantity.h"
#include "base/quote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128

struct place {
	char host[64];
	char port[8];
};

static bool not_an_address(const char *where, struct error *e)
{
	char shown[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID,
			 "%s is no address to listen on, write HOST:PORT such as 127.0.0.1:8080, [::1]:8080 or :8080",
			 quote(shown, where, strlen(where)));
}

static bool split(const char *where, struct place *out, struct error *e)
{
	const char *colon = strrchr(where, ':');
	size_t host_len = colon ? (size_t)(colon - where) : 0;
	int64_t port;
	bool has_brackets = host_len >= 2 && where[0] == '[' && where[host_len - 1] == ']';
	const char *host = has_brackets ? where + 1 : where;

	host_len -= has_brackets ? 2 : 0;
	if (!colon || host_len >= sizeof out->host || strlen(colon + 1) >= sizeof out->port ||
	    (!has_brackets && memchr(host, ':', host_len)) || !fixed_parse(colon + 1, strlen(colon + 1), 0, &port) ||
	    port > UINT16_MAX)
		return not_an_address(where, e);
	memcpy(out->host, host, host_len);
	out->host[host_len] = '\0';
	memcpy(out->port, colon + 1, strlen(colon + 1) + 1);
	return true;
}

static int cannot(const char *where, const char *what, int number, struct error *e)
{
	enum error_kind kind = number == EACCES || number == EPERM ? ERROR_AUTH : ERROR_UNAVAILABLE;
	const char *remedy = number == EADDRINUSE ? ", another program listens there: stop it or choose another port"
			     : number == EADDRNOTAVAIL ? ", this machine has no such address"
			     : number == EACCES	       ? ", choose a port of 1024 or more"
						       : "";

	error_set(e, kind, "listening on %s: %s: %s%s", where, what, strerror(number), remedy);
	return -1;
}

static int open_socket(const char *where, const struct addrinfo *at, struct error *e)
{
	int on = 1, off = 0;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return cannot(where, "socket", errno, e);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	cannot(where, "cannot be had", errno, e);
	close(fd);
	return -1;
}

static uint16_t port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { .v6 = { 0 } };
	socklen_t len = sizeof at;

	getsockname(fd, &at.any, &len);
	return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

/* All addresses: both families on one socket where the machine knows both. */
static int open_family(const char *where, const struct place *p, int family, struct error *e)
{
	const char *host = !*p->host			       ? (family == AF_INET6 ? "::" : "0.0.0.0")
			   : strcmp(p->host, "localhost") == 0 ? "127.0.0.1"
							       : p->host;
	struct addrinfo want = { .ai_family = family,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *at = NULL;

	if (getaddrinfo(host, p->port, &want, &at) != 0) {
		not_an_address(where, e);
		return -1;
	}
	int fd = open_socket(where, at, e);
	freeaddrinfo(at);
	return fd;
}

int listen_open(const char *where, uint16_t *port, struct error *e)
{
	struct place p;

	if (!split(where, &p, e))
		return -1;
	int fd = open_family(where, &p, *p.host ? AF_UNSPEC : AF_INET6, e);
	if (fd < 0 && !*p.host && e->kind == ERROR_UNAVAILABLE)
		fd = open_family(where, &p, AF_INET, e);
	if (fd >= 0)
		*port = port_of(fd);
	return fd;
}

bool listen_check(const char *where, bool *is_loopback, struct error *e)
{
	struct in_addr v4;
	struct in6_addr v6;
	struct place p;

	if (!split(where, &p, e))
		return false;
	if (inet_pton(AF_INET, p.host, &v4) == 1)
		*is_loopback = ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	else if (inet_pton(AF_INET6, p.host, &v6) == 1)
		*is_loopback = IN6_IS_ADDR_LOOPBACK(&v6);
	else if (!*p.host || strcmp(p.host, "localhost") == 0)
		*is_loopback = *p.host;
	else
		return not_an_address(where, e);
	return true;
}
