#include "base/terminal.h"
#include "base/human.h"
#include "base/millis.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#undef getenv /* a terminal is described by the environment */

enum { WIDTH_ELSEWHERE = 100, NARROWEST = 40, WIDEST = 200 };

static bool speaks_unicode(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return true;
}

struct terminal terminal_of(FILE *stream)
{
	struct terminal t = { .width = WIDTH_ELSEWHERE, .is_unicode = speaks_unicode() };
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize size;

	t.is_terminal = isatty(fileno(stream));
	if (!t.is_terminal)
		return t;
	t.has_color = !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
	if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col)
		t.width = size.ws_col;
	t.width = t.width < NARROWEST ? NARROWEST : t.width > WIDEST ? WIDEST : t.width;
	return t;
}

const char *terminal_style(const struct terminal *t, enum style style)
{
	if (!t->has_color)
		return "";
	switch (style) {
	case STYLE_PLAIN:
		return "\033[0m";
	case STYLE_STRONG:
		return "\033[1m";
	case STYLE_FAINT:
		return "\033[2m";
	case STYLE_GOOD:
		return "\033[32m";
	case STYLE_WARN:
		return "\033[33m";
	case STYLE_BAD:
		return "\033[31m";
	case STYLE_FIRST:
		return "\033[36m";
	case STYLE_SECOND:
		return "\033[35m";
	}
	return "";
}

static int64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec / 1000000;
}

struct progress progress_start(const char *what, const char *unit, int64_t total)
{
	struct progress p = { .what = what, .unit = unit, .total = total };
	struct terminal t = terminal_of(stderr);

	p.is_on = t.is_terminal;
	p.started_ms = p.is_on ? monotonic_ms() : 0;
	return p;
}

void progress_show(struct progress *p, int64_t done)
{
	if (!p->is_on)
		return;
	int64_t now = monotonic_ms();
	if (now - p->shown_ms < 100)
		return;
	p->shown_ms = now;
	double rate = (double)done * SECOND / (double)(now > p->started_ms ? now - p->started_ms : 1);
	fprintf(stderr, "\r\033[K%s ", p->what);
	if (p->total > 0)
		fprintf(stderr, "%3d %%  ", (int)(done * 100 / p->total));
	fprintf(stderr, "%s %s", human_count(done).text, p->unit);
	if (rate >= 1)
		fprintf(stderr, "  %s/s", human_count((int64_t)rate).text);
	if (p->total > 0 && rate > 0)
		fprintf(stderr, "  %s left",
			human_duration(((millis)((double)(p->total - done) / rate) + 1) * SECOND).text);
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->is_on && p->shown_ms)
		fputs("\r\033[K", stderr);
	p->is_on = false;
}
