/* Rules about engines that sleep with their weights in host memory and wake in seconds. */
#include "base/resource.h"
#include "controller/contract/model_words.h"
#include "controller/contract/rule_runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char flag[] = "--enable-sleep-mode", mode[] = "VLLM_SERVER_DEV_MODE";

/* Labels that tell who sleeps: a selector that asks for one leaves sleepers out. */
static const char *const sleep_labels[] = { "preheat.dev/engine-state", "sleeping", "dual-pods.llm-d.ai/sleeping" };

static bool can_sleep(const struct container *k)
{
	CLEANUP(buf_release) struct buf words = { .cap = 1 << 16 };

	container_words(k, &words);
	return !k->is_init && words.len && buf_ok(&words) && strstr(words.text, flag);
}

/* Whether it serves the development endpoints: what is read from elsewhere is taken for set. */
static const struct yaml_node *dev_mode(const struct container *k)
{
	const struct yaml_node *env = yaml_child(k->at, "env");

	for (const struct yaml_node *n = env && env->kind == YAML_LIST ? env->first : NULL; n; n = n->next) {
		const struct yaml_node *name = yaml_child(n, "name"), *value = yaml_child(n, "value");
		if (name && name->kind == YAML_SCALAR && !strcmp(name->text, mode) &&
		    !(value && value->kind == YAML_SCALAR && (!*value->text || !strcmp(value->text, "0"))))
			return n;
	}
	return NULL;
}

static bool sleeps(const struct workload *w)
{
	for (size_t i = 0; i < w->container_count; i++)
		if (can_sleep(&w->containers[i]))
			return true;
	return false;
}

static void rule_flags(struct check_run *c, const struct workload *w)
{
	for (size_t i = 0; i < w->container_count; i++) {
		const struct container *k = &w->containers[i];
		const struct yaml_node *dev = dev_mode(k);
		if (can_sleep(k) && !dev)
			violate(c, &(struct breach){ &w->object, k->at, NULL },
				"container %s has %s and no %s: nobody can ask it to sleep, to wake or how it is",
				k->name, flag, mode);
		else if (dev && !can_sleep(k))
			violate(c,
				&(struct breach){ &w->object, dev,
						  say(c, "add %s to its arguments, or take %s away", flag, mode) },
				"container %s serves vLLM's development endpoints and has no %s", k->name, flag);
	}
}

/* Bytes; UNSAID. */
static int64_t memory_limit(const struct container *k)
{
	const struct yaml_node *limit = yaml_child(yaml_child(k->resources, "limits"), "memory");
	int64_t milli;

	return limit && limit->kind == YAML_SCALAR && amount_milli(limit->text, &milli) ? milli / 1000 : UNSAID;
}

static const int64_t GIB = 1 << 30;

/* What engines of one pod put into host memory when all of them sleep. */
struct sleepers {
	int64_t gib;
	size_t count;
	const struct yaml_node *at; /* the last one's container */
};

/* All replicas that the GPUs of a machine hold may sleep at once. */
static void check_nodes(struct check_run *c, const struct workload *w, const struct sleepers *s)
{
	const struct group_facts *groups[GROUPS_MOST];
	size_t count = pool_of(c->contract, w) ? groups_of(c->contract, w, groups, GROUPS_MOST) : 0;

	for (size_t i = 0; i < count; i++) {
		int64_t most = w->gpus > 0 ? groups[i]->spec->gpus_per_node / w->gpus : 0, needed = most * s->gib;
		if (groups[i]->memory_milli == UNSAID || needed * GIB <= groups[i]->memory_milli / 1000)
			continue;
		violate(c, &(struct breach){ &w->object, s->count == 1 ? s->at : NULL, NULL },
			"engines asleep on a machine of node group %s need about %lld GiB, %lld a replica, and it has "
			"%lld",
			groups[i]->spec->name, (long long)needed, (long long)s->gib,
			(long long)(groups[i]->memory_milli / 1000 / GIB));
	}
}

static void rule_memory(struct check_run *c, const struct workload *w)
{
	struct sleepers all = { 0 };

	for (size_t i = 0; i < w->container_count; i++) {
		const struct container *k = &w->containers[i];
		int64_t gib = can_sleep(k) ? container_weights_gib(k) : 0, limit = memory_limit(k);
		if (gib <= 0)
			continue;
		all = (struct sleepers){ all.gib + gib, all.count + 1, k->at };
		if (limit == UNSAID || limit >= gib * GIB)
			continue;
		violate(c, &(struct breach){ &w->object, k->at, NULL },
			"container %s may have %lld GiB, and its weights are about %lld: it is killed when it "
			"first sleeps",
			k->name, (long long)(limit / GIB), (long long)gib);
	}
	if (all.count)
		check_nodes(c, w, &all);
}

