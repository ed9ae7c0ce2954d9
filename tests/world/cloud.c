#include "tests/world/cloud.h"

#include "tests/world/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 8, IDS = 128 };

static struct {
	struct cloud_group groups[GROUPS];
	size_t count;
	uint64_t seed;
	struct given {
		char token[80], call[600];
		long status;
	} given[CLOUD_TOKENS];
	size_t given_count;
	void (*called)(const struct cloud_call *c);
	void (*gone)(struct cloud_machine *m);
} cloud;

static const char *const step_names[] = { "pending", "running", "stopping", "stopped", "waking", "terminating" };

struct cloud_group *cloud_group_at(size_t i)
{
	return i < cloud.count ? &cloud.groups[i] : NULL;
}

struct cloud_group *cloud_group_named(const char *name, enum cloud_wire wire)
{
	for (size_t i = 0; i < cloud.count; i++)
		if (!strcmp(cloud.groups[i].name, name) && cloud.groups[i].wire == wire)
			return &cloud.groups[i];
	return NULL;
}

struct cloud_machine *cloud_find(const char *id)
{
	for (size_t i = 0; i < cloud.count; i++)
		for (struct cloud_machine *m = cloud.groups[i].machines; m; m = m->next)
			if (!strcmp(m->id, id))
				return m;
	return NULL;
}

millis cloud_delay(const struct cloud_machine *m, const char *stage, millis p50, millis p95)
{
	char purpose[100];

	if (m->is_instant)
		return 0;
	snprintf(purpose, sizeof purpose, "%s/%s", m->id, stage);
	struct random r = random_stream(cloud.seed, purpose);
	return (millis)random_lognormal(&r, (double)p50, (double)p95);
}

/* The resource group is in another case on nodes (karpenter-provider-azure says so), and the name is nowhere in it. */
void cloud_provider_id(const struct cloud_machine *m, bool on_node, char out[256])
{
	if (m->group->has_azure_ids)
		snprintf(out, 256,
			 "azure:///subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/%s/providers/"
			 "Microsoft.Compute/virtualMachineScaleSets/aks-%s-30630193-vmss/virtualMachines/%ld",
			 on_node ? "mc_llm_chat_eastus" : "MC_llm_chat_EastUS", m->group->name,
			 strtol(m->id + strlen(m->group->name) + 1, NULL, 10));
	else if (m->group->wire == CLOUD_EKS)
		snprintf(out, 256, "aws:///%s/%s", cloud_zone_name(m->group, m->zone), m->id);
	else if (m->group->wire == CLOUD_AKS)
		snprintf(out, 256, "azure://%saks-%s-00000000-vmss/virtualMachines/%" PRId64, CLOUD_AKS_MACHINES,
			 m->group->name, cloud_aks_number(m));
	else
		snprintf(out, 256, "simulated:///%s/%s", m->group->name, m->id);
}

static void enter(struct cloud_machine *m, enum machine_step step, millis lasts)
{
	m->step = step;
	m->has_run |= step == STEP_RUNNING && m->is_to_run;
	m->is_protected |= step == STEP_RUNNING && m->group->protects_new;
	m->since = wire_now();
	m->due = lasts < 0 ? 0 : wire_now() + (lasts ? lasts : 1);
}

static void write_id(struct cloud_group *g, char *id, size_t size)
{
	int64_t number = ++g->sequence;

	if (g->wire == CLOUD_EKS)
		snprintf(id, size, "i-%08x%09" PRIx64, (unsigned)(g - cloud.groups) + 1, (uint64_t)number);
	else if (g->wire == CLOUD_AKS)
		snprintf(id, size, "aks-%s-00000000-vmss%06" PRIx64, g->name, (uint64_t)number);
	else
		snprintf(id, size, "%s-%06" PRId64, g->name, number);
}

struct cloud_machine *cloud_launch(struct cloud_group *g, bool is_to_run, const char *token, size_t zone)
{
	struct cloud_machine *m = calloc(1, sizeof *m), **end = &g->machines;

	if (!m)
		abort();
	m->group = g;
	m->zone = zone;
	write_id(g, m->id, sizeof m->id);
	snprintf(m->token, sizeof m->token, "%s", token);
	m->is_to_run = m->was_to_run = is_to_run;
	m->launched = wire_now();
	m->never_registers = g->faults.never_registers && g->faults.never_registers--;
	m->has_no_device = g->faults.no_device && g->faults.no_device--;
	millis boots = cloud_delay(m, "provision", 45 * SECOND, 70 * SECOND);
	enter(m, STEP_PENDING, g->hook + boots);
	m->held_until = g->hook_beside ? wire_now() + boots + g->hook_beside : 0;
	while (*end)
		end = &(*end)->next;
	*end = m;
	g->bought++;
	return m;
}

