#include "controller/loop/activator.h"

#include "base/alloc.h"
#include "base/decode.h"
#include "base/net/relay.h"
#include "controller/loop/controller_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the world. */
static const millis DRIVE_EVERY = SECOND / 2, LOOK_EVERY = 2 * SECOND, WRITE_EVERY = 30 * SECOND,
		    RETRY_MOST = 30 * SECOND, ASKED_FOR = 10 * SECOND, PASSES_MOST = 20 * SECOND,
		    STRAYS_AGAIN = 5 * SECOND;

#define SLICE_GROUP "discovery.k8s.io/v1"
#define SLICE_NAME  "%s-preheat"
#define MANAGED_BY  "endpointslice.kubernetes.io/managed-by"
#define LEADS_TO    "preheat.dev/leads-to" /* the pool whose engines a slice leads to: it serves without us */

enum {
	ENDPOINTS_MOST = 1000, /* of a slice, by the API server */
	HOPELESS = 3,	       /* failures, one after the other */
	PRECONDITIONS = 160,
};

enum slice_state { SLICE_UNKNOWN, SLICE_THERE, SLICE_GONE };
enum door_step { STEP_SERVICE, STEP_WRITE, STEP_LOOK, STEP_DELETE };

/* Of one pool. */
struct door {
	struct door *next;
	struct controller *controller;
	char pool[130], namespace[64], service[64], port[64], slice_name[80], selector[100];
	millis hold;
	struct relay *relay; /* NULL: not yet, or no longer */
	bool is_over;	     /* its pool has none, or another; what it passes on goes on */
	enum slice_state slice;
	millis asked_until; /* clock_mono: somebody takes the last replica from the Service */

	enum door_step step;
	bool is_calling;
	struct object_call call;
	struct buf body;
	char uid[37], port_name[64];   /* of the Service */
	bool has_selector;	       /* it has, so that the cluster writes slices of its pods */
	bool is_looked_at, has_others; /* a route's slices; somebody else's leads to pods, too */
	bool is_route;	    /* it has none, and leads to engines of a share: nobody but us says where they are */
	bool is_wanted;	    /* it leads here */
	struct buf engines; /* that serve, as endpoints */
	int64_t engine_port;
	struct buf ends, sent, written; /* ports and endpoints: as they should be; as the call under way writes them;
					   as the slice has them, "" until that is known */
	char as_seen[PRECONDITIONS]; /* of our slice, for a delete: it is the one that was looked at; "": there is none
				      */
	int64_t target_port;
	int failures;
	bool is_told;
	millis retry_at, written_at, read_at; /* clock_mono; read_at: of the Service, 0: not yet */
};

static const struct activator_text *text_of(const struct controller *c, size_t pool)
{
	return &c->manifest.pools[pool].spec.signals.queue.activator;
}

static bool is_wished(const struct manifest *m, size_t pool)
{
	enum pool_mode mode = m->fleet.pools[pool].mode;

	return m->pools[pool].spec.signals.queue.activator.service && (mode == MODE_ACT || mode == MODE_SHARE);
}

static bool is_shared(const struct controller *c, size_t pool)
{
	return fleet_of(c)->pools[pool].mode == MODE_SHARE;
}

static bool is_same_door(const struct activator_text *a, const struct activator_text *b)
{
	return !strcmp(a->service, b->service) && !strcmp(a->port ? a->port : "", b->port ? b->port : "") &&
	       a->hold == b->hold;
}

/* A pool that leaves only to come back with other settings: what its door holds stays. */
static bool keeps_door(const struct controller *c, size_t pool)
{
	const struct manifest *next = &c->leader.next;
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];

	for (size_t i = 0; c->leader.has_next && i < next->fleet.pool_count; i++)
		if (!strcmp(next->fleet.pools[i].name, spec->name) &&
		    !strcmp(next->fleet.pools[i].namespace, spec->namespace))
			return is_wished(next, i) &&
			       is_same_door(text_of(c, pool), &next->pools[i].spec.signals.queue.activator);
	return false;
}

static bool has_activator(const struct controller *c, size_t pool)
{
	return is_wished(&c->manifest, pool) && !c->context.is_barred &&
	       (!c->pools[pool]->is_leaving || keeps_door(c, pool));
}

static struct door *door_of(const struct controller *c, size_t pool)
{
	struct door *d = c->activator.first;

	while (d && (d->is_over || strcmp(d->pool, c->pools[pool]->key) != 0))
		d = d->next;
	return d;
}

