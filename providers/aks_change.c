#include "base/decimal.h"
#include "providers/aks_exchange.h"
#include "providers/azure/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct put_bucket *bucket_of(struct exchange *x)
{
	struct provider *p = x->provider;
	struct aks_budget *b = p->budgets;

	while (b && strcasecmp(b->subscription, x->settings.subscription) != 0)
		b = b->next;
	if (b)
		return &b->bucket;
	b = calloc(1, sizeof *b);
	if (!b || !(b->subscription = strdup(x->settings.subscription)))
		abort();
	b->next = p->budgets;
	p->budgets = b;
	return &b->bucket;
}

/* Takes one change from the subscription's budget; without one the call ends as throttled, and nothing was sent. */
static bool may_change(struct exchange *x)
{
	millis wait;

	if (put_bucket_take(bucket_of(x), loop_now(x->provider->arm.loop), &wait))
		return true;
	x->call->retry_after = wait;
	return error_set(&x->call->error, ERROR_THROTTLED,
			 "AKS takes 20 changes of agent pools at once and one more a minute; these are used up");
}

static void refuse_busy(struct exchange *x)
{
	error_set(&x->call->error, ERROR_CONFLICT, "AKS works on the pool (%s); it takes one operation at a time",
		  x->pool.state);
	aks_finish(x);
}

/* Where the operation that goes on can be asked about; an address that is not the Resource Manager's is not kept. */
static const char *operation_of(struct exchange *x, const struct http_request *h)
{
	static const char *const names[] = { "Azure-AsyncOperation", "Location" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *url = http_header(h, names[i]);
		if (url && azure_url_is_safe(url) && azure_url_is_below(url, x->place.endpoint))
			return arena_strdup(&x->call->arena, url, strlen(url));
	}
	return "";
}

static void changed(struct arm_request *r)
{
	struct exchange *x = r->user;

	if (r->error.kind != ERROR_NONE) {
		aks_fail(x, r);
		return;
	}
	x->call->operation = operation_of(x, &r->http);
	aks_finish(x);
}

/* Read, changed in one place, written back, if nobody else wrote meanwhile. */
static void put_count(struct exchange *x, int64_t count)
{
	struct provider_call *c = x->call;

	buf_clear(&x->body);
	if (!azure_pool_write(x->pool_text, strlen(x->pool_text), count, &x->body, &c->error) || !may_change(x)) {
		aks_finish(x);
		return;
	}
	x->request.body = x->body.text;
	x->request.body_len = x->body.len;
	x->request.if_match = *x->pool.etag ? x->pool.etag : NULL;
	aks_ask(x, "PUT", x->pool_url, changed);
}

static const char *action_url(struct exchange *x, const char *action)
{
	CLEANUP(buf_release) struct buf url = { 0 };
	const char *query = strchr(x->pool_url, '?');

	buf_append(&url, x->pool_url, (size_t)(query - x->pool_url));
	buf_printf(&url, "/%s%s", action, query);
	return arena_strdup(&x->call->arena, url.text, url.len);
}

static void delete_machines(struct exchange *x, const struct machine *const *machines, size_t count,
			    void (*answered)(struct arm_request *))
{
	if (!may_change(x)) {
		aks_finish(x);
		return;
	}
	buf_clear(&x->body);
	buf_text(&x->body, "{\"machineNames\":[");
	for (size_t i = 0; i < count; i++) {
		buf_text(&x->body, i ? "," : "");
		azure_write_json(machines[i]->id, strlen(machines[i]->id), &x->body);
	}
	buf_text(&x->body, "]}");
	x->request.body = x->body.text;
	x->request.body_len = x->body.len;
	x->request.if_match = NULL;
	aks_ask(x, "POST", action_url(x, "deleteMachines"), answered);
}

static void grow(struct exchange *x)
{
	int64_t desired = x->call->desired, count = x->pool.count;
	bool is_retry = desired == count && azure_pool_has_failed(&x->pool); /* AKS tries again when asked again */

	if (count >= desired && !is_retry)
		aks_finish(x);
	else if (azure_pool_is_busy(&x->pool))
		refuse_busy(x);
	else
		put_count(x, desired);
}

