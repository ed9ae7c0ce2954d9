#include "base/file.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/preheat-output-test-XXXXXX";

static void in_folder(char out[128], const char *name)
{
	snprintf(out, 128, "%s/%s", folder, name);
}

static int count_files(void)
{
	DIR *d = opendir(folder);
	int n = 0;

	assert_non_null(d);
	for (struct dirent *entry; (entry = readdir(d));)
		n += entry->d_name[0] != '.';
	closedir(d);
	return n;
}

static void content(const char *path, char out[256])
{
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	out[fread(out, 1, 255, f)] = '\0';
	fclose(f);
}

static void appears_whole_or_not_at_all(void **state)
{
	struct error e = { 0 };
	char path[128], text[256];

	(void)state;
	in_folder(path, "a.csv");
	struct output *o = output_open(path, &e);
	output_text(o, "first\n");
	assert_int_equal(access(path, F_OK), -1);
	assert_true(output_commit(o, &e));
	content(path, text);
	assert_string_equal(text, "first\n");
	o = output_open(path, &e);
	output_text(o, "second\n");
	output_abandon(o);
	content(path, text);
	assert_string_equal(text, "first\n");
	o = output_open(path, &e);
	output_text(o, "third\n");
	assert_true(output_commit(o, &e));
	content(path, text);
	assert_string_equal(text, "third\n");
	assert_int_equal(count_files(), 1);
	unlink(path);
}

static void refusals(void **state)
{
	struct error e = { 0 };
	char path[128];

	(void)state;
	in_folder(path, "missing/a.csv");
	assert_null(output_open(path, &e));
	assert_int_equal(e.kind, ERROR_NOT_FOUND);
	assert_null(output_open(folder, &e));
	assert_non_null(strstr(e.message, "cannot write: Is a directory"));
	struct output *o = output_open("/dev/full", &e);
	assert_non_null(o);
	output_text(o, "x");
	assert_false(output_commit(o, &e));
	assert_non_null(strstr(e.message, "No space left on device"));
	assert_int_equal(access("/dev/full", F_OK), 0);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appears_whole_or_not_at_all),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