static size_t pool_of(const struct door *d)
{
	const struct controller *c = d->controller;

	for (size_t i = 0; c->pools && i < fleet_of(c)->pool_count; i++)
		if (!strcmp(c->pools[i]->key, d->pool))
			return i;
	return SIZE_MAX;
}

int64_t activator_waiting(const struct controller *c, size_t pool)
{
	const struct door *d = door_of(c, pool);

	return d && d->relay ? (int64_t)relay_waiting(d->relay) : 0;
}

/* --- where requests go --- */

static bool serves(const struct controller *c, size_t pool, const struct pod *p)
{
	const char *label = pod_engine_label(p);

	return p->state == POD_READY && !p->is_placeholder && p->ip[0] && p->engine == POD_ENGINE_AWAKE &&
	       (!is_shared(c, pool) || (label && !strcmp(label, "awake") && !engine_moves_to_sleep(c, p)));
}

static bool stays(const struct pod *p)
{
	return p->node && !p->node->is_draining;
}

static size_t count_staying(const struct controller *c, size_t pool, const struct pod *but)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count, staying = 0;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, &a, &count);

	for (size_t i = 0; i < count; i++)
		staying += pods[i] != but && serves(c, pool, pods[i]) && stays(pods[i]);
	return staying;
}

static bool is_of_family(const struct door *d, const char *ip)
{
	return !strchr(ip, ':') == !strchr(d->controller->settings.pod_ip, ':');
}

static void write_engine(struct door *d, const struct pod *p, size_t count)
{
	char uid[37];

	if (count >= ENDPOINTS_MOST || !is_of_family(d, p->ip))
		return;
	pod_uid_text(p, uid);
	buf_printf(&d->engines,
		   "%s{\"addresses\":[\"%s\"],\"conditions\":{\"ready\":true},\"nodeName\":\"%s\",\"targetRef\":{"
		   "\"kind\":\"Pod\",\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\"}}",
		   d->engines.len ? "," : "", p->ip, p->node->name, p->namespace, p->name, uid);
}

/* Those on nodes that drain serve only where there is no other. Returns how many stay. */
static size_t aim(struct controller *c, struct door *d, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count, staying = count_staying(c, pool, NULL), found = 0;
	const struct pod **pods = cluster_pods(c->cluster, (int)pool, &a, &count);
	struct relay_target *targets = arena_array(&a, struct relay_target, count);

	buf_clear(&d->engines);
	d->engine_port = d->target_port ? d->target_port : c->manifest.pools[pool].spec.signals.scrape.port;
	for (size_t i = 0; i < count; i++) {
		if (!serves(c, pool, pods[i]) || (staying && !stays(pods[i])))
			continue;
		if (pods[i]->node)
			write_engine(d, pods[i], found);
		snprintf(targets[found].address, sizeof targets[found].address, "%s", pods[i]->ip);
		targets[found++].port = (uint16_t)d->engine_port;
	}
	if (d->relay)
		relay_aim(d->relay, targets, found);
	return staying;
}

/* --- the slice --- */

static void note_failure(struct door *d, const char *what, const struct error *e)
{
	struct controller *c = d->controller;
	millis wait = SECOND << (d->failures < 5 ? d->failures : 5);
	size_t pool = pool_of(d);

	d->failures++;
	d->retry_at = clock_mono(c->clock) + (wait < RETRY_MOST ? wait : RETRY_MOST);
	if (e->kind == ERROR_CANCELLED || d->is_told)
		return;
	d->is_told = true;
	log_warn("activator-not-open", LOG_S("pool", d->pool), LOG_S("what", what), LOG_E(e), LOG_END);
	if (pool != SIZE_MAX)
		events_tell_pool(c, pool, (struct pool_event){ "ActivatorNotOpen", "Open", true },
				 "requests of Service %s are not held while no replica serves: %s: %s", d->service,
				 what, e->message);
}

struct service_port {
	const char *name, *protocol;
	int64_t port;
	struct decoded_text target;
};

static const struct field port_fields[] = {
	FIELD(struct service_port, name, FIELD_STRING, "name"),
	FIELD(struct service_port, protocol, FIELD_STRING, "protocol"),
	FIELD(struct service_port, port, FIELD_INT, "port"),
	FIELD(struct service_port, target, FIELD_RAW, "targetPort"),
};
static const struct record_spec port_record = { "", sizeof(struct service_port), port_fields, 4 };

