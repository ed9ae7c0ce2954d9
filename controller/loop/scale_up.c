#include "controller/loop/scale_up.h"

#include "controller/loop/coming.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/observe.h"
#include "controller/loop/start_progress.h"
#include "controller/loop/watch_sync.h"

#include <stdio.h>
#include <string.h>

/* --- budgets --- */

bool cost_is_one_budget(const struct pool_spec *a, const struct pool_spec *b)
{
	return a == b || (a->budget_name[0] && !strcmp(a->budget_name, b->budget_name));
}

/* Every pool that names the group is of the budget of `own`: then all of it is paid from there. */
static bool is_paid_by(const struct controller *c, size_t group, const struct pool_spec *own)
{
	const struct group_users *users = &fleet_of(c)->users[group];

	for (size_t i = 0; i < users->count; i++)
		if (!cost_is_one_budget(own, &fleet_of(c)->pools[users->items[i].pool]))
			return false;
	return users->count > 0;
}

static int64_t left_of(const struct controller *c, const struct pool_spec *own)
{
	int64_t left = own->budget_per_hour;

	for (size_t i = 0; i < fleet_of(c)->group_count; i++) {
		const struct node_group *g = c->groups[i];
		const struct group_spec *spec = &fleet_of(c)->groups[i];
		if (g->is_known && is_paid_by(c, i, own))
			left -= node_group_size(g) * spec->price_per_hour +
				node_group_count(g, MACHINE_STOPPED) *
					(spec->price_per_hour / 1000 * spec->standby_price_ppm / 1000);
	}
	return left;
}

int64_t cost_budget_affordable(void *user, size_t group)
{
	const struct controller *c = user;
	const struct group_users *users = &fleet_of(c)->users[group];
	int64_t price = fleet_of(c)->groups[group].price_per_hour, least = INT64_MAX;

	for (size_t i = 0; i < users->count; i++) {
		const struct pool_spec *own = &fleet_of(c)->pools[users->items[i].pool];
		if (own->budget_per_hour <= 0 || price <= 0 || !is_paid_by(c, group, own))
			continue;
		int64_t money = left_of(c, own);
		/* Whole machines, rounded up where too many are asked for. */
		int64_t machines = money >= 0 ? money / price : -((-money + price - 1) / price);
		least = machines < least ? machines : least;
	}
	return least;
}

/* --- buying --- */

/* Should nobody tell that others let go of a group: the next leader, say. */
static const millis HELD_AT_MOST = 10 * MINUTE;

int64_t nodes_for(const struct controller *c, size_t pool, size_t group, int64_t replicas)
{
	int64_t each = replicas_on_node(c, pool, group);

	return each > 0 ? (replicas + each - 1) / each : 0;
}

static struct start start_like(const struct controller *c, size_t pool, size_t position, enum start_kind kind)
{
	return (struct start){ .pool = pool,
			       .group = (int64_t)position,
			       .kind = kind,
			       .asked_at = c->snapshot.now,
			       .ends_at_device = runs_work(c, pool) || is_buffered(c, pool) };
}

/* Not even asked, so that another group is tried. */
static void refuse(struct controller *c, const struct start *like, int64_t count, enum error_kind why)
{
	starts_add_event(&c->starts, like->pool,
			 &(struct event_input){ .group = like->group,
						.what = EVENT_REFUSED,
						.kind = (int64_t)like->kind,
						.value = (int64_t)why,
						.count = count });
}

/* Others work on the group: it is not asked, and nothing is decided there, until they let go of it. */
static void put_off(struct controller *c, const struct start *like, int64_t count)
{
	c->groups[fleet_of(c)->pools[like->pool].groups[like->group]]->was_missed = true;
	starts_add_event(&c->starts, like->pool,
			 &(struct event_input){ .group = like->group,
						.what = EVENT_HELD,
						.kind = (int64_t)like->kind,
						.value = HELD_AT_MOST,
						.count = count });
}

/* The same as buy() of a group that is known, without a word about what is not granted; returns how many start. */
static int64_t grant(struct controller *c, const struct start *like, int64_t count)
{
	size_t group = fleet_of(c)->pools[like->pool].groups[like->group];
	int64_t nodes = node_group_grow(c->groups[group], nodes_for(c, like->pool, group, count));
	int64_t room = nodes * replicas_on_node(c, like->pool, group);

	if (count > room)
		count = room;
	starts_ask(&c->starts, like, count);
	return count;
}

