#include "tests/world/services.h"

#include "base/net/relay.h"
#include "tests/world/laws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVICES = 16, LAG_MOST = 3 };

struct service {
	const char *app;
	bool is_shared, leads;
	bool is_route; /* it has no selector: who writes its slices leads it */
	millis late;   /* its slice is of so long ago */
	millis changed_at;
	bool has_changed, sees, saw; /* somebody serves: as it is, as the slice says */
	int64_t waiting;
};

/* A door, as the product knows it. */
struct relay {
	struct relay *next;
	struct relay_settings settings;
	char name[160];
	bool is_over;
	size_t aimed;
};

static struct {
	struct service items[SERVICES];
	size_t count;
	struct relay *doors;
} all;

static struct world_app *app_named(const char *name)
{
	struct world_app *a = NULL;

	for (size_t i = 0; (a = world_app_at(i)); i++)
		if (!strcmp(a->name, name))
			break;
	return a;
}

void world_service(const char *app)
{
	const struct world_app *a = app_named(app);

	bool is_route = a->host || a->is_host;

	all.items[all.count++] = (struct service){ .app = a->name, .is_shared = a->is_shared, .is_route = is_route };
	apiserver_create(
		KIND_SERVICE,
		value_of("{'metadata':{'name':'%s','namespace':'llm'},'spec':{%s%s%s'clusterIP':'10.96.0.9','ports':["
			 "{'name':'http','protocol':'TCP','port':80,'targetPort':%d}]}}",
			 app, is_route ? "" : "'selector':{'app':'", is_route ? "" : app, is_route ? "" : "'},",
			 a->host ? 8001 : 8000));
	if (is_route)
		return;
	apiserver_create(KIND_SLICE, value_of("{'metadata':{'name':'%s-x7k2p','namespace':'llm','labels':{"
					      "'kubernetes.io/service-name':'%s'}},'endpoints':[]}",
					      app, app));
}

static struct service *service_of(const char *app)
{
	for (size_t i = 0; i < all.count; i++)
		if (!strcmp(all.items[i].app, app))
			return &all.items[i];
	return NULL;
}

void world_service_leads(const char *app)
{
	service_of(app)->leads = true;
}

bool world_service_is_held(const char *app)
{
	char name[80];

	snprintf(name, sizeof name, "%s-preheat", app);
	return apiserver_find(KIND_SLICE, "llm", name);
}

/* Its only slice has an endpoint. */
static bool route_leads(const struct service *s)
{
	char name[80];

	snprintf(name, sizeof name, "%s-preheat", s->app);
	const struct object *slice = apiserver_find(KIND_SLICE, "llm", name);
	return slice && value_at(slice->value, "endpoints") && value_at(slice->value, "endpoints")->first;
}

static bool is_served(const struct service *s)
{
	if (s->is_route)
		return route_leads(s);
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next) {
		const struct pod_life *life = p->extra;
		if (value_is(p->value, "metadata>labels>app", s->app) && life->is_ready && !pod_is_going(p) &&
		    (!s->is_shared || value_is(p->value, "metadata>labels>preheat.dev/engine-state", "awake")))
			return true;
	}
	return false;
}

/* The cluster's own slice: late by up to LAG_MOST seconds. */
static void slice_second(struct service *s)
{
	bool sees = is_served(s);

	if (s->is_route)
		return;
	if (sees != s->sees) {
		s->sees = sees;
		s->has_changed = true;
		s->changed_at = wire_now();
		s->late = (millis)(random_next(wire_random()) % (LAG_MOST * SECOND));
	}
	if (!s->has_changed || wire_now() - s->changed_at < s->late)
		return;
	char name[80];
	snprintf(name, sizeof name, "%s-x7k2p", s->app);
	struct object *o = apiserver_find(KIND_SLICE, "llm", name);
	value_set(o->value, "endpoints", value_of(sees ? "[{'conditions':{'ready':true}}]" : "[]"));
	apiserver_changed(o);
	s->saw = sees;
	s->has_changed = false;
}

static void doors_second(struct service *s)
{
	const struct world_app *a = app_named(s->app);

	if (a->waiting == s->waiting)
		return;
	s->waiting = a->waiting;
	for (struct relay *r = all.doors; r; r = r->next)
		if (!r->is_over && !strcmp(strchr(r->name, '/') + 1, s->app) && r->settings.changed)
			r->settings.changed(r->settings.user);
}

void services_written(void)
{
	for (size_t i = 0; i < all.count; i++) {
		const struct service *s = &all.items[i];
		if (s->leads && !is_served(s) && !world_service_is_held(s->app))
			laws_break("service_leads_somewhere", "%s lost the last that serves before it is held", s->app);
	}
}

void services_second(void)
{
	for (size_t i = 0; i < all.count; i++) {
		struct service *s = &all.items[i];
		slice_second(s);
		if (s->leads && !s->saw && !world_service_is_held(s->app))
			laws_break("service_leads_somewhere", "%s has no endpoint", s->app);
		doors_second(s);
	}
}

void services_end(void)
{
	if (all.doors)
		laws_break("doors_are_closed", "%s is open yet", all.doors->name);
	memset(&all, 0, sizeof all);
}

/* --- the doors, in place of base/net/relay.c --- */

struct relay *__wrap_relay_open(struct loop *loop, const struct relay_settings *s, struct error *e);
uint16_t __wrap_relay_port(const struct relay *r);
void __wrap_relay_aim(struct relay *r, const struct relay_target *targets, size_t count);
size_t __wrap_relay_waiting(const struct relay *r);
size_t __wrap_relay_passing(const struct relay *r);
void __wrap_relay_end(struct relay *r);
void __wrap_relay_close(struct relay *r);

struct relay *__wrap_relay_open(struct loop *loop, const struct relay_settings *s, struct error *e)
{
	struct relay *r = calloc(1, sizeof *r);

	(void)loop;
	(void)e;
	if (!r)
		abort();
	r->settings = *s;
	snprintf(r->name, sizeof r->name, "%s", s->name);
	r->next = all.doors;
	all.doors = r;
	return r;
}

uint16_t __wrap_relay_port(const struct relay *r)
{
	(void)r;
	return 9500;
}

void __wrap_relay_aim(struct relay *r, const struct relay_target *targets, size_t count)
{
	(void)targets;
	r->aimed = count;
}

/* What comes by the Service while it leads here alone. */
size_t __wrap_relay_waiting(const struct relay *r)
{
	const struct world_app *a = app_named(strchr(r->name, '/') + 1);

	return a && !r->is_over && !r->aimed && world_service_is_held(a->name) ? (size_t)a->waiting : 0;
}

size_t __wrap_relay_passing(const struct relay *r)
{
	(void)r;
	return 0;
}

void __wrap_relay_end(struct relay *r)
{
	r->is_over = true;
}

void __wrap_relay_close(struct relay *r)
{
	struct relay **at = &all.doors;

	if (!r)
		return;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}
