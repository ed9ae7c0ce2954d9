/* How fast a page of a model server's metrics is read: a vLLM page with every family, against memchr over its lines. */
#include "signals/engine_metrics.h"
#include "tests/unit/signals/vllm_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 20000, CHUNK = 16 * 1024 };

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void read_page(const struct page_table *table, const struct buf *text)
{
	struct page *p = page_open(table);
	struct page_content c = { 0 };
	struct error e;
	bool ok = true;

	for (size_t at = 0; ok && at < text->len; at += CHUNK)
		ok = page_feed(p, text->text + at, text->len - at < CHUNK ? text->len - at : CHUNK, &e);
	if (!ok || !page_finish(p, &c, &e)) {
		fprintf(stderr, "%s\n", e.message);
		exit(3);
	}
	page_content_release(&c);
	page_close(p);
}

static bool count_sample(void *user, const struct exposition_sample *s, struct error *e)
{
	(void)s, (void)e;
	++*(size_t *)user;
	return true;
}

static double rate_of_skipping(const struct buf *text)
{
	static const char *const none[] = { "not_there" };
	size_t samples = 0;
	double start = seconds();

	for (int i = 0; i < ROUNDS; i++) {
		struct exposition *x = exposition_open((struct exposition_names){ none, 1 }, 1, count_sample, &samples);
		struct error e;
		if (!exposition_feed(x, text->text, text->len, &e))
			exit(3);
		exposition_close(x);
	}
	return (double)text->len * ROUNDS / (seconds() - start) / 1e6;
}

static double rate_of_lines(const struct buf *text)
{
	size_t lines = 0;
	double start = seconds();

	for (int i = 0; i < ROUNDS; i++)
		for (const char *p = text->text; (p = memchr(p, '\n', text->len - (size_t)(p - text->text))); p++)
			lines++;
	return lines ? (double)text->len * ROUNDS / (seconds() - start) / 1e6 : 0;
}

int main(void)
{
	struct page_table table = page_table_make(ENGINE_VLLM, NULL, NULL);
	struct buf text = { 0 };

	vllm_page(&text, 123456);
	double start = seconds();
	for (int i = 0; i < ROUNDS; i++)
		read_page(&table, &text);
	double took = seconds() - start;
	printf("a page of %zu bytes: %.1f us, %.0f MB/s; with nothing asked for %.0f MB/s; memchr alone %.0f MB/s\n",
	       text.len, took / ROUNDS * 1e6, (double)text.len * ROUNDS / took / 1e6, rate_of_skipping(&text),
	       rate_of_lines(&text));
	buf_release(&text);
	return 0;
}
