/* Costs in a history: with their tick or not at all, kept, copied, and absent from files of before. */
#include "state/cost.h"
#include "state/replica.h"
#include "state/usage.h"
#include "tests/unit/state/history_made.h"

#define ALL	 ((struct hour_range){ 0, INT64_MAX })
#define FOR_EVER (INT64_C(1) << 60)

static const struct history_setup setup = { path, "kind: WarmPool\n", &fleet, "0.1.0", "preheat", "a test", 1, HOUR };
static const struct cost_labels ml = { COST_BY_PODS, { "ml", "chat", "", "" } };
static const struct cost_labels nobody = { COST_NO_POD, { "", "", "", "" } };

static struct cost_sums sums_of(int64_t t)
{
	int64_t values[COST_FIELDS];
	struct cost_sums s;

	for (int i = 0; i < COST_FIELDS; i++)
		values[i] = t * 31 + i;
	memcpy(&s, values, sizeof s);
	return s;
}

/* A tick with what it cost. */
static void tell(struct history *h, int64_t t)
{
	struct cost_sums s = sums_of(t);
	millis at = start + (t + 1) * TICK;

	history_cost(h, at, 0, CLASS_INTERACTIVE, &s);
	history_cost(h, at, 1, t < 300 ? CLASS_BATCH : CLASS_TRAINING, &s);
	history_cost_label(h, at, 0, &ml, 2 * t, 3 * t);
	history_cost_label(h, at, 0, &nobody, 1, 1);
	history_quota(h, at, TICK, &(struct quota_seen){ "llm", "gpus", "requests.nvidia.com/gpu", 8, t % 5 });
}

static void append(struct history *h, int64_t t)
{
	struct error e = { 0 };
	struct made m;

	make(&m, t);
	if (!history_append(h, &m.snapshot, &m.plan, &e))
		fail_msg("%s", e.message);
}

static struct history *begin(void)
{
	struct error e = { 0 };

	unlink(path);
	struct history *h = history_create(&setup, &e);
	assert_string_equal(e.message, "");
	return h;
}

static void end(struct history *h)
{
	struct error e = { 0 };

	assert_true(history_finish(h, &e));
}

/* All hours of a pool and class. */
static struct cost_sums total(struct history *h, size_t pool, enum pool_class class)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cost_sums sum = { 0 };
	struct cost_hour *hours;
	struct error e = { 0 };
	size_t count;

	if (!history_cost_hours(h, ALL, &a, &hours, &count, &e))
		fail_msg("%s", e.message);
	for (size_t i = 0; i < count; i++)
		if (hours[i].pool == pool && hours[i].class == class)
			cost_add(&sum, &hours[i].sums);
	return sum;
}

static void assert_ticks(struct history *h, int64_t ticks)
{
	struct cost_sums wanted = { 0 }, batch = { 0 }, found = total(h, 0, CLASS_INTERACTIVE);

	for (int64_t t = 0; t < ticks; t++) {
		struct cost_sums s = sums_of(t);
		cost_add(&wanted, &s);
		if (t < 300)
			batch = wanted;
	}
	assert_memory_equal(&found, &wanted, sizeof wanted);
	found = total(h, 1, CLASS_BATCH);
	assert_memory_equal(&found, &batch, sizeof batch);
}

static void sums_come_back_by_the_hour(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cost_hour *hours;
	struct cost_label_hour *labels;
	struct error e = { 0 };
	int64_t gpu_ms = 0;
	size_t count;

	struct history *h = begin();
	for (int64_t t = 0; t < 700; t++) {
		tell(h, t);
		append(h, t);
	}
	end(h);
	h = open_file();
	assert_ticks(h, 700);
	assert_true(history_cost_hours(h, (struct hour_range){ start / HOUR, start / HOUR }, &a, &hours, &count, &e));
	assert_int_equal(count, 2);
	/* A tick that ends with the hour belongs to it. */
	int64_t in_first = (start / HOUR * HOUR + HOUR - start) / TICK;
	int64_t first = 0;
	for (int64_t t = 0; t < in_first; t++)
		first += sums_of(t).watched_ms;
	assert_int_equal(hours[0].sums.watched_ms, first);
	assert_true(history_cost_label_hours(h, ALL, &a, &labels, &count, &e));
	for (size_t i = 0; i < count; i++) {
		gpu_ms += labels[i].labels.holder == COST_BY_PODS ? labels[i].gpu_ms : 0;
		if (labels[i].labels.holder == COST_BY_PODS)
			assert_true(cost_labels_equal(&labels[i].labels, &ml));
	}
	assert_int_equal(gpu_ms, 2 * (699 * 700 / 2));
	history_close(h);
}