struct service_record {
	const char *uid, *cluster_ip;
	struct decoded_map selector;
	struct decoded_list ports;
};

static const struct field service_fields[] = {
	FIELD(struct service_record, uid, FIELD_STRING, "metadata>uid"),
	FIELD(struct service_record, cluster_ip, FIELD_STRING, "spec>clusterIP"),
	{ .path = "spec>selector", .type = FIELD_MAP, .offset = offsetof(struct service_record, selector) },
	{ .path = "spec>ports",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct service_record, ports),
	  .of = &port_record },
};
static const struct record_spec service_record = { "", sizeof(struct service_record), service_fields, 4 };

struct slice_record {
	const char *name, *uid, *version, *keeper, *leads_to;
	struct decoded_list endpoints;
};

struct endpoint_record {
	struct decoded_text ready; /* true, false, or nothing, which is true */
};

static const struct field endpoint_fields[] = {
	FIELD(struct endpoint_record, ready, FIELD_RAW, "conditions>ready"),
};
static const struct record_spec endpoint_record = { "", sizeof(struct endpoint_record), endpoint_fields, 1 };

static const struct field slice_fields[] = {
	FIELD(struct slice_record, name, FIELD_STRING, "metadata>name"),
	FIELD(struct slice_record, uid, FIELD_STRING, "metadata>uid"),
	FIELD(struct slice_record, version, FIELD_STRING, "metadata>resourceVersion"),
	FIELD(struct slice_record, keeper, FIELD_STRING, "metadata>labels>" KEEPER_LABEL),
	FIELD(struct slice_record, leads_to, FIELD_STRING, "metadata>labels>" LEADS_TO),
	{ .path = "endpoints",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct slice_record, endpoints),
	  .of = &endpoint_record },
};
static const struct record_spec slice_record = { "", sizeof(struct slice_record), slice_fields, 6 };

struct slices_record {
	struct decoded_list items;
};

static const struct field slices_fields[] = {
	{ .path = "items", .type = FIELD_LIST, .offset = offsetof(struct slices_record, items), .of = &slice_record },
};
static const struct record_spec slices_record = { "", sizeof(struct slices_record), slices_fields, 1 };

