/* Time that passes in a world, for tests: a broken law ends the test with the trace before it. */
#pragma once
#include "tests/world/laws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static inline void assert_lawful(void)
{
	if (!*laws_broken())
		return;
	laws_print_trace(60);
	fail_msg("%s", laws_broken());
}

static inline void run(millis duration)
{
	world_run(duration);
	assert_lawful();
}

static inline void until(bool (*is_so)(void), millis most, const char *what)
{
	bool came = world_until(is_so, most);

	assert_lawful();
	if (came)
		return;
	laws_print_trace(60);
	fail_msg("%s: not within %lld s", what, (long long)(most / SECOND));
}

static inline int tear_down(void **state)
{
	(void)state;
	world_end();
	return 0;
}
