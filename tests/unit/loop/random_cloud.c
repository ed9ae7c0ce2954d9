#include "tests/unit/loop/random_cloud.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int64_t below(struct random *r, int64_t n)
{
	return (int64_t)(random_next(r) % (uint64_t)n);
}

static void buy(struct random_cloud *c, bool is_standby)
{
	struct random_machine *m = &c->machines[c->count++];

	assert(c->count <= CLOUD_MACHINES);
	*m = (struct random_machine){ .state = MACHINE_PENDING,
				      .is_standby = is_standby,
				      .is_listed = !c->is_late,
				      .zone = c->zones ? c->serial % c->zones : 0 };
	snprintf(m->id, sizeof m->id, "m%d", (int)++c->serial);
}

struct random_cloud random_cloud(struct random *chance, int64_t max, int64_t standby_max)
{
	struct random_cloud c = { .max = max, .standby_max = standby_max };

	c.keeps_failed = below(chance, 2);
	c.keeps_lost = below(chance, 2);
	c.is_late = below(chance, 2);
	c.has_tokens = below(chance, 2);
	c.fails = below(chance, 2) ? 6 : 0;
	c.has_others = below(chance, 2);
	c.zones = below(chance, CLOUD_ZONES + 1);
	c.has_operations = below(chance, 3) == 0;
	c.gets_stuck = c.has_operations && below(chance, 2);
	c.abilities = CLOUD_ABILITIES;
	if (below(chance, 4) == 0)
		c.abilities &= ~(unsigned)(PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY | PROVIDER_STOPS_NAMED);
	if (below(chance, 6) == 0)
		c.abilities &= ~(unsigned)PROVIDER_BUYS_STANDBY;
	if (below(chance, 6) == 0)
		c.abilities &= ~(unsigned)PROVIDER_STOPS_NAMED;
	if (below(chance, 6) == 0 && !c.gets_stuck)
		c.abilities &= ~(unsigned)PROVIDER_CANCELS;
	c.desired = below(chance, 6);
	for (int64_t i = 0; i < c.desired; i++) {
		buy(&c, false);
		c.machines[i].state = MACHINE_RUNNING;
		c.machines[i].is_listed = c.machines[i].has_node = true;
	}
	return c;
}

struct random_machine *random_cloud_machine(struct random_cloud *c, const char *id)
{
	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->machines[i].id, id))
			return &c->machines[i];
	return NULL;
}

static const char *const zone_names[CLOUD_ZONES] = { "a", "b", "c" };

struct group_description random_cloud_describe(const struct random_cloud *c, struct arena *a)
{
	struct group_description d = { .max = c->max,
				       .desired = c->desired,
				       .standby = c->standby,
				       .abilities = c->abilities,
				       .replaces_lost = c->keeps_lost,
				       .lacks = "",
				       .is_busy = c->busy > 0 };

	d.machines = arena_array(a, struct machine, c->count + 1);
	for (size_t i = 0; i < c->count; i++) {
		const struct random_machine *m = &c->machines[i];
		if (m->is_listed)
			d.machines[d.machine_count++] = (struct machine){ .id = arena_strdup(a, m->id, strlen(m->id)),
									  .provider_id = "",
									  .zone = c->zones ? zone_names[m->zone] : "",
									  .instance_type = "",
									  .state = m->state,
									  .is_standby = m->is_standby };
	}
	d.failures = arena_array(a, struct launch_failure, c->failure_count + 1);
	memcpy(d.failures, c->failures, c->failure_count * sizeof *c->failures);
	d.failure_count = c->failure_count;
	return d;
}

static bool knows_token(struct random_cloud *c, const char *token)
{
	for (size_t i = 0; i < c->token_count; i++)
		if (!strcmp(c->tokens[i], token))
			return true;
	assert(c->token_count < CLOUD_TOKENS);
	snprintf(c->tokens[c->token_count++], sizeof c->tokens[0], "%s", token);
	return false;
}

static void terminate(struct random_cloud *c, struct random_machine *m)
{
	if (m->state == MACHINE_TERMINATING)
		return;
	*(m->is_standby ? &c->standby : &c->desired) -= 1;
	m->state = MACHINE_TERMINATING;
	m->has_node = false;
}

/* Stopped ones first, as clouds do. */
static bool recall(struct random_cloud *c)
{
	static const enum machine_state order[] = { MACHINE_STOPPED, MACHINE_STOPPING, MACHINE_PENDING };

	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; i < c->count; i++) {
			struct random_machine *m = &c->machines[i];
			if (!m->is_standby || m->state != order[k])
				continue;
			m->is_standby = false;
			m->state = m->state == MACHINE_STOPPED ? MACHINE_WAKING : m->state;
			c->standby--;
			return true;
		}
	return false;
}

static void grow(struct random_cloud *c, int64_t desired)
{
	for (; c->desired < desired; c->desired++)
		if (!recall(c))
			buy(c, false);
}

static void stand_by(struct random_cloud *c, int64_t size)
{
	for (; c->standby < size; c->standby++)
		buy(c, true);
	for (size_t i = 0; i < c->count && c->standby > size; i++)
		if (c->machines[i].is_standby)
			terminate(c, &c->machines[i]);
}

static void do_named(struct random_cloud *c, const struct provider_call *call)
{
	for (size_t i = 0; i < call->id_count; i++) {
		struct random_machine *m = random_cloud_machine(c, call->ids[i]);
		if (!m || m->state == MACHINE_TERMINATING)
			continue;
		if (call->verb == PROVIDER_STOP && m->state == MACHINE_RUNNING && c->standby < c->standby_max) {
			m->state = MACHINE_STOPPING;
			m->is_standby = true;
			m->has_node = false;
			c->desired--;
			c->standby++;
		} else if (call->verb == PROVIDER_REMOVE ||
			   (call->verb == PROVIDER_CANCEL && m->state != MACHINE_RUNNING)) {
			terminate(c, m);
		}
	}
}

