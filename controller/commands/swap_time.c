/* preheat swap-time: how long the servers of an engine take to fall asleep and to wake, measured on them. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/terminal.h"
#include "controller/commands/command.h"
#include "controller/commands/print.h"
#include "signals/engine_call.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MOST = 1000 };

struct measuring {
	/* options */
	const char *engine_name, *output;
	int64_t level, rounds;
	millis timeout;
	struct http_auth_settings auth;

	enum engine engine;
	struct clock clock;
	struct loop *loop;
	struct http *http;
	struct signal_watch interrupt, term;
	bool is_interrupted; /* ends behind the round: nothing is left asleep */
	struct table *table;
};

static const struct table_column columns[] = {
	{ "server", NULL, false, false },
	{ "engine", NULL, false, false },
	{ "level", NULL, true, false },
	{ "rounds", NULL, true, false },
	{ "sleep_median_s", "SLEEP", true, false },
	{ "sleep_longest_s", "LONGEST", true, false },
	{ "wake_median_s", "WAKE", true, false },
	{ "wake_longest_s", "LONGEST", true, false },
};

/* --- one call, waited for --- */

struct awaited {
	struct engine_call call;
	bool is_done;
	struct error error;
	enum engine_told told;
	bool was_sent;
	millis took;
};

static void on_done(struct engine_call *c)
{
	struct awaited *w = c->user;

	w->is_done = true;
	w->error = c->error;
	w->told = c->told;
	w->was_sent = c->was_sent;
	w->took = c->took;
}

static bool move(struct measuring *m, const struct http_auth *server, enum engine_move wanted, struct awaited *w)
{
	*w = (struct awaited){ .call = { .move = wanted,
					 .engine = m->engine,
					 .level = (int)m->level,
					 .server = server,
					 .metrics_path = "/metrics",
					 .deadline = m->timeout,
					 .done = on_done,
					 .user = w } };
	engine_call_start(m->loop, m->http, &m->clock, &w->call);
	while (!w->is_done && loop_once(m->loop))
		;
	return w->error.kind == ERROR_NONE;
}

/* --- a server --- */

static bool check_awake(struct measuring *m, const struct http_auth *server, struct error *e)
{
	struct awaited look;

	if (!move(m, server, MOVE_LOOK, &look)) {
		*e = look.error;
		return false;
	}
	return look.told != TOLD_ASLEEP ||
	       error_set(e, ERROR_CONFLICT, "%s sleeps, and somebody may have a reason: wake it first",
			 http_auth_url(server));
}

/* A sleep that failed under way may have happened all the same: nothing is left asleep that can be woken. */
static bool measure_round(struct measuring *m, const struct http_auth *server, millis *sleep, millis *wake,
			  struct error *e)
{
	struct awaited fall, back;
	bool slept = move(m, server, MOVE_SLEEP, &fall);

	*e = fall.error;
	if (!slept && !fall.was_sent)
		return false;
	bool woke = move(m, server, MOVE_WAKE, &back);
	if (slept)
		*e = back.error;
	if (!woke)
		error_wrap(e, "it may be left asleep");
	*sleep = fall.took;
	*wake = back.took;
	return slept && woke;
}

