#include "base/log.h"
#include "controller/loop/node_group_parts.h"
#include "state/launch.h"

#include <stdlib.h>
#include <string.h>

/* A cloud that holds a group busy for longer has forgotten it. */
static const millis LONGEST = 3 * HOUR;

void intent_end(struct node_group *g, const char *token, const char *outcome)
{
	struct error e = { 0 };

	if (g->context->history && !launch_end(g->context->history, token, outcome, clock_now(g->context->clock), &e))
		log_error("intent-not-ended", LOG_S("operation", token), LOG_E(&e), LOG_END);
}

void ongoing_forget(struct node_group *g)
{
	free(g->ongoing.name);
	g->ongoing = (struct ongoing){ 0 };
}

static void take(struct node_group *g, const char *token, const char *name, millis began)
{
	struct ongoing *o = &g->ongoing;

	o->name = strdup(name);
	if (!o->name)
		abort();
	memcpy(o->token, token, strnlen(token, TOKEN_MAX));
	o->began = began;
	o->since = clock_mono(g->context->clock);
}

static void end(struct node_group *g, const char *outcome)
{
	intent_end(g, g->ongoing.token, outcome);
	ongoing_forget(g);
}

void ongoing_begin(struct node_group *g, const char *name)
{
	const char *token = g->operation.token;
	struct error e = { 0 };

	if (g->ongoing.name)
		end(g, error_kind_name(ERROR_CANCELLED)); /* the cloud took another one in its place */
	take(g, token, name, clock_now(g->context->clock));
	if (g->context->history && !launch_goes_on(g->context->history, token, name, &e))
		log_error("intent-not-kept", LOG_S("operation", token), LOG_E(&e), LOG_END);
}

void node_group_resume(struct node_group *g, const char *token, const char *operation, millis began)
{
	ongoing_forget(g);
	take(g, token, operation, began);
}

void ongoing_settle(struct node_group *g)
{
	const struct ongoing *o = &g->ongoing;
	bool is_forgotten = o->name && clock_mono(g->context->clock) - o->since > LONGEST;

	if (!o->name || g->operation.token[0])
		return;
	if (g->seen.is_busy && !is_forgotten)
		return;
	enum error_kind outcome = is_forgotten ? ERROR_TIMEOUT : o->failed;
	log_info("operation-over", LOG_S("group", group_spec_of(g)->name), LOG_S("operation", o->token),
		 LOG_S("outcome", outcome ? error_kind_name(outcome) : "done"), LOG_END);
	end(g, outcome ? error_kind_name(outcome) : "done");
}
