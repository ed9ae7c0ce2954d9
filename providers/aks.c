/* Agent pools of AKS through the Azure Resource Manager, docs/providers.md. */
#include "providers/aks.h"

#include "base/clock.h"
#include "base/net/retry.h"
#include "base/quantity.h"
#include "base/text.h"
#include "providers/azure/answer.h"
#include "providers/azure/arm.h"
#include "providers/azure/token.h"
#include "providers/exchange.h"
#include "providers/text.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What is kept of a pool from call to call. */
struct aks_memory {
	struct aks_memory *next;
	const char *key; /* of the pool's URL */
	struct put_bucket puts;
	struct buf deleted;	 /* a machine that deleteMachines was to delete, until it is known what became of it */
	int deleted_looks;	 /* that showed it stopped since then */
	struct buf named;	 /* all that were to be deleted and may stand by instead, between line ends */
	bool deallocates;	 /* deleteMachines stops what it names; see note_deleted() */
	struct buf failed_write; /* so that the same failure is told by the same name */
	int64_t failure;	 /* the id that this failure was told by */
	millis failed_at;
};

struct aks {
	struct provider base;
	struct arm *arm;
	struct arena arena; /* of what is remembered */
	struct aks_memory *memories;
	int64_t last_failure;
};

/* A call: several requests, one after another, each begun by the answer to the one before. */
struct aks_call {
	struct exchange base; /* its timer: the next look at a pool that is worked on */
	struct aks_settings settings;
	struct azure_place place;
	const char *pool_url, *machines_url; /* in the call's arena, like all texts here */
	struct arm_request request;
	struct buf body;
	void (*next)(struct aks_call *x);
	millis pause; /* as the other side told, between two looks */
	bool has_aborted, has_deleted;

	struct azure_pool pool;
	const char *pool_text;
	bool is_spot;
	struct azure_failure pool_failure, operation_failure; /* kind ERROR_NONE: none */
	bool pool_failed, operation_failed, operation_open, operation_over;
	millis operation_ended_at;
	struct azure_machines machines;
	int pages;
};

static struct aks *aks_of(const struct aks_call *x)
{
	return (struct aks *)x->base.provider;
}

static struct aks_memory *memory_of(struct aks_call *x)
{
	struct aks *p = aks_of(x);
	struct aks_memory *m = p->memories;

	while (m && strcasecmp(m->key, x->pool_url) != 0)
		m = m->next;
	if (m)
		return m;
	m = arena_new(&p->arena, struct aks_memory);
	m->key = text_keep(&p->arena, x->pool_url);
	m->next = p->memories;
	p->memories = m;
	return m;
}

/* Ends the call with what stands in its error. */
static void finish(struct aks_call *x)
{
	exchange_finish(&x->base);
}

/* A kubelet that is gone shows after 40 s and more; a stop is tried five times. */
static const millis UNSEEN_STOP = 15 * SECOND;
static const millis PAUSE = 5 * SECOND, LEAST_PAUSE = 50, OTHER_ZONES_AFTER = 10 * MINUTE;
enum { PAGES_MOST = 50, MACHINES_MOST = 1000, LOOKS_TELL = 3, LOOKS_TELL_WITHOUT_NODE = 12 };

static const struct field setting_fields[] = {
	FIELD_NEEDED(struct aks_settings, subscription, FIELD_STRING, "subscription"),
	FIELD_NEEDED(struct aks_settings, resource_group, FIELD_STRING, "resourceGroup"),
	FIELD_NEEDED(struct aks_settings, cluster, FIELD_STRING, "cluster"),
	FIELD(struct aks_settings, pool, FIELD_STRING, "pool"),
	FIELD(struct aks_settings, resource_manager, FIELD_STRING, "resourceManager"),
};
static const struct record_spec setting_record = RECORD(struct aks_settings, setting_fields);

/* `more` are the signs allowed beside letters and digits; letters of other alphabets where the cloud takes them. */
static bool check_name_of(const char *key, const char *text, const char *more, bool any_alphabet, size_t most,
			  struct error *e)
{
	char shown[QUOTE_ROOM];
	size_t len = 0;

	while (isalnum((unsigned char)text[len]) || (text[len] && strchr(more, text[len])) ||
	       (any_alphabet && (unsigned char)text[len] >= 0x80))
		len++;
	return (len && len <= most && !text[len]) ||
	       error_set(e, ERROR_INVALID, "%s: found %s; allowed: 1 to %zu letters, digits%s%s", key,
			 quote(shown, text, strlen(text)), most, *more ? " and " : "", more);
}

static bool check_name(const char *key, const char *text, const char *more, size_t most, struct error *e)
{
	return check_name_of(key, text, more, false, most, e);
}

bool aks_read_settings(const char *json, struct arena *a, struct aks_settings *s, struct error *e)
{
	char shown[QUOTE_ROOM];

	*s = (struct aks_settings){ 0 };
	if (!text_decode(&setting_record, json, strlen(json), a, s, e))
		return error_wrap(e, "settings of aks");
	if (s->pool && !*s->pool)
		s->pool = NULL;
	if (s->resource_manager && !*s->resource_manager)
		s->resource_manager = NULL;
	bool is_sound = check_name("subscription", s->subscription, "-", 36, e) &&
			check_name_of("resourceGroup", s->resource_group, "-_.()", true, 90, e) &&
			check_name("cluster", s->cluster, "-_", 63, e) &&
			(!s->pool || check_name("pool", s->pool, "", 12, e));
	if (is_sound && s->resource_manager && !azure_url_is_safe(s->resource_manager))
		is_sound = error_set(e, ERROR_INVALID, "resourceManager: found %s; allowed: an https:// address",
				     quote(shown, s->resource_manager, strlen(s->resource_manager)));
	return is_sound || error_wrap(e, "settings of aks");
}

