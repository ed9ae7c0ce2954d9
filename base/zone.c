#include "base/zone.h"

#include "base/buf.h"
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef getenv /* the C library takes its zone from TZ and nowhere else */

enum { NAME_MAX_LENGTH = 64 };

static bool name_is_plain(const char *name)
{
	size_t len = strlen(name);
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";

	return len && len <= NAME_MAX_LENGTH && name[0] != '/' && strspn(name, allowed) == len;
}

static void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

bool zone_is_known(const char *name)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	const char *folder = getenv("TZDIR");
	char magic[4];

	if (!strcmp(name, "UTC"))
		return true;
	if (!name_is_plain(name))
		return false;
	buf_printf(&path, "%s/%s", folder ? folder : "/usr/share/zoneinfo", name);
	CLEANUP(close_file) FILE *f = fopen(path.text, "rbe");
	return f && fread(magic, 1, sizeof magic, f) == sizeof magic && !memcmp(magic, "TZif", sizeof magic);
}

const char *zone_mistaken(void)
{
	const char *tz = getenv("TZ"), *name = tz && *tz == ':' ? tz + 1 : tz;

	/* "CET-1CEST" is a rule in itself, "/etc/localtime" a file. */
	if (!name || !*name || *name == '/' || (!strchr(name, '/') && strpbrk(name, "0123456789")))
		return NULL;
	return zone_is_known(name) ? NULL : tz;
}

struct zone_scope zone_open(const char *name)
{
	const char *now = getenv("TZ");
	struct zone_scope z = { now ? strdup(now) : NULL };
	CLEANUP(buf_release) struct buf value = { 0 };

	/* "UTC0" is a rule of its own and needs no file. */
	buf_printf(&value, strcmp(name, "UTC") ? ":%s" : "%s0", name);
	setenv("TZ", value.text, 1);
	tzset();
	return z;
}

void zone_close(struct zone_scope *z)
{
	if (z->previous)
		setenv("TZ", z->previous, 1);
	else
		unsetenv("TZ");
	tzset();
	free(z->previous);
	z->previous = NULL;
}

static int64_t floor_divide(int64_t value, int64_t by)
{
	return value / by - (value % by < 0);
}

int64_t zone_offset(millis at)
{
	time_t seconds = (time_t)floor_divide(at, SECOND);
	struct tm local;

	return localtime_r(&seconds, &local) ? local.tm_gmtoff * SECOND : 0;
}

millis zone_instant(int64_t day, int64_t minute)
{
	millis wall = day * DAY + minute * MINUTE;
	int64_t before = zone_offset(wall - DAY), after = zone_offset(wall + DAY);

	if (before != after && zone_offset(wall - before) != before && zone_offset(wall - after) == after)
		return wall - after;
	return wall - before;
}

int64_t zone_day(millis at)
{
	return floor_divide(at + zone_offset(at), DAY);
}

unsigned weekday_of(int64_t day)
{
	/* 1970-01-01 was a Thursday. */
	return (unsigned)(((day + 3) % 7 + 7) % 7);
}
