/* Any bytes as the API server's answers about NodePools, MachineDeployments and Nodes, a line each, to any verb: what
 * is believed can be, and each call comes to an end. */
#include "providers/provider.h"

#include "base/net/loop.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS_MOST = 64 };

static const char *next, *end;
static int answers;
static struct loop *loop;

struct pending {
	struct timer timer;
	struct cluster_call *call;
};

/* The last line is given again and again. */
static void deliver(struct timer *t)
{
	struct pending *p = t->user;
	struct cluster_call *c = p->call;
	const char *stop = memchr(next, '\n', (size_t)(end - next));

	free(p);
	c->error = (struct error){ 0 };
	c->response = next;
	c->response_len = (size_t)((stop ? stop : end) - next);
	if (++answers > ANSWERS_MOST)
		error_set(&c->error, ERROR_UNAVAILABLE, "enough");
	next = stop ? stop + 1 : next;
	c->done(c);
}

static void start(void *user, struct cluster_call *c)
{
	struct pending *p = calloc(1, sizeof *p);

	(void)user;
	p->call = c;
	p->timer.user = p;
	timer_start(loop, &p->timer, 0, deliver);
}

static void cancel(void *user, struct cluster_call *c)
{
	(void)user;
	(void)c;
	abort(); /* nobody cancels here, and no time passes */
}

static bool is_done;

static void done(struct provider_call *c)
{
	const struct group_description *d = &c->description;

	is_done = true;
	if (c->error.kind != ERROR_NONE || c->verb != PROVIDER_DESCRIBE)
		return;
	if (d->desired < 0 || d->desired > INT32_MAX || d->min < 0 || d->max < d->min || d->standby != 0)
		abort();
	for (size_t i = 0; i < d->machine_count; i++)
		if (!d->machines[i].id || !*d->machines[i].id || d->machines[i].state >= MACHINE_STATE_COUNT)
			abort();
}

static void ask(const char *name, const char *settings, enum provider_verb verb)
{
	static const struct cluster_door door = { start, cancel, NULL };
	static const char *const ids[] = { "m-1", "m-2" };
	const struct provider_ops *ops = provider_find(name);
	struct error e = { 0 };
	struct provider *p = ops->open(&(struct provider_setup){ loop, NULL, &door }, &e);
	struct provider_call c = { .verb = verb,
				   .group = "g",
				   .settings = settings,
				   .token = "preheat-1-a-g-1",
				   .desired = 3,
				   .ids = ids,
				   .id_count = verb == PROVIDER_REMOVE || verb == PROVIDER_CANCEL ? 2 : 0,
				   .done = done };

	is_done = false;
	answers = 0;
	ops->start(p, &c);
	while (!is_done && loop_once(loop))
		;
	if (!is_done)
		abort();
	provider_call_release(&c);
	ops->close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const enum provider_verb verbs[] = { PROVIDER_DESCRIBE, PROVIDER_GROW, PROVIDER_REMOVE, PROVIDER_CANCEL,
						    PROVIDER_CHECK };
	static const struct {
		const char *name, *settings;
	} kinds[] = { { "karpenter", "{\"nodePool\":\"gpu\"}" },
		      { "clusterApi", "{\"machineDeployment\":\"gpu\",\"namespace\":\"capi\"}" },
		      { "external", "{\"label\":\"pool\",\"value\":\"gpu\"}" } };

	if (!loop)
		loop = loop_open();
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++) {
			next = (const char *)bytes;
			end = next + len;
			ask(kinds[k].name, kinds[k].settings, verbs[v]);
		}
	return 0;
}
