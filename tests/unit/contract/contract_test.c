/*
 * Every rule against the files in cases/: RULE.bad.yaml says with "# RULE" behind a line that the rule must speak
 * there, and nowhere else; RULE.good.yaml is the same, mended. clean.yaml breaks no rule at all.
 */
#include "controller/contract/contract.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define CASES "tests/unit/contract/cases/"
#define TODAY INT64_C(1798761600000) /* 2027-01-01T00:00:00Z */

struct judged {
	struct arena arena;
	struct findings findings;
	struct buf text;
	struct manifest manifest;
	struct contract_report report;
};

static void judged_release(struct judged *j)
{
	arena_release(&j->arena);
	findings_release(&j->findings);
	buf_release(&j->text);
}

static void judge_documents(struct judged *j, const struct yaml_documents *docs, bool is_whole)
{
	struct contract *c = contract_new(&j->arena, TODAY);
	const struct yaml_node **pools = arena_array(&j->arena, const struct yaml_node *, docs->count + 1);
	size_t count = 0;
	struct error e = { 0 };

	for (size_t i = 0; i < docs->count; i++) {
		if (!docs->roots[i])
			continue;
		const struct yaml_node *kind = yaml_child(docs->roots[i], "kind");
		if (!strcmp(kind->text, "WarmPool"))
			pools[count++] = docs->roots[i];
		else if (!contract_add(c, docs->roots[i], 1))
			fail_msg("%s is of no known kind", kind->text);
	}
	if (count && !manifest_load_roots(pools, count, &j->arena, &j->manifest, &j->findings, &e))
		fail_msg("%s", e.message);
	contract_set_pools(c, count ? &j->manifest : NULL, false);
	if (is_whole)
		contract_set_whole(c);
	j->report = contract_judge(c);
}

static void judge_file(struct judged *j, const char *path)
{
	struct yaml_documents docs;
	struct error e = { 0 };

	*j = (struct judged){ 0 };
	if (!file_read(path, 1 << 20, &j->text, &e))
		fail_msg("%s", e.message);
	if (!yaml_parse(path, j->text.text, j->text.len, &j->arena, &docs, &j->findings))
		fail_msg("%s", j->findings.items[0].found);
	judge_documents(j, &docs, strncmp(j->text.text, "# live", 6) == 0);
}

/* Whether the line ends in "# RULE". */
static bool is_marked(const char *line, size_t len, const char *rule)
{
	size_t tail = strlen(rule) + 2;

	return len > tail && !memcmp(line + len - tail, "# ", 2) && !memcmp(line + len - tail + 2, rule, tail - 2);
}

static bool speaks_at(const struct contract_report *r, const char *rule, size_t line)
{
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->items[i].rule->id, rule) && r->items[i].at->line == line)
			return true;
	return false;
}

static void expect_marks(const struct judged *j, const char *path, const char *rule, size_t *wrong)
{
	const char *p = j->text.text;

	for (size_t line = 1; *p; line++) {
		size_t len = strcspn(p, "\n");
		bool wanted = is_marked(p, len, rule), is = speaks_at(&j->report, rule, line);
		if (wanted != is)
			print_message("%s:%zu: %s %s\n", path, line, rule, wanted ? "is silent" : "speaks"), (*wrong)++;
		p += len + (p[len] == '\n');
	}
}

static void expect_words(const struct contract_report *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct contract_violation *v = &r->items[i];
		assert_true(*v->found && *v->remedy);
		assert_int_not_equal(v->found[strlen(v->found) - 1], '.');
	}
}

