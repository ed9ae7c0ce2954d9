#include "tests/world/replica.h"

#include "base/log.h"
#include "controller/cluster/api.h"
#include "controller/loop/controller.h"
#include "tests/unit/manifest/loaded.h"
#include "tests/world/laws.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HOME[] = "preheat";

struct replica {
	bool is_up, is_paused;
	int who, life, starts;
	struct replica_settings settings;
	struct loop *loop;
	struct http *http;
	struct api *api;
	struct kubeconfig access;
	struct loaded loaded;
	struct controller *controller;
	bool is_closed, is_dying;
	char history[128], before[128], identity[32], address[64];
};

static struct {
	uint64_t seed;
	struct replica replicas[WORLD_REPLICAS];
	char folder[64];
	bool may_fail;
} all;

static void failed(void *user, const struct error *e)
{
	const struct replica *r = user;

	if (all.may_fail)
		replica_die(r->who);
	else
		laws_break("it_goes_on", "the controller failed: %s", e->message);
}

static void copy_file(const char *from, const char *to)
{
	char bytes[65536];
	FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
	size_t len;

	while (out && (len = fread(bytes, 1, sizeof bytes, in)))
		if (fwrite(bytes, 1, len, out) != len)
			abort();
	if (in)
		fclose(in);
	if (out)
		fclose(out);
}

/* The disk as it is at this moment becomes that of the next life. */
static void next_history(struct replica *r)
{
	char from[140], to[140], next[128];

	snprintf(next, sizeof next, "%s/%d-%d.db", all.folder, r->who, ++r->life);
	for (const char *const *end = (const char *const[]){ "", "-wal", NULL }; r->history[0] && *end; end++) {
		snprintf(from, sizeof from, "%s%s", r->history, *end);
		snprintf(to, sizeof to, "%s%s", next, *end);
		copy_file(from, to);
	}
	snprintf(r->history, sizeof r->history, "%s", next);
}

static void serve_replica(struct wire_call *c)
{
	int who = c->host[strlen("http://replica-")] - '0';
	struct replica *r = &all.replicas[who];
	struct replica_tail after = { .tick = -1 };
	const char *tick = strstr(c->path, "tick="), *crc = strstr(c->path, "crc="), *way = strstr(c->path, "way=");
	struct buf text = { .cap = (size_t)64 << 20 };
	struct error e = { 0 };
	int64_t last = 0;
	char header[64];

	if (!r->is_up || !r->controller) {
		wire_cut(c);
		return;
	}
	after.tick = tick ? strtoll(tick + 5, NULL, 10) : -1;
	after.crc = crc ? (uint32_t)strtoul(crc + 4, NULL, 10) : 0;
	after.way = way ? (enum replica_way)strtoul(way + 4, NULL, 10) : REPLICA_NEXT;
	int before = wire_enter(who);
	bool ok = controller_export(r->controller, &after, &text, &last, &e);
	wire_enter(before);
	if (!ok) {
		wire_answer(c, e.kind == ERROR_CONFLICT ? 409 : 503, NULL, "");
	} else {
		snprintf(header, sizeof header, "Preheat-Last-Tick: %" PRId64, last);
		wire_answer_bytes(c, 200, header, text.text ? text.text : "", text.len);
	}
	buf_release(&text);
}

void replica_start(int who, const struct replica_settings *s)
{
	struct replica *r = &all.replicas[who];
	struct error e = { 0 };

	r->who = who;
	r->settings = *s;
	if (!r->life)
		next_history(r);
	wire_from(who);
	int before = wire_enter(who);
	snprintf(r->identity, sizeof r->identity, "replica-%d", who);
	snprintf(r->address, sizeof r->address, "http://replica-%d/replica?key=k", who);
	r->is_dying = false;
	r->loaded = (struct loaded){ .ok = true };
	if (s->manifest)
		load(&r->loaded, s->manifest);
	if (!r->loaded.ok || !controller_accepts(&r->loaded.manifest, false, &r->loaded.findings, &e)) {
		fprintf(stderr, "manifest: %s%s\n", r->loaded.error.message, e.message);
		abort();
	}
	r->loop = loop_open();
	r->http = http_open(r->loop, "world", &e);
	r->access = (struct kubeconfig){ .source = "world", .server = APISERVER, .name_space = HOME, .token = "t" };
	r->api = api_open(&(struct api_setup){ .loop = r->loop,
					       .http = r->http,
					       .clock = wire_clock(),
					       .access = &r->access,
					       .seed = all.seed * 100 + (uint64_t)r->life });
	r->is_closed = false;
	r->controller = controller_open(&(struct controller_settings){ .loop = r->loop,
								       .http = r->http,
								       .api = r->api,
								       .clock = wire_clock(),
								       .manifest = &r->loaded.manifest,
								       .watches_objects = s->watches_objects,
								       .history_path = r->history,
								       .version = "world",
								       .run = "world",
								       .interval = 15 * SECOND,
								       .retention = s->retention,
								       .is_dry_run = s->is_dry_run,
								       .elects = s->elects,
								       .namespace = HOME,
								       .lease = replica_lease(who),
								       .identity = r->identity,
								       .pod_ip = "10.255.0.1",
								       .address = s->elects ? r->address : "",
								       .on_failure = failed,
								       .user = r },
					&e);
	if (!r->controller) {
		fprintf(stderr, "controller: %s\n", e.message);
		abort();
	}
	wire_enter(before);
	r->is_up = true;
	r->starts++;
}