static struct cloud_machine *launch(struct cloud_group *g, bool is_to_run, const char *token)
{
	return cloud_launch(g, is_to_run, token, cloud_zone_to_fill(g, is_to_run));
}

struct cloud_group *cloud_add(const struct cloud_group *settings, int64_t initial)
{
	struct cloud_group *g = &cloud.groups[cloud.count++];

	if (cloud.count > GROUPS)
		abort();
	*g = *settings;
	g->desired = initial;
	while (initial-- > 0) {
		struct cloud_machine *m = launch(g, true, "initial");
		m->is_instant = true;
		enter(m, STEP_RUNNING, -1);
	}
	return g;
}

int64_t cloud_awake(const struct cloud_group *g)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		count += m->is_to_run && m->step != STEP_TERMINATING;
	return count;
}

/* What a group counts from when it is to be larger: protected machines are there still though fewer are desired. */
static int64_t counted(const struct cloud_group *g)
{
	int64_t awake = cloud_awake(g);

	return awake > g->desired ? awake : g->desired;
}

bool cloud_is_held(const struct cloud_machine *m)
{
	return m->step == STEP_RUNNING && m->held_until > 0;
}

bool cloud_has_power(const struct cloud_machine *m)
{
	return m->step == STEP_RUNNING || (m->step == STEP_TERMINATING && wire_now() < m->powered_until);
}

static const millis SHUTS_DOWN = 20 * SECOND;

void cloud_complete_hooks(struct cloud_group *g)
{
	for (struct cloud_machine *m = g->machines; m; m = m->next)
		if (m->step == STEP_TERMINATING && m->powered_until > wire_now()) {
			m->powered_until = wire_now();
			m->due = wire_now() + SHUTS_DOWN;
		}
}

static void wake(struct cloud_machine *m)
{
	enter(m, STEP_WAKING, cloud_delay(m, "wake", 30 * SECOND, 45 * SECOND));
}

/* Stopped ones first, then those on their way there; a warm pool gives none of those to serve. */
static struct cloud_machine *from_standby(struct cloud_group *g, bool is_to_serve)
{
	for (struct cloud_machine *m = g->machines; m; m = m->next)
		if (!m->is_to_run && m->step == STEP_STOPPED)
			return m;
	for (struct cloud_machine *m = g->machines; m && !(is_to_serve && g->warm.exists); m = m->next)
		if (!m->is_to_run && (m->step == STEP_STOPPING || m->step == STEP_PENDING))
			return m;
	return NULL;
}

static struct cloud_machine *wake_one(struct cloud_group *g, const char *token)
{
	struct cloud_machine *m = from_standby(g, true);

	if (!m)
		return NULL;
	g->standby--;
	m->is_to_run = m->was_to_run = true;
	m->woken = wire_now();
	snprintf(m->token, sizeof m->token, "%s", token);
	if (m->step == STEP_STOPPED)
		wake(m);
	return m;
}

/* So many at most run from now on; returns how many do. */
static int64_t wake_some(struct cloud_group *g, int64_t most, const char *token)
{
	int64_t woken = 0;

	while (woken < most && wake_one(g, token))
		woken++;
	return woken;
}

static void terminate(struct cloud_machine *m)
{
	if (m->is_to_run)
		m->group->desired--;
	else
		m->group->standby--;
	millis held = m->step == STEP_RUNNING && !m->is_taken ? m->group->end_hook : 0;
	enter(m, STEP_TERMINATING, held + SHUTS_DOWN);
	m->powered_until = wire_now() + held;
}

static void stop(struct cloud_machine *m)
{
	m->group->desired--;
	m->group->standby++;
	m->is_to_run = m->is_instant = m->is_protected = m->is_taken = m->is_recommended = false;
	if (m->step == STEP_RUNNING || m->step == STEP_WAKING)
		enter(m, STEP_STOPPING, 30 * SECOND);
}

int64_t cloud_warm_size(const struct cloud_group *g)
{
	const struct cloud_warm_pool *w = &g->warm;
	int64_t room = (w->prepared < 0 ? g->max : w->prepared) - g->desired;

	return !w->exists ? 0 : room > w->least ? room : w->least;
}

static int64_t standby_at_hand(const struct cloud_group *g)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		count += !m->is_to_run && m->step != STEP_TERMINATING;
	return count;
}

static bool goes_to_standby(const struct cloud_machine *m)
{
	const struct cloud_group *g = m->group;

	return g->deallocates || (g->warm.reuses && m->step == STEP_RUNNING && !m->is_taken && !cloud_is_held(m) &&
				  standby_at_hand(g) < cloud_warm_size(g));
}

