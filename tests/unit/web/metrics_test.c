/* The text that Prometheus reads, checked line by line, and its reference. metrics_test --sample prints one. */
#include "controller/web/metrics.h"
#include "base/file.h"
#include "tests/unit/web/shown.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>

static void write_shown(struct shown *s, struct buf *out)
{
	buf_clear(out);
	metrics_write(&s->p, out);
	assert_true(buf_ok(out));
}

static int order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct lines {
	char *text;
	char *items[2000];
	size_t count;
};

static void split(const struct buf *text, struct lines *l)
{
	l->text = strdup(text->text ? text->text : "");
	l->count = 0;
	for (char *line = l->text; *line;) {
		char *end = strchr(line, '\n');
		assert_non_null(end); /* every line ends */
		*end = '\0';
		assert_true(l->count < sizeof l->items / sizeof *l->items);
		l->items[l->count++] = line;
		line = end + 1;
	}
}

/* The name of the family in force, and its type. */
struct family {
	char name[128], type[16];
};

static void check_head(const char *line, struct family *f)
{
	char type[16], name[128];

	if (sscanf(line, "# HELP %127s", name) == 1) {
		assert_true(strlen(line) > strlen("# HELP ") + strlen(name) + 5);
		assert_int_equal(line[strlen(line) - 1], '.');
		snprintf(f->name, sizeof f->name, "%s", name);
		f->type[0] = '\0';
		return;
	}
	if (sscanf(line, "# TYPE %127s %15s", name, type) != 2)
		fail_msg("not a line of the format: %s", line);
	assert_string_equal(name, f->name);
	assert_string_equal(f->type, "");
	snprintf(f->type, sizeof f->type, "%s", type);
	bool is_total = strlen(name) > 6 && !strcmp(name + strlen(name) - 6, "_total");
	if (is_total != !strcmp(type, "counter"))
		fail_msg("%s is a %s", name, type);
}

static void check_sample(const char *line, const struct family *f, const regex_t *form)
{
	size_t len = strlen(f->name);

	if (regexec(form, line, 0, NULL, 0))
		fail_msg("not a sample: %s", line);
	if (strncmp(line, f->name, len) != 0 || !f->type[0])
		fail_msg("%s stands under %s", line, f->name);
	const char *rest = line + len;
	bool is_part = !strncmp(rest, "_bucket{", 8) || !strncmp(rest, "_sum ", 5) || !strncmp(rest, "_count ", 7);
	if (*rest != '{' && *rest != ' ' && !(is_part && !strcmp(f->type, "histogram")))
		fail_msg("%s stands under %s", line, f->name);
}

/* Everything that would make Prometheus refuse the whole page. */
static void check_format(const struct buf *text)
{
	static const char sample[] =
		"^[a-z_]+(\\{[a-z_]+=\"([^\"\\\\]|\\\\[\\\\\"n])*\"(,[a-z_]+=\"([^\"\\\\]|\\\\[\\\\\"n])*\")*"
		"\\})? -?[0-9]+(\\.[0-9]+)?$";
	static struct lines l;
	struct family f = { 0 };
	regex_t form;

	assert_int_equal(regcomp(&form, sample, REG_EXTENDED | REG_NOSUB), 0);
	split(text, &l);
	for (size_t i = 0; i < l.count; i++) {
		if (l.items[i][0] == '#')
			check_head(l.items[i], &f);
		else
			check_sample(l.items[i], &f, &form);
	}
	for (size_t i = 0; i < l.count; i++)
		if (l.items[i][0] != '#')
			*strrchr(l.items[i], ' ') = '\0';
	qsort(l.items, l.count, sizeof *l.items, order);
	for (size_t i = 1; i < l.count; i++)
		if (!strcmp(l.items[i - 1], l.items[i]))
			fail_msg("told twice: %s", l.items[i]);
	free(l.text);
	regfree(&form);
}

static bool has_line(const struct buf *text, const char *line)
{
	const char *at = text->text;
	size_t len = strlen(line);

	while ((at = strstr(at, line))) {
		if ((at == text->text || at[-1] == '\n') && at[len] == '\n')
			return true;
		at += len;
	}
	return false;
}

