#include "tests/world/nemesis.h"

#include "tests/unit/state/failing_disk.h"
#include "tests/world/autoscaler.h"
#include "tests/world/cluster_autoscaler.h"
#include "tests/world/lines.h"
#include "tests/world/owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the calls to a peer, per mille. */
struct weather {
	int refused, swallowed, answer_lost, answer_half, twice;
	millis slow; /* at most */
};

enum moment { BEFORE_IT_LEAVES, AFTER_IT_LEFT, AFTER_THE_ANSWER };

/* What hits a process at one of its writes. */
struct ambush {
	bool is_set, is_pause;
	int who, countdown;
	enum moment moment;
};

static struct {
	struct random random;
	struct weather weather[PEER_COUNT];
	struct ambush ambush;
	enum nemesis_mode mode;
} nemesis;

static int64_t among(struct random *r, int64_t least, int64_t most)
{
	return least + (int64_t)(random_next(r) % (uint64_t)(most - least + 1));
}

static bool strikes(int permille)
{
	return permille && among(&nemesis.random, 0, 999) < permille;
}

static bool is_change(const struct wire_call *c)
{
	return strcmp(c->method, "GET") != 0 && !strstr(c->body, "Action=Describe");
}

static struct wire_fate fate_of(const struct wire_call *c)
{
	const struct weather *w = &nemesis.weather[line_peer(c)];
	struct wire_fate line = line_fate(c);
	struct wire_fate fate = { .is_refused = strikes(w->refused),
				  .is_swallowed = strikes(w->swallowed),
				  .is_answer_lost = strikes(w->answer_lost),
				  .is_answer_half = strikes(w->answer_half),
				  .is_twice = strikes(w->twice) && is_change(c),
				  .slow = w->slow ? among(&nemesis.random, 0, w->slow) : 0 };
	struct ambush *a = &nemesis.ambush;

	fate.is_refused |= line.is_refused;
	fate.is_swallowed |= line.is_swallowed;
	if (!a->is_set || a->who != c->from || !is_change(c) || a->moment == AFTER_THE_ANSWER || a->countdown-- > 0)
		return fate;
	a->is_set = false;
	fate = (struct wire_fate){ 0 };
	if (a->is_pause) {
		replica_pause(a->who, true);
		fate.is_held = a->moment == BEFORE_IT_LEAVES;
	} else {
		/* A silenced process sends nothing: what left already arrives all the same. */
		fate.is_swallowed = a->moment == BEFORE_IT_LEAVES;
		fate.is_last = a->moment == AFTER_IT_LEFT;
		replica_die(a->who);
	}
	return fate;
}

static void answered(const struct wire_call *c)
{
	struct ambush *a = &nemesis.ambush;

	if (!a->is_set || a->who != c->from || !is_change(c) || a->moment != AFTER_THE_ANSWER || a->countdown-- > 0)
		return;
	a->is_set = false;
	if (a->is_pause)
		replica_pause(a->who, true);
	else
		replica_die(a->who);
}

static void disk_mends(void)
{
	disk.is_full = disk.fails_on = false;
	disk.fails_at = 0;
	disk.code = SQLITE_OK;
	replicas_may_fail(false);
}

void nemesis_begin(void)
{
	if (!disk.usual)
		disk_begin();
	disk_mends(); /* the world before may have ended before it did */
	memset(&nemesis, 0, sizeof nemesis);
	nemesis.random = random_stream(1, "nemesis");
	lines_begin();
	wire_on_leave(fate_of);
	wire_on_answer(answered);
	owners_begin();
	autoscaler_begin();
}

void nemesis_end(void)
{
	owners_end();
	autoscaler_end();
	cluster_autoscaler_on(NULL, 0, 0);
}

/* --- the faults --- */

static struct random details(const struct fault *f)
{
	return random_stream(f->draw, "details");
}

static struct cloud_group *some_group(const struct nemesis_world *w, struct random *r)
{
	return w->groups[among(r, 0, (int64_t)w->group_count - 1)];
}

static int some_replica(const struct nemesis_world *w, struct random *r)
{
	return (int)among(r, 0, w->is_pair || w->is_twin ? 1 : 0);
}

static void traffic(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	w->chat->rate = among(&r, 0, 9) < 3 ? 0 : w->traffic * 8 * random_uniform(&r);
}

static void nothing(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
}

static void kill_begins(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	replica_kill(some_replica(w, &r));
}

