/* Any bytes as a file, plain or packed, read by lines. */
#include "base/gzip.h"

#include "tests/unit/text_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct text_file f = text_file(bytes, len);
	struct error e;
	struct gzip *g = gzip_open(f.path, &e);
	struct lines l = { .source = g };
	char *line;
	size_t n;

	while (lines_next(&l, &line, &n, &e) && line)
		;
	lines_release(&l);
	gzip_close(g);
	text_file_close(&f);
	return 0;
}
