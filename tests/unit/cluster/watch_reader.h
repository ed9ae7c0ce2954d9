/* What the tests of watches share: a reader that keeps what it is told, as the model of the cluster does. */
#pragma once
#include "controller/cluster/watch.h"

#include "tests/unit/cluster/played_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct thing {
	int64_t value;
	bool is_kept;
};
static const struct field thing_fields[] = {
	FIELD(struct thing, value, FIELD_INT, "spec>value"),
	FIELD(struct thing, is_kept, FIELD_BOOL, "spec>kept"),
};
static const struct record_spec thing_record = { "", sizeof(struct thing), thing_fields, 2 };

enum { MOST = 4096 };

/* What was told, as a reader keeps it. */
static struct {
	struct {
		struct object_uid uid;
		int64_t value;
	} items[MOST];
	size_t count;
	int seen, gone, wrong, synced, stopped;
	char names[2048];
	struct watch *stop_at_next; /* stops the watch from inside a callback */
} told;

static inline size_t told_at(struct object_uid uid)
{
	size_t i = 0;

	while (i < told.count && (told.items[i].uid.high != uid.high || told.items[i].uid.low != uid.low))
		i++;
	return i;
}

static inline bool on_object(void *user, const void *record, const struct watch_seen *seen)
{
	const struct thing *t = record;
	size_t at = told_at(seen->uid);
	size_t used = strlen(told.names);

	(void)user;
	told.seen++;
	snprintf(told.names + used, sizeof told.names - used, "%s ", seen->name);
	if (told.stop_at_next)
		watch_stop(told.stop_at_next);
	if (!t->is_kept) {
		if (at < told.count)
			told.items[at] = told.items[--told.count];
		return false;
	}
	told.count += at == told.count;
	told.items[at].uid = seen->uid;
	told.items[at].value = t->value;
	return true;
}

static inline void on_gone(void *user, struct object_uid uid, millis arrived)
{
	size_t at = told_at(uid);

	(void)user, (void)arrived;
	told.gone++;
	if (at == told.count)
		told.wrong++;
	else
		told.items[at] = told.items[--told.count];
}

static inline void on_synced(void *user)
{
	(void)user;
	told.synced++;
}

static inline void on_stopped(void *user)
{
	(void)user;
	told.stopped++;
}

static inline struct watch *begin_watch(struct api *api, enum watch_way way, int page)
{
	memset(&told, 0, sizeof told);
	return watch_start(api, &(struct watch_spec){ .name = "things",
						      .path = "/apis/x/v1/things",
						      .label_selector = "a in (b,c)",
						      .object = &thing_record,
						      .way = way,
						      .page = page,
						      .on_object = on_object,
						      .on_gone = on_gone,
						      .on_synced = on_synced,
						      .on_stopped = on_stopped });
}

static inline void end_watch(struct watch *w)
{
	watch_stop(w);
	play_until(play_now() + 1);
	assert_int_equal(told.stopped, 1);
	play_end();
}

/* The one call that is under way. */
static struct api_call *asked;
static int asked_count;

static inline void note_call(struct api_call *c)
{
	asked = c;
	asked_count++;
}

#define OBJECT(uid, rv, value)                                                               \
	"{\"metadata\":{\"name\":\"n" uid "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv \
	"\"},\"spec\":{\"value\":" value ",\"kept\":true}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define LIST(rv, next, items) \
	"{\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" next "\"},\"items\":[" items "]}"
#define BOOKMARK(rv, annotated)                                                                         \
	"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Thing\",\"metadata\":{\"resourceVersion\":\"" rv \
	"\",\"annotations\":{" annotated "}}}}\n"
#define END_OF_LIST "\"k8s.io/initial-events-end\":\"true\""

static inline void send(const char *text)
{
	play_chunk(asked, text, strlen(text));
}

/* Time passes until the next call is made. */
static inline void next_call(millis most)
{
	int before = asked_count;
	millis end = play_now() + most;

	while (asked_count == before)
		if (!play_step(end))
			fail_msg("no call within %lld ms", (long long)most);
}