static int by_size(const void *a, const void *b)
{
	const millis *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median, and the longest. */
static void put_times(struct measuring *m, millis *times, size_t count)
{
	qsort(times, count, sizeof *times, by_size);
	table_duration(m->table, times[count / 2]);
	table_duration(m->table, times[count - 1]);
}

static bool measure(struct measuring *m, const struct http_auth *server, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	millis *sleeps = arena_array(&a, millis, (size_t)m->rounds),
	       *wakes = arena_array(&a, millis, (size_t)m->rounds);
	size_t count = 0;

	if (!check_awake(m, server, e))
		return false;
	while (count < (size_t)m->rounds && !m->is_interrupted) {
		if (!measure_round(m, server, &sleeps[count], &wakes[count], e))
			return false;
		count++;
	}
	if (!count)
		return true;
	table_text(m->table, http_auth_url(server));
	table_text(m->table, m->engine_name);
	table_count(m->table, m->level);
	table_count(m->table, (int64_t)count);
	put_times(m, sleeps, count);
	put_times(m, wakes, count);
	return true;
}

/* --- the verb --- */

static void interrupt(struct signal_watch *w, int number)
{
	struct measuring *m = w->user;

	(void)number;
	m->is_interrupted = true;
}

/* Where one fails the others are not touched; what was measured is printed. */
static bool measure_all(struct measuring *m, char *const *urls, struct error *e)
{
	bool ok = true;

	for (size_t i = 0; ok && urls[i] && !m->is_interrupted; i++) {
		struct http_auth *server = http_auth_open(urls[i], &m->auth);
		ok = measure(m, server, e);
		http_auth_close(server);
	}
	return ok;
}

static bool open_and_measure(struct measuring *m, char *const *urls, struct error *e)
{
	m->clock = clock_open();
	m->loop = loop_open();
	m->interrupt.user = m->term.user = m;
	signal_watch_start(m->loop, &m->interrupt, SIGINT, interrupt);
	signal_watch_start(m->loop, &m->term, SIGTERM, interrupt);
	m->http = http_open(m->loop, "preheat", e);
	bool ok = m->http && measure_all(m, urls, e);
	signal_watch_stop(&m->interrupt);
	signal_watch_stop(&m->term);
	while (m->http && http_active(m->http) && loop_once(m->loop))
		;
	http_close(m->http);
	loop_close(m->loop);
	return ok;
}

static bool check(struct measuring *m, char *const *urls, struct error *e)
{
	while (strcmp(engine_traits(m->engine).name, m->engine_name))
		m->engine++;
	if (m->level > 2)
		return error_set(e, ERROR_INVALID, "--level: found %lld; allowed: 1 or 2", (long long)m->level);
	if (m->rounds > ROUNDS_MOST)
		return error_set(e, ERROR_INVALID, "--rounds: found %lld; allowed: 1 to %d", (long long)m->rounds,
				 ROUNDS_MOST);
	if (!urls[0])
		return error_set(e, ERROR_INVALID, "no server: name its address, such as http://10.0.0.7:8000");
	for (size_t i = 0; urls[i]; i++) {
		const char *host = strstr(urls[i], "://");
		bool is_http = !strncmp(urls[i], "http://", 7) || !strncmp(urls[i], "https://", 8);
		if (!is_http || !host[3] || strpbrk(host + 3, "/?#"))
			return error_set(e, ERROR_INVALID, "found '%.60s'; allowed: http://HOST:PORT, without a path",
					 urls[i]);
	}
	return true;
}

/* "vllm|sglang": those that sleep. */
static void write_engines(struct buf *out)
{
	for (enum engine i = 0; i < ENGINE_COUNT; i++)
		if (engine_can_sleep(i, 1))
			buf_printf(out, "%s%s", out->len ? "|" : "", engine_traits(i).name);
}

static int run(int argc, char **argv)
{
	CLEANUP(buf_release) struct buf engines = { 0 };
	struct measuring m = {
		.engine_name = "vllm", .output = "table", .level = 1, .rounds = 5, .timeout = 2 * MINUTE
	};
	write_engines(&engines);
	const struct option_row rows[] = {
		{ "engine", 0, OPTION_CHOICE, "NAME", "what serves there", &m.engine_name, engines.text },
		{ "level", 0, OPTION_POSITIVE, "N", "1: weights in host memory; 2: dropped, and loaded again", &m.level,
		  NULL },
		{ "rounds", 0, OPTION_POSITIVE, "N", "how often each server sleeps and wakes", &m.rounds, NULL },
		{ "timeout", 0, OPTION_PERIOD, "DURATION", "for one sleep, and for one wake", &m.timeout, NULL },
		{ "bearer-token-file", 0, OPTION_TEXT, "FILE", "token that the servers ask for",
		  &m.auth.bearer_token_file, NULL },
		{ "ca-file", 0, OPTION_TEXT, "FILE", "certificates that the servers' are checked against",
		  &m.auth.ca_file, NULL },
		PRINT_OPTION(&m.output),
	};
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_swap_time, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	m.table = table_new(columns, sizeof columns / sizeof *columns);
	bool ok = check(&m, argv + rest, &e) && open_and_measure(&m, argv + rest, &e);
	if (table_rows(m.table))
		table_print(m.table, table_format_of(m.output), stdout);
	table_free(m.table);
	return ok ? EXIT_DONE : command_failed(&command_swap_time, &e);
}

const struct command command_swap_time = {
	.name = "swap-time",
	.usage = "swap-time URL... [--engine NAME] [--level N] [OPTIONS]",
	.summary = "How long model servers take to fall asleep and to wake, measured on them",
	.examples = "  preheat swap-time http://10.0.0.7:8000\n"
		    "  preheat swap-time --engine sglang --rounds 20 http://10.0.0.7:30000\n"
		    "  preheat swap-time --level 2 -o json http://10.0.0.7:8000 http://10.0.0.8:8000\n",
	.notes = "This puts the servers to sleep, one after the other, and wakes each: take them out of routing first. "
		 "A\n"
		 "server with requests is refused, and so is one that sleeps already. A sleep counts from the call "
		 "until\n"
		 "the server says that it sleeps, a wake until its first token. Ctrl-C ends behind the present round, "
		 "so\n"
		 "that nothing is left asleep. SLEEP and WAKE are medians: what `preheat share --sleep --wake` asks "
		 "for.\n"
		 "Servers run with sleep enabled: vLLM with --enable-sleep-mode and VLLM_SERVER_DEV_MODE=1, SGLang "
		 "with\n"
		 "--enable-memory-saver and --enable-weights-cpu-backup. SGLang does not tell whether it sleeps: its\n"
		 "answer is believed.\n",
	.arguments = "URL",
	.run = run,
};