/* An earlier life bought in a group of the pool what no look shows yet: who does not count it would buy it again. */
static bool is_in_doubt(const struct controller *c, size_t pool)
{
	for (size_t i = 0; i < fleet_of(c)->pools[pool].group_count; i++) {
		const struct node_group *g = c->groups[fleet_of(c)->pools[pool].groups[i]];
		if (!g->is_known && g->accepted.least >= 0 && g->accepted.least_until > clock_mono(c->clock))
			return true;
	}
	return false;
}

static void buy(struct controller *c, const struct start *like, int64_t count)
{
	size_t group = fleet_of(c)->pools[like->pool].groups[like->group];
	struct node_group *g = c->groups[group];

	if (count <= 0)
		return;
	if (!g->is_known || is_in_doubt(c, like->pool)) {
		g->was_missed = true;
		refuse(c, like, count, ERROR_UNAVAILABLE);
		return;
	}
	int64_t got = grant(c, like, count);
	if (count > got && node_group_is_held(g))
		put_off(c, like, count - got);
	else if (count > got && g->seen.max > 0 &&
		 g->seen.max < fleet_of(c)->groups[group].max_nodes) /* the cloud's max */
		refuse(c, like, count - got, ERROR_QUOTA);
}

void scale_up_buy(struct controller *c, size_t pool, size_t position, enum start_kind kind, int64_t count)
{
	struct start like = start_like(c, pool, position, kind);

	buy(c, &like, count);
}

/* In place of machines that serve and cost more: where they are refused, those go on. */
static void buy_swaps(struct controller *c, size_t pool, size_t position, int64_t count)
{
	struct start like = start_like(c, pool, position, START_COLD);

	like.is_swap = true;
	buy(c, &like, count);
}

void scale_up_tell_described(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		for (size_t k = 0; k < fleet_of(c)->pools[i].group_count; k++) {
			const struct node_group *g = c->groups[fleet_of(c)->pools[i].groups[k]];
			if (g->was_missed && g->is_known && !node_group_is_held(g))
				starts_add_event(&c->starts, i,
						 &(struct event_input){
							 .group = (int64_t)k, .what = EVENT_DESCRIBED, .count = 1 });
		}
	for (size_t i = 0; i < fleet_of(c)->group_count; i++)
		c->groups[i]->was_missed &= !c->groups[i]->is_known || node_group_is_held(c->groups[i]);
}

static void refill(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position];
	struct node_group *g = c->groups[group];

	if (count <= 0 || !g->is_known)
		return;
	int64_t before = g->standby_wanted;
	node_group_set_standby(g, before + nodes_for(c, pool, group, count));
	int64_t room = (g->standby_wanted - before) * replicas_on_node(c, pool, group);
	struct start like = start_like(c, pool, position, START_REFILL);
	starts_ask(&c->starts, &like, count < room ? count : room);
}

/* --- lent nodes --- */

static bool node_is_lent_by(const struct node *n, const char *pool)
{
	const char *by = node_label(n, "preheat.dev/lent-by");

	return by && !strcmp(by, pool);
}

/* What borrowers start there does not keep it. */
static bool is_taken_back(const struct controller *c, const struct node *n)
{
	for (size_t i = 0; i < c->starts.count; i++)
		if (c->starts.items[i].kind == START_RECLAIM &&
		    !strcmp(c->starts.items[i].machine, machine_of_node(c, n)))
			return true;
	return false;
}

int64_t lent_places(const struct controller *c, size_t pool, size_t group)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	int64_t lent = 0;
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, &a, &count);

	for (size_t i = 0; i < count; i++)
		if (node_is_usable(nodes[i]) && node_is_lent_by(nodes[i], fleet_of(c)->pools[pool].name) &&
		    !is_taken_back(c, nodes[i]))
			lent += replicas_on_node(c, pool, group);
	return lent;
}

