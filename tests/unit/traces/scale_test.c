#include "controller/traces/trace.h"

#include "controller/traces/generate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct totals {
	double requests, prompt_tokens, output_tokens;
};

static struct totals totals(const struct trace *t)
{
	struct totals s = { 0 };

	for (size_t i = 0; i < t->request_count; i++) {
		s.requests++;
		s.prompt_tokens += t->requests[i].prompt_tokens;
		s.output_tokens += t->requests[i].output_tokens;
	}
	for (size_t i = 0; i < t->bin_count; i++) {
		s.requests += (double)t->bins[i].requests;
		s.prompt_tokens += (double)t->bins[i].prompt_tokens;
		s.output_tokens += (double)t->bins[i].output_tokens;
	}
	return s;
}

/* Three hours with a quiet first and a busy last one. */
static struct trace requests(void)
{
	struct random r = random_stream(7, "test");
	struct trace t = { .request_count = 20000, .length = 3 * HOUR, .label_count = 2 };

	t.requests = calloc(t.request_count, sizeof *t.requests);
	t.labels = calloc(2, sizeof *t.labels);
	t.labels[0] = strdup("a");
	t.labels[1] = strdup("b");
	for (size_t i = 0; i < t.request_count; i++) {
		double u = random_uniform(&r), v = random_uniform(&r);
		t.requests[i] = (struct request){ (millis)((u > v ? u : v) * (double)t.length),
						  (int32_t)(random_uniform(&r) * 2000) + 1,
						  (int32_t)(random_uniform(&r) * 400) + 1, (int32_t)(i % 2) };
	}
	requests_sort(t.requests, t.request_count);
	return t;
}

static struct trace bins(void)
{
	struct trace t = requests(), b;
	struct error e;

	assert_true(trace_to_bins(&t, 10 * SECOND, &b, &e));
	b.length = t.length;
	trace_release(&t);
	return b;
}

static void check_order(const struct trace *t)
{
	for (size_t i = 0; i < t->request_count; i++) {
		assert_in_range(t->requests[i].arrival, 0, t->length - 1);
		assert_true(!i || t->requests[i - 1].arrival <= t->requests[i].arrival);
		assert_in_range(t->requests[i].label, 0, 1);
	}
	for (size_t i = 0; i < t->bin_count; i++) {
		const struct bin *b = &t->bins[i];
		assert_in_range(b->at, 0, t->length - 1);
		assert_true(!i || b[-1].at < b->at);
		assert_true(b->requests > 0 || (!b->prompt_tokens && !b->output_tokens));
	}
}

static void assert_near(double found, double wanted, double share)
{
	if (!(found > wanted * (1 - share) && found < wanted * (1 + share)))
		fail_msg("found %f, wanted %f", found, wanted);
}

/* The mean is k times, in requests and in tokens, by every road. */
static void k_times_as_much(void **state)
{
	static const double ks[] = { 0.05, 0.5, 1, 1.5, 3, 6, 6.5, 7, 12, 40 };

	(void)state;
	for (int form = 0; form < 2; form++) {
		struct trace in = form ? bins() : requests();
		struct totals before = totals(&in);
		for (size_t i = 0; i < 2 * sizeof ks / sizeof *ks; i++) {
			struct trace_scaling how = { ks[i / 2], i % 2, 0, 11 };
			struct trace out;
			struct error e;
			assert_true(trace_scale(&in, how, &out, &e));
			struct totals after = totals(&out);
			double loose = how.k < 1 ? 0.12 : 0.02;
			assert_near(after.requests, before.requests * how.k, loose);
			assert_near(after.prompt_tokens, before.prompt_tokens * how.k, loose);
			assert_near(after.output_tokens, before.output_tokens * how.k, loose);
			assert_int_equal(out.length, in.length);
			check_order(&out);
			trace_release(&out);
		}
		trace_release(&in);
	}
}

static bool is_equal(const struct trace *a, const struct trace *b)
{
	return a->request_count == b->request_count && a->bin_count == b->bin_count &&
	       !memcmp(a->bins ? (void *)a->bins : (void *)a->requests, b->bins ? (void *)b->bins : (void *)b->requests,
		       a->bin_count * sizeof *a->bins + a->request_count * sizeof(struct request));
}

static void the_seed_decides(void **state)
{
	(void)state;
	for (int form = 0; form < 2; form++) {
		struct trace in = form ? bins() : requests(), out[3];
		struct error e;
		for (int i = 0; i < 3; i++)
			assert_true(trace_scale(&in, (struct trace_scaling){ 20, true, 0, (uint64_t)(i / 2) }, &out[i],
						&e));
		assert_true(is_equal(&out[0], &out[1]));
		assert_false(is_equal(&out[0], &out[2]));
		for (int i = 0; i < 3; i++)
			trace_release(&out[i]);
		trace_release(&in);
	}
}

/* Largest count in a minute over the mean. */
static double peak_to_mean(const struct trace *t)
{
	struct trace minutes;
	struct error e;
	double most = 0, sum = 0;

	assert_true(trace_to_bins(t, MINUTE, &minutes, &e));
	for (size_t i = 0; i < minutes.bin_count; i++) {
		sum += (double)minutes.bins[i].requests;
		most = (double)minutes.bins[i].requests > most ? (double)minutes.bins[i].requests : most;
	}
	most /= sum / (double)minutes.bin_count;
	trace_release(&minutes);
	return most;
}

