/* A kernel that gives no timer, or does not set it: what then is written, and told. */
#include "base/log.h"
#include "base/net/fence.h"
#include "base/net/loop.h"
#include "tests/unit/net/http_calls.h"
#include "tests/unit/net/scripted_peer.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static struct {
	bool no_timer, not_set;
	int told; /* lines of the log that say so */
} now;

/* The kernel's: these are linked over the C library's. */
int timer_create(clockid_t clock, struct sigevent *restrict how, timer_t *restrict id)
{
	int (*real)(clockid_t, struct sigevent *, timer_t *);

	*(void **)&real = dlsym(RTLD_NEXT, "timer_create");
	errno = EAGAIN;
	return now.no_timer ? -1 : real(clock, how, id);
}

int timer_settime(timer_t id, int flags, const struct itimerspec *restrict at, struct itimerspec *restrict old)
{
	int (*real)(timer_t, int, const struct itimerspec *, struct itimerspec *);

	*(void **)&real = dlsym(RTLD_NEXT, "timer_settime");
	errno = EINVAL;
	return now.not_set ? -1 : real(id, flags, at, old);
}

static void listen_to_log(void *nobody, enum log_level level, const char *line)
{
	(void)nobody;
	now.told += level == LEVEL_ERROR && strstr(line, "\"writes-not-fenced\"");
}

static void expect(struct loop *l, struct http *h, const struct scripted_peer *p, bool is_write, const char *refusal)
{
	struct call c = call_to(peer_url(p));

	c.r.method = is_write ? "PUT" : "GET";
	c.r.is_write = is_write;
	c.r.user = &c;
	http_start(h, &c.r);
	while (http_active(h))
		loop_once(l);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.kind, refusal ? ERROR_UNAVAILABLE : ERROR_NONE);
	if (refusal)
		assert_non_null(strstr(c.message, refusal));
}

/* Reads go on, and so do writes once a deadline comes with a timer. */
static void without(bool no_timer, bool not_set)
{
	static const struct peer_step script[] = { { PEER_ACCEPT, NULL }, { PEER_ACCEPT, NULL }, { PEER_READ, NULL },
						   { PEER_SEND, OK },	  { PEER_READ, NULL },	 { PEER_SEND, OK },
						   { PEER_HOLD, NULL },	  { PEER_END, NULL } };
	struct scripted_peer *p = peer_open(script);
	struct loop *l = loop_open();
	struct error e;
	struct http *h = http_open(l, "preheat/test", &e);

	now.no_timer = no_timer;
	now.not_set = not_set;
	now.told = 0;
	http_write_until(h, loop_now(l) + HOUR);
	assert_int_equal(now.told, 1);
	expect(l, h, p, true, ": not sent: the time to write ran out");
	expect(l, h, p, false, NULL);
	now.no_timer = now.not_set = false;
	http_write_until(h, loop_now(l) + HOUR);
	expect(l, h, p, true, NULL);
	assert_int_equal(now.told, 1);
	http_close(h);
	loop_close(l);
	char *seen = peer_close(p), *put = strstr(seen, "PUT / ");
	assert_true(put && strstr(seen, "GET / ") < put); /* the one that was let go */
	assert_null(strstr(put + 1, "PUT / "));
	free(seen);
}

static void where_the_kernel_gives_no_timer_nothing_is_written(void **state)
{
	(void)state;
	without(true, false);
}

static void where_the_kernel_does_not_set_it_nothing_is_written(void **state)
{
	(void)state;
	without(false, true);
}

static int connect_to(int listener, struct fence_ends *ends)
{
	static char ip[] = "127.0.0.1";
	struct sockaddr_in at, own;
	socklen_t len = sizeof at, own_len = sizeof own;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &own_len), 0);
	*ends = (struct fence_ends){
		.ip = ip, .peer_ip = ip, .port = ntohs(own.sin_port), .peer_port = ntohs(at.sin_port)
	};
	return fd;
}

/* As when the process dies in the middle of a write: its peer gets a reset, and not the rest. */
static void what_is_held_is_not_sent_on_after_its_end(void **state)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct fence *f = fence_open();
	struct fence_ends ends;
	char byte;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof here), 0);
	assert_int_equal(listen(listener, 1), 0);
	for (int is_held = 0; is_held < 2; is_held++) {
		int fd = connect_to(listener, &ends), peer = accept(listener, NULL, NULL);
		assert_true(fence_know(f, fd));
		assert_true(fence_hold(f, &ends, f));
		if (!is_held)
			fence_let_go(f, f);
		close(fd);
		assert_int_equal(recv(peer, &byte, 1, 0), is_held ? -1 : 0);
		fence_forget(f, fd);
		close(peer);
	}
	close(listener);
	fence_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_the_kernel_gives_no_timer_nothing_is_written),
		cmocka_unit_test(where_the_kernel_does_not_set_it_nothing_is_written),
		cmocka_unit_test(what_is_held_is_not_sent_on_after_its_end),
	};

	log_set_up(&(struct log_setup){ .least = LEVEL_ERROR, .write = listen_to_log });
	return cmocka_run_group_tests(tests, NULL, NULL);
}