/* Takes lent nodes back: the pool's pods may go there again, and pre-empt what runs. */
static void reclaim(struct controller *c, size_t pool, size_t position, int64_t count)
{
	size_t group = fleet_of(c)->pools[pool].groups[position], all;
	CLEANUP(arena_release) struct arena a = { 0 };
	int64_t each = replicas_on_node(c, pool, group);
	const struct node **nodes = count > 0 ? cluster_nodes(c->cluster, (int)group, &a, &all) : NULL;

	for (size_t i = 0; nodes && i < all && count > 0; i++) {
		if (!node_is_lent_by(nodes[i], fleet_of(c)->pools[pool].name) || !node_is_usable(nodes[i]) ||
		    is_taken_back(c, nodes[i]))
			continue;
		struct start like = {
			.pool = pool, .group = (int64_t)position, .kind = START_RECLAIM, .asked_at = c->snapshot.now
		};
		snprintf(like.machine, sizeof like.machine, "%s", machine_of_node(c, nodes[i]));
		starts_ask(&c->starts, &like, count < each ? count : each);
		drain_take_back(c, nodes[i]);
		count -= each;
	}
}

/* --- what a decision wants more --- */

static int64_t take_from(int64_t *kept, int64_t wanted)
{
	int64_t n = *kept < wanted ? *kept : wanted;

	*kept -= n;
	return wanted - n;
}

/*
 * Pods of the pool that no machine would help stand for as many of the replicas that are wished beyond the pods that
 * one does help: nothing is bought for these. They are told of with the reason. Returns how many of `count` are left
 * at a position; the last positions do without first.
 */
static int64_t serviceable(const struct controller *c, size_t pool, size_t position, int64_t count)
{
	const struct pool_plan *plan = &c->plan.pools[pool];
	int64_t lost = takes_any(c, pool) ? 0 : c->pools[pool]->view.unsatisfiable;
	int64_t beyond = plan->decision.decided - observe_wanted_pods(c, pool);

	lost = lost < beyond ? lost : beyond;
	for (size_t i = position + 1; i < plan->group_count; i++)
		lost -= plan->groups[i].cold + plan->groups[i].wake;
	if (lost <= 0)
		return count;
	return count > lost ? count - lost : 0;
}

/* Onto GPUs that are free now, then onto those that will be. */
static void fill_places(struct controller *c, size_t pool, size_t position, int64_t count)
{
	int64_t running = observe_running_places(c, pool, position);
	struct start like = start_like(c, pool, position, START_PLACE);

	running = count < running ? count : running;
	if (running > 0)
		starts_ask(&c->starts, &like, running);
	c->pools[pool]->unplaced += count - running - coming_join(c, pool, position, count - running);
}

void scale_up_rest(struct controller *c, size_t pool)
{
	struct live_pool *p = c->pools[pool];

	for (size_t k = 0; k < fleet_of(c)->pools[pool].group_count && p->unplaced > 0; k++)
		p->unplaced -= coming_join(c, pool, k, p->unplaced);
	p->unplaced = 0;
}

/* One that no look shows has no name yet. */
static bool claim(struct node_group *g, struct start *like)
{
	like->machine[0] = '\0';
	return node_group_claim(g);
}

/* Machines on their way that were given up, and that no call has named yet, are waited for again before any is bought:
 * the cancel may come too late, and then both would be there. Returns the replicas that these are for. */
static int64_t cancels_call_off(struct controller *c, size_t pool, int64_t replicas)
{
	int64_t kept = 0;

	for (size_t k = 0; k < fleet_of(c)->pools[pool].group_count; k++) {
		size_t group = fleet_of(c)->pools[pool].groups[k];
		struct start like = start_like(c, pool, k, START_COLD);
		int64_t each = replicas_on_node(c, pool, group);
		while (kept < replicas && each > 0 &&
		       (node_group_call_off(c->groups[group], like.machine) || claim(c->groups[group], &like))) {
			int64_t count = replicas - kept < each ? replicas - kept : each;
			starts_ask(&c->starts, &like, count);
			kept += count;
		}
	}
	return kept;
}

/* Room on a node that returns; what was asked to go makes room for another. */
static int64_t places_left(const struct controller *c, size_t pool, const struct node *n)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);
	int64_t gpus = n->gpus_milli;

	for (size_t i = 0; i < count; i++)
		gpus -= pod_counts(pods[i]) && pods[i]->state != POD_TERMINATING ? pods[i]->gpus_milli : 0;
	return gpus > 0 ? gpus / 1000 / fleet_of(c)->pools[pool].gpus_per_replica : 0;
}