static const char *const expected[] = {
	"# TYPE preheat_pool_hot_replicas gauge",
	"preheat_pool_hot_replicas{namespace=\"llm\",pool=\"chat\"} 4",
	"preheat_pool_starting_replicas{namespace=\"llm\",pool=\"chat\"} 2",
	"preheat_pool_draining_replicas{namespace=\"llm\",pool=\"batch\"} 1",
	"preheat_pool_standby_replicas{namespace=\"llm\",pool=\"chat\"} 3",
	"preheat_pool_demand_replicas{namespace=\"llm\",pool=\"chat\"} 3.25",
	"preheat_pool_headroom_replicas{namespace=\"llm\",pool=\"chat\"} 0.75",
	"# TYPE preheat_pool_late_requests_total counter",
	"preheat_pool_late_requests_total{namespace=\"llm\",pool=\"chat\"} 9",
	"preheat_pool_started_requests_total{namespace=\"llm\",pool=\"chat\"} 1190",
	"preheat_pool_wait_seconds{namespace=\"llm\",pool=\"chat\"} 2.5",
	"preheat_pool_info{namespace=\"llm\",pool=\"batch\",class=\"batch\",mode=\"act\"} 1",
	"preheat_desired_replicas{namespace=\"llm\",pool=\"chat\",kind=\"Deployment\",name=\"llama\"} 6",
	"preheat_pool_held_by{namespace=\"llm\",pool=\"chat\",limit=\"none\"} 1",
	"preheat_pool_held_by{namespace=\"llm\",pool=\"chat\",limit=\"budget\"} 0",
	"preheat_pool_lead_time_seconds{namespace=\"llm\",pool=\"chat\",tier=\"cold\",percentile=\"95\"} 650",
	"preheat_pool_dollars_per_hour{namespace=\"llm\",pool=\"chat\"} 2.42",
	"preheat_pool_late_ratio{namespace=\"llm\",pool=\"chat\"} 0.002",
	"preheat_pool_unschedulable_pods{namespace=\"llm\",pool=\"chat\",reason=\"asks for 16 GPUs\"} 5",
	"preheat_node_group_nodes{group=\"g5-spot\",provider=\"simulated\"} 5",
	"preheat_node_group_planned_nodes{group=\"g5-spot\",provider=\"simulated\"} 6",
	"preheat_node_group_min_nodes{group=\"g5-od\",provider=\"simulated\"} 1",
	"preheat_node_group_blocked{group=\"g5-od\",provider=\"simulated\"} 1",
	"preheat_node_group_blocked_until_timestamp_seconds{group=\"g5-od\",provider=\"simulated\"} 1767225660.5",
	"preheat_node_group_node_dollars_per_hour{group=\"g5-spot\",provider=\"simulated\"} 0.48",
	"preheat_cost_dollars_total{namespace=\"llm\",pool=\"chat\",state=\"idle\"} 0.012345",
	"preheat_cost_dollars_total{namespace=\"llm\",pool=\"chat\",state=\"standby\"} 0.000007",
	"preheat_gpu_seconds_total{namespace=\"llm\",pool=\"chat\",state=\"idle\"} 90.5",
	"preheat_gpu_seconds_total{namespace=\"llm\",pool=\"chat\",state=\"lent\"} 0",
	"preheat_tokens_total{namespace=\"llm\",pool=\"chat\",kind=\"prompt\"} 1200",
	"preheat_late_requests_total{namespace=\"llm\",pool=\"chat\",cause=\"starting\"} 5",
	"preheat_cost_label_dollars_total{namespace=\"llm\",pool=\"chat\",cost_center=\"ml "
	"\\\"1\\\"\",product=\"unlabelled\","
	"environment=\"prod\",workload_type=\"unlabelled\"} 0.25",
	"preheat_cost_label_gpu_seconds_total{namespace=\"llm\",pool=\"chat\",cost_center=\"no-pod\",product=\"no-"
	"pod\","
	"environment=\"no-pod\",workload_type=\"no-pod\"} 0.001",
	"preheat_build_info{version=\"0.1.0\"} 1",
	"preheat_leader 1",
	"preheat_ticks_total 42",
	"preheat_last_tick_timestamp_seconds 1767225600",
	"preheat_tick_duration_seconds_bucket{le=\"0.001\"} 0",
	"preheat_tick_duration_seconds_bucket{le=\"0.002\"} 1",
	"preheat_tick_duration_seconds_bucket{le=\"1\"} 2",
	"preheat_tick_duration_seconds_bucket{le=\"+Inf\"} 2",
	"preheat_tick_duration_seconds_sum 0.7015",
	"preheat_tick_duration_seconds_count 2",
	"preheat_watch_synced{resource=\"pods\"} 1",
	"preheat_watch_relists_total{resource=\"nodes\"} 1",
	"preheat_provider_calls_total{provider=\"simulated\",verb=\"resize\",error=\"stock-out\"} 2",
	"process_start_time_seconds 1767139200",
};

