#include "controller/traces/generate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct generate_setup setup(const char *shape)
{
	struct generate_setup s = { .rate = 4,
				    .length = DAY,
				    .weekend = 1,
				    .burstiness = 1,
				    .prompt_tokens = 1200,
				    .output_tokens = 250,
				    .spread = 0.8,
				    .seed = 5 };
	struct error e;

	assert_true(shapes_parse(shape, 0, &s.shapes, &e));
	return s;
}

static struct trace make(const struct generate_setup *s)
{
	struct trace t;
	struct error e = { 0 };

	if (!trace_generate(s, &t, &e))
		fail_msg("%s", e.message);
	return t;
}

/* Requests a second between two times. */
static double rate(const struct trace *t, millis from, millis to)
{
	double n = 0;

	for (size_t i = 0; i < t->request_count; i++)
		n += t->requests[i].arrival >= from && t->requests[i].arrival < to;
	for (size_t i = 0; i < t->bin_count; i++)
		if (t->bins[i].at >= from && t->bins[i].at < to)
			n += (double)t->bins[i].requests;
	return n * 1000 / (double)(to - from);
}

static void assert_near(double found, double wanted, double share)
{
	if (!(found > wanted * (1 - share) && found < wanted * (1 + share)))
		fail_msg("found %f, wanted %f", found, wanted);
}

static void means_hold(void **state)
{
	struct generate_setup s = setup("constant");

	(void)state;
	for (int form = 0; form < 2; form++) {
		s.bin = form ? 10 * SECOND : 0;
		struct trace t = make(&s);
		double n = 0, prompt = 0, output = 0;
		for (size_t i = 0; i < t.request_count; i++, n++) {
			assert_true(!i || t.requests[i - 1].arrival <= t.requests[i].arrival);
			prompt += t.requests[i].prompt_tokens;
			output += t.requests[i].output_tokens;
		}
		for (size_t i = 0; i < t.bin_count; i++) {
			n += (double)t.bins[i].requests;
			prompt += (double)t.bins[i].prompt_tokens;
			output += (double)t.bins[i].output_tokens;
		}
		assert_near(n, 4 * 86400, 0.01);
		assert_near(prompt / n, 1200, 0.01);
		assert_near(output / n, 250, 0.01);
		trace_release(&t);
	}
}

static void the_day_has_its_peak_at_15(void **state)
{
	struct generate_setup s = setup("diurnal:2.5");
	struct trace t = make(&s);

	(void)state;
	assert_near(rate(&t, 0, DAY), 4, 0.02);
	assert_near(rate(&t, 14 * HOUR + 45 * MINUTE, 15 * HOUR + 15 * MINUTE), 10, 0.05);
	assert_true(rate(&t, 2 * HOUR, 4 * HOUR) < 1);
	trace_release(&t);
}

static void shapes_do_what_they_say(void **state)
{
	struct generate_setup s = setup("pulses:2:1h:20m");
	struct trace t = make(&s);

	(void)state;
	assert_near(rate(&t, HOUR, HOUR + 20 * MINUTE), 8, 0.05);
	assert_true(rate(&t, HOUR + 20 * MINUTE, 2 * HOUR) == 0);
	trace_release(&t);
	s = setup("ramp:3");
	t = make(&s);
	assert_near(rate(&t, 0, HOUR), 4.16, 0.05);
	assert_near(rate(&t, 23 * HOUR, DAY), 11.8, 0.05);
	trace_release(&t);
	s = setup("steps:3:6h");
	t = make(&s);
	assert_near(rate(&t, 0, 3 * HOUR), rate(&t, 3 * HOUR, 6 * HOUR), 0.05);
	assert_true(rate(&t, 0, DAY) > 4.0 / 3 && rate(&t, 0, DAY) < 12);
	trace_release(&t);
	s = setup("bursts:4:1h:10m");
	t = make(&s);
	double most = 0;
	for (millis at = 0; at < DAY; at += 2 * MINUTE)
		most = rate(&t, at, at + 2 * MINUTE) > most ? rate(&t, at, at + 2 * MINUTE) : most;
	assert_true(most > 8);
	assert_true(rate(&t, 0, DAY) > 4.2 && rate(&t, 0, DAY) < 7);
	trace_release(&t);
}