/* As a lower size does it. */
static void release(struct cloud_machine *m)
{
	if (goes_to_standby(m))
		stop(m);
	else
		terminate(m);
}

/* Some of the launches that are asked for now turn out to fail a while later. */
static int64_t refuse(struct cloud_group *g, int64_t count, bool is_to_run)
{
	int *left = g->faults.stock_out ? &g->faults.stock_out : &g->faults.quota;
	int64_t hit = *left < 0 || *left > count ? count : *left;

	if (!hit || g->refusal_count == CLOUD_FAILURES)
		return 0;
	g->refusals[g->refusal_count++] =
		(struct cloud_refusal){ .count = hit,
					.is_to_run = is_to_run,
					.is_quota = left == &g->faults.quota,
					.due = wire_now() +
					       (g->faults.fails_after ? g->faults.fails_after : 10 * SECOND) };
	*left -= *left > 0 ? (int)hit : 0;
	return hit;
}

void cloud_note_failure(struct cloud_group *g, const struct cloud_failure *f)
{
	struct cloud_failure *noted = &g->failures[g->failure_count++ % CLOUD_FAILURES];

	*noted = *f;
	noted->id = g->failure_count;
	noted->at = wire_now();
}

/* Nothing was to be had in any zone, and each is told. */
static void make_refusals_known(struct cloud_group *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->refusal_count; i++) {
		struct cloud_refusal r = g->refusals[i];
		if (r.due > wire_now()) {
			g->refusals[kept++] = r;
			continue;
		}
		if (g->wire == CLOUD_SIMULATED) /* elsewhere the size stays, and machines are missing */
			*(r.is_to_run ? &g->desired : &g->standby) -= r.count;
		for (size_t zone = 0; zone < cloud_zone_count(g); zone++)
			cloud_note_failure(
				g, &(struct cloud_failure){ .count = r.count, .zone = zone, .is_quota = r.is_quota });
	}
	g->refusal_count = kept;
}

/* Auto Scaling tries for what is missing again and again, by itself. */
static void fill(struct cloud_group *g)
{
	if (g->wire != CLOUD_EKS || g->refusal_count || cloud_awake(g) >= g->desired || wire_now() % (30 * SECOND))
		return;
	int64_t missing = g->desired - cloud_awake(g);
	missing -= wake_some(g, missing, CLOUD_RETRY);
	for (missing -= refuse(g, missing, true); missing > 0; missing--)
		launch(g, true, CLOUD_RETRY);
}

/* Its warm pool follows its size; returns how many are bought for it. */
static int64_t keep_warm(struct cloud_group *g)
{
	int64_t more = cloud_warm_size(g) - standby_at_hand(g), bought = 0;

	if (g->wire != CLOUD_EKS)
		return 0;
	for (struct cloud_machine *m; more < 0 && (m = from_standby(g, false)); more++)
		terminate(m);
	if (g->refusal_count)
		return 0;
	for (more -= more > 0 ? refuse(g, more, false) : 0; more > 0; more--, bought++)
		launch(g, false, CLOUD_WARM);
	g->standby = cloud_warm_size(g);
	return bought;
}

/* The hook's time is up. */
static void end_hook(struct cloud_machine *m)
{
	struct cloud_group *g = m->group;

	if (!cloud_is_held(m) || m->held_until > wire_now())
		return;
	m->held_until = 0;
	if (!g->hook_abandons)
		return;
	cloud_note_failure(g, &(struct cloud_failure){ .count = 1, .zone = m->zone, .is_abandoned = true });
	cloud_owner_ends(m);
}

/* An operation of AKS is over when all that it began has run its course, or failed. */
static void end_operation(struct cloud_group *g)
{
	struct cloud_operation *o = &g->operation;
	bool goes_on = g->refusal_count > 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		goes_on |= m->step != STEP_RUNNING && m->step != STEP_STOPPED;
	if (!o->state || o->is_over || (o->ends ? wire_now() < o->ends : goes_on))
		return;
	o->is_over = true;
	o->has_failed = cloud_awake(g) < g->desired;
}

/* Whether it is gone. */
static bool pass(struct cloud_machine *m)
{
	if (m->step == STEP_PENDING && m->is_to_run)
		enter(m, STEP_RUNNING, -1);
	else if (m->step == STEP_PENDING)
		enter(m, STEP_STOPPING, 30 * SECOND);
	else if (m->step == STEP_STOPPING && m->is_to_run)
		wake(m);
	else if (m->step == STEP_STOPPING)
		enter(m, STEP_STOPPED, -1);
	else if (m->step == STEP_WAKING) {
		m->was_stopped = m->has_run;
		enter(m, STEP_RUNNING, -1);
	} else if (m->step == STEP_RUNNING) { /* a notice is over */
		terminate(m);
		m->group->desired += m->group->wire == CLOUD_EKS; /* Auto Scaling replaces it */
	} else {
		return true;
	}
	return false;
}

