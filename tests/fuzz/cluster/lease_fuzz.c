/*
 * Any texts as the API server's answers to who leads. A text between NUL bytes is an answer; one that begins with a
 * digit is refused with such a status. Nobody leads without a write that was answered, and it ends when it is closed.
 */
#include "base/log.h"
#include "controller/cluster/lease.h"
#include "tests/unit/cluster/played_api.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct api_call *asked; /* NULL: none waits for an answer */
static bool was_written, is_closed, leads;

static void serve(struct api_call *c)
{
	asked = c;
}

static void cancelled(struct api_call *c)
{
	asked = asked == c ? NULL : asked;
}

static void on_won(void *user)
{
	(void)user;
	if (!was_written)
		abort();
	leads = true;
}

static void on_lost(void *user, const char *why)
{
	(void)user;
	if (!leads || !why)
		abort();
	leads = false;
}

static void closed(void *user)
{
	(void)user;
	is_closed = true;
}

static void answer(const char *text, size_t len)
{
	static const int statuses[] = { 200, 400, 401, 403, 404, 409, 410, 429, 500, 503 };
	int status = len && *text >= '0' && *text <= '9' ? statuses[*text - '0'] : 200;
	char *copy = strndup(text, len);
	struct api_call *c = asked;

	asked = NULL;
	was_written |= strcmp(c->method, "GET") != 0 && status == 200;
	play_answer(c, status, copy);
	free(copy);
}

/* Closed ones give back what they hold; none of that is answered. */
static void end(struct lease *l)
{
	lease_close(l, closed, NULL);
	for (int steps = 0; !is_closed; steps++) {
		if (steps > 1000)
			abort();
		if (asked) {
			struct api_call *c = asked;
			asked = NULL;
			play_failure(c, ERROR_UNAVAILABLE);
		}
		play_step(play_now() + SECOND);
	}
	if (leads)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *text = (const char *)bytes, *last = text + len;
	struct error e;

	log_level_set(LEVEL_ERROR);
	was_written = is_closed = leads = false;
	asked = NULL;
	struct api *api = play_begin(serve);
	play_on_cancel(cancelled);
	struct lease *l = lease_open(&(struct lease_setup){ .api = api,
							    .name_space = "preheat",
							    .name = "preheat",
							    .identity = "us",
							    .address = "http://us",
							    .on_won = on_won,
							    .on_lost = on_lost },
				     &e);
	for (int answers = 0; text < last && answers < 50; answers++) {
		size_t n = strnlen(text, (size_t)(last - text));
		for (int steps = 0; !asked && steps < 1000; steps++)
			play_step(play_now() + MINUTE);
		if (!asked)
			abort();
		answer(text, n);
		if (lease_is_held(l) != leads || !lease_holder(l) || !lease_holder_address(l))
			abort();
		text += n + (n < (size_t)(last - text));
	}
	end(l);
	play_until(play_now() + 1);
	play_end();
	return 0;
}