static void fill_costs(struct shown *s)
{
	s->cost = (struct cost_sums){ .gpu_ms = { [GPU_IDLE] = 90500, [GPU_SERVING] = 3600000 },
				      .dollars = { [GPU_IDLE] = 12345, [GPU_STANDBY] = 7 },
				      .prompt_tokens = 1200,
				      .late_by = { [LATE_STARTING] = 5 } };
	s->label_costs[0] =
		(struct published_label_cost){ { COST_BY_PODS, { "ml \"1\"", "", "prod", "" } }, 1500, 250000 };
	s->label_costs[1] = (struct published_label_cost){ { COST_NO_POD, { "", "", "", "" } }, 1, 2 };
	s->label_costs[2] = (struct published_label_cost){ { COST_OTHERS, { "", "", "", "" } }, 3, 4 };
	s->live_pools[0].cost = &s->cost;
	s->live_pools[0].label_costs = s->label_costs;
	s->live_pools[0].label_cost_count = 3;
}

static void fill_all(struct shown *s)
{
	shown_fill(s);
	fill_costs(s);
	s->decisions[0][1].blocked_until = SHOWN_NOW + MINUTE + 500;
	s->pending[0] = (struct published_count){ { "asks for 16 GPUs" }, 2 };
	s->pending[1] = (struct published_count){ { "asks for 16 GPUs" }, 3 }; /* of another shape */
	s->live_pools[0].unschedulable = (struct published_counts){ s->pending, 2 };
	s->live_pools[0].problem[PROBLEM_NO_GROUP] = "5 pods fit no node group";
	s->live_pools[0].stage[STAGE_LOAD] = (struct published_stage){ 40 * SECOND, 70 * SECOND, 9 };
	s->live_groups[1].error.kind = ERROR_QUOTA;
	s->refused[0] = (struct published_count){ { "llm", "broken", "no" }, 4 };
	s->p.refused_pools = (struct published_counts){ s->refused, 1 };
}

static void every_figure_is_told(void **state)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct shown s;

	(void)state;
	fill_all(&s);
	write_shown(&s, &text);
	check_format(&text);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		if (!has_line(&text, expected[i]))
			fail_msg("missing: %s\n%s", expected[i], text.text);
}

static void absent_is_not_zero(void **state)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct shown s;

	(void)state;
	shown_fill(&s);
	for (size_t i = 0; i < 2; i++) {
		s.plans[i].decision.waiting_now = s.plans[i].decision.running_milli = ABSENT;
		s.plans[i].decision.own_share_ppm = ABSENT;
	}
	write_shown(&s, &text);
	check_format(&text);
	assert_null(strstr(text.text, "preheat_pool_waiting_requests"));
	assert_null(strstr(text.text, "preheat_pool_running_requests"));
	assert_null(strstr(text.text, "preheat_pool_late_ratio"));
	assert_null(strstr(text.text, "preheat_pool_rule_standby_ratio"));
}

/* GPU hours where there is no price, never dollars. */
static void without_prices_no_dollars(void **state)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct shown s;

	(void)state;
	fill_all(&s);
	for (size_t i = 0; i < 2; i++)
		s.pools[i].is_unpriced = true;
	write_shown(&s, &text);
	check_format(&text);
	assert_null(strstr(text.text, "dollars_per_hour{namespace=\"llm\",pool=\"chat\"} 2.42"));
	assert_null(strstr(text.text, "preheat_pool_budget_dollars_per_hour"));
	assert_null(strstr(text.text, "preheat_cost_dollars_total"));
	assert_null(strstr(text.text, "preheat_cost_label_dollars_total"));
	assert_null(strstr(text.text, "preheat_node_group_node_dollars_per_hour"));
	assert_non_null(strstr(text.text, "preheat_gpu_seconds_total"));
}

