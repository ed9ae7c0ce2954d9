#include "controller/loop/controller.h"

#include "base/alloc.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/follower.h"
#include "controller/loop/metering.h"
#include "controller/loop/objects.h"
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
		leader_go_on(c);
		return;
	}
	publish_state(c);
	timer_start(c->loop, &c->closing, SYNC_POLL, synced);
}

struct controller *controller_open(const struct controller_settings *s, struct error *e)
{
	struct controller *c = xcalloc(1, sizeof *c);

	c->settings = *s;
	c->loop = s->loop;
	c->api = s->api;
	c->fleet.client = cluster_client_open(s->api);
	c->skew.clock = *s->clock;
	c->clock = &c->skew.clock;
	c->manifest = *s->manifest;
	c->published = (struct published){ .clock = &c->skew.clock,
					   .version = s->version,
					   .identity = s->identity,
					   .started_at = clock_now(s->clock),
					   .tick_interval = s->interval,
					   .is_dry_run = s->is_dry_run,
					   .leader = "" };
	c->metering = metering_new();
	tick_open(c);
	c->cluster = cluster_new();
	cluster_ignore_stamps(c->cluster, s->clock->speed > 1);
	cluster_on_change(c->cluster, start_progress_event, c);
	fleet_tell_cluster(c);
	if (!leader_open(c, e)) {
		cluster_free(c->cluster);
		metering_free(c->metering);
		free(c);
		return NULL;
	}
	if (c->api)
		api_stamp_by(c->api, c->clock);
	c->events = events_open(&(struct events_setup){
		.api = s->api, .controller = "preheat.dev/controller", .instance = s->identity });
	cluster_watch_start(c->cluster, s->api);
	objects_open(c, leader_use_manifest);
	follower_open(c, publish_state);
	c->closing.user = c;
	timer_start(c->loop, &c->closing, 0, synced);
	return c;
}

const struct published *controller_published(const struct controller *c)
{
	return &c->published;
}

bool controller_export(struct controller *c, const struct replica_tail *at, struct buf *out, int64_t *last,
		       struct error *e)
{
	if (!c->history)
		return error_set(e, ERROR_UNAVAILABLE, "this replica does not lead");
	*last = c->tick.number - 1;
	return replica_export(c->history, at, EXPORT_BYTES, out, e);
}

static void finish(struct controller *c)
{
	void (*closed)(void *user) = c->closed;
	void *user = c->closed_user;

	cluster_free(c->cluster);
	policy_state_free(c->memory);
	metering_free(c->metering);
	waiting_release(&c->waiting);
	arena_release(&c->tick.arena);
	arena_release(&c->tick.spare);
	arena_release(&c->publishing.arena);
	arena_release(&c->leader.next_arena);
	arena_release(&c->fleet.manifest_arena);
	free(c->idle.items);
	free(c->consolidation.movable.items);
	drains_actor.stop(c);
	engine_moves_close(c);
	activator_close(c);
	slots_close(c);
	free(c->drains.back_offs);
	buf_release(&c->cancels.path);
	status_free(c);
	fleet_close(c);
	if (c->api)
		api_stamp_by(c->api, NULL);
	free(c);
	closed(user);
}

static void close_step(struct timer *t)
{
	struct controller *c = t->user;

	if (c->leader.state != STATE_FOLLOWING || c->leader.lease || api_active(c->api) > 0 || c->follower.is_calling ||
	    activator_passes(c)) {
		timer_start(c->loop, &c->closing, CLOSE_POLL, close_step);
		return;
	}
	finish(c);
}

static void lease_is_closed(void *user)
{
	struct controller *c = user;

	c->leader.lease = NULL;
	c->published.leader = "";
}

void controller_close(struct controller *c, void (*closed)(void *user), void *user)
{
	c->is_stopping = c->published.is_stopping = true;
	c->closed = closed;
	c->closed_user = user;
	leader_stop_acting(c, "shutting down");
	if (c->leader.state == STATE_FOLLOWING)
		timer_stop(&c->leader.timer);
	timer_stop(&c->leader.awake);
	marks_leave(c);
	activator_leave(c);
	status_stop(c);
	if (c->leader.lease)
		lease_close(c->leader.lease, lease_is_closed, c);
	follower_pause(c);
	objects_close(c);
	events_close(c->events);
	c->events = NULL;
	cluster_watch_stop(c->cluster);
	c->closing.user = c;
	timer_start(c->loop, &c->closing, 0, close_step);
}