static bool read_settings(struct aks_call *x)
{
	struct provider_call *c = x->base.call;
	struct azure_environment env = azure_environment_read();
	struct aks_settings *s = &x->settings;

	if (!aks_read_settings(c->settings ? c->settings : "{}", &c->arena, s, &c->error))
		return false;
	bool is_sound = s->pool || check_name("pool", c->group, "", 12, &c->error);
	if (!s->pool)
		s->pool = c->group;
	is_sound = is_sound && azure_place_find(&env, s->resource_manager, &c->arena, &x->place, &c->error);
	return is_sound || error_wrap(&c->error, "settings of aks");
}

/* Of the pool, or of what is below it: "/machines". */
static const char *write_url(struct aks_call *x, const char *rest)
{
	CLEANUP(buf_release) struct buf url = { 0 };
	const struct aks_settings *s = &x->settings;

	buf_printf(&url, "%s/subscriptions/", x->place.endpoint);
	uri_segment(s->subscription, &url);
	buf_text(&url, "/resourceGroups/");
	uri_segment(s->resource_group, &url);
	buf_text(&url, "/providers/Microsoft.ContainerService/managedClusters/");
	uri_segment(s->cluster, &url);
	buf_text(&url, "/agentPools/");
	uri_segment(s->pool, &url);
	buf_printf(&url, "%s?api-version=2026-04-01", rest);
	return text_keep(&x->base.call->arena, url.text);
}

static bool may_be_asked(const struct aks_call *x, const char *url)
{
	return url && azure_url_is_safe(url) && azure_url_is_below(url, x->place.endpoint);
}

/* With x->body where that is not empty; `answered` ends the call or asks on. */
static void ask(struct aks_call *x, const char *method, const char *url, void (*answered)(struct arm_request *))
{
	x->request.method = method;
	x->request.url = url;
	x->request.body = x->body.len ? x->body.text : NULL;
	x->request.body_len = x->body.len;
	x->request.is_write = provider_verb_changes(x->base.call->verb);
	x->request.timeout = exchange_left(&x->base);
	x->request.done = answered;
	x->request.user = x;
	arm_start(aks_of(x)->arm, &x->place, &x->request);
}

static void get(struct aks_call *x, const char *url, void (*answered)(struct arm_request *))
{
	buf_clear(&x->body);
	x->request.if_match = NULL;
	ask(x, "GET", url, answered);
}

/* Ends the call as the answer did, which may be well. */
static void end_as(struct aks_call *x, const struct arm_request *r)
{
	x->base.call->error = r->error;
	if (r->error.kind == ERROR_THROTTLED && r->retry_after > 0)
		x->base.call->retry_after = r->retry_after;
	finish(x);
}

/* Whether an answer is a success; if not, the call is over. */
static bool went_well(struct aks_call *x, const struct arm_request *r)
{
	if (r->error.kind == ERROR_NONE && !x->base.is_cancelled)
		return true;
	end_as(x, r);
	return false;
}

static void pool_answered(struct arm_request *r)
{
	struct aks_call *x = r->user;
	struct provider_call *c = x->base.call;
	struct azure_pool *p = &x->pool;

	if (!went_well(x, r))
		return;
	x->pool_text = arena_strdup(&c->arena, r->http.response, r->http.response_len);
	if (!azure_pool_read(x->pool_text, strlen(x->pool_text), &c->arena, p, &c->error)) {
		error_wrap(&c->error, "answer");
		finish(x);
	} else if (!azure_pool_is_ours(p, &c->error)) {
		error_wrap(&c->error, "agent pool %s", x->settings.pool);
		finish(x);
	} else {
		x->is_spot = strcmp(p->priority, "Spot") == 0;
		x->pool_failed = p->has_failed && p->problem &&
				 azure_failure_of(p->problem, p->problem_len, x->is_spot, &x->pool_failure);
		x->next(x);
	}
}

/* Reads the pool, into x->pool; then `next`. */
static void ask_pool(struct aks_call *x, void (*next)(struct aks_call *x))
{
	x->next = next;
	get(x, x->pool_url, pool_answered);
}

static void machines_answered(struct arm_request *r)
{
	struct aks_call *x = r->user;
	struct provider_call *c = x->base.call;
	const char *next;

	if (!went_well(x, r))
		return;
	if (!azure_machines_read(r->http.response, r->http.response_len, &c->arena, &x->machines, &next, &c->error))
		error_wrap(&c->error, "answer");
	else if (*next && !may_be_asked(x, next))
		error_set(&c->error, ERROR_INVALID, "machines: the next page is not where the Resource Manager is");
	else if (*next && ++x->pages >= PAGES_MOST)
		error_set(&c->error, ERROR_INVALID, "machines: found more than %d pages", PAGES_MOST);
	if (c->error.kind != ERROR_NONE)
		finish(x);
	else if (*next)
		get(x, next, machines_answered);
	else
		x->next(x);
}

