/* What the relay adds: requests one after the other, each on a connection of its own, straight to a server and through
 * it. Server and relay run in a process of their own. */
#include "base/net/relay.h"
#include "base/net/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REQUESTS = 4000 };

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	(void)q;
	buf_text(&a->body, "served");
}

static void serve(int ports)
{
	static const struct server_route routes[] = { { NULL, "/*", answer, NULL } };
	const struct server_settings s = { .listen = "127.0.0.1:0", .routes = routes, .route_count = 1 };
	const struct relay_settings r = { .name = "bench", .host = "127.0.0.1", .hold = MINUTE };
	struct loop *loop = loop_open();
	struct error e;
	struct server *server = server_open(loop, &s, &e);
	struct relay *relay = relay_open(loop, &r, &e);

	if (!server || !relay)
		abort();
	const struct relay_target to = { "127.0.0.1", server_port(server) };
	relay_aim(relay, &to, 1);
	const uint16_t found[2] = { server_port(server), relay_port(relay) };
	if (write(ports, found, sizeof found) != sizeof found)
		abort();
	loop_run(loop);
}

static int64_t request(uint16_t port)
{
	static const char text[] =
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(port) };
	char got[4096];
	int64_t begun = now_ns();
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0 || write(fd, text, sizeof text - 1) < 0)
		abort();
	while (read(fd, got, sizeof got) > 0)
		;
	close(fd);
	return now_ns() - begun;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double us(const int64_t *taken, int percent)
{
	return (double)taken[REQUESTS * percent / 100] / 1000;
}

int main(void)
{
	static int64_t straight[REQUESTS], relayed[REQUESTS];
	uint16_t ports[2];
	int pipes[2];

	if (pipe(pipes) != 0)
		return 1;
	pid_t child = fork();
	if (!child)
		serve(pipes[1]);
	if (child < 0 || read(pipes[0], ports, sizeof ports) != sizeof ports)
		return 1;
	for (int i = 0; i < REQUESTS; i++) { /* in turn, so that both see the same machine */
		straight[i] = request(ports[0]);
		relayed[i] = request(ports[1]);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	qsort(straight, REQUESTS, sizeof *straight, ascending);
	qsort(relayed, REQUESTS, sizeof *relayed, ascending);
	printf("%.0f us instead of %.0f, slowest hundredth %.0f instead of %.0f\n", us(relayed, 50), us(straight, 50),
	       us(relayed, 99), us(straight, 99));
	return 0;
}
