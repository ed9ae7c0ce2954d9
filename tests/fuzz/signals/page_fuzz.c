/* Any bytes as a page of any engine, cut anywhere, then compared with what another part of them says. */
#include "signals/counter_delta.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool read_page(const struct page_table *t, const char *bytes, size_t len, size_t cut, struct page_content *c)
{
	struct page *p = page_open(t);
	struct error e;
	bool ok = page_feed(p, bytes, cut, &e) && page_feed(p, bytes + cut, len - cut, &e) && page_finish(p, c, &e);

	page_close(p);
	if (!ok)
		return false;
	if (c->running < 0 || c->waiting < 0 || c->kv_permille > 1000 || c->series_count > PAGE_SERIES)
		abort();
	return true;
}

static void compare(const struct page_content *a, const struct page_content *b)
{
	struct counter_delta delta;
	struct error e;

	if (!counter_delta_between(a, b, 2000000, 5000, &delta, &e))
		return;
	if (delta.late < 0 || (delta.has_late && delta.late > delta.added[ENGINE_WAITED]))
		abort();
	for (int q = 0; q < ENGINE_QUANTITY_COUNT; q++)
		if (delta.added[q] < 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct page_content first = { 0 }, second = { 0 };

	if (len < 3)
		return 0;
	struct page_table table = page_table_make((enum engine)(bytes[0] % ENGINE_COUNT), NULL, NULL);
	const char *text = (const char *)bytes + 3;
	size_t all = len - 3, half = bytes[1] * all / 256;
	if (read_page(&table, text, half, bytes[2] * half / 256, &first) &&
	    read_page(&table, text + half, all - half, bytes[2] * (all - half) / 256, &second))
		compare(&first, &second);
	page_content_release(&first);
	page_content_release(&second);
	return 0;
}
