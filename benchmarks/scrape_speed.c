/*
 * A pool of 1,000 model servers scraped every 5 s: CPU of one core and memory on top, with real connections to as many
 * addresses of loopback, each behind a listener of its own in another process. Usage: scrape_speed [PODS [SECONDS
 * [packed]]]; packed as zlib does it, which costs what gzip costs.
 */
#include "base/gzip.h"
#include "signals/scrape.h"
#include "tests/unit/signals/vllm_page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PODS = 2000, REQUEST_ROOM = 4096, EVENTS = 64 };

static const millis INTERVAL = 5 * SECOND;

static void fail(const char *what)
{
	fprintf(stderr, "scrape_speed: %s: %s\n", what, strerror(errno));
	exit(3);
}

static struct in_addr address_of(int pod)
{
	return (struct in_addr){ htonl(0x7f010000U + ((uint32_t)pod / 250 << 8) + (uint32_t)pod % 250 + 1) };
}

/* The first takes any port, all others the same one. */
static int listen_at(int pod, int *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)*port),
				  .sin_addr = address_of(pod) };
	socklen_t len = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) || listen(fd, 4) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		fail("listen");
	*port = ntohs(at.sin_port);
	return fd;
}

static void watch(int epoll, int fd, bool is_listener)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)fd << 1 | is_listener };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		fail("epoll_ctl");
}

static void answer(int fd, const struct buf *page)
{
	char request[REQUEST_ROOM];
	size_t sent = 0;

	if (recv(fd, request, sizeof request, 0) <= 0) {
		close(fd);
		return;
	}
	while (sent < page->len) {
		ssize_t n = send(fd, page->text + sent, page->len - sent, MSG_NOSIGNAL);
		if (n <= 0) {
			close(fd);
			return;
		}
		sent += (size_t)n;
	}
}

static void serve(const int *listeners, int count, const struct buf *page)
{
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < count; i++)
		watch(epoll, listeners[i], true);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			int fd = (int)(events[i].data.u64 >> 1);
			if (events[i].data.u64 & 1)
				watch(epoll, accept4(fd, NULL, NULL, SOCK_CLOEXEC), false);
			else
				answer(fd, page);
		}
	}
}

static int64_t cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static double resident_mib(void)
{
	char line[100], *end;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || !fgets(line, sizeof line, f))
		fail("/proc/self/statm");
	fclose(f);
	strtoul(line, &end, 10);
	unsigned long pages = strtoul(end, NULL, 10);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

struct run {
	struct loop *loop;
	struct timer over;
	bool is_over;
	int rounds;
	int64_t expected, fresh;
	double most_mib;
};

static void on_reading(void *user, const struct pool_reading *r)
{
	struct run *run = user;
	double now = resident_mib();

	run->rounds++;
	run->expected += r->expected;
	run->fresh += r->fresh;
	run->most_mib = now > run->most_mib ? now : run->most_mib;
}

static void on_over(struct timer *t)
{
	struct run *run = t->user;

	run->is_over = true;
}

static void run_for(struct run *run, millis length)
{
	run->is_over = false;
	run->over.user = run;
	timer_start(run->loop, &run->over, length, on_over);
	while (!run->is_over)
		loop_once(run->loop);
}

static void set_targets(struct source *s, int count, int port)
{
	struct source_target *targets = calloc((size_t)count, sizeof *targets);
	char(*texts)[2][64] = calloc((size_t)count, sizeof *texts);

	if (!targets || !texts)
		abort();
	for (int i = 0; i < count; i++) {
		char host[INET_ADDRSTRLEN];
		struct in_addr at = address_of(i);
		inet_ntop(AF_INET, &at, host, sizeof host);
		snprintf(texts[i][0], sizeof texts[i][0], "llm/pod-%d/uid", i);
		snprintf(texts[i][1], sizeof texts[i][1], "http://%s:%d/metrics", host, port);
		targets[i] = (struct source_target){ .key = texts[i][0], .url = texts[i][1], .is_ready = true };
	}
	source_set_targets(s, targets, (size_t)count);
	free(targets);
	free(texts);
}

static void measure(int count, int port, int seconds, size_t page_bytes)
{
	struct error e = { 0 };
	struct clock clock = clock_open();
	struct run run = { .loop = loop_open() };
	struct http *http = http_open(run.loop, "scrape_speed", &e);
	struct source *s = scrape_source_open(run.loop, http, &clock,
					      &(struct scrape_source_settings){
						      .source = { .pool = "chat",
								  .engine = ENGINE_VLLM,
								  .interval = INTERVAL,
								  .objective_us = 2000000,
								  .on_reading = on_reading,
								  .user = &run },
					      });

	malloc_trim(0);
	double before_mib = resident_mib();
	set_targets(s, count, port);
	run_for(&run, 2 * INTERVAL);
	run.rounds = 0;
	run.expected = run.fresh = 0;
	int64_t cpu = cpu_us();
	run_for(&run, seconds * SECOND);
	cpu = cpu_us() - cpu;
	printf("%d pods of %zu bytes every 5 s for %d s: %.1f %% of a core, %.1f MiB on top; %d rounds, %.2f %% "
	       "fresh\n",
	       count, page_bytes, seconds, (double)cpu / 1e4 / seconds, run.most_mib - before_mib, run.rounds,
	       run.expected ? 100. * (double)run.fresh / (double)run.expected : 0.);
	source_close(s);
	while (http_active(http))
		loop_once(run.loop);
	http_close(http);
	loop_close(run.loop);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? (int)strtoul(argv[1], NULL, 10) : 1000, port = 0;
	int seconds = argc > 2 ? (int)strtoul(argv[2], NULL, 10) : 60;
	static int listeners[MOST_PODS];
	struct rlimit most = { 0 };
	struct buf body = { 0 }, packed = { 0 }, page = { 0 };

	if (count < 1 || count > MOST_PODS || seconds < 1) {
		fprintf(stderr, "usage: scrape_speed [PODS [SECONDS [packed]]], at most %d pods\n", MOST_PODS);
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
	vllm_page(&body, 123456);
	bool is_packed = argc > 3 && !strcmp(argv[3], "packed");
	if (is_packed)
		deflate_bytes(body.text, body.len, &packed);
	const struct buf *sent = is_packed ? &packed : &body;
	buf_printf(&page, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n%s\r\n",
		   sent->len, is_packed ? "Content-Encoding: deflate\r\n" : "");
	buf_append(&page, sent->text, sent->len);
	for (int i = 0; i < count; i++)
		listeners[i] = listen_at(i, &port);
	pid_t server = fork();
	if (server < 0)
		fail("fork");
	if (!server)
		serve(listeners, count, &page);
	for (int i = 0; i < count; i++)
		close(listeners[i]);
	measure(count, port, seconds, body.len);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	buf_release(&body);
	buf_release(&packed);
	buf_release(&page);
	return 0;
}