/* As service managers and kubelets do: whoever stands still goes on, to end. */
static void stop_begins(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	int who = some_replica(w, &r);

	replica_bury(who);
	replica_pause(who, false);
	replica_stop(who);
}

/* Whoever is dead lives again, and goes on if it stood still. */
static void revive(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	int who = some_replica(w, &r);

	if (nemesis.ambush.who == who)
		nemesis.ambush.is_set = false;
	replica_bury(who);
	replica_pause(who, false);
	if (!replica_is_up(who))
		replica_start(who, &w->settings[who]);
}

static void pause_begins(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	replica_pause(some_replica(w, &r), true);
}

static void ambush(struct nemesis_world *w, const struct fault *f, bool is_pause)
{
	struct random r = details(f);

	nemesis.ambush = (struct ambush){ .is_set = true, .is_pause = is_pause, .who = some_replica(w, &r) };
	nemesis.ambush.countdown = (int)among(&r, 0, 12);
	nemesis.ambush.moment = (enum moment)among(&r, 0, 2);
}

static void kill_at_a_write(struct nemesis_world *w, const struct fault *f)
{
	ambush(w, f, false);
}

static void pause_at_a_write(struct nemesis_world *w, const struct fault *f)
{
	ambush(w, f, true);
}

/* Of one machine or of all: timers stand still, clocks and the world do not. */
static void suspend_begins(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	int64_t who = w->is_pair || w->is_twin ? among(&r, 0, 2) : 0;

	for (int i = 0; i < WORLD_REPLICAS; i++)
		if (who == 2 || who == i)
			replica_suspend(i);
}

static void suspend_ends(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	for (int i = 0; i < WORLD_REPLICAS; i++)
		replica_pause(i, false);
}

static void clock_jumps(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	static const millis jumps[] = { 90 * SECOND, 15 * MINUTE, 2 * HOUR, DAY, -40 * SECOND, -10 * MINUTE };

	(void)w;
	wire_turn_wall(jumps[among(&r, 0, 5)]);
}

static void clock_is_set_right(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	wire_turn_wall(0);
}

static void clocks_agree(void)
{
	for (int i = 0; i < WORLD_REPLICAS; i++)
		wire_turn_one_wall(i, 0, 0);
	wire_host_ahead("http", 0);
}

/* Of one machine, which is wrong or gains or loses up to a second in a minute; of the API server; of the cloud. */
static void one_clock_is_wrong(struct nemesis_world *w, const struct fault *f)
{
	static const millis wrong[] = { 20 * SECOND, 50 * SECOND, 90 * SECOND, 10 * MINUTE, 3 * HOUR };
	struct random r = details(f);
	int64_t whose = among(&r, 0, 5), size = among(&r, 0, 4), sign = among(&r, 0, 1) ? 1 : -1;
	int replica = some_replica(w, &r);

	if (whose < 2)
		wire_turn_one_wall(replica, sign * wrong[size], 0);
	else if (whose < 4)
		wire_turn_one_wall(replica, 0, sign * among(&r, 1, 17));
	else if (whose == 4)
		wire_host_ahead(APISERVER, sign * wrong[size]);
	else
		wire_host_ahead(w->groups[0]->wire == CLOUD_EKS	  ? CLOUD_AWS
				: w->groups[0]->wire == CLOUD_AKS ? CLOUD_ARM
								  : CLOUD,
				sign * wrong[size % 2]);
}

static void clocks_are_set_right(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	clocks_agree();
}

static struct weather *weather_of(const struct fault *f, struct random *r)
{
	*r = details(f);
	return &nemesis.weather[among(r, 0, PEER_COUNT - 1)];
}

static void weather_ends(struct nemesis_world *w, const struct fault *f)
{
	struct random r;

	(void)w;
	*weather_of(f, &r) = (struct weather){ 0 };
}

/* Of one replica or of all, to one peer or, now and then, to all. */
static void set_lines(const struct nemesis_world *w, const struct fault *f, bool is_over)
{
	struct random r = details(f);
	bool are_two = w->is_pair || w->is_twin;
	int64_t peer = among(&r, 0, PEER_COUNT), who = are_two ? among(&r, 0, 2) : 2;
	enum line state = is_over ? LINE_WORKS : (enum line)among(&r, LINE_REFUSES, LINE_DEAD);

	for (int i = 0; i < WORLD_REPLICAS; i++)
		for (int p = 0; p < PEER_COUNT; p++)
			if ((who == 2 || who == i) && (peer == PEER_COUNT || peer == p))
				line_set(i, (enum peer)p, state);
}