static bool tells_sleepers(const struct schema_labels *selector)
{
	for (size_t i = 0; i < sizeof sleep_labels / sizeof *sleep_labels; i++)
		if (label_of(selector, sleep_labels[i]))
			return true;
	return false;
}

static void rule_routing(struct check_run *c)
{
	const struct contract *all = c->contract;

	for (size_t r = 0; r < all->route_count; r++) {
		const struct choice *route = &all->routes[r];
		for (size_t i = 0; i < all->workload_count && !tells_sleepers(&route->selector); i++) {
			const struct workload *w = &all->workloads[i];
			if (!sleeps(w) || !route->selector.count || !same_namespace(&route->object, &w->object) ||
			    !labels_match(&route->selector, &w->labels))
				continue;
			violate(c, &(struct breach){ &route->object, route->at, NULL },
				"it sends requests to pods of %s that sleep", w->object.ref.name);
			break;
		}
	}
}

static bool is_barred(const struct contract *c, const struct workload *w)
{
	for (size_t i = 0; i < c->barrier_count; i++) {
		const struct choice *b = &c->barriers[i];
		if (!b->is_open && same_namespace(&b->object, &w->object) &&
		    (!b->selects_by_labels || labels_match(&b->selector, &w->labels)))
			return true;
	}
	return false;
}

static void rule_network(struct check_run *c, const struct workload *w)
{
	for (size_t i = 0; i < w->container_count; i++) {
		const struct yaml_node *dev = w->is_owned ? NULL : dev_mode(&w->containers[i]);
		if (dev && !is_barred(c->contract, w))
			violate(c, &(struct breach){ &w->object, dev, NULL },
				"whoever reaches container %s may put it to sleep, and no NetworkPolicy that was read "
				"says who may",
				w->containers[i].name);
	}
}

/* --- engines that share a GPU --- */

static bool is_in_share(const struct contract *c, const struct workload *w)
{
	const struct pool_spec *p = pool_of(c, w);

	return p && pool_is_in_share(p);
}

static void rule_share_flags(struct check_run *c, const struct workload *w)
{
	const struct pool_spec *p = pool_of(c->contract, w);
	size_t index = (size_t)(p - c->contract->manifest->fleet.pools);

	if (c->contract->manifest->pools[index].spec.signals.engine == SOURCE_VLLM && !sleeps(w))
		violate(c, &(struct breach){ &w->object, NULL, NULL },
			"it serves pool %s of share %s, and no container of it has %s", p->name, p->share, flag);
}

/* --- engines of several pools in one pod --- */

static bool selects(const struct contract *c, size_t pool, const struct workload *w)
{
	const struct schema_labels *selector = &c->manifest->pools[pool].spec.workload.selector.match_labels;

	return selector->count && same_namespace(&c->pools[pool], &w->object) && labels_match(selector, &w->labels);
}

static int64_t port_of(const struct contract *c, size_t pool)
{
	return c->manifest->pools[pool].spec.signals.scrape.port;
}

static bool has_port(const struct container *k, int64_t port)
{
	const struct yaml_node *ports = yaml_child(k->at, "ports");
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, port);
	for (const struct yaml_node *n = ports && ports->kind == YAML_LIST ? ports->first : NULL; n; n = n->next) {
		const struct yaml_node *own = yaml_child(n, "containerPort");
		if (own && own->kind == YAML_SCALAR && !strcmp(own->text, text))
			return true;
	}
	return false;
}

static const struct container *container_on(const struct workload *w, int64_t port)
{
	for (size_t i = 0; i < w->container_count; i++)
		if (has_port(&w->containers[i], port))
			return &w->containers[i];
	return NULL;
}

/* That has the Service with a selector; NULL: none was read. */
static const struct choice *route_named(const struct contract *c, size_t pool, const char *service)
{
	for (size_t i = 0; i < c->route_count; i++)
		if (!strcmp(c->routes[i].object.ref.kind, "Service") &&
		    !strcmp(c->routes[i].object.ref.name, service) &&
		    same_namespace(&c->routes[i].object, &c->pools[pool]) && c->routes[i].selector.count)
			return &c->routes[i];
	return NULL;
}

static void check_route(struct check_run *c, size_t pool, const struct workload *w)
{
	const char *name = c->contract->manifest->fleet.pools[pool].name;
	const char *service = c->contract->manifest->pools[pool].spec.signals.queue.activator.service;
	const struct choice *route = service ? route_named(c->contract, pool, service) : NULL;

	if (!service)
		violate(c,
			&(struct breach){ &w->object, NULL,
					  "name a Service without selector in its signals.queue.activator" },
			"pool %s has an engine beside others in its pods, and nothing leads requests to it alone",
			name);
	else if (route)
		violate(c,
			&(struct breach){ &route->object, route->at,
					  "delete it and create it without selector: the cluster keeps slices of one "
					  "that had some" },
			"it sends requests of pool %s to pods of %s where that engine may sleep beside others", name,
			w->object.ref.name);
}