static void before_the_first_decision(void **state)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	const struct published zero = { 0 };
	struct shown s;

	(void)state;
	metrics_write(&zero, &text);
	check_format(&text);
	assert_true(has_line(&text, "preheat_ticks_total 0"));
	assert_null(strstr(text.text, "preheat_pool_hot"));
	shown_fill(&s);
	s.p.plan = NULL;
	s.p.snapshot = NULL;
	s.p.pools = NULL;
	s.p.groups = NULL;
	write_shown(&s, &text);
	check_format(&text);
}

/* Texts of other people's objects end up in labels. */
static void labels_are_escaped(void **state)
{
	static const struct {
		const char *text, *label;
	} cases[] = {
		{ "say \"no\"", "say \\\"no\\\"" },
		{ "back\\slash", "back\\\\slash" },
		{ "two\nlines", "two\\nlines" },
		{ "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "cut \xe2\x82", "cut ??" },
		{ "\xff\xfe", "??" },
		{ "\xc0\xaf overlong", "?? overlong" },
		{ "\xed\xa0\x80 half", "??? half" },
		{ "\xf4\x90\x80\x80", "????" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf text = { 0 }, line = { 0 };
		struct shown s;

		shown_fill(&s);
		s.pending[0] = (struct published_count){ { cases[i].text }, 1 };
		s.live_pools[0].unschedulable = (struct published_counts){ s.pending, 1 };
		write_shown(&s, &text);
		check_format(&text);
		buf_printf(&line, "preheat_pool_unschedulable_pods{namespace=\"llm\",pool=\"chat\",reason=\"%s\"} 1",
			   cases[i].label);
		if (!has_line(&text, line.text))
			fail_msg("missing: %s", line.text);
	}
}

/* A follower says nothing about pools, and that it does not lead. */
static void followers_are_told_apart(void **state)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct shown s;

	(void)state;
	shown_fill(&s);
	s.p.role = ROLE_FOLLOWER;
	s.p.plan = NULL;
	write_shown(&s, &text);
	assert_true(has_line(&text, "preheat_leader 0"));
	s.p.role = ROLE_ALONE;
	write_shown(&s, &text);
	assert_true(has_line(&text, "preheat_leader 1"));
}

static void the_reference_is_current(void **state)
{
	CLEANUP(buf_release) struct buf made = { 0 }, kept = { 0 };
	struct error e = { 0 };

	(void)state;
	metrics_write_reference(&made);
	if (!file_read("docs/metrics.md", 1 << 20, &kept, &e))
		fail_msg("%s", e.message);
	if (strcmp(made.text, kept.text) != 0)
		fail_msg("docs/metrics.md is old; write it again with preheat run --print-metrics");
}

/* What the page tells is in the reference, and with the labels that it says. */
static void every_metric_is_in_the_reference(void **state)
{
	CLEANUP(buf_release) struct buf text = { 0 }, reference = { 0 };
	static struct lines l;
	struct shown s;
	char name[128], row[160];

	(void)state;
	fill_all(&s);
	write_shown(&s, &text);
	metrics_write_reference(&reference);
	split(&text, &l);
	for (size_t i = 0; i < l.count; i++) {
		if (sscanf(l.items[i], "# TYPE %127s", name) != 1)
			continue;
		snprintf(row, sizeof row, "\n| `%s` |", name);
		assert_non_null(strstr(reference.text, row));
	}
	free(l.text);
}

static int print_sample(void)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct shown s;

	fill_all(&s);
	metrics_write(&s.p, &text);
	return fputs(text.text, stdout) < 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_figure_is_told),	     cmocka_unit_test(absent_is_not_zero),
		cmocka_unit_test(without_prices_no_dollars), cmocka_unit_test(before_the_first_decision),
		cmocka_unit_test(labels_are_escaped),	     cmocka_unit_test(followers_are_told_apart),
		cmocka_unit_test(the_reference_is_current),  cmocka_unit_test(every_metric_is_in_the_reference),
	};

	if (argc == 2 && strcmp(argv[1], "--sample") == 0)
		return print_sample();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