/* Those named that are there, each once; into the call's arena. */
static const struct machine **take_named(struct exchange *x, bool (*is_meant)(const struct machine *), size_t *count)
{
	const struct provider_call *c = x->call;
	const struct machine **taken = arena_array(&x->call->arena, const struct machine *, c->id_count);

	*count = 0;
	for (size_t i = 0; i < c->id_count; i++) {
		const struct machine *m = aks_machine(x, c->ids[i]);
		bool is_new = m && is_meant(m);
		for (size_t k = 0; is_new && k < *count; k++)
			is_new = taken[k] != m;
		if (is_new)
			taken[(*count)++] = m;
	}
	return taken;
}

static bool is_any(const struct machine *m)
{
	(void)m;
	return true;
}

static bool is_running(const struct machine *m)
{
	return m->state == MACHINE_RUNNING;
}

static bool is_pending(const struct machine *m)
{
	return m->state == MACHINE_PENDING;
}

static bool is_stopped(const struct machine *m)
{
	return m->state == MACHINE_STOPPED;
}

static void remove_named(struct exchange *x)
{
	size_t count;
	const struct machine **machines = take_named(x, is_any, &count);

	if (!count)
		aks_finish(x);
	else if (azure_pool_is_busy(&x->pool))
		refuse_busy(x);
	else
		delete_machines(x, machines, count, changed);
}

/* A machine's number in its scale set; -1: it is in none. */
static int64_t number_of(const struct machine *m)
{
	static const char mark[] = "/virtualMachines/";
	const char *at = strcasestr(m->provider_id, "/virtualMachineScaleSets/");
	int64_t number;

	at = at ? strcasestr(at, mark) : NULL;
	if (!at)
		return -1;
	at += sizeof mark - 1;
	return decimal_parse(at, strlen(at), 0, &number) == DECIMAL_OK ? number : -1;
}

static bool is_among(const struct machine *m, const struct machine *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == m)
			return true;
	return false;
}

/*
 * Scale sets in one zone give up the highest numbers when their capacity falls, and AKS prefers nodes that are
 * cordoned. Where both mean the same machines a lower count stops these and no others.
 */
static bool would_be_chosen(const struct exchange *x, const struct machine *const *named, size_t count)
{
	const struct group_description *d = &x->call->description;
	int64_t lowest = INT64_MAX;

	if (x->pool.zone_count > 1 || x->pool.is_of_machines)
		return false;
	for (size_t i = 0; i < count; i++) {
		int64_t number = number_of(named[i]);
		if (number < lowest)
			lowest = number;
	}
	for (size_t i = 0; i < d->machine_count; i++) {
		const struct machine *m = &d->machines[i];
		bool is_other = m->state != MACHINE_TERMINATING && !m->is_standby && !is_among(m, named, count);
		if (is_other && (number_of(m) < 0 || number_of(m) > lowest))
			return false;
	}
	return lowest >= 0;
}

/* A lower count has machines stopped whose nodes do not show it yet: another one would be stopped in their stead. */
static int64_t stopping_unseen(const struct group_description *d)
{
	int64_t seen = 0;

	for (size_t i = 0; i < d->machine_count; i++)
		seen += d->machines[i].is_standby;
	return d->standby - seen;
}

/* Those that cannot be stopped for certain are deleted by name: never is another one stopped in their stead. */
static void stop_named(struct exchange *x)
{
	struct provider_call *c = x->call;
	size_t count;
	const struct machine **machines = take_named(x, is_running, &count);

	if (!(c->description.abilities & PROVIDER_STOPS_NAMED)) {
		error_set(&c->error, ERROR_INVALID, "no machine can be stopped here: %s", c->description.lacks);
		aks_finish(x);
	} else if (!count) {
		aks_finish(x);
	} else if (azure_pool_is_busy(&x->pool)) {
		refuse_busy(x);
	} else if (stopping_unseen(&c->description) > 0) {
		error_set(&c->error, ERROR_CONFLICT, "machines that were to stop still show as ready");
		aks_finish(x);
	} else if (would_be_chosen(x, machines, count) && x->pool.count >= (int64_t)count) {
		put_count(x, x->pool.count - (int64_t)count);
	} else {
		delete_machines(x, machines, count, changed);
	}
}