static void partition(struct nemesis_world *w, const struct fault *f)
{
	set_lines(w, f, false);
}

static void partition_ends(struct nemesis_world *w, const struct fault *f)
{
	set_lines(w, f, true);
}

static void bad_line(struct nemesis_world *w, const struct fault *f)
{
	struct random r;
	struct weather *x = weather_of(f, &r);

	(void)w;
	x->refused = (int)among(&r, 0, 100);
	x->answer_lost = (int)among(&r, 0, 300);
	x->slow = among(&r, 0, 8) * SECOND;
}

static void half_answers(struct nemesis_world *w, const struct fault *f)
{
	struct random r;

	(void)w;
	weather_of(f, &r)->answer_half = 300;
}

static void twice(struct nemesis_world *w, const struct fault *f)
{
	struct random r;

	(void)w;
	weather_of(f, &r)->twice = 500;
}

static void server_away(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	apiserver_faults()->is_away = true;
	apiserver_cut_watches();
}

static void server_back(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	if (f->draw % 2)
		apiserver_forget_versions();
	apiserver_faults()->is_away = false;
}

static void server_refuses(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	*(f->draw % 2 ? &apiserver_faults()->refuse_permille : &apiserver_faults()->throttle_permille) = 200;
}

static void server_takes(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	apiserver_faults()->refuse_permille = apiserver_faults()->throttle_permille = 0;
}

static void watches_late(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	apiserver_faults()->holds_events = true;
}

static void watches_catch_up(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	apiserver_catch_up();
}

/* Of the next calls of a group. */
static void cloud_hurt(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_faults *x = &some_group(w, &r)->faults;
	int *const all[] = { &x->stock_out, &x->quota,	      &x->lost_answer, &x->hang,	   &x->throttle,
			     &x->no_device, &x->server_error, &x->auth,	       &x->never_registers };

	x->at_once = among(&r, 0, 1);
	*all[among(&r, 0, 8)] = (int)among(&r, 1, 4);
}

/* Everywhere, or in one zone of several. */
static void cloud_dry(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);
	size_t zones = cloud_zone_count(g);

	if (zones > 1 && among(&r, 0, 2))
		g->faults.dry_zones = 1U << among(&r, 0, (int64_t)zones - 1);
	else
		g->faults.stock_out = -1;
}

static void cloud_well(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	some_group(w, &r)->faults = (struct cloud_faults){ 0 };
}

static void reads_lag(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);

	g->reads.lag = among(&r, 5, 120) * SECOND;
	g->reads.is_any_order = among(&r, 0, 2) == 0;
}

/* What keeps the copies that answer is one for all groups, of every pool. */
static void reads_are_new(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	some_group(w, &r)->reads = (struct cloud_reads){ 0 };
}

static void all_reads_lag(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_reads reads = { .lag = among(&r, 20, 120) * SECOND };

	reads.is_any_order = among(&r, 0, 2) == 0;
	(void)w;
	for (size_t i = 0; cloud_group_at(i); i++)
		cloud_group_at(i)->reads = reads;
}

static void all_reads_are_new(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	for (size_t i = 0; cloud_group_at(i); i++)
		cloud_group_at(i)->reads = (struct cloud_reads){ 0 };
}

static void no_op(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	some_group(w, &r)->faults.no_effect = (int)among(&r, 1, 3);
}

static void off_by_one(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_faults *x = &some_group(w, &r)->faults;

	*(among(&r, 0, 1) ? &x->one_more : &x->one_less) = (int)among(&r, 1, 2);
}

static void taken(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	cloud_take(w->groups[0], among(&r, 1, 3));
}

static void resized(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);
	int64_t to = g->desired + among(&r, -2, 2);

	cloud_owner_sets(g, to < g->min ? g->min : to > g->max ? g->max : to);
}

static void mute(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	w->chat->is_mute = true;
}

static void speaks(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	w->chat->is_mute = false;
	w->chat->lie = LIE_NONE;
}

static void nonsense(struct nemesis_world *w, const struct fault *f)
{
	static const enum server_lie lies[] = { LIE_NAN, LIE_NEGATIVE, LIE_RESET, LIE_REPLAY };
	struct random r = details(f);

	w->chat->lie = lies[among(&r, 0, 3)];
}