static void weekends_and_classes(void **state)
{
	struct generate_setup s = setup("constant");
	struct error e;
	size_t first = 0;

	(void)state;
	s.rate = 0.5;
	s.length = 7 * DAY;
	s.weekend = 0.4;
	assert_true(generate_parse_classes("chat=3,search", &s, &e));
	struct trace t = make(&s);
	assert_near(rate(&t, 0, 5 * DAY), 0.5, 0.03);
	assert_near(rate(&t, 5 * DAY, 7 * DAY), 0.2, 0.03);
	assert_int_equal(t.label_count, 2);
	assert_string_equal(t.labels[1], "search");
	for (size_t i = 0; i < t.request_count; i++)
		first += t.requests[i].label == 0;
	assert_near((double)first / (double)t.request_count, 0.75, 0.02);
	trace_release(&t);
}

/* Variance over mean of the counts per minute tends to the square of the gaps' variation. */
static void clumps(void **state)
{
	(void)state;
	for (int form = 0; form < 2; form++) {
		struct generate_setup s = setup("constant");
		s.burstiness = 3;
		s.bin = form ? 10 * SECOND : 0;
		struct trace t = make(&s), minutes;
		struct error e;
		double sum = 0, squares = 0;
		assert_true(trace_to_bins(&t, MINUTE, &minutes, &e));
		for (size_t i = 0; i < minutes.bin_count; i++) {
			sum += (double)minutes.bins[i].requests;
			squares += (double)minutes.bins[i].requests * (double)minutes.bins[i].requests;
		}
		double n = (double)minutes.bin_count, mean = sum / n;
		assert_near((squares / n - mean * mean) / mean, 9, 0.25);
		trace_release(&t);
		trace_release(&minutes);
	}
}

static bool is_same(const struct request *a, const struct request *b)
{
	return a->arrival == b->arrival && a->prompt_tokens == b->prompt_tokens &&
	       a->output_tokens == b->output_tokens && a->label == b->label;
}

static void the_seed_decides(void **state)
{
	struct generate_setup s = setup("diurnal,bursts,steps");
	struct trace a = make(&s), b = make(&s);

	(void)state;
	assert_int_equal(a.request_count, b.request_count);
	for (size_t i = 0; i < a.request_count; i++)
		assert_true(is_same(&a.requests[i], &b.requests[i]));
	trace_release(&b);
	s.seed++;
	b = make(&s);
	assert_true(a.request_count != b.request_count || !is_same(&a.requests[0], &b.requests[0]));
	trace_release(&a);
	trace_release(&b);
}

static void bad_shapes(void **state)
{
	static const char *const texts[] = { "",
					     "wave",
					     "diurnal:0.5",
					     "diurnal:x",
					     "diurnal:2:1h:1m",
					     "diurnal:2:0s",
					     "constant:2",
					     "pulses:1:1h:2h",
					     "ramp:2:1h",
					     "bursts:1000",
					     "diurnal,",
					     ",",
					     "bursts:3:2h:10m:1" };
	struct shapes s;
	struct error e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (shapes_parse(texts[i], 0, &s, &e))
			fail_msg("'%s' was taken", texts[i]);
	assert_true(shapes_parse("bursts::1h", 0, &s, &e));
}

static void refusals(void **state)
{
	struct generate_setup good = setup("constant"), s;
	struct trace t;
	struct error e = { 0 };

	(void)state;
	s = good;
	s.rate = 10000;
	assert_false(trace_generate(&s, &t, &e));
	assert_non_null(strstr(e.message, "need bins: --bin 10s"));
	s = good;
	s.length = 365 * DAY;
	assert_false(trace_generate(&s, &t, &e));
	s = good;
	s.burstiness = 100;
	assert_false(trace_generate(&s, &t, &e));
	s = good;
	s.bin = 2500;
	assert_false(trace_generate(&s, &t, &e));
	s = good;
	s.output_tokens = 0;
	assert_false(trace_generate(&s, &t, &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_hold),
		cmocka_unit_test(the_day_has_its_peak_at_15),
		cmocka_unit_test(shapes_do_what_they_say),
		cmocka_unit_test(weekends_and_classes),
		cmocka_unit_test(clumps),
		cmocka_unit_test(the_seed_decides),
		cmocka_unit_test(bad_shapes),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