static void a_tick_that_failed_cost_nothing(void **state)
{
	(void)state;
	struct error e = { 0 };
	struct made m;

	struct history *h = begin();
	tell(h, 0);
	append(h, 0);
	tell(h, 1);
	make(&m, 1);
	m.plans[0].group_count = 1; /* not as the manifest has it */
	assert_false(history_append(h, &m.snapshot, &m.plan, &e));
	tell(h, 1);
	append(h, 1);
	end(h);
	h = open_file();
	assert_ticks(h, 2);
	history_close(h);
}

static void what_is_not_committed_is_gone_with_its_ticks(void **state)
{
	(void)state;
	struct history_setup many = setup;
	struct error e = { 0 };

	unlink(path);
	many.ticks_per_commit = 100;
	struct history *h = history_create(&many, &e);
	for (int64_t t = 0; t < 150; t++) {
		tell(h, t);
		append(h, t);
	}
	history_close(h); /* as if killed */
	h = open_file();
	assert_ticks(h, 100);
	history_close(h);
}

static void labels_without_end_become_others(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cost_label_hour *labels;
	struct error e = { 0 };
	int64_t gpu_ms = 0, others = 0;
	size_t count;
	char name[16];

	struct history *h = begin();
	for (int64_t t = 0; t < 20; t++) {
		for (int i = 0; i < 20; i++) {
			snprintf(name, sizeof name, "c%lld", (long long)t * 20 + i);
			history_cost_label(h, start + TICK, 0,
					   &(struct cost_labels){ COST_BY_PODS, { name, "", "", "" } }, 10, 10);
		}
		append(h, t);
	}
	end(h);
	/* none that no hour has */
	sql("CREATE TABLE none (n INTEGER CHECK (n = 0)); INSERT INTO none SELECT count(*) FROM cost_label_set WHERE id"
	    " NOT IN (SELECT labels FROM cost_label); DROP TABLE none");
	h = open_file();
	assert_true(history_cost_label_hours(h, ALL, &a, &labels, &count, &e));
	assert_int_equal(count, COST_LABEL_SETS + 1);
	for (size_t i = 0; i < count; i++) {
		gpu_ms += labels[i].gpu_ms;
		others += labels[i].labels.holder == COST_OTHERS ? labels[i].gpu_ms : 0;
	}
	assert_int_equal(gpu_ms, 4000);
	assert_int_equal(others, 2000);
	history_close(h);
}

static void holders_are_told_again_with_a_later_end(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct quota_hour *quotas;
	struct holding *held;
	struct error e = { 0 };
	size_t count;

	struct history *h = begin();
	for (int64_t t = 0; t < 3; t++) {
		struct holding one = { "uid", HOLDING_FINISHED, start, start + (t + 1) * HOUR, "llm", "old", "n1", 2000,
				       ABSENT };
		tell(h, t);
		history_holding(h, &one);
		one.uid = "other";
		one.namespace = "research";
		one.gpus_milli = 4000;
		history_holding(h, &one);
		append(h, t);
	}
	end(h);
	h = open_file();
	assert_true(history_holdings(h, &(struct usage_filter){ start, start + DAY, NULL }, &a, &held, &count, &e));
	assert_int_equal(count, 2);
	assert_string_equal(held[0].namespace, "research");
	assert_int_equal(held[1].until, start + 3 * HOUR);
	assert_int_equal(held[1].used_most_milli, ABSENT);
	assert_true(history_holdings(h, &(struct usage_filter){ start, start + DAY, "llm" }, &a, &held, &count, &e));
	assert_int_equal(count, 1);
	assert_true(history_holdings(h, &(struct usage_filter){ start + 4 * HOUR, start + DAY, NULL }, &a, &held,
				     &count, &e));
	assert_int_equal(count, 0);
	assert_true(history_quota_hours(h, &(struct usage_filter){ 0, FOR_EVER, "llm" }, &a, &quotas, &count, &e));
	assert_int_equal(count, 1);
	assert_int_equal(quotas[0].hard_gpu_ms, 3 * 8 * TICK);
	assert_int_equal(quotas[0].used_gpu_ms, 3 * TICK);
	assert_int_equal(quotas[0].used_most, 2);
	assert_true(history_quota_hours(h, &(struct usage_filter){ 0, FOR_EVER, "nobody" }, &a, &quotas, &count, &e));
	assert_int_equal(count, 0);
	history_close(h);
}