static bool decode(const struct object_call *o, const struct record_spec *spec, struct arena *a, void *out,
		   struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, o->response, o->response_len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

/* NULL with an error. */
static const struct service_port *choose_port(const struct door *d, const struct service_record *s, struct error *e)
{
	const struct service_port *ports = s->ports.items;

	if (!s->cluster_ip || !*s->cluster_ip || !strcmp(s->cluster_ip, "None")) {
		error_set(e, ERROR_INVALID,
			  "it has no cluster IP, so that clients choose the port themselves; give it one");
		return NULL;
	}
	if (!d->port[0] && s->ports.count == 1)
		return ports;
	for (size_t i = 0; i < s->ports.count; i++)
		if (ports[i].name && d->port[0] && !strcmp(ports[i].name, d->port))
			return &ports[i];
	error_set(e, ERROR_INVALID,
		  d->port[0] ? "it has no port named %s" : "it has several ports; name one with activator.port%s",
		  d->port);
	return NULL;
}

static bool take_service(struct door *d, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct service_record s;

	if (!decode(&d->call, &service_record, &a, &s, e))
		return false;
	const struct service_port *p = choose_port(d, &s, e);
	if (!p)
		return false;
	d->is_route = !s.selector.count && pool_of(d) != SIZE_MAX && is_shared(d->controller, pool_of(d));
	d->is_looked_at &= d->is_route;
	d->has_selector = s.selector.count;
	d->read_at = clock_mono(d->controller->clock);
	snprintf(d->uid, sizeof d->uid, "%s", s.uid ? s.uid : "");
	snprintf(d->port_name, sizeof d->port_name, "%s", p->name ? p->name : "");
	/* A name is one of the container's, which is not known here: 0. */
	d->target_port = p->target.text ? strtoll(p->target.text, NULL, 10) : p->port;
	return true;
}

/* A delete that comes late takes nothing that was written since: of another door, or another replica. */
static void write_preconditions(const struct slice_record *r, char out[PRECONDITIONS])
{
	snprintf(out, PRECONDITIONS, "{\"preconditions\":{\"uid\":\"%.36s\",\"resourceVersion\":\"%.40s\"}}",
		 r->uid ? r->uid : "", r->version ? r->version : "");
}

/* Somebody else's slice has an endpoint that takes requests. */
static bool others_serve(struct door *d, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct slices_record all;
	bool serve = false;

	d->as_seen[0] = '\0';
	if (!decode(&d->call, &slices_record, &a, &all, e))
		return false;
	const struct slice_record *slices = all.items.items;
	for (size_t i = 0; i < all.items.count; i++) {
		const struct endpoint_record *of = slices[i].endpoints.items;
		if (slices[i].name && !strcmp(slices[i].name, d->slice_name)) {
			write_preconditions(&slices[i], d->as_seen);
			continue;
		}
		for (size_t k = 0; k < slices[i].endpoints.count; k++)
			serve |= !of[k].ready.text || *of[k].ready.text != 'f';
	}
	return serve;
}

static void note_slice(struct door *d, enum slice_state state)
{
	if (d->slice != state)
		log_info(state == SLICE_THERE ? "activator-open" : "activator-closed", LOG_S("pool", d->pool),
			 LOG_S("service", d->service), LOG_I("port", d->relay ? relay_port(d->relay) : 0), LOG_END);
	d->slice = state;
	d->is_told = false;
}

static void look_for_strays(struct controller *c, const char *namespace);
static void answered(struct object_call *call);

static void ask(struct door *d, enum door_step step)
{
	static const struct {
		enum object_verb verb;
		bool is_slice;
	} steps[] = { [STEP_SERVICE] = { OBJECT_GET, false },
		      [STEP_WRITE] = { OBJECT_APPLY, true },
		      [STEP_LOOK] = { OBJECT_GET, true },
		      [STEP_DELETE] = { OBJECT_DELETE, true } };
	bool is_slice = steps[step].is_slice, is_list = step == STEP_LOOK;

	d->step = step;
	d->is_calling = true;
	d->call = (struct object_call){ .verb = steps[step].verb,
					.object = { .api_version = is_slice ? SLICE_GROUP : "v1",
						    .plural = is_slice ? "endpointslices" : "services",
						    .name_space = d->namespace,
						    .name = is_list    ? NULL
							    : is_slice ? d->slice_name
								       : d->service },
					.body = step == STEP_WRITE    ? d->body.text
						: step == STEP_DELETE ? d->as_seen
								      : NULL,
					.selector = is_list ? d->selector : NULL,
					.done = answered,
					.user = d };
	object_start(d->controller->api, &d->call);
}

static bool leads_here(const struct door *d)
{
	return !d->is_route || d->is_wanted;
}

/* To us, or to the engines themselves. */
static void write_ends(struct door *d)
{
	bool is_here = leads_here(d);

	buf_clear(&d->ends);
	buf_printf(&d->ends, "\"ports\":[{\"name\":\"%s\",\"protocol\":\"TCP\",\"port\":%u}],\"endpoints\":[",
		   d->port_name, is_here ? d->relay ? relay_port(d->relay) : 0 : (unsigned)d->engine_port);
	if (is_here)
		buf_printf(&d->ends, "{\"addresses\":[\"%s\"],\"conditions\":{\"ready\":true}}]",
			   d->controller->settings.pod_ip);
	else
		buf_printf(&d->ends, "%s]", d->engines.len ? d->engines.text : "");
}

static bool is_written(const struct door *d)
{
	return d->written.len && !strcmp(d->written.text, d->ends.text);
}

static void write_slice(struct door *d)
{
	char keeper[KEEPER_MAX + 1], engines[130] = "";

	keeper_label(d->controller, keeper);
	if (!leads_here(d))
		snprintf(engines, sizeof engines, ",\"" LEADS_TO "\":\"%s\"", strchr(d->pool, '/') + 1);
	write_ends(d);
	buf_clear(&d->sent);
	buf_append(&d->sent, d->ends.text, d->ends.len);
	buf_clear(&d->written); /* whether it arrives nobody knows until it is answered */
	buf_clear(&d->body);
	buf_printf(&d->body,
		   "{\"apiVersion\":\"" SLICE_GROUP "\",\"kind\":\"EndpointSlice\",\"metadata\":{\"name\":\"%s\","
		   "\"namespace\":\"%s\",\"labels\":{\"kubernetes.io/service-name\":\"%s\","
		   "\"" MANAGED_BY "\":\"preheat\",\"" KEEPER_LABEL "\":\"%s\"%s},\"ownerReferences\":[{"
		   "\"apiVersion\":\"v1\",\"kind\":\"Service\",\"name\":\"%s\",\"uid\":\"%s\"}]},\"addressType\":\"%"
		   "s\",%s}",
		   d->slice_name, d->namespace, d->service, keeper, engines, d->service, d->uid,
		   strchr(d->controller->settings.pod_ip, ':') ? "IPv6" : "IPv4", d->ends.text);
	ask(d, STEP_WRITE);
}

static void take_answer(struct door *d)
{
	static const char *const doing[] = { "reading Service", "writing its EndpointSlice",
					     "reading its EndpointSlices", "deleting its EndpointSlice" };
	struct error e = d->call.error;
	bool is_other = d->step == STEP_DELETE && e.kind == ERROR_CONFLICT; /* than was looked at */
	bool is_fine = e.kind == ERROR_NONE || is_other || (d->step == STEP_DELETE && e.kind == ERROR_NOT_FOUND);
	bool others = false;

	if (is_fine && d->step == STEP_SERVICE)
		is_fine = take_service(d, &e);
	if (is_fine && d->step == STEP_LOOK) {
		others = others_serve(d, &e);
		is_fine = others || e.kind == ERROR_NONE;
	}
	if (!is_fine) {
		note_failure(d, doing[d->step], &e);
		return;
	}
	if (d->step != STEP_SERVICE) /* it may be read, and nothing be written */
		d->failures = 0;
	d->retry_at = 0;
	if (d->step == STEP_SERVICE && d->relay && (d->is_route || d->is_wanted)) {
		write_slice(d);
	} else if (d->step == STEP_WRITE) {
		d->written_at = clock_mono(d->controller->clock);
		buf_append(&d->written, d->sent.text, d->sent.len);
		note_slice(d, SLICE_THERE);
		if (d->is_route) /* the cluster keeps the slices of a Service whose selector went */
			ask(d, STEP_LOOK);
	} else if (d->step == STEP_LOOK && d->is_route) {
		d->is_looked_at = true;
		d->has_others = others;
	} else if (d->step == STEP_LOOK && others && d->as_seen[0]) {
		ask(d, STEP_DELETE);
	} else if (is_other || (d->step == STEP_LOOK && !others)) {
		d->retry_at = clock_mono(d->controller->clock) + LOOK_EVERY;
	} else if (d->step != STEP_SERVICE) {
		note_slice(d, SLICE_GONE);
	}
}

static void answered(struct object_call *call)
{
	struct door *d = call->user;

	d->is_calling = false;
	if (d->is_over)
		look_for_strays(d->controller, d->namespace); /* it may have been written in the meantime */
	else
		take_answer(d);
	act_soon(d->controller);
}

/* --- slices that nobody owns --- */

/* A namespace where pools have, or had, activators. */
struct door_space {
	struct door_space *next;
	char name[64];
	bool is_due;
	millis retry_at; /* clock_mono */
};

static void look_for_strays(struct controller *c, const char *namespace)
{
	struct door_space *s = c->activator.strays.first;

	while (s && strcmp(s->name, namespace) != 0)
		s = s->next;
	if (!s) {
		s = xnew(struct door_space);
		snprintf(s->name, sizeof s->name, "%s", namespace);
		s->next = c->activator.strays.first;
		c->activator.strays.first = s;
	}
	s->is_due = true;
}

static bool manifest_owns(const struct manifest *m, const char *namespace, const char *slice)
{
	char name[80];

	for (size_t i = 0; i < m->fleet.pool_count; i++) {
		if (!is_wished(m, i) || strcmp(m->fleet.pools[i].namespace, namespace) != 0)
			continue;
		snprintf(name, sizeof name, SLICE_NAME, m->pools[i].spec.signals.queue.activator.service);
		if (!strcmp(name, slice))
			return true;
	}
	return false;
}

/* It is a door's, or will be. */
static bool is_owned(const struct controller *c, const char *namespace, const char *slice)
{
	for (const struct door *d = c->activator.first; d; d = d->next)
		if (!d->is_over && !strcmp(d->namespace, namespace) && !strcmp(d->slice_name, slice))
			return true;
	return manifest_owns(leader_manifest(c), namespace, slice);
}

static bool is_being_deleted(const struct door *d)
{
	const struct strays *s = &d->controller->activator.strays;

	return s->is_calling && !strcmp(s->namespace, d->namespace) && !strcmp(s->name, d->slice_name);
}

static struct door_space *next_space(const struct controller *c)
{
	struct door_space *s = c->activator.strays.first;

	while (s && !s->is_due)
		s = s->next;
	return s;
}

static void drive_strays(struct controller *c);
static void keep_driving(struct controller *c);
static void strays_answered(struct object_call *call);

/* All of ours in the namespace, or to delete the one that is named. */
static void ask_strays(struct controller *c)
{
	struct strays *s = &c->activator.strays;
	bool is_list = !s->name[0];

	s->controller = c;
	s->is_calling = true;
	s->call = (struct object_call){ .verb = is_list ? OBJECT_GET : OBJECT_DELETE,
					.object = { .api_version = SLICE_GROUP,
						    .plural = "endpointslices",
						    .name_space = s->namespace,
						    .name = is_list ? NULL : s->name },
					.selector = is_list ? MANAGED_BY "=preheat" : NULL,
					.body = is_list ? NULL : s->body,
					.done = strays_answered,
					.user = s };
	object_start(c->api, &s->call);
}

/* To engines that nobody puts to sleep: their pool does not act any more. */
static bool serves_alone(const struct controller *c, const char *namespace, const char *leads_to)
{
	const struct fleet_spec *f = fleet_of(c);

	for (size_t i = 0; leads_to && i < f->pool_count; i++)
		if (!strcmp(f->pools[i].name, leads_to) && !strcmp(f->pools[i].namespace, namespace))
			return !has_activator(c, i);
	return leads_to != NULL;
}

/* Of this controller's: another's has pools that we do not know. */
static bool find_stray(struct controller *c, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct strays *s = &c->activator.strays;
	struct slices_record all;
	char keeper[KEEPER_MAX + 1];

	if (!decode(&s->call, &slices_record, &a, &all, e))
		return false;
	keeper_label(c, keeper);
	const struct slice_record *slices = all.items.items;
	for (size_t i = 0; i < all.items.count; i++) {
		if (serves_alone(c, s->namespace, slices[i].leads_to) || !slices[i].name || !slices[i].keeper ||
		    strcmp(slices[i].keeper, keeper) != 0 || is_owned(c, s->namespace, slices[i].name))
			continue;
		snprintf(s->name, sizeof s->name, "%s", slices[i].name);
		write_preconditions(&slices[i], s->body);
		return true;
	}
	return false;
}

static void note_strays(struct controller *c, struct door_space *space, const struct error *e)
{
	struct strays *s = &c->activator.strays;

	if (s->call.status == 403) {
		/* A door of this namespace could not open either, and tells the pool. */
		log_info("activator-may-not-look", LOG_S("namespace", s->namespace), LOG_E(e), LOG_END);
		return;
	}
	space->is_due = true;
	space->retry_at = clock_mono(c->clock) + STRAYS_AGAIN;
	if (e->kind != ERROR_CANCELLED)
		log_warn("activator-slices-not-swept", LOG_S("namespace", s->namespace), LOG_E(e), LOG_END);
}

static void strays_answered(struct object_call *call)
{
	struct strays *s = call->user;
	struct controller *c = s->controller;
	struct door_space *space = s->at;
	struct error e = call->error;
	bool is_delete = s->name[0];

	s->is_calling = false;
	if (is_delete && e.kind == ERROR_NONE)
		log_info("activator-closed", LOG_S("namespace", s->namespace), LOG_S("slice", s->name), LOG_END);
	if (e.kind == ERROR_NOT_FOUND || (is_delete && e.kind == ERROR_CONFLICT))
		e.kind = ERROR_NONE; /* it is gone, or another by now */
	s->name[0] = '\0';
	if (call->error.kind == ERROR_NONE && !is_delete && find_stray(c, &e) && !c->context.is_barred) {
		ask_strays(c);
		return;
	}
	if (e.kind != ERROR_NONE)
		note_strays(c, space, &e);
	else
		space->is_due |= is_delete; /* there may be more */
	drive_strays(c);
	keep_driving(c);
}

static void drive_strays(struct controller *c)
{
	struct strays *s = &c->activator.strays;
	millis now = clock_mono(c->clock);
	struct door_space *space = s->first;

	while (space && (!space->is_due || now < space->retry_at))
		space = space->next;
	if (!space || s->is_calling || c->context.is_barred || c->is_stopping)
		return;
	space->is_due = false; /* what ends while the list is read is looked for again */
	s->at = space;
	s->name[0] = '\0';
	snprintf(s->namespace, sizeof s->namespace, "%s", space->name);
	ask_strays(c);
}

/* --- doors --- */

static void changed(void *user)
{
	struct door *d = user;
	size_t pool = pool_of(d);

	if (pool != SIZE_MAX && !d->is_over)
		pool_signals_queued(d->controller, pool);
	act_soon(d->controller);
}

static bool is_of(const struct door *d, const struct activator_text *t, millis hold)
{
	return !strcmp(d->service, t->service) && !strcmp(d->port, t->port ? t->port : "") && d->hold == hold;
}

static struct door *add(struct controller *c, size_t pool)
{
	const struct activator_text *t = text_of(c, pool);
	struct door *d = xnew(struct door);

	d->controller = c;
	d->hold = clock_real(c->clock, t->hold);
	snprintf(d->pool, sizeof d->pool, "%s", c->pools[pool]->key);
	snprintf(d->namespace, sizeof d->namespace, "%s", fleet_of(c)->pools[pool].namespace);
	snprintf(d->service, sizeof d->service, "%s", t->service);
	snprintf(d->port, sizeof d->port, "%s", t->port ? t->port : "");
	snprintf(d->slice_name, sizeof d->slice_name, SLICE_NAME, t->service);
	snprintf(d->selector, sizeof d->selector, "kubernetes.io/service-name=%s", t->service);
	d->next = c->activator.first;
	c->activator.first = d;
	return d;
}

static void open_relay(struct door *d)
{
	const struct relay_settings s = { .name = d->pool,
					  .host = "",
					  .first = ACTIVATOR_PORT_FIRST,
					  .last = ACTIVATOR_PORT_LAST,
					  .hold = d->hold,
					  .changed = changed,
					  .user = d };
	struct error e = { 0 };

	if (!d->controller->settings.pod_ip[0])
		error_set(&e, ERROR_INVALID, "the environment has no POD_IP, so nobody could be told where this is");
	else
		d->relay = relay_open(d->controller->loop, &s, &e);
	if (!d->relay)
		note_failure(d, "listening", &e);
}

static void end_door(struct door *d)
{
	d->is_over = true;
	if (d->relay)
		relay_end(d->relay);
	look_for_strays(d->controller, d->namespace);
}

static void drive_door(struct controller *c, struct door *d, size_t pool)
{
	millis now = clock_mono(c->clock);

	if (!d->relay && now >= d->retry_at)
		open_relay(d);
	size_t staying = aim(c, d, pool);
	d->is_wanted = !staying || now < d->asked_until || activator_waiting(c, pool) > 0;
	write_ends(d);
	if (d->is_calling || !d->relay || now < d->retry_at)
		return;
	if (is_being_deleted(d))
		return;
	bool is_due = d->slice != SLICE_THERE || now - d->written_at >= WRITE_EVERY;
	/* It may be a route, or become one. */
	bool is_unread = is_shared(c, pool) && (!d->uid[0] || now - d->read_at >= WRITE_EVERY);
	bool must_lead = d->is_route || d->is_wanted;
	if ((must_lead && (is_due || !is_written(d))) || (!d->is_route && is_unread))
		ask(d, STEP_SERVICE);
	else if (!d->is_route && !d->is_wanted && d->slice != SLICE_GONE)
		ask(d, STEP_LOOK);
}

static bool is_idle_door(const struct door *d)
{
	return !d->is_calling && (!d->relay || (!relay_waiting(d->relay) && !relay_passing(d->relay)));
}

static void release(struct door *d)
{
	relay_close(d->relay);
	buf_release(&d->body);
	buf_release(&d->engines);
	buf_release(&d->ends);
	buf_release(&d->sent);
	buf_release(&d->written);
	free(d);
}

static void sweep(struct controller *c)
{
	for (struct door **at = &c->activator.first; *at;) {
		struct door *d = *at;
		if (!d->is_over || !is_idle_door(d)) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		release(d);
	}
}

static void on_timer(struct timer *t)
{
	struct controller *c = t->user;

	sweep(c);
	drive_strays(c);
	act_soon(c);
	keep_driving(c);
}

static void keep_driving(struct controller *c)
{
	c->activator.timer.user = c;
	bool has_strays = next_space(c) && !c->context.is_barred && !c->is_stopping;

	if ((c->activator.first || has_strays) && !timer_is_running(&c->activator.timer))
		timer_start(c->loop, &c->activator.timer, clock_real(c->clock, DRIVE_EVERY), on_timer);
}

bool activator_covers(struct controller *c, size_t pool, const struct pod *leaving)
{
	struct door *d = pool != SIZE_MAX && has_activator(c, pool) ? door_of(c, pool) : NULL;

	if (!d || count_staying(c, pool, leaving))
		return true;
	d->asked_until = clock_mono(c->clock) + ASKED_FOR;
	bool is_here = d->slice == SLICE_THERE && leads_here(d) && is_written(d);
	/* Where it cannot be had, all goes on as without. */
	return is_here || d->failures >= HOPELESS;
}

enum activator_route activator_route(const struct controller *c, size_t pool)
{
	const struct door *d = has_activator(c, pool) ? door_of(c, pool) : NULL;

	if (!has_activator(c, pool))
		return ROUTE_NONE;
	if (d && d->has_selector)
		return ROUTE_SELECTS;
	if (!d || !d->is_route || !d->is_looked_at)
		return ROUTE_UNREAD;
	if (d->target_port && d->target_port != c->manifest.pools[pool].spec.signals.scrape.port)
		return ROUTE_WRONG_PORT;
	return d->has_others ? ROUTE_SHARED : ROUTE_OURS;
}

bool activator_leaves_out(const struct controller *c, size_t pool, const struct pod *p)
{
	const struct door *d = activator_route(c, pool) == ROUTE_OURS ? door_of(c, pool) : NULL;
	char address[64];

	snprintf(address, sizeof address, "[\"%s\"]", p->ip);
	return d ? d->written.len && !strstr(d->written.text, address) : !pod_is_labelled_apart(p);
}

static void drive(struct controller *c)
{
	for (struct door *d = c->activator.first; d; d = d->next) {
		size_t pool = pool_of(d);
		if (!d->is_over && (pool == SIZE_MAX || !has_activator(c, pool) ||
				    !is_of(d, text_of(c, pool), clock_real(c->clock, text_of(c, pool)->hold))))
			end_door(d);
	}
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (has_activator(c, i)) {
			struct door *d = door_of(c, i);
			drive_door(c, d ? d : add(c, i), i);
		}
	keep_driving(c);
}

/* Whoever leads next has its own door, and writes its slice over ours, or takes it away. */
static void stop(struct controller *c)
{
	for (struct door *d = c->activator.first; d; d = d->next) {
		end_door(d);
		if (d->is_calling)
			api_cancel(&d->call.call);
	}
}

static bool is_idle(const struct controller *c)
{
	for (const struct door *d = c->activator.first; d; d = d->next)
		if (d->is_calling)
			return false;
	return true;
}

static void adopt_of(struct controller *c, const struct manifest *m)
{
	for (size_t i = 0; i < m->fleet.pool_count; i++)
		if (m->pools[i].spec.signals.queue.activator.service) /* elsewhere we may not look */
			look_for_strays(c, m->fleet.pools[i].namespace);
}

void activator_adopt(struct controller *c, struct history *h)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct manifest was = { 0 };
	const char *text;
	struct error e = { 0 };
	struct history_span span = { .last_tick = -1 };

	if (c->context.is_barred)
		return;
	adopt_of(c, &c->manifest);
	for (struct door_space *s = c->activator.strays.first; s; s = s->next)
		look_for_strays(c, s->name);
	if (h && history_span(h, &span, &e) && span.last_tick >= span.first_tick &&
	    history_manifest(h, span.last_tick, &a, &text, &e) &&
	    manifest_load_text("manifest", text, &a, &was, &findings, &e))
		adopt_of(c, &was);
	keep_driving(c);
}

const struct actor activator_actor = { .drive = drive, .stop = stop, .is_idle = is_idle };

void activator_leave(struct controller *c)
{
	c->activator.passes_until = loop_now(c->loop) + PASSES_MOST;
}

bool activator_passes(const struct controller *c)
{
	for (const struct door *d = c->activator.first; d; d = d->next)
		if (d->relay && relay_passing(d->relay) && loop_now(c->loop) < c->activator.passes_until)
			return true;
	return false;
}

void activator_close(struct controller *c)
{
	timer_stop(&c->activator.timer);
	for (struct door *d = c->activator.first, *next; d; d = next) {
		next = d->next;
		release(d);
	}
	c->activator.first = NULL;
	for (struct door_space *s = c->activator.strays.first, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	c->activator.strays.first = NULL;
}