static void endless(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	w->chat->lie = LIE_ENDLESS;
}

static void zero_running(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	w->chat->lie = LIE_ZERO_LEVELS;
}

/* Levels that are a share of the truth, or of when it began; the counters of both are true. */
static void low_levels(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	w->chat->lie = among(&r, 0, 2) ? LIE_LOW_LEVELS : LIE_OLD_LEVELS;
	w->chat->shows_permille = (int)among(&r, 10, 50) * 10;
}

static void budget(const char *text)
{
	struct object *b = apiserver_first(KIND_BUDGET);

	if (!b)
		return;
	value_set_text(b->value, "spec>maxUnavailable", text);
	apiserver_changed(b);
}

static void budget_never(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	budget("0");
}

static void budget_again(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	budget("1");
}

static void finalizer(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	w->chat->holds_pods = true;
}

static void finalizer_gone(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	w->chat->holds_pods = false;
}

static void pool_deleted(struct nemesis_world *w, const struct fault *f)
{
	struct object *o = apiserver_find(KIND_WARM_POOL, "llm", "chat");

	(void)w;
	(void)f;
	if (o)
		apiserver_delete(o);
}

void nemesis_make_pool(const struct nemesis_world *w)
{
	if (apiserver_find(KIND_WARM_POOL, "llm", "chat"))
		return;
	struct buf text = { 0 };
	buf_printf(&text,
		   "{\"apiVersion\":\"preheat.dev/v1alpha1\",\"kind\":\"WarmPool\",\"metadata\":{\"name\":\"chat\","
		   "\"namespace\":\"llm\"},\"spec\":%s}",
		   w->spec);
	apiserver_create(KIND_WARM_POOL, value_parse(text.text, text.len));
	buf_release(&text);
}

static void pool_again(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	nemesis_make_pool(w);
}

static void pool_set(const char *path, const char *text)
{
	struct object *o = apiserver_find(KIND_WARM_POOL, "llm", "chat");

	if (!o)
		return;
	value_set_text(o->value, path, text);
	value_set_int(o->value, "metadata>generation", value_int(o->value, "metadata>generation") + 1);
	apiserver_changed(o);
}

static void pool_observes(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	pool_set("spec>mode", "observe");
}

static void pool_acts(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	pool_set("spec>mode", "act");
}

static void pool_edited(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	static const char *const after[] = { "1m", "4m", "9m" };

	(void)w;
	pool_set("spec>scaleDown>after", after[among(&r, 0, 2)]);
}

/* All that is in it goes, the WarmPool first or last. */
static void space_deleted(struct nemesis_world *w, const struct fault *f)
{
	struct object *d = apiserver_find(KIND_DEPLOYMENT, "llm", "chat");

	if (f->draw % 2)
		pool_deleted(w, f);
	if (d)
		value_set_int(d->value, "spec>replicas", 0);
	if (d)
		apiserver_changed(d);
	if (!(f->draw % 2))
		pool_deleted(w, f);
}

static void gang(struct nemesis_world *w, const struct fault *f)
{
	static const char *const names[] = { "job-a", "job-b", "job-c", "job-d" };
	struct random r = details(f);
	int64_t pods = among(&r, 2, 4), which = among(&r, 0, 3);

	if (world_app_at(1) && !apiserver_find(KIND_JOB, "llm", names[which]))
		world_job_for(&(struct world_job){ .name = names[which],
						   .pool = world_app_at(1)->name,
						   .pods = pods,
						   .gpus = w->job_gpus,
						   .spec = ",'nodeSelector':{'pool':'train'}" },
			      among(&r, 5, 25) * MINUTE);
}

/* --- what owners do --- */

static void owner_acts(struct nemesis_world *w, const struct fault *f, enum owner_act act)
{
	struct random r = details(f);

	owner_begins(some_group(w, &r), act);
}

static void update(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);

	if (g->wire == CLOUD_EKS && !owner_is_at_work(g)) {
		g->ends_old_first = among(&r, 0, 1);
		g->unavailable = (size_t)among(&r, 1, 3);
	}
	owner_begins(g, OWNER_UPDATES);
}

static void schedule(struct nemesis_world *w, const struct fault *f)
{
	owner_acts(w, f, OWNER_SCHEDULES);
}

