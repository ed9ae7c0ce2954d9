#include "base/file.h"
#include "controller/simulation/files/world_file.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static void the_page_is_current(void **state)
{
	CLEANUP(buf_release) struct buf page = { 0 };
	CLEANUP(buf_release) struct buf reference = { 0 };
	struct error e = { 0 };

	(void)state;
	world_write_reference(&reference);
	if (!file_read("docs/simulator.md", 1 << 20, &page, &e))
		fail_msg("%s", e.message);
	const char *copy = strstr(page.text, "## The world file");
	if (!copy || strcmp(copy, reference.text) != 0)
		fail_msg("the end of docs/simulator.md is not what preheat simulate --print-world prints");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_page_is_current) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