/* As far as machines can be chosen: the newest of the fullest zone that has any. */
static void scale_in(struct cloud_group *g)
{
	while (g->is_scaling_in && cloud_awake(g) > g->desired) {
		struct cloud_machine *newest = NULL;
		int64_t load[CLOUD_ZONES];
		cloud_zone_load(g, load);
		for (struct cloud_machine *m = g->machines; m; m = m->next)
			if (m->is_to_run && m->step != STEP_TERMINATING && !m->is_protected &&
			    (!newest || load[m->zone] >= load[newest->zone]))
				newest = m;
		if (!newest)
			return;
		release(newest);
		g->desired++;
	}
	g->is_scaling_in = false;
}

/*
 * A Capacity Block: forty minutes before its end a scheduled action sets the size to 0, which spares what is protected;
 * thirty minutes before EC2 ends what is left, protected or not, and nothing starts any more.
 */
static void end_reservation(struct cloud_group *g)
{
	millis left = g->ends_at - wire_now();

	if (!g->ends_at || left > 40 * MINUTE)
		return;
	if (!g->has_ended) {
		g->has_ended = true;
		g->min = 0;
		cloud_owner_sets(g, 0);
	}
	if (left > 30 * MINUTE)
		return;
	g->faults.stock_out = -1;
	for (struct cloud_machine *m = g->machines; m; m = m->next)
		if (m->step != STEP_TERMINATING)
			cloud_owner_removes(m); /* and the size with it: nothing will come in its place */
}

void cloud_advance(void)
{
	for (size_t i = 0; i < cloud.count; i++) {
		end_reservation(&cloud.groups[i]);
		struct cloud_machine **at = &cloud.groups[i].machines;
		while (*at) {
			struct cloud_machine *m = *at;
			end_hook(m);
			if (!m->due || m->due > wire_now() || !pass(m)) {
				at = &m->next;
				continue;
			}
			*at = m->next;
			if (cloud.gone)
				cloud.gone(m);
			free(m);
		}
		make_refusals_known(&cloud.groups[i]);
		scale_in(&cloud.groups[i]);
		fill(&cloud.groups[i]);
		cloud_balance_zones(&cloud.groups[i]);
		if (wire_now() % (30 * SECOND) == 0)
			keep_warm(&cloud.groups[i]);
		end_operation(&cloud.groups[i]);
		cloud_note_past(&cloud.groups[i]);
	}
}

void cloud_take(struct cloud_group *g, int64_t count)
{
	for (struct cloud_machine *m = g->machines; m && count; m = m->next)
		if (m->step == STEP_RUNNING && !m->is_taken) {
			m->is_taken = true;
			m->due = wire_now() + 2 * MINUTE;
			count--;
		}
}

int64_t cloud_owned(const struct cloud_group *g)
{
	int64_t count = 0;

	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		count += !strcmp(m->token, CLOUD_OWNER) && m->is_to_run && m->step != STEP_TERMINATING;
	return count;
}

static void note_moved(struct cloud_group *g)
{
	if (g->busy_with && !g->moved_at)
		g->moved_at = wire_now();
}

void cloud_owner_sets(struct cloud_group *g, int64_t size)
{
	cloud_note_past(g);
	int64_t more = size - counted(g);

	more -= wake_some(g, more, CLOUD_OWNER);
	for (more -= g->has_ended && more > 0 ? refuse(g, more, true) : 0; more > 0; more--)
		launch(g, true, CLOUD_OWNER);
	if (size != g->desired) {
		note_moved(g);
		g->resized.from = g->desired;
		g->resized.to = size;
		g->resized.at = wire_now();
		g->resized.shown_at = 0;
		g->resized.is_schedule = false;
	}
	g->desired = size;
	g->is_scaling_in = true;
	scale_in(g);
	cloud_note_past(g);
}

void cloud_owner_schedules(struct cloud_group *g, int64_t size)
{
	bool changes = size != g->desired;

	cloud_owner_sets(g, size);
	g->resized.is_schedule |= changes;
	cloud_note_past(g);
}

void cloud_owner_is_busy(struct cloud_group *g, const char *with)
{
	cloud_note_past(g);
	g->busy_with = with;
	g->busy_since = wire_now();
	g->moved_at = 0;
	if (g->wire == CLOUD_AKS && with)
		g->operation = (struct cloud_operation){ .number = g->operation.number + 1,
							 .state = "UpgradingNodeImageVersion",
							 .ends = INT64_MAX };
	else if (g->wire == CLOUD_AKS)
		g->operation.is_over = true;
	cloud_note_past(g);
}

