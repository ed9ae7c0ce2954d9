/* Amazon EKS: node groups through the Auto Scaling groups under them; docs/providers.md. */
#include "providers/eks_exchange.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const millis READ_DEADLINE = 30 * SECOND, CHANGE_DEADLINE = 2 * MINUTE;
static const size_t MOST_ANSWER = (size_t)8 << 20;
enum {
	ABILITIES = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY | PROVIDER_STOPS_NAMED |
		    PROVIDER_CANCELS
};

static bool is_change(enum provider_verb verb)
{
	return verb != PROVIDER_DESCRIBE && verb != PROVIDER_CHECK;
}

static bool is_sound(struct provider_call *c)
{
	if (is_change(c->verb) && (!c->token || !*c->token))
		return error_set(&c->error, ERROR_INVALID, "a call that changes something needs a token");
	if (c->desired < 0)
		return error_set(&c->error, ERROR_INVALID, "%" PRId64 " machines cannot be asked for", c->desired);
	for (size_t i = 0; i < c->id_count; i++)
		if (!c->ids[i] || !*c->ids[i])
			return error_set(&c->error, ERROR_INVALID, "a machine without an id was named");
	return true;
}

static void add_update_failure(struct exchange *x)
{
	struct group_description *d = &x->call->description;
	struct launch_failure *all = arena_array(&x->call->arena, struct launch_failure, d->failure_count + 1);
	size_t at = 0;

	while (at < d->failure_count && d->failures[at].id <= x->update_failure.id)
		at++;
	if (at)
		memcpy(all, d->failures, at * sizeof *all);
	all[at] = x->update_failure;
	if (at < d->failure_count)
		memcpy(all + at + 1, d->failures + at, (d->failure_count - at) * sizeof *all);
	d->failures = all;
	d->failure_count++;
}

static void describe(struct exchange *x)
{
	struct provider_call *c = x->call;

	x->seen.warm_pool = x->settings.warm_pool;
	eks_describe(&x->seen, &c->arena, &c->description);
	c->description.is_busy |= x->is_update_running;
	if (x->has_update_failed)
		add_update_failure(x);
	c->description.is_refused = !x->seen.group.may_launch;
	if (x->seen.group.is_tagged && !x->settings.takes_tagged) {
		c->description.is_refused = true;
		c->description.lacks =
			"the group is tagged for Cluster Autoscaler and is not touched; where none uses it, set "
			"eks.clusterAutoscalerTags: ignore";
	}
	if (!c->description.is_refused)
		eks_tell_besides(x);
}

static void finish(struct exchange *x)
{
	struct provider_call *c = x->call;

	timer_stop(&x->deadline);
	timer_stop(&x->soon);
	if (x->is_late)
		error_set(&c->error, ERROR_TIMEOUT, "not over within %" PRId64 " ms",
			  c->timeout	       ? c->timeout
			  : is_change(c->verb) ? CHANGE_DEADLINE
					       : READ_DEADLINE);
	if (c->error.kind == ERROR_NONE && c->verb == PROVIDER_DESCRIBE)
		describe(x);
	if (c->error.kind != ERROR_NONE)
		error_wrap(&c->error, "group %s: %s", c->group, provider_verb_name(c->verb));
	c->exchange = NULL;
	if (is_change(c->verb))
		eks_together_changed(x->provider->together);
	x->provider->active--;
	aws_call_release(&x->request);
	buf_release(&x->path);
	buf_release(&x->body);
	free(x);
	c->done(c); /* may start it anew, and may free it */
}

static void on_answer(struct aws_call *r);

static void send(struct exchange *x)
{
	(*x->plan)->write(x);
	x->request.region = x->settings.region;
	x->request.endpoint = x->settings.endpoint;
	x->request.path = x->path.text;
	x->request.body = x->request.body ? x->body.text : NULL;
	x->request.timeout = x->call->timeout ? x->call->timeout : READ_DEADLINE;
	x->request.max_response = MOST_ANSWER;
	x->request.done = on_answer;
	x->request.user = x;
	x->is_sent = true;
	aws_start(x->provider->aws, &x->request);
}

/* To the next step that has something to ask; at the end of the plan the call is over. */
static void advance(struct exchange *x)
{
	struct error *e = &x->call->error;

	for (; *x->plan && !x->is_over; x->plan++) {
		if ((*x->plan)->decide && !(*x->plan)->decide(x, e))
			break;
		if (!(*x->plan)->decide && (*x->plan)->is_due(x)) {
			send(x);
			return;
		}
	}
	finish(x);
}