static void check_engine(struct check_run *c, size_t pool, const struct workload *w)
{
	const struct pool_spec *p = &c->contract->manifest->fleet.pools[pool];
	int64_t port = port_of(c->contract, pool);
	const struct container *k = container_on(w, port);

	if (!k)
		violate(c, &(struct breach){ &w->object, NULL, NULL },
			"pool %s has its engine on port %" PRId64 ", and no container has that containerPort", p->name,
			port);
	else if (c->contract->manifest->pools[pool].spec.signals.engine == SOURCE_VLLM && !can_sleep(k))
		violate(c, &(struct breach){ &w->object, k->at, say(c, "add %s to its arguments", flag) },
			"container %s is the engine of pool %s, and has no %s", k->name, p->name, flag);
	check_route(c, pool, w);
}

/* The first that has this one's port among those before it that select the pods; `pool`: none has. */
static size_t first_on_port(const struct contract *c, size_t pool, const struct workload *w)
{
	size_t i = 0;

	while (i < pool &&
	       !(selects(c, i, w) && pools_share(&c->manifest->fleet.pools[i], &c->manifest->fleet.pools[pool]) &&
		 port_of(c, i) == port_of(c, pool)))
		i++;
	return i;
}

static void rule_share_engines(struct check_run *c, const struct workload *w)
{
	const struct manifest *m = c->contract->manifest;
	size_t first = (size_t)w->pool, others = 0;

	for (size_t i = 0; i < m->fleet.pool_count; i++) {
		if (i == first || !selects(c->contract, i, w) || m->fleet.pools[i].class == CLASS_ANY)
			continue;
		bool is_of_share = pools_share(&m->fleet.pools[first], &m->fleet.pools[i]);
		size_t same = is_of_share ? first_on_port(c->contract, i, w) : i;
		if (!is_of_share)
			violate(c,
				&(struct breach){ &w->object, NULL,
						  "let each pool select pods of its own, or give both one spec.share "
						  "and their engines a port each" },
				"pools %s and %s both select these pods, which are counted for %s alone",
				m->fleet.pools[first].name, m->fleet.pools[i].name, m->fleet.pools[first].name);
		else if (same != i)
			violate(c,
				&(struct breach){ &w->object, NULL,
						  "give each pool the port of its engine in signals.scrape.port" },
				"pools %s and %s of share %s both have their engine on port %" PRId64 " of these pods",
				m->fleet.pools[same].name, m->fleet.pools[i].name, m->fleet.pools[i].share,
				port_of(c->contract, i));
		else
			check_engine(c, i, w);
		others += is_of_share && same == i;
	}
	if (others)
		check_engine(c, first, w);
}

static bool is_in_pool(const struct contract *c, const struct workload *w)
{
	return pool_of(c, w) && is_selected(c, w);
}

/* GPU memory of an engine of the pool, awake beside all others of its share. */
static int64_t gib_beside_others(const struct fleet_spec *fleet, const struct pool_spec *pool)
{
	int64_t gib = pool->awake_gib;

	for (size_t i = 0; i < fleet->pool_count; i++)
		if (pools_share(pool, &fleet->pools[i]) && pool != &fleet->pools[i])
			gib += fleet->pools[i].asleep_gib;
	return gib;
}

static void rule_share_memory(struct check_run *c)
{
	const struct manifest *m = c->contract->manifest;

	for (size_t i = 0; m && i < m->fleet.pool_count; i++) {
		const struct pool_spec *p = &m->fleet.pools[i];
		int64_t needed = pool_is_in_share(p) && p->awake_gib ? gib_beside_others(&m->fleet, p) : 0;
		for (size_t k = 0; needed > 0 && k < p->group_count; k++) {
			const struct group_facts *g = &c->contract->groups[p->groups[k]];
			if (g->gpu_memory_mib == UNSAID || needed * 1024 <= g->gpu_memory_mib * p->gpus_per_replica)
				continue;
			violate(c, &(struct breach){ &c->contract->pools[i], m->pools[i].spec.share.node, NULL },
				"an engine awake beside the others of share %s asleep needs %" PRId64
				" GiB; a GPU of node group %s has %" PRId64,
				p->share, needed, g->spec->name, g->gpu_memory_mib / 1024);
		}
	}
}

