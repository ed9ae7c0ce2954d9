/* A kernel that gives no timer, or does not set it: what then is written, and told. */
#include "base/log.h"
#include "base/net/loop.h"
#include "tests/unit/net/http_calls.h"
#include "tests/unit/net/scripted_peer.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_the_kernel_gives_no_timer_nothing_is_written),
		cmocka_unit_test(where_the_kernel_does_not_set_it_nothing_is_written),
	};

	log_set_up(&(struct log_setup){ .least = LEVEL_ERROR, .write = listen_to_log });
	return cmocka_run_group_tests(tests, NULL, NULL);
}