struct cloud_machine *cloud_owner_adds(struct cloud_group *g, const struct cloud_machine *in_place_of)
{
	cloud_note_past(g);
	struct cloud_machine *warm = g->warm.exists ? wake_one(g, CLOUD_OWNER) : NULL;
	struct cloud_machine *m = warm ? warm : launch(g, true, CLOUD_OWNER);
	snprintf(m->replaces, sizeof m->replaces, "%s", in_place_of ? in_place_of->id : "");
	return m;
}

void cloud_owner_removes(struct cloud_machine *m)
{
	cloud_note_past(m->group);
	if (m->step == STEP_RUNNING && wire_now() - m->since > MINUTE) /* a look has shown that it came */
		note_moved(m->group);
	terminate(m);
}

void cloud_owner_ends(struct cloud_machine *m)
{
	cloud_owner_removes(m);
	m->group->desired++;
}

void cloud_owner_replaces(struct cloud_machine *m)
{
	cloud_owner_adds(m->group, m);
	cloud_owner_ends(m);
}

void cloud_owner_reimages(struct cloud_machine *m)
{
	cloud_note_past(m->group);
	m->is_instant = false;
	if (cloud.gone) /* its disk is written anew: node and pods are no more */
		cloud.gone(m);
	wake(m);
}

void cloud_on_call(void (*called)(const struct cloud_call *c))
{
	cloud.called = called;
}

void cloud_told_gone(void (*gone)(struct cloud_machine *m))
{
	cloud.gone = gone;
}

/* --- the wire --- */

static void write_group(const struct cloud_group *g, struct buf *out)
{
	buf_printf(out,
		   "{\"name\":\"%s\",\"min\":%" PRId64 ",\"max\":%" PRId64 ",\"desired\":%" PRId64
		   ",\"standby_desired\":%" PRId64 ",\"machines\":[",
		   g->name, g->min, g->max, g->desired, g->standby);
	for (const struct cloud_machine *m = g->machines; m; m = m->next) {
		char id[256];
		cloud_provider_id(m, false, id);
		buf_printf(out,
			   "%s{\"id\":\"%s\",\"provider_id\":\"%s\",\"zone\":\"%s\",\"state\":\"%s\","
			   "\"goal\":\"%s\",\"protected\":%s,\"launched_at\":%" PRId64 ",\"state_since\":%" PRId64 "}",
			   m == g->machines ? "" : ",", m->id, id, cloud_zone_name(g, m->zone), step_names[m->step],
			   m->is_to_run ? "run" : "standby",
			   m->is_protected && m->step == STEP_RUNNING && m->is_to_run ? "true" : "false",
			   wire_host_wall(CLOUD, m->launched), wire_host_wall(CLOUD, m->since));
	}
	int64_t running = 0, guarded = 0;
	for (const struct cloud_machine *m = g->machines; m; m = m->next) {
		running += m->step == STEP_RUNNING && m->is_to_run;
		guarded += m->step == STEP_RUNNING && m->is_to_run && m->is_protected;
	}
	buf_printf(out, "],\"protects\":%s,\"exposed\":%" PRId64 ",\"guarded\":%" PRId64,
		   g->protects ? "true" : "false", running - guarded, guarded);
	buf_printf(out, ",\"ends_at\":%" PRId64, g->ends_at ? wire_host_wall(CLOUD, g->ends_at) : 0);
	buf_printf(out, ",\"only_grows\":%s", g->only_grows ? "true" : "false");
	buf_printf(out, ",\"emptied_by\":\"%s\"",
		   g->resized.is_schedule && !g->resized.to && !g->desired ? "a schedule of its owner set its size to 0"
									   : "");
	buf_printf(out, ",\"resized_by\":\"%s\"",
		   !g->resized.at	    ? ""
		   : g->resized.is_schedule ? "a schedule of its owner"
					    : "its owner");
	buf_printf(out, ",\"busy_with\":\"%s\",\"ailment\":\"%s\",\"failures\":[", g->busy_with ? g->busy_with : "",
		   g->ailment ? g->ailment : "");
	int64_t from = g->failure_count > CLOUD_FAILURES ? g->failure_count - CLOUD_FAILURES : 0;
	for (int64_t i = from; i < g->failure_count; i++) {
		const struct cloud_failure *f = &g->failures[i % CLOUD_FAILURES];
		buf_printf(out,
			   "%s{\"id\":%" PRId64 ",\"at\":%" PRId64 ",\"code\":\"%s\",\"count\":%" PRId64
			   ",\"message\":\"there is none\"}",
			   i > from ? "," : "", f->id, wire_host_wall(CLOUD, f->at),
			   f->is_quota ? "quota" : "stock-out", f->count);
	}
	buf_text(out, "]}");
}