/* An agent pool knows none of these. */
static void auto_scaling_acts(struct nemesis_world *w, const struct fault *f, enum owner_act act)
{
	if (w->groups[0]->wire != CLOUD_AKS)
		owner_acts(w, f, act);
}

static void switch_off(struct nemesis_world *w, const struct fault *f)
{
	auto_scaling_acts(w, f, OWNER_SWITCHES_OFF);
}

/* In several an owner resumes the process, and protects nothing. */
static void balance_zones(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);

	if (cloud_zone_count(g) == 1) {
		auto_scaling_acts(w, f, OWNER_BALANCES_ZONES);
		return;
	}
	cloud_note_past(g);
	g->is_left_unbalanced = false;
	for (struct cloud_machine *m = g->machines; m; m = m->next)
		m->is_protected = false;
	cloud_note_past(g);
}

static void refresh(struct nemesis_world *w, const struct fault *f)
{
	auto_scaling_acts(w, f, OWNER_REFRESHES);
}

static void health_check(struct nemesis_world *w, const struct fault *f)
{
	owner_acts(w, f, OWNER_REPLACES_THE_UNHEALTHY);
}

static void spot_rebalance(struct nemesis_world *w, const struct fault *f)
{
	auto_scaling_acts(w, f, OWNER_REBALANCES_SPOT);
}

/* A lifecycle hook, or a slow cloud: what is launched from now on takes so much longer. On EKS it may boot meanwhile,
 * and the hook may say no in the end. */
static void hook(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);
	millis time = among(&r, 30, 400) * SECOND;
	bool is_beside = g->wire == CLOUD_EKS && among(&r, 0, 1);

	*(is_beside ? &g->hook_beside : &g->hook) = time;
	g->hook_abandons = is_beside && !among(&r, 0, 2);
}

/* Of what ends there: EKS has one of its own, of half an hour; whoever adds one says how long. */
static void end_hook(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);

	if (g->wire == CLOUD_EKS)
		g->end_hook = among(&r, 30, 7200) * SECOND;
}

static void end_hook_gone(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	some_group(w, &r)->end_hook = 0;
}

static void hook_gone(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);

	g->hook = g->hook_beside = 0;
	g->hook_abandons = false;
}

/* AKS: all of its pools at once. */
static void cluster_upgrade(struct nemesis_world *w, bool goes_on)
{
	for (size_t i = 0; i < w->group_count; i++)
		w->groups[i]->cluster_upgrades = goes_on && w->groups[i]->wire == CLOUD_AKS;
}

static void cluster_upgrades(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	cluster_upgrade(w, true);
}

static void cluster_upgraded(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	cluster_upgrade(w, false);
}

static void cluster_autoscaler(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	struct cloud_group *g = some_group(w, &r);

	if (!owner_is_at_work(g)) /* else its bounds are those of an update */
		cluster_autoscaler_on(g, g->min, g->max);
}

static void cluster_autoscaler_gone(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	cluster_autoscaler_on(NULL, 0, 0);
}

/* As KServe makes one, or with a metric that wants some number. */
static void autoscaler(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);
	int64_t least = among(&r, 1, 3), most = among(&r, 0, 1) ? least : least + among(&r, 1, 3);

	(void)w;
	if (apiserver_first(KIND_AUTOSCALER))
		return;
	autoscaler_wish(autoscaler_create("chat", least, most, "", ""), among(&r, least, most));
}

static void autoscaler_gone(struct nemesis_world *w, const struct fault *f)
{
	struct object *o = apiserver_first(KIND_AUTOSCALER);

	(void)w;
	(void)f;
	if (o)
		apiserver_delete(o);
}

/* One that heals, one that comes round, one that deploys. */
static void gitops(struct nemesis_world *w, const struct fault *f)
{
	static const millis each[] = { 3 * MINUTE, 8 * MINUTE, 25 * MINUTE };
	struct random r = details(f);
	int64_t replicas = among(&r, 1, 4);

	(void)w;
	gitops_apply("chat", "argocd-controller", replicas, each[among(&r, 0, 2)]);
}

static void gitops_gone(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	gitops_apply("chat", "argocd-controller", 0, 0);
}

static void scaled_by_hand(struct nemesis_world *w, const struct fault *f)
{
	struct random r = details(f);

	(void)w;
	world_set_replicas("chat", among(&r, 0, 5));
}

/* --- the disk below every history --- */

static void disk_full(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	disk.is_full = true;
	replicas_may_fail(true);
}