/* Reads all machines; then `next`. */
static void ask_machines(struct aks_call *x, void (*next)(struct aks_call *x))
{
	x->next = next;
	x->machines = (struct azure_machines){ 0 };
	x->pages = 0;
	get(x, x->machines_url, machines_answered);
}

static void operation_answered(struct arm_request *r)
{
	struct aks_call *x = r->user;
	struct provider_call *c = x->base.call;
	struct azure_operation o = { 0 };
	bool is_hidden =
		r->error.kind == ERROR_NOT_FOUND || r->error.kind == ERROR_AUTH || r->error.kind == ERROR_INVALID;

	/* Forgotten by now, or not for us to see: the pool itself tells what became of it. */
	if (is_hidden && r->http.status && !x->base.is_cancelled) {
		x->next(x);
		return;
	}
	if (!went_well(x, r))
		return;
	if (!azure_operation_read(r->http.status, r->http.response, r->http.response_len, &c->arena, &o, &c->error)) {
		error_wrap(&c->error, "answer");
		finish(x);
		return;
	}
	x->operation_open = !o.is_over;
	x->operation_over = o.is_over;
	x->operation_ended_at = o.ended_at;
	x->operation_failed = o.has_failed && o.problem &&
			      azure_failure_of(o.problem, o.problem_len, x->is_spot, &x->operation_failure);
	x->next(x);
}

/* How the operation that is pending went; then `next`. */
static void ask_operation(struct aks_call *x, void (*next)(struct aks_call *x))
{
	const char *url = x->base.call->pending;

	x->next = next;
	if (may_be_asked(x, url))
		get(x, text_keep(&x->base.call->arena, url), operation_answered);
	else
		next(x);
}