/* Half of it: the end is missing. */
static void serve_read(struct wire_call *c, struct cloud_group *g, bool is_half)
{
	struct buf text = { 0 };

	write_group(cloud_shown(g), &text);
	wire_answer_bytes(c, 200, NULL, text.text, text.len / (is_half ? 2 : 1));
	buf_release(&text);
}

static void say_no(struct wire_call *c, long status, const char *code)
{
	char text[200];

	snprintf(text, sizeof text, "{\"error\":{\"code\":\"%s\",\"message\":\"on purpose\"}}", code);
	wire_answer(c, status, status == 429 ? "Retry-After: 7" : NULL, text);
}

static bool use(int *fault)
{
	if (!*fault)
		return false;
	*fault -= *fault > 0;
	return true;
}

bool cloud_spoils(struct wire_call *c, struct cloud_group *g,
		  void (*refuse_as)(struct wire_call *c, long status, const char *code))
{
	if (use(&g->faults.hang))
		return true;
	if (use(&g->faults.auth))
		refuse_as(c, 403, "Forbidden");
	else if (use(&g->faults.throttle))
		refuse_as(c, 429, "Throttled");
	else if (use(&g->faults.server_error))
		refuse_as(c, 503, "Unavailable");
	else
		return false;
	return true;
}

static const char *refused_at_once(const struct cloud_group *g)
{
	if (!g->faults.at_once || (!g->faults.stock_out && !g->faults.quota))
		return NULL;
	return g->faults.stock_out ? "InsufficientCapacity" : "QuotaExceeded";
}

/* NULL, or the code of a refusal. */
static const char *grow(struct cloud_group *g, struct cloud_call *c)
{
	int64_t missing = c->asked > counted(g) ? c->asked - counted(g) : 0;

	missing = c->launches ? c->launches : missing;
	if (c->launches && cloud_zone_is_dry(g, c->zone))
		return "InsufficientCapacity";
	if (c->asked < g->desired || c->asked > g->max)
		return "InvalidParameter";
	if (missing > standby_at_hand(g) && refused_at_once(g))
		return refused_at_once(g);
	c->woken = wake_some(g, missing, c->token);
	missing -= c->woken;
	g->desired = c->asked;
	missing -= refuse(g, missing, true);
	for (; missing > 0; missing--, c->launched++)
		cloud_launch(g, true, c->token, c->launches ? c->zone : cloud_zone_to_fill(g, true));
	return NULL;
}

static const char *resize_standby(struct cloud_group *g, struct cloud_call *c)
{
	int64_t more = c->asked - g->standby;

	if (g->wire == CLOUD_EKS) {
		g->warm = c->warm;
		c->launched = keep_warm(g);
		return NULL;
	}
	if (c->asked < 0 || c->asked > g->standby_max)
		return "InvalidParameter";
	if (more > 0 && refused_at_once(g))
		return refused_at_once(g);
	for (struct cloud_machine *m; more < 0 && (m = from_standby(g, false)); more++, c->ended++)
		terminate(m);
	if (more <= 0)
		return NULL;
	g->standby = c->asked;
	more -= refuse(g, more, false);
	for (; more > 0; more--, c->launched++)
		launch(g, false, c->token);
	return NULL;
}

/* Whom a lower size ends. Auto Scaling lets who is protected be, and takes from the fullest zone; a scale set takes the
 * highest numbers, and in several zones whatever it likes, whether it serves or not. */
struct cloud_machine *cloud_choose_to_end(struct cloud_group *g)
{
	struct cloud_machine *chosen = NULL;
	int64_t load[CLOUD_ZONES];
	uint64_t among = 0;

	cloud_zone_load(g, load);
	for (struct cloud_machine *m = g->machines; m; m = m->next) {
		bool is_awake = m->is_to_run && (m->step == STEP_PENDING || m->step == STEP_RUNNING);
		if (!is_awake || m->is_protected)
			continue;
		if (g->wire == CLOUD_AKS && (!g->has_zones || random_next(wire_random()) % ++among == 0))
			chosen = m;
		else if (g->wire != CLOUD_AKS && (!chosen || load[m->zone] > load[chosen->zone] ||
						  (load[m->zone] == load[chosen->zone] && m->step < chosen->step)))
			chosen = m;
	}
	return chosen;
}

/* What Auto Scaling does then nobody tells: here it lowers the size once more, and ends one by its own choice. */
static void end_again(struct cloud_group *g, struct cloud_call *c)
{
	struct cloud_machine *chosen = cloud_awake(g) >= g->desired ? cloud_choose_to_end(g) : NULL;

	if (chosen)
		terminate(chosen);
	else
		g->desired--;
	c->ended += chosen != NULL;
}

