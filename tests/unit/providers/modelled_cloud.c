#include "tests/unit/providers/modelled_cloud.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void buy(struct modelled_cloud *c, enum machine_state state, bool is_for_standby)
{
	struct modelled_machine *m = &c->machines[c->count++];

	assert(c->count <= CLOUD_MACHINES);
	*m = (struct modelled_machine){ .state = state, .is_for_standby = is_for_standby };
	snprintf(m->id, sizeof m->id, "m-%d", (int)++c->bought);
}

struct modelled_cloud modelled_cloud(int64_t running)
{
	struct modelled_cloud c = { .max = 20, .desired = running };

	for (int64_t i = 0; i < running; i++)
		buy(&c, MACHINE_RUNNING, false);
	return c;
}

struct modelled_machine *cloud_machine(struct modelled_cloud *c, const char *id)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->machines[i].id, id) == 0 && c->machines[i].state != MACHINE_TERMINATING)
			return &c->machines[i];
	return NULL;
}

static void terminate(struct modelled_cloud *c, struct modelled_machine *m)
{
	*(m->is_for_standby ? &c->standby : &c->desired) -= 1;
	m->state = MACHINE_TERMINATING;
}

static void wake(struct modelled_cloud *c, int64_t most)
{
	for (size_t i = 0; i < c->count && most; i++)
		if (c->machines[i].state == MACHINE_STOPPED) {
			c->machines[i].state = MACHINE_WAKING;
			c->machines[i].is_for_standby = false;
			c->standby--;
			c->desired++;
			most--;
		}
}

static bool grow(struct modelled_cloud *c, int64_t desired, struct error *e)
{
	if (desired > c->max || desired < c->desired)
		return error_set(e, ERROR_INVALID, "not from %d to %d", (int)c->desired, (int)desired);
	wake(c, desired - c->desired);
	for (; c->desired < desired; c->desired++)
		buy(c, MACHINE_PENDING, false);
	return true;
}

static void stand_by(struct modelled_cloud *c, int64_t size)
{
	for (; c->standby < size; c->standby++)
		buy(c, MACHINE_PENDING, true);
	for (size_t i = 0; i < c->count && c->standby > size; i++)
		if (c->machines[i].state == MACHINE_STOPPED)
			terminate(c, &c->machines[i]);
}

static void stop(struct modelled_cloud *c, struct modelled_machine *m)
{
	if (m->state != MACHINE_RUNNING)
		return;
	m->state = MACHINE_STOPPING;
	m->is_for_standby = true;
	c->desired--;
	c->standby++;
}

static void do_named(struct modelled_cloud *c, const struct provider_call *call)
{
	for (size_t i = 0; i < call->id_count; i++) {
		struct modelled_machine *m = cloud_machine(c, call->ids[i]);
		if (!m || (call->verb == PROVIDER_CANCEL && m->state == MACHINE_RUNNING))
			continue;
		if (call->verb == PROVIDER_STOP)
			stop(c, m);
		else
			terminate(c, m);
	}
}

static bool change(struct modelled_cloud *c, const struct provider_call *call, struct error *e)
{
	for (size_t i = 0; i < c->token_count; i++)
		if (strcmp(c->tokens[i], call->token) == 0)
			return true;
	assert(c->token_count < CLOUD_TOKENS);
	if (call->verb == PROVIDER_GROW && !grow(c, call->desired, e))
		return false;
	if (call->verb == PROVIDER_STANDBY)
		stand_by(c, call->desired);
	do_named(c, call);
	snprintf(c->tokens[c->token_count++], sizeof c->tokens[0], "%s", call->token);
	return true;
}

bool cloud_do(struct modelled_cloud *c, const struct provider_call *call, struct error *e)
{
	static const enum error_kind kinds[] = { [FAULT_STOCKOUT] = ERROR_STOCKOUT,
						 [FAULT_QUOTA] = ERROR_QUOTA,
						 [FAULT_THROTTLED] = ERROR_THROTTLED,
						 [FAULT_AUTH] = ERROR_AUTH,
						 [FAULT_UNAVAILABLE] = ERROR_UNAVAILABLE };

	c->answered++;
	if (c->fault && c->fault != FAULT_LOST)
		return error_set(e, kinds[c->fault], "as the test wants");
	if (call->verb != PROVIDER_DESCRIBE && !change(c, call, e))
		return false;
	return c->fault != FAULT_LOST || error_set(e, ERROR_UNAVAILABLE, "lost");
}

void cloud_settle(struct modelled_cloud *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++) {
		struct modelled_machine m = c->machines[i];
		if (m.state == MACHINE_TERMINATING)
			continue;
		m.state = m.is_for_standby ? MACHINE_STOPPED : MACHINE_RUNNING;
		c->machines[kept++] = m;
	}
	c->count = kept;
}