/* What serves on nodes that were to go is there at once and costs no start, and what comes up there comes; beside them
 * others start before any machine is bought. Returns the replicas that these nodes are for. */
static int64_t drains_keep(struct controller *c, size_t pool, int64_t replicas)
{
	const struct node *n = NULL;
	int64_t kept = 0;

	while (kept < replicas && (n = drains_call_off(c, pool)) != NULL) {
		kept += replicas_awake(c, n, pool) + start_progress_adopt(c, n, pool);
		int64_t position = pool_position(fleet_of(c), pool, (size_t)n->group), room = places_left(c, pool, n);
		if (position < 0 || kept >= replicas)
			continue;
		struct start like = start_like(c, pool, (size_t)position, START_PLACE);
		room = room < replicas - kept ? room : replicas - kept;
		starts_ask(&c->starts, &like, is_buffered(c, pool) ? 0 : room);
		kept += room;
	}
	return kept;
}

void scale_up(struct controller *c, size_t pool, size_t position, const struct group_decision *d)
{
	const struct pool_plan *plan = &c->plan.pools[pool];
	int64_t more = d->cold - d->swap + d->wake + d->place, released = 0;

	for (size_t i = 0; i < plan->group_count; i++)
		released += plan->groups[i].release;
	int64_t kept = more > 0 && released <= 0 ? drains_keep(c, pool, more) : 0;
	kept += cancels_call_off(c, pool, serviceable(c, pool, position, d->cold - d->swap) - kept);
	int64_t cold = take_from(&kept, d->cold - d->swap), wake = take_from(&kept, d->wake),
		place = take_from(&kept, d->place);

	reclaim(c, pool, position, d->reclaim);
	if (place > 0)
		fill_places(c, pool, position, place);
	int64_t bought = serviceable(c, pool, position, wake + cold + d->swap);
	wake = bought < wake ? bought : wake;
	cold = bought - wake < cold ? bought - wake : cold;
	scale_up_buy(c, pool, position, START_WAKE, wake);
	scale_up_buy(c, pool, position, START_COLD, cold);
	buy_swaps(c, pool, position, bought - wake - cold);
	refill(c, pool, position, d->refill);
}

/* --- falling back --- */

enum { POSITIONS_MOST = 64 };

static int64_t price_of_replica(const struct controller *c, size_t pool, size_t position)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	const struct group_spec *g = &fleet_of(c)->groups[spec->groups[position]];
	int64_t each = replicas_per_node(g, spec);

	return g->price_per_hour / (each > 0 ? each : 1);
}

void fallback_note(void *user, const struct start *s, enum error_kind why)
{
	struct controller *c = user;
	struct live_pool *p = c->pools[s->pool];
	const struct pool_spec *spec = &fleet_of(c)->pools[s->pool];

	if (takes_any(c, s->pool))
		waiting_again(c);
	if (!pool_may_act(c, s->pool) || s->is_swap || spec->class == CLASS_ANY || spec->class == CLASS_TRAINING ||
	    s->group >= POSITIONS_MOST || (s->kind != START_COLD && s->kind != START_WAKE))
		return;
	p->fallback.replicas++;
	p->fallback.price += price_of_replica(c, s->pool, (size_t)s->group);
	if (why != ERROR_NONE)
		p->fallback.refused |= UINT64_C(1) << s->group;
}

size_t fallback_lost(struct controller *c, const struct node *n, bool starts_elsewhere)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, &a, &count);

	for (size_t i = 0; i < count; i++) {
		size_t pool = pods[i]->pool < 0 ? fleet_of(c)->pool_count : (size_t)pods[i]->pool;
		int64_t position = pods[i]->pool < 0 ? -1 : pool_position(fleet_of(c), pool, (size_t)n->group);
		if (position < 0 || pods[i]->ready_at <= 0 || pods[i]->is_placeholder)
			continue;
		const struct pool_spec *spec = &fleet_of(c)->pools[pool];
		starts_add_event(&c->starts, pool,
				 &(struct event_input){ .group = position, .what = EVENT_LOST, .count = 1 });
		c->pools[pool]->fallback.replicas += starts_elsewhere && !runs_work(c, pool) && c->has_decided &&
						     spec->mode == MODE_ACT && spec->class != CLASS_TRAINING;
	}
	return count;
}