static const char *end_some(struct cloud_group *g, struct cloud_call *c)
{
	bool is_cancel = !strcmp(c->verb, "cancel"), is_stop = !strcmp(c->verb, "stop");
	bool only_stops = g->deallocates && !g->deletes_named;

	for (size_t i = 0; i < c->id_count; i++) {
		struct cloud_machine *m = cloud_find(c->ids[i]);
		if (m && m->group == g && m->step == STEP_TERMINATING && m->was_named && g->wire == CLOUD_EKS)
			end_again(g, c);
		if (!m || m->group != g || m->step == STEP_TERMINATING)
			continue;
		if (is_cancel && m->step == STEP_RUNNING) {
			m->is_spared = true;
			continue;
		}
		if (is_stop && (m->step != STEP_RUNNING || m->is_taken || g->standby >= g->standby_max))
			continue;
		if (only_stops && !m->is_to_run)
			continue;
		c->ended++;
		m->was_named = !is_stop && !only_stops;
		if (is_stop || only_stops)
			stop(m);
		else
			terminate(m);
	}
	for (size_t i = 0; is_cancel && c->asked >= 0 && i < g->refusal_count; i++)
		for (struct cloud_refusal *r = &g->refusals[i]; r->is_to_run && r->count && g->desired > c->asked;) {
			r->count--;
			g->desired--;
		}
	return NULL;
}

/* A size below the one there is: what does not run yet goes first, and nothing that is protected; or those that the
 * wire chose. */
static const char *lower(struct cloud_group *g, struct cloud_call *c)
{
	g->refusal_count = 0;
	for (size_t i = 0; i < c->id_count; i++, c->ended++) {
		g->desired = c->asked;
		release(cloud_find(c->ids[i]));
	}
	for (struct cloud_machine *m; cloud_awake(g) > c->asked && (m = cloud_choose_to_end(g)); c->ended++)
		terminate(m);
	g->desired = c->asked;
	return NULL;
}

/* AKS tries for what is missing when it is asked for the same size again. */
static const char *retry(struct cloud_group *g, struct cloud_call *c)
{
	int64_t missing = g->desired - cloud_awake(g);

	if (missing > standby_at_hand(g) && refused_at_once(g))
		return refused_at_once(g);
	c->woken = wake_some(g, missing, c->token);
	missing -= c->woken;
	for (missing -= refuse(g, missing > 0 ? missing : 0, true); missing > 0; missing--, c->launched++)
		launch(g, true, c->token);
	return NULL;
}

static bool is_named(const struct cloud_call *c, const struct cloud_machine *m)
{
	for (size_t i = 0; i < c->id_count; i++)
		if (!strcmp(c->ids[i], m->id))
			return true;
	return false;
}

/* Machines that are named stay protected. */
static const char *protect(struct cloud_group *g, const struct cloud_call *c)
{
	int64_t surplus = c->asked ? -g->desired : 0;

	if (!g->protects)
		return "NotFound";
	for (struct cloud_machine *m = g->machines; m; m = m->next)
		if (m->is_to_run && m->step == STEP_RUNNING && cloud_awake(g) <= g->desired)
			m->is_protected = c->asked || (m->is_protected && is_named(c, m));
		else if (!c->asked && !is_named(c, m))
			m->is_protected = false;
	for (const struct cloud_machine *m = g->machines; m; m = m->next)
		surplus += m->is_protected;
	for (struct cloud_machine *m = g->machines; m && surplus > 0; m = m->next)
		if (c->asked && m->is_protected && !is_named(c, m)) {
			m->is_protected = false;
			surplus--;
		}
	return NULL;
}

static const char *change(struct cloud_group *g, struct cloud_call *c)
{
	if (!strcmp(c->verb, "protect"))
		return protect(g, c);
	if (!strcmp(c->verb, "lower") || (c->asked >= 0 && !strcmp(c->verb, "stop")))
		return lower(g, c);
	if (!strcmp(c->verb, "retry"))
		return retry(g, c);
	if (!strcmp(c->verb, "grow"))
		return grow(g, c);
	if (!strcmp(c->verb, "standby"))
		return resize_standby(g, c);
	if (!strcmp(c->verb, "remove") || !strcmp(c->verb, "stop") || !strcmp(c->verb, "cancel"))
		return end_some(g, c);
	return "NotFound";
}

static struct given *given_to(const char *token)
{
	for (size_t i = 0; i < cloud.given_count && i < CLOUD_TOKENS; i++)
		if (!strcmp(cloud.given[i].token, token))
			return &cloud.given[i];
	return NULL;
}