static void refused(struct exchange *x, const struct step *s, const struct error *cause)
{
	struct provider_call *c = x->call;

	c->error = *cause;
	c->retry_after = x->request.retry_after;
	error_wrap(&c->error, "%s", s->name);
	if (!x->group && is_change(c->verb) | (c->verb == PROVIDER_DESCRIBE))
		eks_lookup_keep_refusal(x->provider->lookup, c->settings, loop_now(x->provider->loop), &c->error);
	finish(x);
}

static void on_answer(struct aws_call *r)
{
	struct exchange *x = r->user;
	const struct step *s = *x->plan;
	struct error e = r->error;

	x->is_sent = false;
	if (x->is_late || e.kind == ERROR_CANCELLED) {
		x->call->error = e;
		finish(x);
		return;
	}
	if (e.kind == ERROR_NONE && s->read && !s->read(x, &e)) {
		error_wrap(&e, "answer");
		refused(x, s, &e);
	} else if (e.kind != ERROR_NONE && !(s->forgives && *r->refusal.code && s->forgives(x, &e))) {
		refused(x, s, &e);
	} else {
		advance(x);
	}
}

static void on_deadline(struct timer *t)
{
	struct exchange *x = t->user;

	x->is_late = true;
	if (x->is_sent)
		aws_cancel(&x->request);
}

/* What was asked of this group lately spares a call. */
static bool recall(struct exchange *x)
{
	struct provider_call *c = x->call;

	if (x->settings.auto_scaling_group) {
		x->group = x->settings.auto_scaling_group;
		return true;
	}
	if (c->verb == PROVIDER_CHECK)
		return true;
	switch (eks_lookup_find(x->provider->lookup, c->settings, loop_now(x->provider->loop), &c->arena,
				&x->seen.nodegroup, &c->error)) {
	case EKS_REFUSED:
		return false;
	case EKS_FOUND:
		x->group = x->seen.nodegroup.group;
		return true;
	case EKS_UNKNOWN:
		break;
	}
	return true;
}

static void begin(struct timer *t)
{
	struct exchange *x = t->user;
	struct provider_call *c = x->call;

	if (c->error.kind == ERROR_NONE && recall(x))
		advance(x);
	else
		finish(x);
}

static void eks_start(struct provider *p, struct provider_call *c)
{
	struct exchange *x = calloc(1, sizeof *x);

	if (!x)
		abort();
	assert(!c->exchange);
	provider_call_release(c);
	c->error = (struct error){ 0 };
	c->retry_after = 0;
	x->provider = p;
	x->call = c;
	x->soon.user = x->deadline.user = x;
	x->plan = eks_plans[c->verb];
	c->exchange = x;
	p->active++;
	if (is_change(c->verb))
		eks_together_changed(p->together);
	if (is_sound(c) && eks_read_settings(c->settings ? c->settings : "", &c->arena, &x->settings, &c->error))
		timer_start(p->loop, &x->deadline,
			    c->timeout		 ? c->timeout
			    : is_change(c->verb) ? CHANGE_DEADLINE
						 : READ_DEADLINE,
			    on_deadline);
	x->seen.warm_pool = x->settings.warm_pool;
	timer_start(p->loop, &x->soon, 0, begin);
}

static void eks_cancel(struct provider *p, struct provider_call *c)
{
	struct exchange *x = c->exchange;

	(void)p;
	if (!x)
		return;
	if (x->is_sent)
		aws_cancel(&x->request);
	else
		error_set(&c->error, ERROR_CANCELLED, "cancelled");
}

static struct provider *eks_open(const struct provider_setup *s, struct error *e)
{
	struct provider *p = calloc(1, sizeof *p);

	(void)e;
	if (!p)
		abort();
	p->loop = s->loop;
	p->aws = aws_open(s->loop, s->http);
	p->lookup = eks_lookup_open();
	p->together = eks_together_open();
	return p;
}

static void eks_close(struct provider *p)
{
	if (!p)
		return;
	assert(!p->active);
	aws_close(p->aws);
	eks_lookup_close(p->lookup);
	eks_together_close(p->together);
	free(p);
}

const struct provider_ops provider_eks = {
	.name = "eks",
	.abilities = ABILITIES,
	.open = eks_open,
	.close = eks_close,
	.start = eks_start,
	.cancel = eks_cancel,
};
