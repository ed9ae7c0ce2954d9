/*
 * Any bytes as what is told of a queue outside of the replicas: by Prometheus, on the page of an endpoint picker, in a
 * JSON document. The first byte says which; an expression follows, a NUL, and the answer.
 */
#include "base/json.h"
#include "signals/external_queue.h"
#include "tests/unit/signals/played_http.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct told {
	const char *bytes;
	size_t len;
};

static void answer(void *user, const struct http_request *r, struct played_answer *a)
{
	const struct told *t = user;

	(void)r;
	buf_append(&a->body, t->bytes, t->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const enum external_queue_kind kinds[] = { EXTERNAL_QUEUE_PROMQL, EXTERNAL_QUEUE_PICKER,
							  EXTERNAL_QUEUE_JSON };
	struct clock clock = clock_open_by_hand(INT64_C(1700000000000));
	struct error e;
	const char *nul = len > 1 ? memchr(bytes + 1, 0, len - 1) : NULL;

	if (!nul || nul == (const char *)bytes + 1)
		return 0;
	if (bytes[0] % 3 == 2 && !json_number_check((const char *)bytes + 1, &e)) /* as the manifest is checked */
		return 0;
	struct told told = { nul + 1, (size_t)((const char *)bytes + len - nul - 1) };
	played_begin(&clock, answer, &told);
	struct external_queue *q =
		external_queue_open(NULL, NULL, &clock,
				    &(struct external_queue_settings){ .kind = kinds[bytes[0] % 3],
								       .url = "http://10.0.0.9:9090/q",
								       .expression = (const char *)bytes + 1,
								       .interval = 15 * SECOND,
								       .deadline = 5 * SECOND });
	for (int i = 0; i < 3; i++) {
		played_settle();
		clock_turn(&clock, 15 * SECOND);
		int64_t waiting = external_queue_waiting(q);
		bool is_trouble = external_queue_trouble(q)->kind != ERROR_NONE;
		if (waiting != READING_UNKNOWN && (waiting < 0 || is_trouble))
			abort();
	}
	external_queue_close(q);
	played_settle();
	played_end();
	return 0;
}
