/*
 * Any names of metrics as a manifest may give them, and any page read by those that are names: lines up to an empty
 * one are the names, a byte says how the rest is cut.
 */
#include "base/text.h"
#include "signals/engine_metrics.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Returns where the page begins. */
static const char *take_names(char *text, char *end, const char *names[CUSTOM_COUNT])
{
	for (size_t i = 0; i < CUSTOM_COUNT && text < end; i++) {
		char *line = text, *stop = memchr(text, '\n', (size_t)(end - text));
		struct metric_name m;
		if (!stop)
			return end;
		*stop = '\0';
		text = stop + 1;
		if (!*line)
			break;
		if (strlen(line) == (size_t)(stop - line) && metric_name_parse(line, &m))
			names[i] = line;
	}
	return text;
}

static void read_page(const struct page_table *t, const char *text, size_t len, size_t cut)
{
	struct page *p = page_open(t);
	struct page_content c = { 0 };
	struct error e;

	if (page_feed(p, text, cut, &e) && page_feed(p, text + cut, len - cut, &e) && page_finish(p, &c, &e) &&
	    (c.running < 0 || c.waiting < 0 || c.kv_permille > 1000 || c.series_count > PAGE_SERIES))
		abort();
	page_content_release(&c);
	page_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *names[CUSTOM_COUNT] = { NULL };
	struct arena a = { 0 };

	if (len < 2)
		return 0;
	char *text = malloc(len);
	if (!text)
		abort();
	memcpy(text, bytes + 1, len - 1);
	const char *page = take_names(text, text + len - 1, names);
	size_t left = (size_t)(text + len - 1 - page);
	bool has_any = false;
	for (size_t i = 0; i < CUSTOM_COUNT; i++)
		has_any |= names[i] != NULL;
	if (has_any) {
		struct engine_metrics m = custom_metrics(names, &a);
		struct page_table table = page_table_make(ENGINE_VLLM, &m, &a);
		read_page(&table, page, left, bytes[0] * left / 256);
	}
	arena_release(&a);
	free(text);
	return 0;
}