/* Whatever is asked of it. */
static void disk_errors(struct nemesis_world *w, const struct fault *f)
{
	(void)w;
	(void)f;
	disk.code = SQLITE_IOERR;
	disk.fails_at = disk.changes + 1;
	disk.fails_on = true;
	replicas_may_fail(true);
}

static void disk_well(struct nemesis_world *w, const struct fault *f)
{
	(void)f;
	disk_mends();
	for (int i = 0; i < WORLD_REPLICAS; i++) {
		replica_bury(i);
		if (!replica_is_up(i) && (!i || w->is_pair || w->is_twin))
			replica_start(i, &w->settings[i]);
	}
}

enum needs { NEEDS_NOTHING, NEEDS_OBJECTS, NEEDS_TRAINING };

static const struct fault_kind {
	const char *name;
	int weights[NEMESIS_OWNERS + 1]; /* by mode */
	int64_t least_s, most_s;	 /* how long it lasts */
	void (*begin)(struct nemesis_world *w, const struct fault *f);
	void (*end)(struct nemesis_world *w, const struct fault *f);
	enum needs needs;
} kinds[] = {
	{ "traffic", { 30, 30 }, 1, 1, traffic, nothing, NEEDS_NOTHING },
	{ "kill", { 8, 6 }, 1, 120, kill_begins, revive, NEEDS_NOTHING },
	{ "kill at a write", { 10, 4 }, 60, 900, kill_at_a_write, revive, NEEDS_NOTHING },
	{ "pause", { 6, 2 }, 1, 60, pause_begins, revive, NEEDS_NOTHING },
	{ "pause at a write", { 8, 0 }, 60, 600, pause_at_a_write, revive, NEEDS_NOTHING },
	{ "suspend", { 3, 0 }, 20, 1200, suspend_begins, suspend_ends, NEEDS_NOTHING },
	{ "clock jumps", { 3, 0 }, 60, 1200, clock_jumps, clock_is_set_right, NEEDS_NOTHING },
	{ "partition", { 8, 2 }, 5, 300, partition, partition_ends, NEEDS_NOTHING },
	{ "bad line", { 8, 0 }, 30, 600, bad_line, weather_ends, NEEDS_NOTHING },
	{ "half answers", { 5, 0 }, 30, 300, half_answers, weather_ends, NEEDS_NOTHING },
	{ "delivered twice", { 6, 0 }, 60, 600, twice, weather_ends, NEEDS_NOTHING },
	{ "server away", { 5, 2 }, 1, 90, server_away, server_back, NEEDS_NOTHING },
	{ "server refuses", { 4, 0 }, 30, 300, server_refuses, server_takes, NEEDS_NOTHING },
	{ "watches late", { 6, 0 }, 1, 140, watches_late, watches_catch_up, NEEDS_NOTHING },
	{ "cloud hurt", { 12, 0 }, 60, 900, cloud_hurt, cloud_well, NEEDS_NOTHING },
	{ "stock-out", { 5, 4 }, 60, 1800, cloud_dry, cloud_well, NEEDS_NOTHING },
	{ "reads lag", { 8, 4 }, 60, 1800, reads_lag, reads_are_new, NEEDS_NOTHING },
	{ "no-op", { 5, 0 }, 60, 900, no_op, cloud_well, NEEDS_NOTHING },
	{ "off by one", { 5, 0 }, 60, 900, off_by_one, cloud_well, NEEDS_NOTHING },
	{ "taken", { 5, 5 }, 1, 1, taken, nothing, NEEDS_NOTHING },
	{ "resized", { 4, 5 }, 1, 1, resized, nothing, NEEDS_NOTHING },
	{ "mute", { 4, 0 }, 30, 900, mute, speaks, NEEDS_NOTHING },
	{ "nonsense", { 5, 0 }, 30, 900, nonsense, speaks, NEEDS_NOTHING },
	{ "endless page", { 1, 0 }, 20, 60, endless, speaks, NEEDS_NOTHING },
	{ "zero running", { 4, 0 }, 60, 1200, zero_running, speaks, NEEDS_NOTHING },
	{ "budget never", { 4, 2 }, 300, 1800, budget_never, budget_again, NEEDS_NOTHING },
	{ "finalizer", { 3, 0 }, 60, 1200, finalizer, finalizer_gone, NEEDS_NOTHING },
	{ "pool deleted", { 8, 0 }, 5, 900, pool_deleted, pool_again, NEEDS_OBJECTS },
	{ "pool observes", { 6, 0 }, 5, 900, pool_observes, pool_acts, NEEDS_OBJECTS },
	{ "pool edited", { 8, 2 }, 1, 1, pool_edited, nothing, NEEDS_OBJECTS },
	{ "namespace deleted", { 3, 0 }, 5, 900, space_deleted, pool_again, NEEDS_OBJECTS },
	{ "update", { 0, 12 }, 1, 1, update, nothing, NEEDS_NOTHING },
	{ "schedule", { 0, 5 }, 1, 1, schedule, nothing, NEEDS_NOTHING },
	{ "switched off", { 0, 5 }, 1, 1, switch_off, nothing, NEEDS_NOTHING },
	{ "zones balanced", { 0, 6 }, 1, 1, balance_zones, nothing, NEEDS_NOTHING },
	{ "instance refresh", { 0, 6 }, 1, 1, refresh, nothing, NEEDS_NOTHING },
	{ "health check", { 0, 8 }, 1, 1, health_check, nothing, NEEDS_NOTHING },
	{ "spot rebalanced", { 0, 6 }, 1, 1, spot_rebalance, nothing, NEEDS_NOTHING },
	{ "lifecycle hook", { 0, 5 }, 600, 3600, hook, hook_gone, NEEDS_NOTHING },
	{ "terminate hook", { 0, 5 }, 600, 3600, end_hook, end_hook_gone, NEEDS_NOTHING },
	{ "cluster upgrade", { 0, 4 }, 600, 7200, cluster_upgrades, cluster_upgraded, NEEDS_NOTHING },
	{ "cluster autoscaler", { 0, 4 }, 900, 5400, cluster_autoscaler, cluster_autoscaler_gone, NEEDS_NOTHING },
	{ "autoscaler", { 0, 6 }, 300, 3600, autoscaler, autoscaler_gone, NEEDS_NOTHING },
	{ "gitops", { 0, 4 }, 300, 3600, gitops, gitops_gone, NEEDS_NOTHING },
	{ "scaled by hand", { 0, 4 }, 1, 1, scaled_by_hand, nothing, NEEDS_NOTHING },
	{ "training job", { 25, 10 }, 1, 1, gang, nothing, NEEDS_TRAINING },
	{ "all reads lag", { 0, 0 }, 300, 1800, all_reads_lag, all_reads_are_new, NEEDS_NOTHING },
	{ "low levels", { 0, 0 }, 60, 2400, low_levels, speaks, NEEDS_NOTHING },
	{ "one clock is wrong", { 0, 0 }, 60, 7200, one_clock_is_wrong, clocks_are_set_right, NEEDS_NOTHING },
	{ "line cut", { 0, 0 }, 5, 900, partition, partition_ends, NEEDS_NOTHING },
	{ "stop", { 0, 0 }, 1, 120, stop_begins, revive, NEEDS_NOTHING },
	{ "disk full", { 0, 0 }, 60, 1200, disk_full, disk_well, NEEDS_NOTHING },
	{ "disk errors", { 0, 0 }, 5, 300, disk_errors, disk_well, NEEDS_NOTHING },
};
enum { KINDS = sizeof kinds / sizeof *kinds, READS_LAG = KINDS - 7, LOW_LEVELS, ONE_CLOCK, LINE_CUT, STOP, DISK_FULL };

