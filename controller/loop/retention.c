#include "controller/loop/retention.h"

#include "base/log.h"
#include "state/history.h"
#include "state/reserve.h"

enum { PPM = 1000000 };

/* 0: no limit, or that of a disk that tells nothing. What was set aside is on the same disk, and nobody decides by it:
 * it leaves the history at least half. */
static int64_t bytes_most(const struct retention *r, const char *path)
{
	int64_t disk = r->disk_ppm ? reserve_disk(path) : 0;
	int64_t most = disk > 0 ? (int64_t)((__int128)disk * r->disk_ppm / PPM) : r->bytes;
	int64_t aside = most > 0 ? history_aside_bytes(path) : 0;

	return aside < most / 2 ? most - aside : most - most / 2;
}

struct thinning {
	struct history_span before, after;
	bool is_old, is_large; /* more is left to drop: of age, of bytes */
};

static bool thin(const struct retention *r, struct history *h, millis now, int64_t rows, struct thinning *t,
		 struct error *e)
{
	int64_t most = bytes_most(r, history_path(h));

	if (!history_span(h, &t->before, e))
		return false;
	/* A clock that is ahead makes nothing old that is not older than the newest tick. */
	now = t->before.to < now ? t->before.to : now;
	return (!r->age || history_retain_some(h, now - r->age, rows, &t->is_old, e)) &&
	       (!most || t->is_old || history_retain_bytes(h, most, rows, &t->is_large, e)) &&
	       history_span(h, &t->after, e);
}

bool retention_thin(const struct retention *r, struct history *h, millis now, size_t pools, bool *more)
{
	enum { ROWS_AT_ONCE = 500, AS_FAST = 4 }; /* faster than a large fleet writes */
	int64_t rows = pools * AS_FAST > ROWS_AT_ONCE ? (int64_t)pools * AS_FAST : ROWS_AT_ONCE;
	struct thinning t = { 0 };
	struct error e = { 0 };

	if (!thin(r, h, now, rows, &t, &e))
		log_warn("history-not-thinned", LOG_E(&e), LOG_END);
	*more = t.is_old || t.is_large;
	if (t.after.first_tick <= t.before.first_tick)
		return false;
	log_info("history-thinned", LOG_S("file", history_path(h)), LOG_I("first_tick", t.after.first_tick),
		 LOG_S("by", t.is_large ? "size" : "age"), LOG_END);
	return true;
}