static void every_rule_speaks_and_is_silent(void **state)
{
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);
	size_t wrong = 0;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		static const char *const ways[] = { "bad", "good" };
		for (size_t k = 0; k < 2; k++) {
			CLEANUP(judged_release) struct judged j;
			char path[200];
			size_t spoken = 0;
			snprintf(path, sizeof path, CASES "%s.%s.yaml", rules[i].id, ways[k]);
			judge_file(&j, path);
			expect_marks(&j, path, rules[i].id, &wrong);
			expect_words(&j.report);
			for (size_t v = 0; v < j.report.count; v++)
				spoken += !strcmp(j.report.items[v].rule->id, rules[i].id);
			if ((spoken == 0) != (k == 1))
				print_message("%s: %zu violations of it\n", path, spoken), wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static void expect_clean(const char *path)
{
	CLEANUP(judged_release) struct judged j;

	judge_file(&j, path);
	for (size_t i = 0; i < j.report.count; i++)
		print_message("%zu: %s: %s\n", j.report.items[i].at->line, j.report.items[i].rule->id,
			      j.report.items[i].found);
	assert_int_equal(j.report.count, 0);
	assert_int_equal(j.report.unjudged_count, 0);
}

static void a_clean_set_breaks_no_rule(void **state)
{
	(void)state;
	expect_clean(CASES "clean.yaml");
	expect_clean(CASES "claims.yaml");
}

/* Labels and taints of the manifest, where no node tells. */
static void what_is_told_of_node_groups_counts(void **state)
{
	static const char path[] = CASES "told.yaml";
	CLEANUP(judged_release) struct judged j;
	size_t wrong = 0;

	(void)state;
	judge_file(&j, path);
	expect_marks(&j, path, "no-node-group", &wrong);
	expect_marks(&j, path, "toleration-missing", &wrong);
	assert_int_equal(wrong, 0);
}

static void what_is_ignored_is_counted_apart(void **state)
{
	CLEANUP(judged_release) struct judged j;

	(void)state;
	judge_file(&j, CASES "ignored.yaml");
	assert_int_equal(j.report.ignored, 2);
	assert_int_equal(j.report.counts[CONTRACT_ERROR], 0);
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || c == '-';
}

static void the_table_is_whole(void **state)
{
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct contract_rule *r = &rules[i];
		for (const char *p = r->id; *p; p++)
			assert_true(is_plain(*p));
		assert_true(*r->title && *r->why && *r->remedy && *r->kinds && (r->judge || r->judge_workload));
		assert_int_not_equal(r->title[strlen(r->title) - 1], '.');
		assert_int_equal(r->why[strlen(r->why) - 1], '.');
		assert_int_not_equal(r->remedy[strlen(r->remedy) - 1], '.');
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(rules[k].id, r->id);
	}
}

static void expect_copy(const char *path, void (*write)(struct buf *), const char *option)
{
	CLEANUP(buf_release) struct buf made = { 0 };
	CLEANUP(buf_release) struct buf kept = { 0 };
	struct error e = { 0 };

	write(&made);
	if (!file_read(path, 1 << 20, &kept, &e))
		fail_msg("%s", e.message);
	if (strcmp(made.text, kept.text) != 0)
		fail_msg("%s is old; write it again with preheat check %s", path, option);
}

static void copies_are_current(void **state)
{
	(void)state;
	expect_copy("docs/contract.md", contract_write_reference, "--print-rules");
	expect_copy("deploy/admission/policies/policies.yaml", contract_write_policies, "--print-policies");
}

/* A policy for each rule that says so, and no other. */
static void policies_are_those_of_the_table(void **state)
{
	CLEANUP(buf_release) struct buf made = { 0 };
	size_t count;
	const struct contract_rule *rules = contract_rules(&count);

	(void)state;
	contract_write_policies(&made);
	for (size_t i = 0; i < count; i++) {
		char name[80];
		snprintf(name, sizeof name, "metadata: { name: preheat-%s }", rules[i].id);
		assert_int_equal(strstr(made.text, name) != NULL, rules[i].is_admitted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_whole),
		cmocka_unit_test(every_rule_speaks_and_is_silent),
		cmocka_unit_test(a_clean_set_breaks_no_rule),
		cmocka_unit_test(what_is_told_of_node_groups_counts),
		cmocka_unit_test(what_is_ignored_is_counted_apart),
		cmocka_unit_test(policies_are_those_of_the_table),
		cmocka_unit_test(copies_are_current),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