static void costs_outlive_their_ticks(void **state)
{
	(void)state;
	struct error e = { 0 };
	int64_t dropped;
	struct history *h = begin();

	for (int64_t t = 0; t < 1000; t++) {
		struct buf memory = { 0 };
		tell(h, t);
		append(h, t);
		buf_printf(&memory, "m%lld", (long long)t);
		if (history_wants_checkpoint(h))
			assert_true(history_checkpoint(h, &memory, &e));
		buf_release(&memory);
	}
	end(h);
	h = history_edit(path, &e);
	assert_true(history_retain(h, start + 900 * TICK, &dropped, &e));
	assert_true(dropped > 400);
	assert_ticks(h, 1000);
	end(h);
}

static void a_copy_has_them_too(void **state)
{
	(void)state;
	char copy_path[80];
	struct error e = { 0 };
	struct history *h = begin(), *copy;

	snprintf(copy_path, sizeof copy_path, "%s.copy", path);
	copy = replica_open(copy_path, &e);
	assert_non_null(copy);
	for (int64_t t = 0; t < 400; t++) {
		CLEANUP(buf_release) struct buf batch = { 0 };
		struct replica_tail tail;

		tell(h, t);
		history_holding(h, &(struct holding){ "u", HOLDING_UNUSED, start, start + (t + 1) * TICK, "llm", "p",
						      "n", 1000, ABSENT });
		append(h, t);
		if (t % 7)
			continue;
		assert_true(replica_tail(copy, &tail, &e));
		assert_true(replica_export(h, &tail, 1 << 20, &batch, &e));
		if (!replica_import(copy, batch.text, batch.len, &e))
			fail_msg("%s", e.message);
	}
	end(copy);
	end(h);
	/* The last batch ended with tick 399 - 399 % 7. */
	assert_int_equal(rename(copy_path, path), 0);
	h = open_file();
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cost_label_hour *labels;
	struct holding *held;
	size_t count;
	assert_ticks(h, 400);
	assert_true(history_cost_label_hours(h, ALL, &a, &labels, &count, &e));
	assert_int_equal(count, 2 * 2);
	assert_true(history_holdings(h, &(struct usage_filter){ 0, FOR_EVER, NULL }, &a, &held, &count, &e));
	assert_int_equal(count, 1);
	assert_int_equal(held[0].until, start + 400 * TICK);
	history_close(h);
}

