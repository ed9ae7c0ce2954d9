#include "base/log.h"
#include "tests/unit/cluster/watch_reader.h"

/* A server with a history that it forgets, behind a network that breaks. */
static struct {
	struct random random;
	struct {
		bool is_there, is_kept;
		int64_t uid, value, version;
	} objects[24];
	struct {
		int64_t version;
		char text[256];
	} history[4096];
	size_t events;
	int64_t version, oldest, uids; /* oldest: the first version that a watch may go on from */
	struct api_call *call;
	struct buf out; /* to be sent on the call */
	size_t sent;
	size_t told; /* events of the history that stand in `out` */
	bool is_list, is_watch, is_calm;
	int page_from;
	int64_t page_version;
} server;

static void write_object(size_t i, struct buf *out)
{
	buf_printf(out,
		   "{\"metadata\":{\"name\":\"n%zu\",\"namespace\":\"s\",\"uid\":\"%08llx-0000-4000-8000-%012zx\","
		   "\"resourceVersion\":\"%lld\",\"managedFields\":[{\"f:}\":\"\\\"]\"}]},\"spec\":{\"value\":%lld,"
		   "\"kept\":%s}}",
		   i, (unsigned long long)server.objects[i].uid, i, (long long)server.objects[i].version,
		   (long long)server.objects[i].value, server.objects[i].is_kept ? "true" : "false");
}

static uint64_t below(uint64_t n)
{
	return random_next(&server.random) % n;
}

static void change_something(void)
{
	size_t i = below(24);
	const char *type = "MODIFIED";
	CLEANUP(buf_release) struct buf text = { 0 };

	if (server.events == 4096)
		return;
	server.objects[i].version = ++server.version;
	if (!server.objects[i].is_there) {
		type = "ADDED";
		server.objects[i].is_there = true;
		server.objects[i].uid = ++server.uids;
	} else if (below(3) == 0) {
		type = "DELETED";
		server.objects[i].is_there = false;
	}
	server.objects[i].is_kept = below(4) != 0;
	server.objects[i].value = (int64_t)below(1000);
	buf_printf(&text, "{\"type\":\"%s\",\"object\":", type);
	write_object(i, &text);
	buf_text(&text, "}\n");
	server.history[server.events].version = server.version;
	snprintf(server.history[server.events++].text, 256, "%s", text.text);
}

static void write_page(int limit)
{
	int written = 0, i = server.page_from;

	if (!server.page_from)
		server.page_version = server.version;
	buf_text(&server.out, "{\"items\":[");
	for (; i < 24 && written < limit; i++)
		if (server.objects[i].is_there) {
			buf_text(&server.out, written++ ? "," : "");
			write_object((size_t)i, &server.out);
		}
	buf_printf(&server.out, "],\"metadata\":{\"resourceVersion\":\"%lld\"", (long long)server.page_version);
	if (i < 24)
		buf_printf(&server.out, ",\"continue\":\"%d\"", i);
	buf_text(&server.out, "}}");
}

