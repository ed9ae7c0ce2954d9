#include "base/terminal.h"

#include "base/arena.h"
#include "base/exact.h"

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
	static const char *const codes[] = {
		[STYLE_PLAIN] = "\033[0m",  [STYLE_STRONG] = "\033[1m",	 [STYLE_FAINT] = "\033[2m",
		[STYLE_GOOD] = "\033[32m",  [STYLE_WARN] = "\033[33m",	 [STYLE_BAD] = "\033[31m",
		[STYLE_FIRST] = "\033[36m", [STYLE_SECOND] = "\033[35m",
	};

	return t->has_color ? codes[style] : "";
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

/* Puts commas between the thousands of the digits before the point. */
static struct human grouped(const char *plain)
{
	struct human h = { 0 };
	size_t sign = *plain == '-', whole = strspn(plain + sign, "0123456789"), to = 0;

	for (size_t i = 0; plain[i] && to + 2 < sizeof h.text; i++) {
		if (i > sign && i < sign + whole && (sign + whole - i) % 3 == 0)
			h.text[to++] = ',';
		h.text[to++] = plain[i];
	}
	return h;
}

struct human human_count(int64_t n)
{
	char plain[24];

	snprintf(plain, sizeof plain, "%lld", (long long)n);
	return grouped(plain);
}

struct human human_decimal(double value, int places)
{
	char plain[32];

	snprintf(plain, sizeof plain, "%.*f", places, value);
	return grouped(plain);
}

/* 950, 12.4k, 3.1M */
static struct human short_number(double value)
{
	static const char units[] = { 0, 'k', 'M', 'G', 'T' };
	struct human h = { 0 };
	size_t unit = 0;

	for (; (value >= 999.5 || value <= -999.5) && unit + 1 < sizeof units; unit++)
		value /= 1000;
	int places = value > -9.95 && value < 9.95 ? 1 : 0;
	if (exact_round(value * 10) % 10 == 0 || (unit == 0 && places == 0))
		places = 0;
	snprintf(h.text, sizeof h.text, "%.*f", places, value);
	size_t len = strlen(h.text);
	if (len + 1 < sizeof h.text)
		h.text[len] = units[unit];
	return h;
}

struct human human_duration(millis d)
{
	struct human h = { 0 };
	long long seconds = d / SECOND;

	if (d < 0)
		snprintf(h.text, sizeof h.text, "-");
	else if (d < SECOND)
		snprintf(h.text, sizeof h.text, "%lldms", (long long)d);
	else if (d < MINUTE && d % SECOND)
		snprintf(h.text, sizeof h.text, "%.1fs", (double)d / SECOND);
	else if (d < MINUTE)
		snprintf(h.text, sizeof h.text, "%llds", seconds);
	else if (d < HOUR && seconds % 60)
		snprintf(h.text, sizeof h.text, "%lldm%02llds", seconds / 60, seconds % 60);
	else if (d < HOUR)
		snprintf(h.text, sizeof h.text, "%lldm", seconds / 60);
	else if (d < 2 * DAY && seconds / 60 % 60)
		snprintf(h.text, sizeof h.text, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
	else if (d < 2 * DAY)
		snprintf(h.text, sizeof h.text, "%lldh", seconds / 3600);
	else if (seconds / 3600 % 24)
		snprintf(h.text, sizeof h.text, "%lldd%lldh", seconds / 86400, seconds / 3600 % 24);
	else
		snprintf(h.text, sizeof h.text, "%lldd", seconds / 86400);
	return h;
}

struct human human_share(double share)
{
	struct human h = { 0 };

	snprintf(h.text, sizeof h.text, share > 0 && share < 0.001 ? "%.3f %%" : "%.2f %%", share * 100);
	return h;
}

struct human human_dollars(double dollars)
{
	double size = dollars < 0 ? -dollars : dollars;
	struct human number = human_decimal(size, size < 100 ? 2 : 0), h = { 0 };

	snprintf(h.text, sizeof h.text, "%s$%.29s", dollars <= -.005 ? "-" : "", number.text);
	return h;
}

struct human human_spent(double amount, bool is_unpriced)
{
	struct human h = { 0 };

	if (!is_unpriced)
		return human_dollars(amount);
	int places = exact_round(amount * 100) % 100 ? 2 : 0;
	snprintf(h.text, sizeof h.text, "%.19s GPU hour%s", human_decimal(amount, places).text,
		 exact_round(amount * 100) == 100 ? "" : "s");
	return h;
}

enum { LABEL_WIDTH = 7, EIGHTHS = 8 };

static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const plain_blocks[] = { " ", " ", ".", ".", ":", ":", "#", "#", "#" };

struct canvas {
	const struct chart *chart;
	const struct terminal *terminal;
	const double *area, *line; /* one value per column */
	int width;
	double top;
	FILE *out;
};

/* One value per column; with fewer points than columns each point fills several. */
static const double *columns_of(struct arena *a, const struct chart_series *s, size_t points, int width)
{
	double *columns = arena_array(a, double, (size_t)width);

	for (size_t x = 0; s->values && x < (size_t)width; x++) {
		size_t from = x * points / (size_t)width, to = (x + 1) * points / (size_t)width;
		double sum = 0, most = 0;

		to = to > from ? to : from + 1;
		for (size_t i = from; i < to; i++) {
			sum += s->values[i];
			most = s->values[i] > most ? s->values[i] : most;
		}
		columns[x] = s->pick == CHART_MAX ? most : sum / (double)(to - from);
	}
	return columns;
}

/* The next of 1, 2, 5, 10, 20, 50 ... that is not below the value. */
static double round_top(double value)
{
	static const double steps[] = { 1, 1.5, 2, 3, 4, 5, 6, 8, 10 };
	double scale = 1e-6;

	while (scale * 10 < value)
		scale *= 10;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		if (steps[i] * scale >= value)
			return steps[i] * scale;
	}
	return value;
}

