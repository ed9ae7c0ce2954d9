/* Which reads show what a cloud accepted, or may be believed nevertheless. */
#include "controller/loop/accepted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const both[] = { "i-1", "i-2" };

/* A read with those of three machines whose digit is in the text. */
static struct group_description shown(const char *which, struct machine *machines, int64_t desired)
{
	static const char *const ids[] = { "i-1", "i-2", "i-3" };
	struct group_description d = { .desired = desired, .machines = machines, .ends_one_by_one = true };

	for (size_t i = 0; i < 3; i++)
		if (strchr(which, ids[i][2]))
			machines[d.machine_count++] = (struct machine){ .id = ids[i], .state = MACHINE_RUNNING };
	return d;
}

struct removal_case {
	enum provider_verb verb;
	bool is_recalled;
	const char *machines; /* of those that were named i-1 and i-2 */
	millis after;
	bool shows;
};

/* Each machine that is named ends by a call of its own, so all go that were asked: of an earlier life nobody knows
 * which were. */
static const struct removal_case removal_cases[] = {
	{ PROVIDER_REMOVE, false, "123", SECOND, false }, { PROVIDER_REMOVE, false, "23", SECOND, false },
	{ PROVIDER_REMOVE, false, "3", SECOND, true },	  { PROVIDER_REMOVE, false, "123", LAG_MOST + 1, true },
	{ PROVIDER_REMOVE, true, "123", SECOND, false },  { PROVIDER_REMOVE, true, "23", SECOND, true },
	{ PROVIDER_REMOVE, true, "3", SECOND, true },	  { PROVIDER_REMOVE, true, "123", LAG_MOST + 1, true },
	{ PROVIDER_STOP, false, "23", SECOND, true },	  { PROVIDER_STOP, false, "123", SECOND, false },
	{ PROVIDER_CANCEL, false, "123", SECOND, true }, /* they ran before it came */
};

static void a_read_shows_who_went(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof removal_cases / sizeof *removal_cases; i++) {
		const struct removal_case *c = &removal_cases[i];
		struct accepted a = accepted_none();
		struct machine machines[3];
		struct group_description d = shown(c->machines, machines, 3);
		accepted_note(&a, &(struct accepted_call){ .verb = c->verb,
							   .ids = both,
							   .id_count = 2,
							   .desired = 1,
							   .is_recalled = c->is_recalled,
							   .at = HOUR,
							   .mono = HOUR });
		if (accepted_shows(&a, &d, HOUR + c->after, 0) != c->shows)
			fail_msg("case %zu: %s with %s of 123 left after %lld ms", i, provider_verb_name(c->verb),
				 c->machines, (long long)c->after);
		accepted_release(&a);
	}
}

/* A size that was raised shows, or failed since, or its time is over. */
static void a_read_shows_what_was_raised(void **state)
{
	struct launch_failure failure = { .id = 7, .at = HOUR, .kind = ERROR_STOCKOUT, .message = "", .count = 1 };
	struct accepted a = accepted_none();
	struct machine machines[3];
	struct group_description d = shown("12", machines, 2);

	(void)state;
	accepted_note(&a, &(struct accepted_call){ .verb = PROVIDER_GROW, .desired = 3, .at = HOUR, .mono = HOUR });
	assert_false(accepted_shows(&a, &d, HOUR + SECOND, 0));
	assert_true(accepted_shows(&a, &d, HOUR + LAG_MOST, 0));
	d.failures = &failure;
	d.failure_count = 1;
	assert_true(accepted_shows(&a, &d, HOUR + SECOND, 0));
	assert_false(accepted_shows(&a, &d, HOUR + SECOND, 7)); /* known before */
	failure.at = HOUR - MINUTE;
	assert_false(accepted_shows(&a, &d, HOUR + SECOND, 0)); /* of before the call */
	d.desired = 3;
	assert_true(accepted_shows(&a, &d, HOUR + SECOND, 0));
	accepted_release(&a);
}

/* What a read showed to be gone does not come back under an older one. */
static void who_was_seen_to_be_gone_is_gone(void **state)
{
	struct accepted a = accepted_none();
	struct machine machines[3];
	struct group_description d = shown("3", machines, 1);

	(void)state;
	accepted_note(&a, &(struct accepted_call){
				  .verb = PROVIDER_REMOVE, .ids = both, .id_count = 2, .at = HOUR, .mono = HOUR });
	assert_true(accepted_shows(&a, &d, HOUR + SECOND, 0));
	accepted_seen(&a, &d, HOUR + SECOND);
	d = shown("13", machines, 1);
	assert_false(accepted_shows(&a, &d, HOUR + MINUTE, 0));
	assert_true(accepted_shows(&a, &d, HOUR + SECOND + LAG_MOST, 0));
	accepted_release(&a);
}

/* It may be older than the cancel, or that came too late for some. */
static void a_size_of_before_a_cancel_is_doubted(void **state)
{
	struct accepted a = accepted_none();
	struct machine machines[3];
	struct group_description d = shown("123", machines, 3);

	(void)state;
	assert_false(accepted_leaves_doubt(&a, &d, HOUR));
	accepted_note(&a, &(struct accepted_call){ .verb = PROVIDER_CANCEL, .desired = 2, .at = HOUR, .mono = HOUR });
	assert_true(accepted_shows(&a, &d, HOUR + SECOND, 0));
	assert_true(accepted_leaves_doubt(&a, &d, HOUR + SECOND));
	assert_false(accepted_leaves_doubt(&a, &d, HOUR + LAG_MOST));
	d = shown("12", machines, 3);
	assert_false(accepted_shows(&a, &d, HOUR + SECOND, 0)); /* a cancel leaves none that is not there */
	assert_true(accepted_shows(&a, &d, HOUR + LAG_MOST, 0));
	d.desired = 2;
	assert_false(accepted_leaves_doubt(&a, &d, HOUR + SECOND));
	d.desired = 3;
	accepted_note(&a, &(struct accepted_call){ .verb = PROVIDER_GROW, .desired = 3, .at = HOUR, .mono = HOUR });
	assert_false(accepted_leaves_doubt(&a, &d, HOUR + SECOND));
	accepted_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_shows_who_went),
		cmocka_unit_test(a_read_shows_what_was_raised),
		cmocka_unit_test(who_was_seen_to_be_gone_is_gone),
		cmocka_unit_test(a_size_of_before_a_cancel_is_doubted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
