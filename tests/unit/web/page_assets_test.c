/* The page's files as a browser gets them, over a real socket. */
#include "base/gzip.h"
#include "controller/web/site.h"
#include "tests/unit/net/http_calls.h"

#include <stdlib.h>
#include <unistd.h>

enum { LARGEST = 1 << 20 };

/* What one request was answered. */
struct seen {
	long status;
	char *body;
	size_t size;
	char type[64], encoding[32], tag[64];
};

struct site {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct seen seen;
};

static void keep(struct call *c)
{
	struct seen *s = &((struct site *)(void *)c->loop)->seen;
	const char *type = http_header(&c->r, "content-type"), *encoding = http_header(&c->r, "content-encoding");
	const char *tag = http_header(&c->r, "etag");

	free(s->body);
	s->status = c->r.status;
	s->size = c->r.response_len;
	s->body = malloc(s->size + 1);
	assert_non_null(s->body);
	memcpy(s->body, c->r.response, s->size);
	s->body[s->size] = 0;
	snprintf(s->type, sizeof s->type, "%s", type ? type : "");
	snprintf(s->encoding, sizeof s->encoding, "%s", encoding ? encoding : "");
	snprintf(s->tag, sizeof s->tag, "%s", tag ? tag : "");
}

static const struct seen *get(struct site *s, const char *path, const char *header)
{
	const char *headers[] = { header, NULL };
	char url[256];

	snprintf(url, sizeof url, "http://127.0.0.1:%u%s", (unsigned)server_port(s->server), path);
	struct call c = call_to(url);
	c.r.max_response = LARGEST;
	c.r.headers = header ? headers : NULL;
	c.r.user = &c;
	c.loop = (struct loop *)(void *)s;
	c.then = keep;
	http_start(s->http, &c.r);
	while (http_active(s->http))
		assert_true(loop_once(s->loop) || !http_active(s->http));
	return &s->seen;
}

static int open_site(void **state)
{
	static const struct server_route routes[] = { { "GET", "/", page_answer, NULL },
						      { "GET", "/assets/*", page_answer, NULL } };
	struct server_settings settings = { .listen = "127.0.0.1:0", .routes = routes, .route_count = 2 };
	struct site *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	s->loop = loop_open();
	s->http = http_open(s->loop, "preheat/test", &e);
	s->server = server_open(s->loop, &settings, &e);
	assert_non_null(s->server);
	*state = s;
	return 0;
}

static int close_site(void **state)
{
	struct site *s = *state;

	http_close(s->http);
	server_close(s->server);
	loop_close(s->loop);
	free(s->seen.body);
	free(s);
	return 0;
}

static void unpacks_to(const struct seen *seen, const char *plain, size_t size)
{
	char path[] = "/tmp/page_assets_test.XXXXXX";
	char *bytes = malloc(size + 1);
	struct error e = { 0 };
	size_t got = 1, total = 0;
	int fd = mkstemp(path);

	assert_non_null(bytes);
	assert_true(fd >= 0 && write(fd, seen->body, seen->size) == (ssize_t)seen->size);
	struct gzip *g = gzip_open(path, &e);
	assert_non_null(g);
	while (got && total <= size) {
		if (!gzip_read(g, bytes + total, size + 1 - total, &got, &e))
			fail_msg("%s", e.message);
		total += got;
	}
	assert_int_equal(total, size);
	assert_memory_equal(bytes, plain, size);
	gzip_close(g);
	close(fd);
	unlink(path);
	free(bytes);
}

static void every_file_is_served_both_ways(void **state)
{
	for (size_t i = 0; i < page_asset_count; i++) {
		const struct page_asset *p = &page_assets[i];
		const struct seen *seen = get(*state, p->path, "Accept-Encoding: gzip, deflate, br");

		assert_int_equal(seen->status, 200);
		assert_string_equal(seen->encoding, "gzip");
		assert_string_equal(seen->type, p->content_type);
		unpacks_to(seen, p->plain, p->plain_size);
		seen = get(*state, p->path, NULL);
		assert_string_equal(seen->encoding, "");
		assert_int_equal(seen->size, p->plain_size);
		assert_memory_equal(seen->body, p->plain, p->plain_size);
	}
	assert_string_equal(page_asset("/")->content_type, "text/html; charset=utf-8");
	assert_string_equal(page_asset("/assets/base.css")->content_type, "text/css; charset=utf-8");
	assert_string_equal(page_asset("/assets/uplot.js")->content_type, "text/javascript; charset=utf-8");
}

static void gzip_is_sent_only_where_it_is_wanted(void **state)
{
	static const struct {
		const char *header, *encoding;
	} cases[] = {
		{ "Accept-Encoding: br, gzip", "gzip" },
		{ "Accept-Encoding: gzip;q=0.5", "gzip" },
		{ "Accept-Encoding: gzip;q=1.0, *", "gzip" },
		{ "Accept-Encoding: gzip;q=0", "" },
		{ "Accept-Encoding: gzip; q=0.000, br", "" },
		{ "Accept-Encoding: gzip;q=0, br;q=1", "" },
		{ "Accept-Encoding: br", "" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(get(*state, "/", cases[i].header)->encoding, cases[i].encoding);
}

static void what_the_browser_has_is_not_sent_again(void **state)
{
	char header[128];

	snprintf(header, sizeof header, "If-None-Match: \"x\", %s", get(*state, "/", NULL)->tag);
	const struct seen *seen = get(*state, "/", header);
	assert_int_equal(seen->status, 304);
	assert_int_equal(seen->size, 0);
	assert_int_equal(get(*state, "/", "If-None-Match: W/\"0123456789abcdef\"")->status, 200);
	assert_int_equal(get(*state, "/assets/base.css", header)->status, 200);
}

static void no_other_file_is_served(void **state)
{
	static const char *const paths[] = { "/assets/", "/assets/index.html", "/assets/../index.html",
					     "/assets/embed.cmake", "/assets/%2e%2e/%2e%2e/etc/passwd" };

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		const struct seen *seen = get(*state, paths[i], NULL);

		if (seen->status != 404)
			fail_msg("%s: %ld %s", paths[i], seen->status, seen->body);
	}
}

/* The policy of the server forbids what stands inline, and every other host. */
static void nothing_is_inline_or_elsewhere(void **state)
{
	static const char *const forbidden[] = { "<style",    " style=\"", "src=\"http", "href=\"http",	   "src=\"//",
						 " onclick=", " onload=",  "innerHTML",	 "document.write", "eval(" };

	(void)state;
	for (size_t i = 0; i < page_asset_count; i++) {
		if (!strncmp(page_assets[i].path, "/assets/uplot", strlen("/assets/uplot")))
			continue;
		for (size_t k = 0; k < sizeof forbidden / sizeof *forbidden; k++)
			if (strstr(page_assets[i].plain, forbidden[k]))
				fail_msg("%s has %s", page_assets[i].path, forbidden[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_file_is_served_both_ways, open_site, close_site),
		cmocka_unit_test_setup_teardown(gzip_is_sent_only_where_it_is_wanted, open_site, close_site),
		cmocka_unit_test_setup_teardown(what_the_browser_has_is_not_sent_again, open_site, close_site),
		cmocka_unit_test_setup_teardown(no_other_file_is_served, open_site, close_site),
		cmocka_unit_test(nothing_is_inline_or_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
