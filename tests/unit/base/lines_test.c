#include "base/gzip.h"

#include "base/file.h"
#include "tests/unit/text_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <cmocka.h>

/* All lines joined by '|', or the error's text. */
static void read_all(const char *path, char *out, size_t room)
{
	struct error e = { 0 };
	struct gzip *g = gzip_open(path, &e);
	struct lines l = { .source = g };
	char *line;
	size_t len, n = 0;

	out[0] = '\0';
	assert_non_null(g);
	for (;;) {
		if (!lines_next(&l, &line, &len, &e)) {
			snprintf(out, room, "%s", e.message);
			break;
		}
		if (!line)
			break;
		n += (size_t)snprintf(out + n, room - n, "%s|", line);
	}
	lines_release(&l);
	gzip_close(g);
}

static void line_ends(void **state)
{
	static const struct {
		const char *text, *lines;
	} cases[] = {
		{ "", "" },
		{ "\n", "|" },
		{ "a", "a|" },
		{ "a\n", "a|" },
		{ "a\nb", "a|b|" },
		{ "a\r\nb\r\n", "a|b|" },
		{ "a\n\nb\n", "a||b|" },
		{ "\xef\xbb\xbf"
		  "a\n",
		  "a|" },
	};
	char out[256];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct text_file f = text_file(cases[i].text, strlen(cases[i].text));
		read_all(f.path, out, sizeof out);
		assert_string_equal(out, cases[i].lines);
		text_file_close(&f);
	}
}

static void long_lines_are_refused(void **state)
{
	size_t len = LINE_MAX_BYTES + 2;
	char *text = malloc(len), out[512];

	(void)state;
	memset(text, 'x', len);
	text[LINE_MAX_BYTES] = '\n';
	struct text_file f = text_file(text, LINE_MAX_BYTES + 1);
	struct error e = { 0 };
	struct gzip *g = gzip_open(f.path, &e);
	struct lines l = { .source = g };
	char *line;
	size_t n;
	assert_true(lines_next(&l, &line, &n, &e));
	assert_int_equal(n, LINE_MAX_BYTES);
	lines_release(&l);
	gzip_close(g);
	text_file_close(&f);
	text[LINE_MAX_BYTES] = 'x';
	f = text_file(text, len);
	read_all(f.path, out, sizeof out);
	assert_non_null(strstr(out, ":1: the line is longer than 65536 bytes"));
	text_file_close(&f);
	free(text);
}

/* A packed file made by the writer. */
static char *packed(const char *text, size_t *len)
{
	char path[] = "/tmp/preheat-lines-test-XXXXXX.gz";
	struct error e = { 0 };
	struct stat st;

	int fd = mkstemps(path, 3);
	assert_true(fd >= 0);
	close(fd);
	struct output *o = output_open(path, &e);
	assert_non_null(o);
	output_text(o, text);
	assert_true(output_commit(o, &e));
	FILE *in = fopen(path, "rb");
	assert_int_equal(stat(path, &st), 0);
	*len = (size_t)st.st_size;
	char *bytes = malloc(*len);
	assert_int_equal(fread(bytes, 1, *len, in), *len);
	fclose(in);
	unlink(path);
	return bytes;
}

static void expect(const char *bytes, size_t len, const char *lines)
{
	struct text_file f = text_file(bytes, len);
	char out[512];

	read_all(f.path, out, sizeof out);
	if (!strstr(out, lines))
		fail_msg("expected '%s', got '%s'", lines, out);
	text_file_close(&f);
}

static void gzip_members_and_damage(void **state)
{
	size_t len;
	char *bytes = packed("hello\nworld\n", &len), twice[512], broken[256];

	(void)state;
	expect(bytes, len, "hello|world|");
	memcpy(twice, bytes, len);
	memcpy(twice + len, bytes, len);
	expect(twice, 2 * len, "hello|world|hello|world|");
	memset(twice + len, 0, 100);
	expect(twice, len + 100, "hello|world|");
	memset(twice + len, 'x', 100);
	expect(twice, len + 100, "bytes that are not gzip follow");
	for (size_t cut = 2; cut < len; cut++)
		expect(bytes, cut, "truncated");
	for (size_t at = len - 8; at < len; at++) {
		memcpy(broken, bytes, len);
		broken[at] = (char)(broken[at] ^ 1);
		expect(broken, len, "damaged");
	}
	free(bytes);
}

static void peeking_reads_nothing(void **state)
{
	struct text_file f = text_file("abcdef", 6);
	struct error e = { 0 };
	struct gzip *g = gzip_open(f.path, &e);
	const char *bytes;
	char out[16];
	size_t len;

	(void)state;
	assert_true(gzip_peek(g, &bytes, &len, &e));
	assert_int_equal(len, 6);
	assert_true(gzip_read(g, out, 2, &len, &e));
	assert_int_equal(len, 2);
	assert_true(gzip_peek(g, &bytes, &len, &e));
	assert_int_equal(len, 4);
	assert_memory_equal(bytes, "cdef", 4);
	assert_true(gzip_read(g, out, sizeof out, &len, &e));
	assert_int_equal(len, 4);
	assert_true(gzip_read(g, out, sizeof out, &len, &e));
	assert_int_equal(len, 0);
	gzip_close(g);
	text_file_close(&f);
}

static void no_such_file(void **state)
{
	struct error e = { 0 };

	(void)state;
	assert_null(gzip_open("/nowhere/trace.csv", &e));
	assert_int_equal(e.kind, ERROR_NOT_FOUND);
	assert_string_equal(e.message, "/nowhere/trace.csv: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_ends),
		cmocka_unit_test(long_lines_are_refused),
		cmocka_unit_test(gzip_members_and_damage),
		cmocka_unit_test(peeking_reads_nothing),
		cmocka_unit_test(no_such_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