static int64_t number_after(const char *path, const char *key)
{
	const char *at = strstr(path, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static void serve(struct api_call *c)
{
	server.call = c;
	buf_clear(&server.out);
	server.sent = 0;
	server.is_watch = strstr(c->path, "watch=true") != NULL;
	server.is_list = !server.is_watch || strstr(c->path, "sendInitialEvents");
}

/* The beginning of an answer, or a refusal; false: the call is over. */
static bool answer_begins(struct api_call *c)
{
	int64_t from = number_after(c->path, "resourceVersion="), next = number_after(c->path, "continue=");

	if (!server.is_calm && below(6) == 0) {
		static const int refusals[] = { 429, 500, 503, 410, 403, 404 };
		int refusal = refusals[below(server.is_list ? 5 : 4)];
		play_answer(c, refusal, play_status(refusal, "Whatever", NULL));
		return false;
	}
	if (server.is_list && server.is_watch) {
		for (size_t i = 0; i < 24; i++)
			if (server.objects[i].is_there) {
				buf_text(&server.out, "{\"type\":\"ADDED\",\"object\":");
				write_object(i, &server.out);
				buf_text(&server.out, "}\n");
			}
		buf_printf(&server.out,
			   "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%lld\","
			   "\"annotations\":{"
			   "\"k8s.io/initial-events-end\":\"true\"}}}}\n",
			   (long long)server.version);
		server.told = server.events;
	} else if (server.is_list) {
		server.page_from = next > 0 ? (int)next : 0;
		/* A page goes on from a version that may be gone; ours stands still between pages, or is expired. */
		if (next > 0 && server.page_version != server.version) {
			play_answer(c, 410, play_status(410, "Expired", NULL));
			return false;
		}
		write_page(strstr(c->path, "limit=5") ? 5 : 24);
	} else {
		if (from < server.oldest) {
			play_answer(c, 410, play_status(410, "Expired", NULL));
			return false;
		}
		for (server.told = 0; server.told < server.events && server.history[server.told].version <= from;)
			server.told++;
	}
	return true;
}

static void send_some(void)
{
	size_t left = server.out.len - server.sent, n = left ? 1 + below(left) : 0;

	if (server.is_calm)
		n = left;
	if (!n)
		return;
	const char *from = server.out.text + server.sent;
	server.sent += n;
	struct api_call *c = server.call;
	if (!play_chunk(c, from, n) && server.call == c)
		server.call = NULL;
}

static bool is_answering;

static void server_turn(void)
{
	if (!server.is_calm)
		for (uint64_t n = below(4); n; n--)
			change_something();
	if (!server.is_calm && below(12) == 0)
		server.oldest = server.version - (int64_t)below(4);
	if (!server.call) {
		is_answering = false;
		return;
	}
	struct api_call *c = server.call;
	if (!is_answering) {
		server.call = NULL;
		if (!answer_begins(c)) {
			return;
		}
		server.call = c;
		is_answering = true;
		if (server.is_watch)
			play_accept(c);
	}
	if (server.is_watch)
		for (; server.told < server.events; server.told++) {
			buf_text(&server.out, server.history[server.told].text);
			if (!server.is_calm && below(10) == 0) /* the same again */
				buf_text(&server.out, server.history[server.told].text);
		}
	send_some();
	if (!server.call) {
		is_answering = false;
		return;
	}
	bool is_all = server.sent == server.out.len;
	bool breaks = !server.is_calm && below(8) == 0;
	if (breaks || (!server.is_watch && is_all)) {
		server.call = NULL;
		is_answering = false;
		if (!breaks || (server.is_watch && is_all && below(2)))
			play_answer(c, 200, "");
		else
			play_failure(c, below(2) ? ERROR_UNAVAILABLE : ERROR_TIMEOUT);
	}
}

static void check_same(uint64_t seed)
{
	size_t kept = 0;

	for (size_t i = 0; i < 24; i++) {
		char uid[64];
		if (!server.objects[i].is_there || !server.objects[i].is_kept)
			continue;
		kept++;
		snprintf(uid, sizeof uid, "%08llx-0000-4000-8000-%012zx", (unsigned long long)server.objects[i].uid, i);
		size_t at = told_at(object_uid_of(uid));
		if (at == told.count || told.items[at].value != server.objects[i].value)
			fail_msg("seed %llu: object %zu was %s", (unsigned long long)seed, i,
				 at == told.count ? "lost" : "not told as it is");
	}
	if (kept != told.count || told.wrong)
		fail_msg("seed %llu: %zu objects of %zu, %d told gone that were not held", (unsigned long long)seed,
			 told.count, kept, told.wrong);
}

static void any_history_ends_the_same(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct buf out = server.out;
		memset(&server, 0, sizeof server);
		server.out = out;
		server.random = random_stream(seed, "server");
		is_answering = false;
		for (int i = 0; i < 20; i++)
			change_something();
		struct watch *w = begin_watch(play_begin(serve), (enum watch_way)(seed % 3), 5);
		for (int turn = 0; turn < 300 || !server.is_calm; turn++) {
			server.is_calm = turn >= 300;
			play_until(play_now() + (millis)below(400));
			server_turn();
		}
		for (int turn = 0; turn < 400; turn++) {
			play_until(play_now() + 400);
			server_turn();
		}
		if (watch_report(w)->state != WATCH_SYNCED)
			fail_msg("seed %llu: %s", (unsigned long long)seed, watch_state_name(watch_report(w)->state));
		check_same(seed);
		assert_int_equal(watch_report(w)->objects, told.count);
		end_watch(w);
	}
	buf_release(&server.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(any_history_ends_the_same) };

	log_level_set(LEVEL_ERROR);
	return cmocka_run_group_tests_name("watch histories", tests, NULL, NULL);
}