/* Node.spec.providerID has the resource group in lower case, machines do not. */
static const char *provider_id(const char *resource, struct arena *a)
{
	static const char mark[] = "/resourcegroups/";

	if (!*resource)
		return "";
	char *id = text_printf(a, "azure://%s", resource), *at = strcasestr(id, mark);
	for (char *c = at ? at + sizeof mark - 1 : NULL; c && *c && *c != '/'; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return id;
}

static void fill_machines(struct aks_call *x, struct group_description *d)
{
	const struct azure_machines *list = &x->machines;
	bool is_coming = false; /* AKS works on the pool, and some machines of it have addresses: others come */

	for (size_t i = 0; d->is_busy && i < list->count; i++)
		is_coming |= list->items[i].has_address;
	d->machines = arena_array(&x->base.call->arena, struct machine, list->count);
	d->machine_count = list->count;
	for (size_t i = 0; i < list->count; i++) {
		const struct azure_machine *m = &list->items[i];
		enum machine_state state = MACHINE_RUNNING;
		if (strcasecmp(m->state, "Creating") == 0 || (is_coming && !m->has_address))
			state = MACHINE_PENDING;
		else if (strcasecmp(m->state, "Deleting") == 0 || strcasecmp(m->vm_state, "Deleted") == 0)
			state = MACHINE_TERMINATING;
		d->machines[i] = (struct machine){ .id = m->name,
						   .provider_id = provider_id(m->resource, &x->base.call->arena),
						   .zone = m->zone,
						   .instance_type = *m->vm_size ? m->vm_size : x->pool.vm_size,
						   .state = state,
						   .launched_at = m->created_at > 0 ? m->created_at : 0 };
	}
}

static struct machine *find(const struct group_description *d, const char *id)
{
	for (size_t i = 0; i < d->machine_count; i++)
		if (strcmp(d->machines[i].id, id) == 0)
			return &d->machines[i];
	return NULL;
}

static int64_t alive(const struct group_description *d)
{
	int64_t count = 0;

	for (size_t i = 0; i < d->machine_count; i++)
		count += d->machines[i].state != MACHINE_TERMINATING;
	return count;
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

/* Scale sets in one zone give up the highest numbers when their capacity falls; of others nobody knows. */
static bool stops_the_highest(const struct azure_pool *p)
{
	return p->keeps_stopped && p->zone_count <= 1 && !p->is_of_machines;
}

static void rank_machines(const struct aks_call *x, struct group_description *d)
{
	for (size_t i = 0; stops_the_highest(&x->pool) && i < d->machine_count; i++)
		d->machines[i].stop_rank = number_of(&d->machines[i]) + 1;
}

static bool was_named(const struct aks_memory *m, const char *id)
{
	size_t len = strlen(id);

	for (const char *p = m->named.text; m->named.len && (p = strstr(p, id)); p++)
		if (p[-1] == '\n' && p[len] == '\n')
			return true;
	return false;
}

/*
 * What deleteMachines does to a pool with scaleDownMode Deallocate is told in two ways: Microsoft's documents have it
 * delete, Cluster Autoscaler's code expects it to deallocate. What became of the last one that was named tells, seen
 * several times, as lists may lag.
 */
static void note_deleted(struct aks_call *x, const struct group_description *d)
{
	struct aks_memory *m = memory_of(x);
	int64_t unexplained = alive(d) - x->pool.count; /* that stand by, and have no node that says so */
	bool is_there = false, is_unready = false;

	if (!m->deleted.len || d->is_busy)
		return;
	const struct machine *named = find(d, m->deleted.text);
	is_there = named && named->state != MACHINE_TERMINATING;
	for (size_t i = 0; is_there && i < x->base.call->unready_count; i++) {
		is_unready |= !strcmp(x->base.call->unready[i], m->deleted.text);
		unexplained -= find(d, x->base.call->unready[i]) != NULL;
	}
	if (is_there && ((!is_unready && unexplained <= 0) ||
			 ++m->deleted_looks < (is_unready ? LOOKS_TELL : LOOKS_TELL_WITHOUT_NODE)))
		return; /* one that runs tells nothing: the call may have failed */
	m->deallocates = is_there && x->pool.keeps_stopped;
	buf_clear(&m->deleted);
}

/* One that was to be deleted before its node ever came has none to tell that it was stopped instead. */
static void mark_named(struct aks_call *x, struct group_description *d, int64_t surplus)
{
	const struct provider_call *c = x->base.call;
	struct aks_memory *memory = memory_of(x);
	CLEANUP(buf_release) struct buf kept = { 0 };

	for (size_t i = 0; i < d->machine_count && surplus > 0; i++) {
		struct machine *m = &d->machines[i];
		if (m->state != MACHINE_RUNNING || !was_named(memory, m->id) ||
		    !text_is_among(m->id, c->nodeless, c->nodeless_count))
			continue;
		m->state = d->is_busy ? MACHINE_STOPPING : MACHINE_STOPPED;
		m->is_standby = true;
		surplus--;
		buf_printf(&kept, "\n%s\n", m->id);
	}
	if (d->is_busy)
		return;
	buf_clear(&memory->named);
	buf_append(&memory->named, kept.text ? kept.text : "", kept.len);
}

/*
 * A pool that deallocates has more machines than its count; which of them are stopped only the cluster knows, by nodes
 * that are not ready. Those are stopped as far as the surplus goes, and otherwise on their way back.
 */
static void mark_stopped(struct aks_call *x, struct group_description *d)
{
	const struct provider_call *c = x->base.call;
	int64_t surplus = alive(d) - x->pool.count;

	d->standby = surplus > 0 ? surplus : 0;
	for (size_t i = 0; i < c->unready_count; i++) {
		struct machine *m = find(d, c->unready[i]);
		if (!m || m->state != MACHINE_RUNNING)
			continue;
		if (surplus > 0) {
			m->state = d->is_busy ? MACHINE_STOPPING : MACHINE_STOPPED;
			m->is_standby = true;
			surplus--;
		} else if (d->is_busy) {
			m->state = MACHINE_WAKING;
		}
	}
	mark_named(x, d, surplus);
}

/*
 * One failure has one id as long as nobody writes the pool, whoever told of it: the operation first, then the pool.
 * `mark` stands for the writing where there is no eTag.
 */
static const struct aks_memory *name_failure(struct aks_call *x, const char *mark)
{
	struct aks *p = aks_of(x);
	struct aks_memory *m = memory_of(x);
	struct clock clock = clock_open();
	millis now = clock_now(&clock);
	const char *write = *x->pool.etag ? x->pool.etag : mark;

	if (m->failure && strcmp(m->failed_write.text, write) == 0)
		return m;
	buf_clear(&m->failed_write);
	buf_text(&m->failed_write, write);
	m->failed_at = x->operation_ended_at;
	p->last_failure = now > p->last_failure ? now : p->last_failure + 1;
	m->failure = p->last_failure;
	return m;
}

static void fill_failure(struct aks_call *x, struct group_description *d)
{
	const struct azure_failure *f = x->operation_failed ? &x->operation_failure : &x->pool_failure;
	bool is_one_of_many = f->is_zonal && x->pool.zone_count > 1;
	int64_t missing = d->desired - alive(d);
	struct arena *a = &x->base.call->arena;

	if ((!x->operation_failed && !x->pool_failed) || missing <= 0)
		return;
	const char *said = text_printf(a, "%s%s%s", f->code, *f->code && *f->message ? ": " : "", f->message);
	const struct aks_memory *m = name_failure(x, said);
	d->failures = arena_new(a, struct launch_failure);
	d->failure_count = 1;
	*d->failures = (struct launch_failure){ .id = m->failure,
						.at = m->failed_at,
						.kind = f->kind == ERROR_NONE ? ERROR_UNAVAILABLE : f->kind,
						.message = said,
						.count = missing,
						.zone = "",
						.instance_type = x->pool.vm_size,
						.back_off = f->back_off };
	/* AKS alone chooses the zone, and who asks again may meet the same one: then the pool as a whole has none. */
	if (is_one_of_many && f->back_off > OTHER_ZONES_AFTER)
		d->failures->back_off = OTHER_ZONES_AFTER;
	if (f->is_zonal && !is_one_of_many)
		d->failures->zone = *f->zone ? text_keep(a, f->zone) : x->pool.zone;
}

/* Out of what was read, the description; false with the call's error set. Nothing is sent. */
static bool describe(struct aks_call *x)
{
	bool is_system = strcasecmp(x->pool.mode, "System") == 0;
	struct group_description d = { .min = is_system, .max = MACHINES_MOST, .desired = x->pool.count };

	if (!http_date(http_header(&x->request.http, "Date"), &d.present))
		d.present = 0;
	d.is_busy = x->operation_open || azure_pool_is_busy(&x->pool);
	if (azure_pool_is_owners(&x->pool))
		d.busy_with = text_printf(&x->base.call->arena, "AKS works on the agent pool (provisioningState %s)",
					  x->pool.state);
	fill_machines(x, &d);
	if (!group_description_check(&d, &x->base.call->arena, &x->base.call->error))
		return error_wrap(&x->base.call->error, "answer");
	d.takes_turns = true;
	d.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_CANCELS;
	d.lacks = "its scaleDownMode is Delete, so no machine stands by; az aks nodepool update --scale-down-mode "
		  "Deallocate changes that (managed OS disks only)";
	group_description_promise(&d, &x->base.call->arena, &x->pool.promise);
	note_deleted(x, &d);
	if (x->pool.keeps_stopped) {
		d.keeps_standby = memory_of(x)->deallocates;
		mark_stopped(x, &d);
		rank_machines(x, &d);
		d.abilities |= PROVIDER_HAS_STANDBY | PROVIDER_STOPS_NAMED;
		d.lacks =
			"machines stand by only once they have served, as AKS buys none that start stopped; and only "
			"the highest numbers of a scale set in one zone, as AKS stops no others for certain: the rest "
			"is deleted when it is released";
	}
	if (d.keeps_standby)
		d.lacks =
			"machines stand by only once they have served, as AKS buys none that start stopped; and those "
			"that stand by stay, and their disks cost, as deleteMachines deallocates here: az aks "
			"nodepool update --scale-down-mode Delete ends them all";
	if (!d.is_busy)
		fill_failure(x, &d);
	x->base.call->description = d;
	return true;
}

/*
 * Takes one PUT from what AKS allows the pool; without one the call ends, and nothing was sent. That is nothing that
 * the cloud said, and so no ERROR_THROTTLED: the other pools go on.
 */
static bool may_put(struct aks_call *x)
{
	millis wait;

	if (put_bucket_take(&memory_of(x)->puts, loop_now(x->base.provider->loop), &wait))
		return true;
	x->base.call->retry_after = wait;
	error_set(&x->base.call->error, ERROR_CONFLICT,
		  "not sent: AKS takes 20 PUTs of an agent pool at once and one more a minute, and these are used up");
	finish(x);
	return false;
}

/* AKS takes one operation at a time; while it works on the pool, the call is over. */
static bool is_free(struct aks_call *x)
{
	if (!azure_pool_is_busy(&x->pool))
		return true;
	error_set(&x->base.call->error, ERROR_CONFLICT, "AKS works on the pool (%s); it takes one operation at a time",
		  x->pool.state);
	finish(x);
	return false;
}

/* Where the operation that goes on can be asked about; an address that is not the Resource Manager's is not kept. */
static const char *operation_of(struct aks_call *x, const struct http_request *h)
{
	const char *url = http_header(h, "Azure-AsyncOperation");

	if (!may_be_asked(x, url))
		url = http_header(h, "Location");
	return may_be_asked(x, url) ? text_keep(&x->base.call->arena, url) : "";
}

static void changed(struct arm_request *r)
{
	struct aks_call *x = r->user;

	if (r->error.kind == ERROR_NONE)
		x->base.call->operation = operation_of(x, &r->http);
	end_as(x, r);
}

/* AKS counts PUTs by pool, and the others go on; what Azure counts by subscription has a code of its own. */
static void put_answered(struct arm_request *r)
{
	struct aks_call *x = r->user;

	if (r->error.kind == ERROR_THROTTLED && r->http.status == 429 &&
	    !strstr(r->error.message, "SubscriptionRequestsThrottled")) {
		x->base.call->retry_after =
			put_bucket_empty(&memory_of(x)->puts, loop_now(x->base.provider->loop), r->retry_after);
		r->error.kind = ERROR_CONFLICT;
	}
	/* Somebody wrote since, or what was read was older than a write of ours: either way it is read again. */
	x->base.call->is_outdated = r->http.status == 412 || strstr(r->error.message, "EtagMismatch");
	changed(r);
}

/* Read, changed in one place, written back, if nobody else wrote meanwhile. */
static void put_count(struct aks_call *x, int64_t count)
{
	buf_clear(&x->body);
	if (!azure_pool_write(x->pool_text, strlen(x->pool_text), count, &x->body, &x->base.call->error)) {
		finish(x);
		return;
	}
	if (!may_put(x))
		return;
	x->request.if_match = *x->pool.etag ? x->pool.etag : NULL;
	ask(x, "PUT", x->pool_url, put_answered);
}

static void delete_machines(struct aks_call *x, const struct machine *const *machines, size_t count,
			    void (*answered)(struct arm_request *))
{
	struct aks_memory *m = memory_of(x);

	buf_clear(&m->deleted);
	buf_text(&m->deleted, machines[0]->id);
	m->deleted_looks = 0;
	buf_clear(&x->body);
	buf_text(&x->body, "{\"machineNames\":[");
	for (size_t i = 0; i < count; i++) {
		buf_text(&x->body, i ? "," : "");
		azure_write_json(machines[i]->id, strlen(machines[i]->id), &x->body);
		if (!was_named(m, machines[i]->id))
			buf_printf(&m->named, "\n%s\n", machines[i]->id);
	}
	buf_text(&x->body, "]}");
	x->request.if_match = NULL;
	ask(x, "POST", write_url(x, "/deleteMachines"), answered);
}

static void grow(struct aks_call *x)
{
	struct provider_call *c = x->base.call;
	int64_t desired = c->desired, count = x->pool.count;
	bool is_retry = desired == count && x->pool.has_failed; /* AKS tries again when asked again */

	c->is_outdated = provider_is_outdated(c, count, &c->error);
	if (c->is_outdated || (count >= desired && !is_retry))
		finish(x);
	else if (is_free(x))
		put_count(x, desired);
}

/* Those named that are there and in a state of the mask, each once; into the call's arena. */
static const struct machine **take_named(struct aks_call *x, unsigned states, size_t *count)
{
	const struct provider_call *c = x->base.call;
	const struct machine **taken = arena_array(&x->base.call->arena, const struct machine *, c->id_count);

	*count = 0;
	for (size_t i = 0; i < c->id_count; i++) {
		const struct machine *m = find(&c->description, c->ids[i]);
		bool is_new = m && (states & 1U << m->state);
		for (size_t k = 0; is_new && k < *count; k++)
			is_new = taken[k] != m;
		if (is_new)
			taken[(*count)++] = m;
	}
	return taken;
}

static void remove_named(struct aks_call *x)
{
	size_t count;
	const struct machine **machines = take_named(x, ~(1U << MACHINE_TERMINATING), &count);

	if (!count)
		finish(x);
	else if (is_free(x))
		delete_machines(x, machines, count, changed);
}

/*
 * How many of those named a count that is lower by so many stops, and no others; they come first. AKS takes the highest
 * numbers and prefers nodes that are cordoned: those above all that shall stay are both.
 */
static size_t would_be_chosen(const struct aks_call *x, const struct machine **named, size_t count)
{
	const struct group_description *d = &x->base.call->description;
	int64_t highest = -1;
	size_t chosen = 0;

	if (!stops_the_highest(&x->pool) || x->pool.count < (int64_t)count)
		return 0;
	for (size_t i = 0; i < d->machine_count; i++) {
		const struct machine *m = &d->machines[i];
		bool is_other = m->state != MACHINE_TERMINATING && !m->is_standby;
		for (size_t k = 0; is_other && k < count; k++)
			is_other = named[k] != m;
		int64_t number = is_other ? number_of(m) : -1;
		if (is_other && number < 0)
			return 0;
		highest = number > highest ? number : highest;
	}
	for (size_t k = 0; k < count; k++) {
		const struct machine *m = named[k];
		if (number_of(m) <= highest)
			continue;
		named[k] = named[chosen];
		named[chosen++] = m;
	}
	return chosen;
}

/* Those that cannot be stopped for certain are deleted by name: never is another one stopped in their stead. Where some
 * can, the others are left to the next call. */
static void stop_named(struct aks_call *x)
{
	struct provider_call *c = x->base.call;
	const struct group_description *d = &c->description;
	int64_t stopping_unseen = d->standby;
	size_t count, chosen;
	const struct machine **machines = take_named(x, 1U << MACHINE_RUNNING, &count);

	for (size_t i = 0; i < d->machine_count; i++)
		stopping_unseen -= d->machines[i].is_standby;
	if (!(d->abilities & PROVIDER_STOPS_NAMED))
		error_set(&c->error, ERROR_INVALID, "no machine can be stopped here: %s", d->lacks);
	if (c->error.kind != ERROR_NONE || !count) {
		finish(x);
	} else if (!is_free(x)) {
		return;
	} else if (d->keeps_standby) {
		delete_machines(x, machines, count, changed); /* which stops exactly these */
	} else if (stopping_unseen > 0) { /* a lower count would stop others in the stead of those on their way */
		error_set(&c->error, ERROR_CONFLICT, "machines that were to stop still show as ready");
		c->retry_after = UNSEEN_STOP;
		finish(x);
	} else if ((chosen = would_be_chosen(x, machines, count))) {
		put_count(x, x->pool.count - (int64_t)chosen);
	} else {
		delete_machines(x, machines, count, changed);
	}
}

static void resize_standby(struct aks_call *x)
{
	struct provider_call *c = x->base.call;
	const struct group_description *d = &c->description;
	int64_t surplus = d->standby - c->desired;
	const struct machine **machines = arena_array(&c->arena, const struct machine *, d->machine_count);
	size_t count = 0;

	for (size_t i = 0; i < d->machine_count && (int64_t)count < surplus; i++)
		if (d->machines[i].state == MACHINE_STOPPED)
			machines[count++] = &d->machines[i];
	if (surplus < 0)
		error_set(&c->error, ERROR_INVALID, "no machine can be bought stopped: %s", d->lacks);
	else if (surplus > 0 && d->keeps_standby)
		error_set(&c->error, ERROR_INVALID, "no machine that stands by can be ended: %s", d->lacks);
	if (c->error.kind != ERROR_NONE || !count)
		finish(x);
	else if (is_free(x))
		delete_machines(x, machines, count, changed);
}

static void read_again(struct aks_call *x);

static void on_time(struct timer *t)
{
	struct aks_call *x = t->user;

	if (x->base.call->error.kind != ERROR_NONE)
		finish(x);
	else
		read_again(x);
}

/* Looks at the pool again after a pause; ERROR_TIMEOUT ends the call when there is no time left for it. */
static void look_later(struct aks_call *x)
{
	bool is_late = loop_now(x->base.provider->loop) + x->pause >= x->base.ends_at;

	if (is_late)
		error_set(&x->base.call->error, ERROR_TIMEOUT, "AKS still works on the pool (%s)", x->pool.state);
	timer_start(x->base.provider->loop, &x->base.timer, is_late ? 0 : x->pause, on_time);
}

/* An answer that another look follows, as soon as it tells. */
static void went_on(struct aks_call *x, const struct arm_request *r)
{
	x->pause = r->retry_after < 0 ? PAUSE : r->retry_after > LEAST_PAUSE ? r->retry_after : LEAST_PAUSE;
	look_later(x);
}

static void aborted(struct arm_request *r)
{
	struct aks_call *x = r->user;

	x->has_aborted = true;
	if (r->error.kind == ERROR_CONFLICT && !x->base.is_cancelled) /* it was over before */
		went_on(x, r);
	else if (went_well(x, r))
		went_on(x, r);
}

static void deleted(struct arm_request *r)
{
	struct aks_call *x = r->user;

	if (!went_well(x, r))
		return;
	x->has_deleted = true;
	x->base.call->operation = operation_of(x, &r->http);
	went_on(x, r);
}

/* Ours is over, and who works on the pool now is somebody else. */
static void abort_ours(struct aks_call *x)
{
	if (x->operation_over) {
		(void)is_free(x);
		return;
	}
	buf_clear(&x->body);
	x->request.if_match = NULL;
	ask(x, "POST", write_url(x, "/abort"), aborted);
}

static void abort_operation(struct aks_call *x)
{
	const char *ours = x->base.call->pending;
	bool is_scaling = !strcasecmp(x->pool.state, "Updating") || !strcasecmp(x->pool.state, "Scaling");

	if (x->has_aborted || x->has_deleted) {
		look_later(x);
	} else if (is_scaling && ours && *ours) {
		ask_operation(x, abort_ours);
	} else if (is_scaling) {
		abort_ours(x);
	} else {
		(void)is_free(x); /* an upgrade, say, which is not ours to end */
	}
}

/* Once nothing is worked on: what was named and does not run goes by name, then the count falls to what is there. */
static void give_up(struct aks_call *x)
{
	struct provider_call *c = x->base.call;
	size_t count;
	const struct machine **machines = take_named(x, 1U << MACHINE_PENDING, &count);
	int64_t there = 0;

	for (size_t i = 0; i < c->description.machine_count; i++) {
		const struct machine *m = &c->description.machines[i];
		there += m->state != MACHINE_TERMINATING && !m->is_standby;
	}
	there -= (int64_t)count;
	int64_t least = c->desired > there ? c->desired : there;
	bool is_too_many = x->pool.count - (int64_t)count > least;
	bool must_end = azure_pool_is_busy(&x->pool) && c->pending && *c->pending;
	if (!count && !is_too_many && !must_end)
		finish(x);
	else if (azure_pool_is_busy(&x->pool))
		abort_operation(x);
	else if (count && !x->has_deleted)
		delete_machines(x, machines, count, is_too_many ? deleted : changed);
	else
		put_count(x, least);
}

static void decide(struct aks_call *x)
{
	enum provider_verb verb = describe(x) ? x->base.call->verb : PROVIDER_DESCRIBE;

	switch (verb) {
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
		finish(x);
		break;
	case PROVIDER_GROW:
	case PROVIDER_CHECK:
	case PROVIDER_PROTECT:
	case PROVIDER_VERB_COUNT:
		abort();
	}
}

static void read_all(struct aks_call *x)
{
	ask_machines(x, decide);
}

static void read_again(struct aks_call *x)
{
	ask_pool(x, read_all);
}

/* The count falls with the machines that are deleted: read before they went, it shows them as wanted and missing. */
static void read_count_again(struct aks_call *x)
{
	if (azure_pool_is_busy(&x->pool) && (int64_t)x->machines.count < x->pool.count)
		ask_pool(x, decide);
	else
		decide(x);
}

static void look(struct aks_call *x)
{
	ask_machines(x, read_count_again);
}

static void read_operation(struct aks_call *x)
{
	ask_operation(x, look);
}

enum scope { CLUSTER, SUBSCRIPTION, SCOPES };

static const struct {
	const char *action, *purpose;
	enum scope scope;
	enum permission_need need;
} needs[] = {
#define RIGHT(action, scope, need, purpose) { action, purpose, scope, need },
#include "providers/aks_right.def"
#undef RIGHT
};
enum { NEEDS = sizeof needs / sizeof *needs };

static void fill(struct aks_call *x, enum scope scope, const struct azure_rights *rights, const char *why)
{
	struct provider_call *c = x->base.call;

	for (size_t i = 0; i < NEEDS; i++) {
		if (needs[i].scope != scope)
			continue;
		c->permissions[i] = (struct permission){
			.action = needs[i].action,
			.purpose = needs[i].purpose,
			.state = !rights				       ? PERMISSION_UNKNOWN
				 : azure_rights_allow(rights, needs[i].action) ? PERMISSION_GRANTED
									       : PERMISSION_DENIED,
			.need = needs[i].need,
			.message = why,
		};
	}
}

static void identify(struct aks_call *x, const char *token)
{
	struct provider_call *c = x->base.call;
	CLEANUP(buf_release) struct buf text = { 0 };
	struct token_claims claims;
	struct azure_environment env = azure_environment_read();

	if (c->identity && *c->identity)
		return;
	buf_text(&text, token_method_name(&env));
	if (!token || !token_claims_read(token, &c->arena, &claims))
		buf_text(&text, ", by a token that does not say whose it is");
	else
		buf_printf(&text, ": application %s, object %s, tenant %s", claims.application, claims.object,
			   claims.tenant);
	c->identity = arena_strdup(&c->arena, text.text, text.len);
}

/* The answer, or why there is none: that alone is no failure, as whoever may do all else need not see roles. */
static bool read_rights(struct aks_call *x, const struct arm_request *r, enum scope scope)
{
	struct provider_call *c = x->base.call;
	struct azure_rights rights;
	bool is_told = r->error.kind == ERROR_NONE, may_not = r->http.status && r->error.kind != ERROR_THROTTLED;

	if (x->base.is_cancelled || (!is_told && !may_not)) {
		end_as(x, r);
		return false;
	}
	identify(x, r->http.bearer);
	if (!is_told) {
		fill(x, scope, NULL, text_keep(&c->arena, r->error.message));
		return true;
	}
	if (!azure_rights_read(r->http.response, r->http.response_len, &c->arena, &rights, &c->error)) {
		error_wrap(&c->error, "answer");
		finish(x);
		return false;
	}
	fill(x, scope, &rights,
	     scope == CLUSTER ? "by the roles that Azure tells of, on the cluster"
			      : "by the roles that Azure tells of, on the subscription");
	return true;
}

static void subscription_answered(struct arm_request *r)
{
	struct aks_call *x = r->user;

	if (!read_rights(x, r, SUBSCRIPTION))
		return;
	x->base.call->permission_count = NEEDS;
	finish(x);
}

/* What the pool is part of, as its URL says: up to where `below` begins. */
static void ask_rights(struct aks_call *x, const char *below, void (*answered)(struct arm_request *))
{
	static const char rest[] = "/providers/Microsoft.Authorization/permissions?api-version=2022-04-01";
	const char *end = strstr(x->pool_url, below);

	get(x, text_printf(&x->base.call->arena, "%.*s%s", (int)(end - x->pool_url), x->pool_url, rest), answered);
}

static void cluster_answered(struct arm_request *r)
{
	struct aks_call *x = r->user;

	if (read_rights(x, r, CLUSTER))
		ask_rights(x, "/resourceGroups/", subscription_answered);
}

static void begin_check(struct aks_call *x)
{
	struct provider_call *c = x->base.call;

	c->permissions = arena_array(&c->arena, struct permission, NEEDS);
	ask_rights(x, "/agentPools/", cluster_answered);
}

static bool accepts(struct exchange *base)
{
	struct aks_call *x = (struct aks_call *)base;

	if (!read_settings(x))
		return false;
	x->pool_url = write_url(x, "");
	x->machines_url = write_url(x, "/machines");
	return true;
}

static void begin(struct exchange *base)
{
	struct aks_call *x = (struct aks_call *)base;

	if (base->call->verb == PROVIDER_CHECK)
		begin_check(x);
	else
		ask_pool(x, base->call->verb == PROVIDER_DESCRIBE ? read_operation
			    : base->call->verb == PROVIDER_GROW	  ? grow
								  : read_all);
}

static bool cancel(struct exchange *base)
{
	struct aks_call *x = (struct aks_call *)base;
	bool is_sent = x->request.is_active;

	arm_cancel(&x->request);
	return is_sent;
}

static void end(struct exchange *base)
{
	struct aks_call *x = (struct aks_call *)base;

	if (base->is_cancelled)
		error_set(&base->call->error, ERROR_CANCELLED, "cancelled");
	if (base->call->verb != PROVIDER_DESCRIBE)
		base->call->description = (struct group_description){ 0 };
	buf_release(&x->body);
}

static const struct exchange_kind calls = {
	.size = sizeof(struct aks_call),
	.read_deadline = 30 * SECOND,
	.change_deadline = 60 * SECOND,
	.cancel_deadline = 150 * SECOND,
	.accepts = accepts,
	.begin = begin,
	.cancel = cancel,
	.end = end,
};

static struct provider *aks_open(const struct provider_setup *s, struct error *e)
{
	struct aks *p = calloc(1, sizeof *p);

	(void)e;
	if (!p)
		abort();
	p->base = (struct provider){ .kind = &calls, .loop = s->loop };
	p->arm = arm_open(s->loop, s->http);
	return &p->base;
}

static void aks_close(struct provider *base)
{
	struct aks *p = (struct aks *)base;

	if (!p)
		return;
	assert(!base->active);
	arm_close(p->arm);
	for (struct aks_memory *m = p->memories; m; m = m->next) {
		buf_release(&m->failed_write);
		buf_release(&m->deleted);
		buf_release(&m->named);
	}
	arena_release(&p->arena);
	free(p);
}

#define QUESTION(id, asks, why, command, answers) { id, asks, why, command, answers, "" },
static const struct provider_question questions[] = {
#include "providers/aks_question.def"
	{ 0 }
};
#undef QUESTION

const struct provider_ops provider_aks = {
	.name = "aks",
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY | PROVIDER_STOPS_NAMED | PROVIDER_CANCELS,
	.open = aks_open,
	.close = aks_close,
	.start = exchange_start,
	.cancel = exchange_cancel,
	.questions = questions,
};
