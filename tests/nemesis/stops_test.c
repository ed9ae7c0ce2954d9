/*
 * Stops of a leader at any of its calls: `stops_test [EVERY [FIRST [CLOUD]]]`.
 * It takes over a lease that ran out, grows, drains and shrinks on each cloud
 * (stops.h); and once for each stop it does so anew, with one stop of 90 s in
 * it, in which somebody else takes the lease. It loses, takes over again, and
 * comes to the end. No byte of a write may leave it while the lease is not
 * its own, and no machine is bought or ended twice.
 */
#include "base/net/process.h"
#include "tests/nemesis/stops.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAIR_ROOM = 10000 };
#define RENEW (50 * SECOND)

struct stops_shared *all;

void stops_fail(const char *what)
{
	fprintf(stderr, "stops_test: %s\n", what);
	_exit(1);
}

/* --- the runs --- */

static pid_t server;

static void forget_history(void)
{
	char path[80];

	for (const char *const *end = (const char *const[]){ "", "-wal", "-shm", "-reserve", NULL }; *end; end++) {
		snprintf(path, sizeof path, "%s%s", all->history, *end);
		unlink(path);
	}
}

static void end_server(void)
{
	forget_history();
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

static pid_t start(const struct stop *s, const char *ca)
{
	all->run++;
	all->won = all->lost = 0;
	all->writes = 0;
	all->bought = all->ended = all->alive = all->most = 0;
	for (int i = 0; i < STEPS; i++)
		all->done[i] = 0;
	all->seen = (struct stop_seen){ 0 };
	forget_history();
	pid_t pid = fork();
	if (!pid)
		stops_replica(s, ca);
	return pid;
}

static bool is_once(void)
{
	return all->bought == MOST - FEWEST && all->ended == MOST - LEFT && all->most == MOST && all->alive == LEFT;
}

static bool report(const struct stop *s, int code)
{
	static const char *const kinds[] = { "none", "process", "machine", "signal" };

	if (code == 0 && !all->seen.late && is_once())
		return true;
	all->seen.what[strcspn(all->seen.what, "\r\n")] = '\0';
	fprintf(stderr,
		"stop of kind %s at call %ld (%s): %s, %ld late sends; won %d, lost %d; bought %" PRId64
		", ended %" PRId64 ", %" PRId64 " in the end; first: %.60s\n",
		kinds[s->kind], s->at, all->seen.where, code ? "it did not end well" : "it ended", all->seen.late,
		all->won, all->lost, all->bought, all->ended, all->alive, all->seen.what);
	return false;
}

static bool run(const struct stop *s, const char *ca)
{
	int code = 0;

	waitpid(start(s, ca), &code, 0);
	return report(s, code);
}

/* Of the file, the socket, time and chance: a run makes some 38. */
enum { KINDS_LEAST = 30 };

static int stops(const char *name, const char *ca, long every, long first)
{
	struct stop s = { .kind = STOP_NOT, .renew_deadline = RENEW, .lasts = 90 * SECOND };
	int broken = !run(&s, ca);
	long calls = all->seen.calls, runs = 0, lost = 0;
	int kinds = all->seen.kinds;

	if (all->won != 1 || all->lost != 1 || all->writes != CLUSTER_WRITES || broken)
		stops_fail("without a stop it did not do each thing once");
	if (kinds < KINDS_LEAST)
		stops_fail("calls that it makes are not stopped at: has a library other names for them?");
	for (long at = first; at < calls; at += every)
		for (s.kind = STOP_PROCESS; s.kind <= STOP_MACHINE; s.kind++) {
			s.at = at;
			broken += !run(&s, ca);
			lost += all->lost > 1;
			runs++;
		}
	printf("%s: %ld calls of %d kinds, %ld stops, the lease was lost in %ld, %d broke the law\n", name, calls,
	       kinds, runs, lost, broken);
	fflush(stdout);
	return broken + !lost;
}

static int stops_everywhere(const char *pair, long every, long first, const char *only)
{
	static const struct {
		const char *name;
		enum cloud_wire wire;
		bool launches, is_secure;
	} ways[] = { { "simulated", CLOUD_SIMULATED, false, false },
		     { "simulated-https", CLOUD_SIMULATED, false, true },
		     { "eks", CLOUD_EKS, false, false },
		     { "eks-instances", CLOUD_EKS, true, false },
		     { "aks", CLOUD_AKS, false, false } };
	int broken = 0;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		if (only && strcmp(only, ways[i].name) != 0)
			continue;
		all->wire = ways[i].wire;
		all->launches = ways[i].launches;
		broken += stops(ways[i].name, ways[i].is_secure ? pair : NULL, every, first);
	}
	all->wire = CLOUD_SIMULATED;
	return broken;
}

/* In truth: SIGSTOP before the first byte of a write, until the lease is over, and SIGCONT. */
static int stop_in_truth(const char *ca)
{
	const struct stop s = { .kind = STOP_SIGNAL, .at = -1, .renew_deadline = SECOND };
	const struct timespec longer = { .tv_sec = 1, .tv_nsec = 100 * 1000000 };
	int code = 0;
	pid_t pid = start(&s, ca);

	waitpid(pid, &code, WUNTRACED);
	if (!WIFSTOPPED(code))
		stops_fail("it was not stopped");
	nanosleep(&longer, NULL);
	kill(pid, SIGCONT);
	waitpid(pid, &code, 0);
	return !report(&s, code) + (all->lost < 2);
}

static void made(struct process *p)
{
	snprintf(p->user, PAIR_ROOM, "%s", p->output);
}

/* A key and its certificate, in one text. */
static void make_pair(char *out)
{
	static const char *const argv[] = { "openssl",
					    "req",
					    "-x509",
					    "-newkey",
					    "ec",
					    "-pkeyopt",
					    "ec_paramgen_curve:prime256v1",
					    "-nodes",
					    "-keyout",
					    "-",
					    "-out",
					    "-",
					    "-subj",
					    "/CN=us",
					    "-days",
					    "2",
					    "-addext",
					    "subjectAltName=IP:127.0.0.1",
					    NULL };
	struct loop *loop = loop_open();
	struct process p = { .argv = argv, .timeout = MINUTE, .max_output = PAIR_ROOM - 1, .done = made, .user = out };

	process_start(loop, &p);
	while (p.run)
		loop_once(loop);
	loop_close(loop);
}

static void tell_credentials(void)
{
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
}

static const char *own_address(void)
{
	static char text[64];

	snprintf(text, sizeof text, "http://127.0.0.1:%d", all->port);
	return text;
}

int main(int argc, char **argv)
{
	long every = argc > 1 ? strtol(argv[1], NULL, 10) : 1, first = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	static char pair[PAIR_ROOM];
	int broken = 0;

	all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED || every < 1)
		stops_fail("it cannot begin");
	snprintf(all->history, sizeof all->history, "%s/preheat-stops.%d.db",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
	make_pair(pair);
	tell_credentials();
	server = fork();
	if (!server) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stops_serve(pair);
	}
	while (!all->port)
		usleep(1000);
	atexit(end_server);
	setenv("AZURE_RESOURCE_MANAGER_ENDPOINT", own_address(), 1);
	setenv("AZURE_AUTHORITY_HOST", own_address(), 1);
	broken += stops_everywhere(pair, every, first, argc > 3 ? argv[3] : NULL);
	broken += stop_in_truth(NULL) + stop_in_truth(pair);
	return broken > 0;
}