static void closed(void *user)
{
	struct replica *r = user;

	r->is_closed = true;
	r->controller = NULL;
}

static bool is_closed(void *user)
{
	const struct replica *r = user;

	return r->is_closed && !api_active(r->api) && !http_active(r->http);
}

static void release(struct replica *r)
{
	api_close(r->api);
	http_close(r->http);
	if (wire_forget(r->loop))
		laws_break("nothing_left_running", "replica %d left a timer behind that would fire in freed memory",
			   r->who);
	loop_close(r->loop);
	loaded_release(&r->loaded);
	r->is_up = false;
}

void replica_pause(int who, bool is_paused)
{
	struct replica *r = &all.replicas[who];

	if (!r->is_up || r->is_paused == is_paused)
		return;
	wire_pause(r->loop, is_paused);
	r->is_paused = is_paused;
}

void replica_suspend(int who)
{
	struct replica *r = &all.replicas[who];

	if (!r->is_up || r->is_paused)
		return;
	wire_suspend(r->loop);
	r->is_paused = true;
}

void replica_kill(int who)
{
	struct replica *r = &all.replicas[who];
	char old[128];

	if (!r->is_up)
		return;
	replica_pause(who, false);
	snprintf(old, sizeof old, "%s", r->is_dying ? r->before : r->history);
	if (!r->is_dying)
		next_history(r);
	wire_kill(r->http);
	bool expected = laws_expect_errors(true);
	int before = wire_enter(who);
	controller_close(r->controller, closed, r);
	wire_enter(before);
	wire_bury(r->loop, is_closed, r);
	laws_expect_errors(expected);
	release(r);
	unlink(old);
	laws_history(who, r->history);
}

void replica_die(int who)
{
	struct replica *r = &all.replicas[who];

	if (!r->is_up || r->is_dying)
		return;
	memcpy(r->before, r->history, sizeof r->before);
	next_history(r);
	r->is_dying = true;
	wire_silence(r->http);
}

void replica_bury(int who)
{
	if (all.replicas[who].is_up && all.replicas[who].is_dying)
		replica_kill(who);
}

void replicas_may_fail(bool may)
{
	all.may_fail = may;
}

bool replicas_step(millis until)
{
	for (int i = 0; i < WORLD_REPLICAS; i++)
		replica_bury(i);
	return wire_step(until);
}

void replica_stop(int who)
{
	struct replica *r = &all.replicas[who];
	millis most = wire_now() + 5 * MINUTE;

	if (!r->is_up)
		return;
	int before = wire_enter(who);
	controller_close(r->controller, closed, r);
	wire_enter(before);
	while (r->is_up && !is_closed(r) && wire_now() < most)
		replicas_step(most);
	if (!r->is_up)
		return;
	if (is_closed(r)) {
		release(r);
		laws_history(who, r->history);
		return;
	}
	laws_break("it_ends", "replica %d did not end within five minutes", who);
	wire_pause(r->loop, true); /* it is left as it stands */
	r->is_up = false;
}

bool replica_is_up(int who)
{
	return all.replicas[who].is_up;
}

const struct published *replica_published(int who)
{
	const struct replica *r = &all.replicas[who];

	return r->is_up && r->controller ? controller_published(r->controller) : NULL;
}

const char *replica_history(int who)
{
	return all.replicas[who].history;
}

int replica_life(int who)
{
	return all.replicas[who].starts;
}

int replica_leader(void)
{
	const struct object *lease = apiserver_find(KIND_LEASE, HOME, "preheat");
	const char *holder = lease ? value_text(lease->value, "spec>holderIdentity") : "";

	return *holder ? holder[strlen("replica-")] - '0' : -1;
}

const char *replica_lease(int who)
{
	return all.replicas[who].settings.lease ? all.replicas[who].settings.lease : "preheat";
}

bool replica_leads(int who)
{
	const struct object *lease = apiserver_find(KIND_LEASE, HOME, replica_lease(who));

	return lease && value_is(lease->value, "spec>holderIdentity", all.replicas[who].identity);
}

void replicas_begin(uint64_t seed)
{
	memset(&all, 0, sizeof all);
	all.seed = seed;
	snprintf(all.folder, sizeof all.folder, "%s/preheat-world-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(all.folder))
		abort();
	wire_host("http://replica-", serve_replica);
}

void replicas_end(void)
{
	char path[160];

	laws_expect_errors(true);
	for (int i = 0; i < WORLD_REPLICAS; i++)
		replica_kill(i);
	if (getenv("WORLD_KEEP")) {
		fprintf(stderr, "histories: %s\n", all.folder);
		return;
	}
	for (int i = 0; i < WORLD_REPLICAS; i++)
		for (int life = 1; life <= all.replicas[i].life; life++)
			for (const char *const *end =
				     (const char *const[]){ "", "-wal", "-shm", "-reserve", ".1", ".2", NULL };
			     *end; end++) {
				snprintf(path, sizeof path, "%s/%d-%d.db%s", all.folder, i, life, *end);
				unlink(path);
			}
	rmdir(all.folder);
}
