#include "controller/loop/controller.h"

#include "controller/loop/account.h"
#include "controller/loop/door.h"
#include "controller/loop/follow.h"
#include "controller/loop/objects.h"
#include "controller/loop/parts.h"
#include "controller/loop/status.h"

#include <stdlib.h>
#include <string.h>

static const millis SYNC_POLL = 20, CLOSE_POLL = 20;
static const size_t EXPORT_BYTES = (size_t)4 << 20;

static void synced(struct timer *t)
{
	struct controller *c = t->user;

	if (c->is_stopping)
		return;
	if (cluster_is_synced(c->cluster) && objects_are_synced(c)) {
		log_info("cluster-synced", LOG_I("nodes", (int64_t)cluster_node_count(c->cluster)),
			 LOG_I("pods", (int64_t)cluster_pod_count(c->cluster)), LOG_END);
		lead_go_on(c);
		return;
	}
	publish(c);
	timer_start(c->loop, &c->closing, SYNC_POLL, synced);
}

struct controller *controller_open(const struct controller_settings *s, struct error *e)
{
	struct controller *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	c->settings = *s;
	c->loop = s->loop;
	c->api = s->api;
	c->door = door_open(s->api);
	c->own_clock = *s->clock;
	c->clock = &c->own_clock;
	c->manifest = *s->manifest;
	c->published = (struct published){ .clock = &c->own_clock,
					   .version = s->version,
					   .identity = s->identity,
					   .started_at = clock_now(s->clock),
					   .tick_interval = s->interval,
					   .is_dry_run = s->is_dry_run,
					   .leader = "" };
	c->account = account_new();
	c->cluster = cluster_new();
	cluster_ignore_stamps(c->cluster, s->clock->speed > 1);
	cluster_on_change(c->cluster, machines_event, c);
	fleet_tell_cluster(c);
	if (!lead_open(c, e)) {
		cluster_free(c->cluster);
		account_free(c->account);
		free(c);
		return NULL;
	}
	c->events = events_open(&(struct events_setup){
		.api = s->api, .controller = "preheat.dev/controller", .instance = s->identity });
	cluster_watch_start(c->cluster, s->api);
	objects_open(c);
	follow_open(c);
	c->closing.user = c;
	timer_start(c->loop, &c->closing, 0, synced);
	return c;
}

const struct published *controller_published(const struct controller *c)
{
	return &c->published;
}

bool controller_export(struct controller *c, const struct replica_tail *after, struct buf *out, int64_t *last,
		       struct error *e)
{
	if (!c->history)
		return error_set(e, ERROR_UNAVAILABLE, "this replica does not lead");
	*last = c->tick - 1;
	return replica_export(c->history, after, EXPORT_BYTES, out, e);
}

static void finish(struct controller *c)
{
	void (*closed)(void *user) = c->closed;
	void *user = c->closed_user;

	cluster_free(c->cluster);
	policy_state_free(c->memory);
	account_free(c->account);
	arena_release(&c->arena);
	arena_release(&c->kept);
	arena_release(&c->next_arena);
	arena_release(&c->manifest_arena);
	free(c->idle);
	free(c->follow);
	status_free(c);
	fleet_forget(c);
	free(c);
	closed(user);
}

static void close_step(struct timer *t)
{
	struct controller *c = t->user;

	if (c->state != STATE_FOLLOWING || c->lease || api_active(c->api) > 0 || !follow_is_idle(c)) {
		timer_start(c->loop, &c->closing, CLOSE_POLL, close_step);
		return;
	}
	finish(c);
}

static void lease_is_closed(void *user)
{
	struct controller *c = user;

	c->lease = NULL;
	c->published.leader = "";
}

void controller_close(struct controller *c, void (*closed)(void *user), void *user)
{
	c->is_stopping = c->published.is_stopping = true;
	c->closed = closed;
	c->closed_user = user;
	lead_stop_acting(c, "shutting down");
	if (c->state == STATE_FOLLOWING)
		timer_stop(&c->ticker);
	status_stop(c);
	if (c->lease)
		lease_close(c->lease, lease_is_closed, c);
	follow_close(c);
	objects_close(c);
	events_close(c->events);
	c->events = NULL;
	cluster_watch_stop(c->cluster);
	c->closing.user = c;
	timer_start(c->loop, &c->closing, 0, close_step);
}