const char *nemesis_name(const struct fault *f)
{
	return kinds[f->kind].name;
}

static int weight_of(const struct fault_kind *k, const struct nemesis_world *w)
{
	if ((k->needs == NEEDS_OBJECTS && !w->watches_objects) || (k->needs == NEEDS_TRAINING && !world_app_at(1)))
		return 0;
	return k->weights[nemesis.mode];
}

static size_t draw_kind(struct random *r, const struct nemesis_world *w)
{
	int64_t sum = 0, at;
	size_t i = 0;

	for (size_t k = 0; k < KINDS; k++)
		sum += weight_of(&kinds[k], w);
	at = among(r, 1, sum);
	while ((at -= weight_of(&kinds[i], w)) > 0)
		i++;
	return i;
}

static int by_time(const void *a, const void *b)
{
	const struct fault *one = a, *other = b;

	return one->at < other->at ? -1 : one->at > other->at;
}

static void draw_fault(struct fault *f, size_t kind, struct random *r)
{
	f->kind = kind;
	f->at = among(r, 5, 7200) * SECOND + among(r, 0, 999);
	f->lasts = among(r, kinds[f->kind].least_s, kinds[f->kind].most_s) * SECOND;
	f->draw = random_next(r);
}

/* Reads that lag are worth nothing where nobody calls: they begin just before one of the others does. */
static void draw_lag(struct fault *f, const struct fault *others, size_t count, struct random *r)
{
	draw_fault(f, READS_LAG, r);
	f->at = others[among(r, 0, (int64_t)count - 1)].at;
	f->at -= among(r, 0, f->at < MINUTE ? 0 : MINUTE);
}