static void resize_standby(struct exchange *x)
{
	struct provider_call *c = x->call;
	const struct group_description *d = &c->description;
	int64_t surplus = d->standby - c->desired;
	const struct machine **machines = arena_array(&c->arena, const struct machine *, d->machine_count);
	size_t count = 0;

	for (size_t i = 0; i < d->machine_count && (int64_t)count < surplus; i++)
		if (is_stopped(&d->machines[i]))
			machines[count++] = &d->machines[i];
	if (surplus < 0)
		error_set(&c->error, ERROR_INVALID, "no machine can be bought stopped: %s", d->lacks);
	if (surplus < 0 || !count)
		aks_finish(x);
	else if (azure_pool_is_busy(&x->pool))
		refuse_busy(x);
	else
		delete_machines(x, machines, count, changed);
}

static void read_again(struct exchange *x);

static void aborted(struct arm_request *r)
{
	struct exchange *x = r->user;

	/* 409: it was over before; 404: it never was. */
	if (x->was_cancelled || (r->error.kind != ERROR_NONE && r->error.kind != ERROR_CONFLICT)) {
		aks_fail(x, r);
		return;
	}
	x->has_aborted = true;
	aks_pace(x, r);
	aks_wait(x, read_again);
}

static void deleted(struct arm_request *r)
{
	struct exchange *x = r->user;

	if (x->was_cancelled || r->error.kind != ERROR_NONE) {
		aks_fail(x, r);
		return;
	}
	x->has_deleted = true;
	x->call->operation = operation_of(x, &r->http);
	aks_pace(x, r);
	aks_wait(x, read_again);
}

static void abort_operation(struct exchange *x)
{
	bool is_scaling = !strcasecmp(x->pool.state, "Updating") || !strcasecmp(x->pool.state, "Scaling");

	if (x->has_aborted || x->has_deleted) {
		aks_wait(x, read_again);
	} else if (!is_scaling) {
		refuse_busy(x); /* an upgrade, say, which is not ours to end */
	} else {
		x->request.body = x->request.if_match = NULL;
		aks_ask(x, "POST", action_url(x, "abort"), aborted);
	}
}

/* Once nothing is worked on: what was named and does not run goes by name, then the count falls to what is there. */
static void give_up(struct exchange *x)
{
	struct provider_call *c = x->call;
	size_t count;
	const struct machine **machines = take_named(x, is_pending, &count);
	int64_t there = 0;

	for (size_t i = 0; i < c->description.machine_count; i++) {
		const struct machine *m = &c->description.machines[i];
		there += m->state != MACHINE_TERMINATING && !m->is_standby;
	}
	there -= (int64_t)count;
	int64_t least = c->desired > there ? c->desired : there;
	bool is_too_many = x->pool.count - (int64_t)count > least;
	if (!count && !is_too_many)
		aks_finish(x);
	else if (azure_pool_is_busy(&x->pool))
		abort_operation(x);
	else if (count && !x->has_deleted)
		delete_machines(x, machines, count, is_too_many ? deleted : changed);
	else
		put_count(x, least);
}

static void decide(struct exchange *x)
{
	if (!aks_describe(x)) {
		aks_finish(x);
		return;
	}
	switch (x->call->verb) {
	case PROVIDER_REMOVE:
		remove_named(x);
		break;
	case PROVIDER_STOP:
		stop_named(x);
		break;
	case PROVIDER_STANDBY:
		resize_standby(x);
		break;
	case PROVIDER_CANCEL:
		give_up(x);
		break;
	case PROVIDER_DESCRIBE:
	case PROVIDER_GROW:
	case PROVIDER_CHECK:
	case PROVIDER_VERB_COUNT:
		abort();
	}
}

static void read_machines(struct exchange *x)
{
	aks_read_machines(x, decide);
}

static void read_again(struct exchange *x)
{
	aks_read_pool(x, read_machines);
}

void aks_begin_change(struct exchange *x)
{
	aks_read_pool(x, x->call->verb == PROVIDER_GROW ? grow : read_machines);
}