/* Eighths of the area in this row, 0 to 8; anything above 0 shows. */
static int eighths(const struct canvas *c, int x, int row)
{
	double height = c->area[x] / c->top * c->chart->height * EIGHTHS;
	int whole = (int)(height + 0.5);

	if (!whole && c->area[x] > 0)
		whole = 1;
	whole -= row * EIGHTHS;
	return whole < 0 ? 0 : whole > EIGHTHS ? EIGHTHS : whole;
}

static bool line_passes(const struct canvas *c, int x, int row)
{
	int at = (int)(c->line[x] / c->top * c->chart->height);

	if (!c->chart->line.values)
		return false;
	return row == (at >= c->chart->height ? c->chart->height - 1 : at);
}

static void put_cell(const struct canvas *c, int x, int row)
{
	const struct terminal *t = c->terminal;

	if (line_passes(c, x, row)) {
		fprintf(c->out, "%s%s%s", terminal_style(t, STYLE_SECOND), t->is_unicode ? "━" : "=",
			terminal_style(t, STYLE_PLAIN));
		return;
	}
	int fill = eighths(c, x, row);
	if (!fill)
		putc(' ', c->out);
	else
		fprintf(c->out, "%s%s%s", terminal_style(t, STYLE_FIRST),
			t->is_unicode ? blocks[fill] : plain_blocks[fill], terminal_style(t, STYLE_PLAIN));
}

static void put_row(const struct canvas *c, int row)
{
	int top = c->chart->height - 1;
	bool is_labelled = row == top || (top > 2 && row == c->chart->height / 2 - 1);
	double value = c->top * (row + 1) / c->chart->height;
	const char *tick = is_labelled ? "┤" : "│";

	if (!c->terminal->is_unicode)
		tick = is_labelled ? "+" : "|";
	fprintf(c->out, "%*s %s", LABEL_WIDTH, is_labelled ? short_number(value).text : "", tick);
	for (int x = 0; x < c->width; x++)
		put_cell(c, x, row);
	putc('\n', c->out);
}

static void put_time_axis(const struct canvas *c)
{
	const char *corner = c->terminal->is_unicode ? "└" : "+", *dash = c->terminal->is_unicode ? "─" : "-";
	struct human middle = human_duration(c->chart->length / 2), end = human_duration(c->chart->length);
	int half = c->width / 2 - (int)strlen(middle.text) / 2;

	fprintf(c->out, "%*s %s", LABEL_WIDTH, "0", corner);
	for (int x = 0; x < c->width; x++)
		fputs(dash, c->out);
	fprintf(c->out, "\n%*s%-*s%-*s%s\n", LABEL_WIDTH + 2, "", half, "0", c->width - half - (int)strlen(end.text),
		middle.text, end.text);
}

static void put_title(const struct canvas *c)
{
	const struct terminal *t = c->terminal;
	const struct chart *chart = c->chart;

	fprintf(c->out, "%s%s%s", terminal_style(t, STYLE_STRONG), chart->title, terminal_style(t, STYLE_PLAIN));
	if (chart->line.values)
		fprintf(c->out, "   %s%s%s %s   %s%s%s %s", terminal_style(t, STYLE_FIRST), t->is_unicode ? "▆" : "#",
			terminal_style(t, STYLE_PLAIN), chart->area.name, terminal_style(t, STYLE_SECOND),
			t->is_unicode ? "━" : "=", terminal_style(t, STYLE_PLAIN), chart->line.name);
	fprintf(c->out, "   %s(%s)%s\n", terminal_style(t, STYLE_FAINT), chart->unit, terminal_style(t, STYLE_PLAIN));
}

static double largest(const double *values, int count)
{
	double most = 0;

	for (int i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	return most;
}

void chart_print(const struct chart *c, const struct terminal *t, FILE *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct canvas canvas = { .chart = c, .terminal = t, .out = out };

	if (!c->points)
		return;
	canvas.width = t->width - LABEL_WIDTH - 3;
	canvas.area = columns_of(&a, &c->area, c->points, canvas.width);
	canvas.line = columns_of(&a, &c->line, c->points, canvas.width);
	double area_top = largest(canvas.area, canvas.width), line_top = largest(canvas.line, canvas.width);
	canvas.top = round_top(area_top > line_top ? area_top : line_top);
	put_title(&canvas);
	for (int row = c->height - 1; row >= 0; row--)
		put_row(&canvas, row);
	put_time_axis(&canvas);
}