size_t nemesis_draw(uint64_t seed, const struct nemesis_world *w, enum nemesis_mode mode,
		    struct fault faults[NEMESIS_FAULTS])
{
	struct random number = random_stream(seed, "faults");
	size_t count = (size_t)among(&number, 6, 24);
	struct random disks = random_stream(seed, "disk"), stops = random_stream(seed, "stop");
	struct random cuts = random_stream(seed, "lines"), clocks = random_stream(seed, "clocks"),
		      lies = random_stream(seed, "lies"), lags = random_stream(seed, "lags");

	nemesis.mode = mode;
	for (size_t i = 0; i < count; i++) {
		char name[32];
		snprintf(name, sizeof name, "fault %zu", i);
		struct random r = random_stream(seed, name);
		draw_fault(&faults[i], draw_kind(&r, w), &r);
	}
	/* Apart, so that all else stays as it was. */
	if (among(&stops, 1, 100) <= 30)
		draw_fault(&faults[count++], STOP, &stops);
	if (among(&cuts, 1, 100) <= 40)
		draw_fault(&faults[count++], LINE_CUT, &cuts);
	if (among(&clocks, 1, 100) <= 40)
		draw_fault(&faults[count++], ONE_CLOCK, &clocks);
	if (among(&lies, 1, 100) <= 40)
		draw_fault(&faults[count++], LOW_LEVELS, &lies);
	if (among(&lags, 1, 100) <= (mode == NEMESIS_OWNERS ? 70 : 50)) {
		draw_lag(&faults[count], faults, count, &lags);
		count++;
	}
	if (mode == NEMESIS_FAULTS_ALONE && among(&disks, 1, 100) <= 30)
		draw_fault(&faults[count++], DISK_FULL + (size_t)among(&disks, 0, 1), &disks);
	qsort(faults, count, sizeof *faults, by_time);
	return count;
}

void nemesis_fault_begins(struct nemesis_world *w, const struct fault *f)
{
	kinds[f->kind].begin(w, f);
}

void nemesis_fault_ends(struct nemesis_world *w, const struct fault *f)
{
	kinds[f->kind].end(w, f);
}

void nemesis_all_well(struct nemesis_world *w)
{
	const struct object *b = apiserver_first(KIND_BUDGET);

	memset(nemesis.weather, 0, sizeof nemesis.weather);
	lines_mend();
	nemesis.ambush.is_set = false;
	for (size_t i = 0; i < w->group_count; i++)
		w->groups[i]->faults = (struct cloud_faults){ 0 };
	all_reads_are_new(w, NULL);
	autoscaler_gone(w, NULL);
	cluster_autoscaler_on(NULL, 0, 0);
	gitops_gone(w, NULL);
	cluster_upgrade(w, false);
	for (size_t i = 0; i < w->group_count; i++) {
		w->groups[i]->hook = w->groups[i]->hook_beside = w->groups[i]->end_hook = 0;
		cloud_complete_hooks(w->groups[i]);
	}
	w->chat->rate = 0;
	w->chat->is_mute = w->chat->holds_pods = false;
	w->chat->lie = LIE_NONE;
	*apiserver_faults() = (struct apiserver_faults){ 0 };
	apiserver_catch_up();
	wire_turn_wall(0);
	clocks_agree();
	if (b && value_is(b->value, "spec>maxUnavailable", "0"))
		budget("1");
	disk_well(w, NULL);
	for (int i = 0; i < WORLD_REPLICAS; i++) {
		replica_bury(i);
		replica_pause(i, false);
		if (!replica_is_up(i) && (!i || w->is_pair || w->is_twin))
			replica_start(i, &w->settings[i]);
	}
	if (w->watches_objects) {
		nemesis_make_pool(w);
		pool_set("spec>mode", "act");
	}
}