/* What is not even listed is given up. */
static void give_up(struct random_cloud *c, int64_t desired)
{
	for (size_t i = c->count; i-- > 0 && c->desired > desired;)
		if (!c->machines[i].is_listed && !c->machines[i].is_standby && i % 2)
			terminate(c, &c->machines[i]);
}

bool random_cloud_refuses(const struct random_cloud *c, const struct provider_call *call)
{
	return c->busy > 0 && call->verb != PROVIDER_CANCEL;
}

const char *random_cloud_operation(struct random_cloud *c, struct random *chance)
{
	if (!c->has_operations)
		return NULL;
	c->busy = c->gets_stuck && below(chance, 3) == 0 ? INT64_MAX : 1 + below(chance, 4);
	snprintf(c->operation, sizeof c->operation, "operations/%d", (int)++c->operations);
	return c->operation;
}

void random_cloud_change(struct random_cloud *c, const struct provider_call *call)
{
	int64_t before = c->desired;

	if (c->has_tokens && knows_token(c, call->token))
		return;
	if (call->verb == PROVIDER_GROW)
		grow(c, call->desired);
	else if (call->verb == PROVIDER_STANDBY)
		stand_by(c, call->desired);
	else
		do_named(c, call);
	if (call->verb == PROVIDER_CANCEL) {
		give_up(c, call->desired);
		c->busy = 0;
	}
	if (call->verb == PROVIDER_GROW)
		c->grown += c->desired - before;
}

static void fail_launch(struct random_cloud *c, struct random_machine *m)
{
	assert(c->failure_count < CLOUD_FAILURES);
	c->failures[c->failure_count] = (struct launch_failure){ .id = (int64_t)c->failure_count + 1,
								 .kind = ERROR_STOCKOUT,
								 .message = "none left",
								 .zone = c->zones ? zone_names[m->zone] : "",
								 .instance_type = "",
								 .back_off = c->zones ? 10 * MINUTE : 0,
								 .count = 1 };
	c->failure_count++;
	c->others_acted |= m->is_standby; /* whose launch it was is not told */
	if (c->keeps_failed)
		return; /* it is tried again */
	terminate(c, m);
	c->lowered++;
	m->is_listed = false;
}

static void lose(struct random_cloud *c, struct random_machine *m)
{
	c->others_acted |= !m->is_seen;
	bool is_replaced = c->keeps_lost;
	terminate(c, m);
	c->lowered++;
	m->is_listed = false;
	if (is_replaced) {
		c->desired++;
		buy(c, false);
	}
}

static void get_on(struct random_machine *m)
{
	if (!m->is_listed && m->state != MACHINE_TERMINATING) {
		m->is_listed = true;
		return;
	}
	switch (m->state) {
	case MACHINE_PENDING:
		m->state = m->is_standby ? MACHINE_STOPPING : MACHINE_RUNNING;
		break;
	case MACHINE_WAKING:
		m->state = MACHINE_RUNNING;
		break;
	case MACHINE_STOPPING:
		m->state = m->is_standby ? MACHINE_STOPPED : MACHINE_WAKING;
		break;
	case MACHINE_RUNNING:
		m->has_node = true;
		break;
	case MACHINE_STOPPED:
	case MACHINE_TERMINATING:
	case MACHINE_STATE_COUNT:
		break;
	}
}

static void bury(struct random_cloud *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++)
		if (c->machines[i].state != MACHINE_TERMINATING || c->machines[i].is_listed)
			c->machines[kept++] = c->machines[i];
	c->count = kept;
	for (size_t i = 0; i < c->count; i++)
		c->machines[i].is_listed &= c->machines[i].state != MACHINE_TERMINATING;
}

void random_cloud_move(struct random_cloud *c, struct random *chance)
{
	bury(c);
	if (c->busy > 0 && c->busy < INT64_MAX)
		c->busy--;
	for (int64_t i = 0; i < c->zones; i++)
		c->is_out[i] = c->fails && (c->is_out[i] ? below(chance, 8) : !below(chance, 12));
	for (size_t i = c->count; i-- > 0;) {
		struct random_machine *m = &c->machines[i];
		if (m->state == MACHINE_TERMINATING || below(chance, 2))
			continue;
		bool is_unlisted = m->state == MACHINE_PENDING && !m->is_listed;
		if (c->busy == INT64_MAX && is_unlisted)
			continue; /* stuck */
		if (c->fails && is_unlisted && (c->is_out[m->zone] || !below(chance, c->fails)))
			fail_launch(c, m);
		else if (c->fails && m->state == MACHINE_RUNNING && !below(chance, 12))
			lose(c, m);
		else
			get_on(m);
	}
}

void random_cloud_meddle(struct random_cloud *c, struct random *chance)
{
	if (!c->has_others)
		return;
	c->others_acted = true;
	switch (below(chance, c->abilities & PROVIDER_HAS_STANDBY ? 4 : 2)) {
	case 0:
		grow(c, c->desired < c->max - 1 ? c->desired + 2 : c->desired);
		break;
	case 1:
		c->lowered++;
		if (c->count)
			terminate(c, &c->machines[below(chance, (int64_t)c->count)]);
		break;
	case 2:
		stand_by(c, c->standby < c->standby_max ? c->standby + 1 : c->standby);
		break;
	default:
		stand_by(c, c->standby > 0 ? c->standby - 1 : 0);
	}
}
