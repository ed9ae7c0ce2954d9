/*
 * Any bytes as answers of the API server to a watch: the first says how they are cut into answers and what status those
 * have. It never ends but by being stopped, and tells nobody gone who was not kept.
 */
#include "base/log.h"
#include "controller/cluster/watch.h"
#include "tests/unit/cluster/played_api.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct api_call *asked; /* NULL: none waits for an answer */
static size_t kept;

static void serve(struct api_call *c)
{
	asked = c;
}

static void cancelled(struct api_call *c)
{
	(void)c;
	asked = NULL;
}

static bool on_object(void *user, const void *record, const struct watch_seen *seen)
{
	(void)user, (void)record;
	if (!seen->name || !seen->uid_text)
		abort();
	kept++;
	return true;
}

static void on_gone(void *user, struct object_uid uid, millis arrived)
{
	(void)user, (void)uid, (void)arrived;
	if (!kept)
		abort();
}

/* Texts between NUL bytes are answers; one that begins with a digit is refused with such a status. */
static void answer(const char *text, size_t len)
{
	static const int statuses[] = { 200, 400, 401, 403, 404, 410, 422, 429, 500, 503 };
	int status = len && *text >= '0' && *text <= '9' ? statuses[*text - '0'] : 0;
	char *copy = strndup(text, len);
	struct api_call *c = asked;

	asked = NULL;
	if (status)
		play_answer(c, status, copy);
	else if (play_chunk(c, copy, len / 2) && play_chunk(c, copy + len / 2, len - len / 2))
		play_answer(c, 200, "");
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct record_spec record = { "", 1, NULL, 0 };
	const char *text = (const char *)bytes, *end = text + len;

	log_level_set(LEVEL_ERROR);
	kept = 0;
	struct watch *w = watch_start(
		play_begin(serve), &(struct watch_spec){ .name = "x",
							 .path = "/x",
							 .object = &record,
							 .way = len ? (enum watch_way)(bytes[0] % 3) : WATCH_STREAMED,
							 .on_object = on_object,
							 .on_gone = on_gone });
	play_on_cancel(cancelled);
	while (text < end) {
		size_t n = strnlen(text, (size_t)(end - text));
		answer(text, n);
		while (!asked)
			play_step(play_now() + MINUTE);
		text += n + (n < (size_t)(end - text));
	}
	watch_stop(w);
	play_until(play_now() + 1);
	play_end();
	return 0;
}
