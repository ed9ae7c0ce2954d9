/* Settings as people type them, and the sweep that is compared. */
#include "controller/simulation/rivals/rival.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const size_t groups[] = { 0 };
static const struct group_spec group = { .name = "g", .gpus_per_node = 1, .max_nodes = 50 };
static const struct pool_spec pool = {
	.name = "p", .gpus_per_replica = 1, .max_sequences = 100, .groups = groups, .group_count = 1
};
static const struct fleet_spec fleet = { .groups = &group, .group_count = 1, .pools = &pool, .pool_count = 1 };

static void good_settings_open(void **state)
{
	static const char *const good[][2] = {
		{ "hpa", "" },
		{ "hpa", "target=0.85,window=120" },
		{ "hpa", "window=0,tolerance=0.05,pool=static:12" },
		{ "kpa", "target=1,pool=total:7.5,lent=1" },
		{ "keda", "threshold=200,removal=600,floor=0.8" },
		{ "static", "replicas=86" },
		{ "dynamo", "noise=0.0001,hold=0" },
		{ "buffer", "share=0.1,replicas=0,removal=1800" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		const struct policy_ops *rival = rival_find(good[i][0]);
		struct error e = { 0 };

		assert_non_null(rival);
		void *opened = rival->open(&fleet, good[i][1], &e);
		if (!opened)
			fail_msg("%s %s: %s", good[i][0], good[i][1], e.message);
		rival->close(opened);
		rival->close(NULL);
	}
}

static void bad_settings_say_what_is_allowed(void **state)
{
	static const char *const bad[][3] = {
		{ "hpa", "traget=0.8", "did you mean target" },
		{ "hpa", "colour=1", "it has target, window, tolerance, pool, lent" },
		{ "hpa", "target", "KEY=NUMBER" },
		{ "hpa", "target=", "from 0.05 to 2" },
		{ "hpa", "target=-1", "from 0.05 to 2" },
		{ "hpa", "target=nan", "from 0.05 to 2" },
		{ "hpa", "target=9", "from 0.05 to 2" },
		{ "hpa", "target=0x1", "from 0.05 to 2" },
		{ "hpa", "target=0.8,target=0.9", "given twice" },
		{ "hpa", "target=0.8,,window=3", "KEY=NUMBER" },
		{ "kpa", "pool=12", "static:N or total:N" },
		{ "kpa", "pool=static:", "static:N or total:N" },
		{ "kpa", "pool=static:-1", "static:N or total:N" },
		{ "kpa", "lent=2", "from 0 to 1" },
		{ "static", "replicas=1e30", "from 0 to 100000" },
		{ "keda", "a-key-that-is-far-longer-than-any-key-of-ours=1", "KEY=NUMBER" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error e = { 0 };
		void *opened = rival_find(bad[i][0])->open(&fleet, bad[i][1], &e);

		if (opened || e.kind != ERROR_INVALID || !strstr(e.message, bad[i][2]))
			fail_msg("%s %s: got \"%s\", expected \"%s\"", bad[i][0], bad[i][1], e.message, bad[i][2]);
	}
}

static void check_sweep(const struct policy_ops *rival, const struct rival_scale *scale)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct rival_setting *settings;
	size_t count = rival_settings(rival, scale, &a, &settings), hot = 0, defaults = 0;

	if (!strcmp(rival->name, "configured")) {
		assert_int_equal(count, 0); /* it has the settings of somebody's manifest */
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct error e = { 0 };
		void *opened = rival->open(&fleet, settings[i].text, &e);

		if (!opened)
			fail_msg("%s %s: %s", rival->name, settings[i].text, e.message);
		rival->close(opened);
		hot += !settings[i].uses_standby && !settings[i].uses_lent;
		defaults += settings[i].is_default;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(settings[i].text, settings[j].text))
				fail_msg("%s: %s twice", rival->name, settings[i].text);
	}
	assert_true(hot >= 40 && hot <= 120);
	assert_int_equal(defaults, strcmp(rival->name, "static") != 0);
	assert_int_equal(settings[0].is_default, defaults);
}

static void every_family_is_swept(void **state)
{
	static const struct rival_scale scales[] = {
		{ .mean = 92.4, .peak = 243.5 },
		{ .mean = 2.1, .peak = 5.5, .has_standby = true },
		{ .mean = 92.4, .peak = 243.5, .has_standby = true, .has_lent = true },
		{ .mean = 0 },
	};

	(void)state;
	assert_int_equal(rival_count(), 7);
	for (size_t r = 0; r < rival_count(); r++)
		for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
			check_sweep(rival_at(r), &scales[i]);
	assert_null(rival_find("preheat"));
}

static void stocks_come_only_with_a_standby_tier(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct rival_scale scale = { .mean = 100, .peak = 200 };
	const struct rival_setting *settings;
	size_t without = rival_settings(rival_find("hpa"), &scale, &a, &settings);

	(void)state;
	scale.has_standby = true;
	size_t with = rival_settings(rival_find("hpa"), &scale, &a, &settings);
	assert_int_equal(with - without, 9 * 40);
	assert_true(settings[without].uses_standby);
	assert_non_null(strstr(settings[without].text, "pool=static:10"));
	assert_non_null(strstr(settings[with - 1].text, "pool=total:280"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_settings_open),
		cmocka_unit_test(bad_settings_say_what_is_allowed),
		cmocka_unit_test(every_family_is_swept),
		cmocka_unit_test(stocks_come_only_with_a_standby_tier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