static void files_of_before_have_none(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cost_hour *hours;
	struct cost_label_hour *labels;
	struct quota_hour *quotas;
	struct holding *held;
	struct tick_record r;
	struct error e = { 0 };
	const char *text;
	size_t count;

	write_file(10, 1);
	sql("DROP TABLE cost; DROP TABLE cost_label; DROP TABLE cost_label_set; DROP TABLE quota_hour;"
	    "DROP TABLE gpu_holding; DROP TABLE level; DROP TABLE lead_time; DROP TABLE drain; DROP TABLE "
	    "share_decision; DROP TABLE engine_move; DROP TABLE manifest_text; DROP TABLE share_choice; "
	    "UPDATE manifest SET text = 'stood: before'; ALTER TABLE launch DROP COLUMN operation; "
	    "PRAGMA user_version = 2");
	struct history *h = open_file();
	assert_true(history_manifest(h, 5, &a, &text, &e));
	assert_string_equal(text, "stood: before");
	assert_true(history_read(h, 5, 0, &r, &e));
	assert_true(history_cost_hours(h, ALL, &a, &hours, &count, &e));
	assert_int_equal(count, 0);
	assert_true(history_cost_label_hours(h, ALL, &a, &labels, &count, &e));
	assert_int_equal(count, 0);
	assert_true(history_quota_hours(h, &(struct usage_filter){ 0, FOR_EVER, NULL }, &a, &quotas, &count, &e));
	assert_int_equal(count, 0);
	assert_true(history_holdings(h, &(struct usage_filter){ 0, FOR_EVER, NULL }, &a, &held, &count, &e));
	assert_int_equal(count, 0);
	history_close(h);
	/* A writer goes on with it, and from then on they are kept. */
	h = history_resume(&setup, &e);
	assert_string_equal(e.message, "");
	assert_non_null(h);
	tell(h, 10);
	append(h, 10);
	end(h);
	h = open_file();
	assert_int_equal(total(h, 0, CLASS_INTERACTIVE).watched_ms, sums_of(10).watched_ms);
	assert_true(history_manifest(h, 5, &a, &text, &e));
	assert_string_equal(text, "stood: before");
	assert_true(history_manifest(h, 11, &a, &text, &e));
	assert_string_equal(text, setup.manifest);
	history_close(h);
}

static void sums_that_cannot_be_are_damage(void **state)
{
	(void)state;
	static const char *const wrongs[] = {
		"UPDATE cost SET hour = 9000000000000",
		"UPDATE cost SET idle_gpu_ms = -1",
		"UPDATE cost SET late = 1 << 62",
		"UPDATE cost SET class = 77",
		"UPDATE cost SET pool = 9",
		"UPDATE cost_label SET micro_dollars = -5",
		"UPDATE cost_label_set SET holder = 8",
		"UPDATE quota_hour SET hard_gpu_ms = -1",
		"UPDATE gpu_holding SET kind = 6",
		"UPDATE gpu_holding SET until = since - 1",
	};

	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		const struct usage_filter ever = { 0, FOR_EVER, NULL };
		struct cost_hour *hours;
		struct cost_label_hour *labels;
		struct quota_hour *quotas;
		struct holding *held;
		struct error e = { 0 };
		size_t count;

		struct history *h = begin();
		history_cost(h, start + TICK, 0, CLASS_INTERACTIVE, &(struct cost_sums){ 0 });
		history_cost_label(h, start + TICK, 0, &ml, 1, 1);
		history_quota(h, start + TICK, TICK, &(struct quota_seen){ "llm", "gpus", "gpu", 8, 1 });
		history_holding(h, &(struct holding){ "u", HOLDING_UNUSED, start, start + HOUR, "llm", "p", "n", 1000,
						      ABSENT });
		append(h, 0);
		end(h);
		sql(wrongs[i]);
		h = open_file();
		if (history_cost_hours(h, ALL, &a, &hours, &count, &e) &&
		    history_cost_label_hours(h, ALL, &a, &labels, &count, &e) &&
		    history_quota_hours(h, &ever, &a, &quotas, &count, &e) &&
		    history_holdings(h, &ever, &a, &held, &count, &e))
			fail_msg("nobody minds: %s", wrongs[i]);
		assert_int_equal(e.kind, ERROR_INVALID);
		assert_non_null(strstr(e.message, "damaged"));
		history_close(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_come_back_by_the_hour),
		cmocka_unit_test(a_tick_that_failed_cost_nothing),
		cmocka_unit_test(what_is_not_committed_is_gone_with_its_ticks),
		cmocka_unit_test(labels_without_end_become_others),
		cmocka_unit_test(holders_are_told_again_with_a_later_end),
		cmocka_unit_test(costs_outlive_their_ticks),
		cmocka_unit_test(a_copy_has_them_too),
		cmocka_unit_test(files_of_before_have_none),
		cmocka_unit_test(sums_that_cannot_be_are_damage),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
