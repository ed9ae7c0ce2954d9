#include "base/chart.h"
#include "base/arena.h"
#include "base/human.h"

#include <string.h>

enum { LABEL_WIDTH = 7, EIGHTHS = 8, LONGEST_BAR = 48 };

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
	fprintf(c->out, "%*s %s", LABEL_WIDTH, is_labelled ? human_short(value).text : "", tick);
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

static void put_bar(const struct chart_bar *bar, double most, const struct terminal *t, FILE *out)
{
	int eighth = most > 0 ? (int)(bar->value / most * LONGEST_BAR * EIGHTHS + 0.5) : 0;
	int whole = eighth / EIGHTHS;

	fputs(terminal_style(t, bar->style), out);
	for (int i = 0; i < whole; i++)
		fputs(t->is_unicode ? "█" : "#", out);
	if (eighth % EIGHTHS >= EIGHTHS / 2 || (!whole && bar->value > 0)) {
		fputs(t->is_unicode ? "▌" : "#", out);
		whole++;
	}
	fputs(terminal_style(t, STYLE_PLAIN), out);
	fprintf(out, "%*s%s\n", LONGEST_BAR + 2 - whole, "", bar->text);
}

void chart_print_bars(const struct chart_bar *bars, size_t count, const struct terminal *t, FILE *out)
{
	double most = 0;
	int width = 0;

	for (size_t i = 0; i < count; i++) {
		most = bars[i].value > most ? bars[i].value : most;
		width = (int)strlen(bars[i].name) > width ? (int)strlen(bars[i].name) : width;
	}
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "  %-*s  ", width, bars[i].name);
		put_bar(&bars[i], most, t, out);
	}
}