static void fallback_forget(struct controller *c)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++) {
		c->pools[i]->fallback.replicas = c->pools[i]->fallback.price = 0;
		c->pools[i]->fallback.refused = 0;
	}
}

static bool is_free(const struct controller *c, size_t pool, size_t position)
{
	const struct pool_plan *plan = &c->plan.pools[pool];
	size_t group = fleet_of(c)->pools[pool].groups[position];

	return position < POSITIONS_MOST && !(c->pools[pool]->fallback.refused >> position & 1) &&
	       c->groups[group]->is_known && plan->groups[position].blocked_until <= clock_now(c->clock) &&
	       plan->groups[position].held_by != LIMIT_RESERVATION;
}

/* What the budget leaves once the refused ones are taken off; INT64_MAX without one. */
static int64_t money_left(const struct controller *c, size_t pool)
{
	const struct pool_spec *spec = &fleet_of(c)->pools[pool];
	int64_t left = spec->budget_per_hour;

	if (left <= 0)
		return INT64_MAX;
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (cost_is_one_budget(spec, &fleet_of(c)->pools[i]))
			left += c->pools[i]->fallback.price - c->plan.pools[i].decision.dollars_per_hour;
	return left;
}

static int64_t affordable(const struct controller *c, size_t pool, size_t position, int64_t money)
{
	const struct group_spec *g = &fleet_of(c)->groups[fleet_of(c)->pools[pool].groups[position]];
	int64_t each = replicas_per_node(g, &fleet_of(c)->pools[pool]);

	if (money == INT64_MAX || g->price_per_hour <= 0)
		return INT64_MAX;
	return money > 0 ? money / g->price_per_hour * (each > 0 ? each : 1) : 0;
}

static bool stays(const struct controller *c, const struct node *n)
{
	return n->is_known && !n->is_leaving && !drain_is_under_way(c, n->name);
}

static bool starts_where_it_stays(const struct controller *c, const struct start *s)
{
	const struct node_group *g = c->groups[fleet_of(c)->pools[s->pool].groups[s->group]];
	const struct machine *m = s->machine[0] ? node_group_machine(g, s->machine) : NULL;
	const struct node *n = m ? cluster_node_by_machine(c->cluster, m->provider_id) : NULL;

	return s->kind != START_REFILL && !s->is_swap && (!n || !n->is_known || stays(c, n));
}

/* Replicas that serve and stay, and those that start. */
static int64_t replicas_had(const struct controller *c, size_t pool)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, -1, &a, &count);
	int64_t had = 0;

	for (size_t i = 0; i < count; i++)
		had += stays(c, nodes[i]) ? replicas_awake(c, nodes[i], pool) : 0;
	for (size_t i = 0; i < c->starts.count; i++)
		had += c->starts.items[i].pool == pool && starts_where_it_stays(c, &c->starts.items[i]);
	return had;
}

static void need_less(struct fallback *f, int64_t replicas)
{
	int64_t left = f->replicas > replicas ? f->replicas - replicas : 0;

	f->price = f->replicas > 0 ? f->price * left / f->replicas : 0;
	f->replicas = left;
}

/* A machine that was given up too late runs on, and is a start again: it takes the place of what was refused. */
static void use_what_stays(struct controller *c, size_t pool)
{
	struct fallback *f = &c->pools[pool]->fallback;
	int64_t missing = c->plan.pools[pool].decision.decided - replicas_had(c, pool);

	missing = missing > 0 ? missing : 0;
	if (f->replicas > missing)
		need_less(f, f->replicas - missing);
}

/* Starts that wait for any free GPU of the group have a claim on its idle nodes. */
static int64_t places_claimed(const struct controller *c, size_t group)
{
	int64_t count = 0;

	for (size_t i = 0; i < c->starts.count; i++) {
		const struct start *s = &c->starts.items[i];
		count += fleet_of(c)->pools[s->pool].groups[s->group] == group && !s->pod[0] && !s->machine[0] &&
			 s->stage >= STAGE_IMAGE;
	}
	return count;
}