/* As reported for engines of all sizes: level 1 from host memory, level 2 from disk. */
static const millis usual_wake[] = { 0, 3 * SECOND, 7 * SECOND };

static void rule_share_objective(struct check_run *c)
{
	const struct manifest *m = c->contract->manifest;

	for (size_t i = 0; m && i < m->fleet.pool_count; i++) {
		const struct pool_spec *p = &m->fleet.pools[i];
		if (!pool_is_in_share(p) || p->violation_cost || p->objective_wait >= usual_wake[p->share_level])
			continue;
		violate(c, &(struct breach){ &c->contract->pools[i], m->pools[i].spec.share.node, NULL },
			"a request that finds its engine asleep on level %" PRId64
			" waits about %lld s, and is late after %lld ms",
			p->share_level, (long long)(usual_wake[p->share_level] / SECOND), (long long)p->objective_wait);
	}
}

/* clang-format off */
static const struct contract_rule rules[] = {
	{ "sleep-flags", CONTRACT_WARNING, SERVE,
	  "Engines that may sleep accept the calls",
	  "vLLM sleeps with --enable-sleep-mode alone, and serves /sleep, /wake_up and /is_sleeping only with "
	  "VLLM_SERVER_DEV_MODE=1; with the latter alone it serves dangerous endpoints for nothing.",
	  "set the environment variable VLLM_SERVER_DEV_MODE to 1; if your vLLM version does not need it, ignore this rule",
	  false, asks_for_gpus, rule_flags, NULL },
	{ "sleep-memory", CONTRACT_ERROR, SERVE,
	  "The weights of engines that sleep fit host memory",
	  "On level 1 the weights move to host memory. It is taken at the first sleep, so a limit that is too small kills late. "
	  "All engines of a pod may sleep at once.",
	  "raise the memory limit above the weights, choose machines with more memory, or let it sleep on level 2 and ignore this rule",
	  false, asks_for_gpus, rule_memory, NULL },
	{ "sleep-routing", CONTRACT_WARNING, "Service, InferencePool",
	  "Requests do not go to engines that sleep",
	  "An engine that sleeps stays ready: its /health answers 200. A request to it fails, and has crashed some.",
	  "let the selector ask for the label of engines that are awake, preheat.dev/engine-state: awake, which the component that puts them to sleep must change; a router that checks for sleepers itself does not need this rule: ignore it",
	  false, NULL, NULL, rule_routing },
	{ "sleep-network", CONTRACT_WARNING, SERVE,
	  "Development endpoints of engines are not open to the whole cluster",
	  "VLLM_SERVER_DEV_MODE also serves /collective_rpc, /reset_prefix_cache and others, without authorization: any pod "
	  "of the cluster may stop the engine, or run what it likes in it.",
	  "add a NetworkPolicy that lets only the gateway, Prometheus, and who puts engines to sleep reach these pods",
	  false, asks_for_gpus, rule_network, NULL },
	{ "share-flags", CONTRACT_ERROR, SERVE,
	  "Engines of a share can sleep",
	  "Pools with spec.share have their engines put to sleep and woken: one that cannot sleep keeps the GPU of the others.",
	  "add --enable-sleep-mode to its arguments and VLLM_SERVER_DEV_MODE=1 to its environment, or take the pool out of the share",
	  false, is_in_share, rule_share_flags, NULL },
	{ "share-engines", CONTRACT_ERROR, SERVE,
	  "Pods of several pools have an engine of each",
	  "Pools of one share may have an engine each in the same pods, on a port of its own. Otherwise a pod is of one pool, and "
	  "the others never see it.",
	  "declare the port of each engine as a containerPort of its container", false, is_in_pool, rule_share_engines, NULL },
	{ "share-memory", CONTRACT_ERROR, "WarmPool",
	  "An engine of a share fits the GPU beside those that sleep",
	  "An engine that sleeps keeps some GPU memory, its context and graphs. What is left must hold one that is awake.",
	  "take larger GPUs or fewer pools into the share, or measure share.engineMemoryGiB and share.sleepingMemoryGiB again",
	  false, NULL, NULL, rule_share_memory },
	{ "share-objective", CONTRACT_WARNING, "WarmPool",
	  "A request may wait as long as an engine wakes",
	  "The first request for a model that sleeps waits for its wake. Where that is longer than the objective allows, each such "
	  "request is late.",
	  "measure it with preheat swap-time; allow longer waits, sleep on level 1, or take the pool out of the share; where such "
	  "requests are rarer than the objective allows, ignore this rule",
	  false, NULL, NULL, rule_share_objective },
};
/* clang-format on */

const struct rule_list rules_of_sleep = { rules, sizeof rules / sizeof *rules };