/* The change, or what a fault makes of it. */
static const char *change_as_faults_have_it(struct cloud_group *g, struct cloud_call *c)
{
	int64_t asked = c->asked;
	const char *code = NULL;

	if (strcmp(c->verb, "protect") != 0 && use(&g->faults.no_effect))
		return NULL;
	bool is_grow = !strcmp(c->verb, "grow") && asked > g->desired;
	if (is_grow && use(&g->faults.one_less)) {
		c->asked--;
		c->launches -= c->launches > 0;
	}
	code = change(g, c);
	if (is_grow && !code && g->desired < g->max && use(&g->faults.one_more)) {
		launch(g, true, CLOUD_OWNER);
		g->desired++;
	}
	c->asked = asked;
	return code;
}

/* Does what is asked unless the token did already. */
static long change_once(struct cloud_group *g, struct cloud_call *c, const char *signature, const char **code)
{
	struct given *given = *c->token ? given_to(c->token) : NULL;

	c->is_repeat = given != NULL;
	if (given && strcmp(given->call, signature) != 0) {
		*code = "InvalidParameter";
		return 400;
	}
	if (given)
		return given->status;
	*code = change_as_faults_have_it(g, c);
	if (*code)
		return strcmp(*code, "InvalidParameter") != 0 ? 409 : 400;
	if (!*c->token)
		return 202;
	given = &cloud.given[cloud.given_count++ % CLOUD_TOKENS];
	snprintf(given->token, sizeof given->token, "%s", c->token);
	snprintf(given->call, sizeof given->call, "%s", signature);
	given->status = 202;
	return 202;
}

long cloud_change(struct cloud_call *c, const char *signature, const char **code)
{
	if (cloud.called)
		cloud.called(c);
	cloud_note_past(c->group);
	c->status = change_once(c->group, c, signature, code);
	cloud_note_past(c->group);
	c->group->changes += c->status == 202;
	c->group->resized.is_schedule &= c->status != 202 || strcmp(c->verb, "grow") != 0;
	c->is_lost = c->status == 202 && !c->is_repeat && use(&c->group->faults.lost_answer);
	if (cloud.called)
		cloud.called(c);
	return c->status;
}

static void serve_change(struct wire_call *w, struct cloud_group *g, const char *verb)
{
	struct value *body = value_parse(w->body, strlen(w->body));
	const struct value *machines = value_at(body, "machines");
	const char *ids[IDS], *code = "", *size = !strcmp(verb, "standby") ? "size" : "desired";
	struct cloud_call c = { .at = wire_now(), .from = w->from, .group = g, .verb = verb, .ids = ids };

	c.token = value_text(body, "token");
	c.asked = value_at(body, size) ? value_int(body, size) : -1;
	for (const struct value *m = machines ? machines->first : NULL; m && c.id_count < IDS; m = m->next)
		ids[c.id_count++] = m->text;
	c.is_again = w->is_again;
	struct buf signature = { 0 };
	buf_printf(&signature, "%s %" PRId64, w->path, c.asked);
	for (size_t i = 0; i < c.id_count; i++)
		buf_printf(&signature, " %s", ids[i]);
	cloud_change(&c, signature.text, &code);
	buf_release(&signature);
	if (c.is_lost) {
		wire_cut(w);
	} else if (c.status != 202) {
		say_no(w, c.status, code);
	} else {
		struct buf text = { 0 };
		write_group(g, &text);
		wire_answer(w, 202, NULL, text.text);
		buf_release(&text);
	}
	value_free(body);
}

static void serve(struct wire_call *c)
{
	char name[64] = "", verb[16] = "";
	const char *from = !strncmp(c->path, "/v1/groups/", 11) ? c->path + 11 : "";

	snprintf(name, sizeof name, "%.*s", (int)strcspn(from, "/"), from);
	from += strlen(name);
	snprintf(verb, sizeof verb, "%s", *from ? from + 1 : "");
	struct cloud_group *g = cloud_group_named(name, CLOUD_SIMULATED);
	if (!g) {
		say_no(c, 404, "NotFound");
		return;
	}
	cloud_advance();
	if (cloud_spoils(c, g, say_no))
		return;
	if (*verb) {
		serve_change(c, g, verb);
	} else {
		serve_read(c, g, use(&g->faults.half_answer));
	}
}

void cloud_begin(uint64_t seed)
{
	memset(&cloud, 0, sizeof cloud);
	cloud.seed = seed;
	wire_host(CLOUD, serve);
	cloud_eks_begin();
	cloud_aks_begin();
}

void cloud_end(void)
{
	for (size_t i = 0; i < cloud.count; i++) {
		cloud_forget_past(&cloud.groups[i]);
		while (cloud.groups[i].machines) {
			struct cloud_machine *m = cloud.groups[i].machines;
			cloud.groups[i].machines = m->next;
			free(m);
		}
	}
	memset(&cloud, 0, sizeof cloud);
}