/* Beside what runs there already, where no start is on its way. */
static int64_t places_beside(const struct controller *c, size_t pool, const struct node *n)
{
	bool is_ours = node_is_usable(n) && !node_is_idle(c, n) && !drain_is_under_way(c, n->name) &&
		       !starts_know_machine(&c->starts, machine_of_node(c, n)) && !node_label(n, "preheat.dev/lent-by");
	int64_t gpus = (n->gpus_milli - n->gpus_used_milli) / 1000;

	return is_ours && gpus > 0 ? gpus / fleet_of(c)->pools[pool].gpus_per_replica : 0;
}

/* Nodes that came idle since the plan was made, and room that the last look at the nodes found on others. */
static int64_t places_there(const struct controller *c, size_t pool, size_t position)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count, group = fleet_of(c)->pools[pool].groups[position];
	const struct node **nodes = cluster_nodes(c->cluster, (int)group, &a, &count);
	int64_t places = -places_claimed(c, group), beside = 0, seen = observe_running_places(c, pool, position);

	for (size_t i = 0; i < count; i++) {
		places += nodes[i]->gpus_milli > 0 && node_is_idle(c, nodes[i]) ? replicas_on_node(c, pool, group) : 0;
		beside += places_beside(c, pool, nodes[i]);
	}
	return places + (beside < seen ? beside : seen);
}

static void use_free_places(struct controller *c, size_t pool, size_t position)
{
	struct fallback *f = &c->pools[pool]->fallback;
	struct start like = start_like(c, pool, position, START_PLACE);
	int64_t places = places_there(c, pool, position);

	places = places < f->replicas ? places : f->replicas;
	if (places <= 0 || is_buffered(c, pool))
		return;
	starts_ask(&c->starts, &like, places);
	need_less(f, places);
}

/* What serves on nodes that were to go, what runs for nobody, and what was given up and not called off yet come before
 * any purchase. */
static void use_what_runs(struct controller *c, size_t pool)
{
	struct fallback *f = &c->pools[pool]->fallback;

	use_what_stays(c, pool);
	for (size_t k = 0; k < fleet_of(c)->pools[pool].group_count && f->replicas > 0; k++)
		use_free_places(c, pool, k);
	if (f->replicas > 0)
		need_less(f, drains_keep(c, pool, f->replicas));
	need_less(f, cancels_call_off(c, pool, f->replicas));
}

static void fall_back(struct controller *c, size_t pool)
{
	struct live_pool *p = c->pools[pool];

	use_what_runs(c, pool);
	int64_t money = money_left(c, pool);

	for (size_t k = 0; k < fleet_of(c)->pools[pool].group_count && p->fallback.replicas > 0; k++) {
		p->fallback.replicas -= coming_join(c, pool, k, p->fallback.replicas);
		int64_t most = affordable(c, pool, k, money);
		if (!is_free(c, pool, k))
			continue;
		struct start like = start_like(c, pool, k, START_COLD);
		int64_t got = grant(c, &like, p->fallback.replicas < most ? p->fallback.replicas : most);
		if (got <= 0)
			continue;
		const char *group = fleet_of(c)->groups[fleet_of(c)->pools[pool].groups[k]].name;
		log_info("fell-back", LOG_S("pool", fleet_of(c)->pools[pool].name), LOG_S("group", group),
			 LOG_I("replicas", got), LOG_END);
		events_tell_pool(c, pool, (struct pool_event){ "FellBack", "ScaleUp", false },
				 "%lld replicas that were refused elsewhere start in node group %s", (long long)got,
				 group);
		p->fallback.replicas -= got;
		money -= money == INT64_MAX ? 0 : got * price_of_replica(c, pool, k);
	}
	p->fallback.replicas = p->fallback.price = 0; /* what found nothing is wished again by the next tick */
}

static void fallback_drive(struct controller *c)
{
	for (size_t i = 0; i < c->plan.pool_count; i++)
		if (c->pools[i]->fallback.replicas > 0)
			fall_back(c, i);
}

const struct actor fallback_actor = { .needs_plan = true, .renew = fallback_forget, .drive = fallback_drive };