/* A jump of one second becomes a hill; plain multiplication keeps it: the correlated worst case. */
static void jitter_smooths_what_multiplying_keeps(void **state)
{
	(void)state;
	for (int form = 0; form < 2; form++) {
		struct trace in = requests(), b, hill, wall;
		struct error e;
		for (size_t i = 5000; i < 7000; i++)
			in.requests[i].arrival = HOUR;
		requests_sort(in.requests, in.request_count);
		if (form) {
			assert_true(trace_to_bins(&in, 10 * SECOND, &b, &e));
			b.length = in.length;
			trace_release(&in);
			in = b;
		}
		assert_true(trace_scale(&in, (struct trace_scaling){ 40, true, 0, 3 }, &hill, &e));
		assert_true(trace_scale(&in, (struct trace_scaling){ 40, false, 0, 3 }, &wall, &e));
		assert_near(peak_to_mean(&wall), peak_to_mean(&in), 0.05);
		assert_true(peak_to_mean(&hill) < peak_to_mean(&wall) / 3);
		trace_release(&in);
		trace_release(&hill);
		trace_release(&wall);
	}
}

/* Binned first or scaled first: the same traffic. */
static void both_forms_agree(void **state)
{
	struct trace r = requests(), b = bins(), from_r, from_b, coarse_r, coarse_b;
	struct error e;

	(void)state;
	assert_true(trace_scale(&r, (struct trace_scaling){ 30, true, 0, 5 }, &from_r, &e));
	assert_true(trace_scale(&b, (struct trace_scaling){ 30, true, 0, 5 }, &from_b, &e));
	assert_true(trace_to_bins(&from_r, 10 * MINUTE, &coarse_r, &e));
	assert_true(trace_to_bins(&from_b, 10 * MINUTE, &coarse_b, &e));
	assert_int_equal(coarse_r.bin_count, coarse_b.bin_count);
	for (size_t i = 0; i < coarse_r.bin_count; i++)
		if (coarse_r.bins[i].requests > 10000)
			assert_near((double)coarse_r.bins[i].requests, (double)coarse_b.bins[i].requests, 0.06);
	trace_release(&r);
	trace_release(&b);
	trace_release(&from_r);
	trace_release(&from_b);
	trace_release(&coarse_r);
	trace_release(&coarse_b);
}

static void refusals(void **state)
{
	static const double ks[] = { 0, -1, 1e9, (double)__builtin_nan("") };
	struct trace in = requests(), out = { .length = 5 };
	struct error e;

	(void)state;
	for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
		assert_false(trace_scale(&in, (struct trace_scaling){ ks[i], false, 0, 1 }, &out, &e));
	assert_false(trace_scale(&in, (struct trace_scaling){ 5000, false, 0, 1 }, &out, &e));
	assert_non_null(strstr(e.message, "use bins"));
	assert_int_equal(out.length, 5);
	trace_release(&in);
}

/* Means and variances of the draws, over 20,000 of each. */
static void draws(void **state)
{
	static const struct {
		int64_t n;
		double p;
	} cases[] = { { 10, 0.3 }, { 10, 0.9 }, { 1000, 0.01 }, { 1000, 0.5 }, { 100000, 0.001 } };
	enum { DRAWS = 20000 };
	struct random r = random_stream(1, "draws");

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		double sum = 0, squares = 0, mean = (double)cases[c].n * cases[c].p;
		for (int i = 0; i < DRAWS; i++) {
			double x = (double)draw_binomial(&r, cases[c].n, cases[c].p);
			sum += x;
			squares += (x - mean) * (x - mean);
		}
		assert_near(sum / DRAWS, mean, 0.02);
		assert_near(squares / DRAWS, mean * (1 - cases[c].p), 0.08);
	}
	for (double cv = 0.25; cv <= 4; cv *= 2) {
		double sum = 0, squares = 0;
		for (int i = 0; i < 5 * DRAWS; i++) {
			double x = draw_gap(&r, cv);
			sum += x;
			squares += x * x;
		}
		double mean = sum / (5 * DRAWS);
		assert_near(mean, 1, 0.05);
		assert_near(squares / (5 * DRAWS) - mean * mean, cv * cv, 0.2);
	}
}

/* Every request goes to the trace of its label, in order, and nothing else changes. */
static void a_trace_a_label(void **state)
{
	struct trace t = requests(), parts[2];
	struct error e;
	size_t at[2] = { 0 };

	(void)state;
	assert_true(trace_split(&t, parts, &e));
	assert_int_equal(parts[0].request_count + parts[1].request_count, t.request_count);
	for (size_t i = 0; i < t.request_count; i++) {
		const struct request *was = &t.requests[i], *is = &parts[was->label].requests[at[was->label]++];
		assert_int_equal(is->arrival, was->arrival);
		assert_int_equal(is->output_tokens, was->output_tokens);
		assert_int_equal(is->label, -1);
	}
	assert_int_equal(parts[1].length, t.length);
	t.requests[3].label = -1;
	assert_false(trace_split(&t, parts + 1, &e));
	assert_string_equal(e.message, "request 4 has no class; each needs one");
	trace_release(&parts[0]);
	trace_release(&parts[1]);
	trace_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k_times_as_much),
		cmocka_unit_test(the_seed_decides),
		cmocka_unit_test(jitter_smooths_what_multiplying_keeps),
		cmocka_unit_test(both_forms_agree),
		cmocka_unit_test(refusals),
		cmocka_unit_test(draws),
		cmocka_unit_test(a_trace_a_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
