/*
 * Random worlds. After every event the model that was told bit by bit must say the same as one that is told all at
 * once, in another order; and the sums must be those of the plainest count.
 */
#include "tests/unit/cluster/model_objects.h"

#include "base/buf.h"
#include "base/random.h"

enum { NODES = 6, PODS = 24, BUDGETS = 3, STEPS = 120, WORLDS = 12, GROUPS = 2, POOLS = 2 };

struct seen_node {
	bool is_there, is_ready, is_cordoned, is_draining;
	int group, generation;
};
struct seen_pod {
	bool is_there;
	int node; /* -1: none */
	int pool, gpus, how, generation, gang;
	bool is_placeholder, is_safe, is_bare;
};
struct seen_budget {
	bool is_there;
	int pool, allowed;
};
struct world {
	struct random r;
	struct cluster *c;
	struct seen_node nodes[NODES + GROUPS]; /* the last ones stay, as examples of their groups */
	struct seen_pod pods[PODS];
	struct seen_budget budgets[BUDGETS];
};

enum { WAITING, HELD, STARTING, READY, GOING, DONE, HOWS };

static int draw(struct world *w, int below)
{
	return (int)(random_next(&w->r) % (uint64_t)below);
}

static void set_fleet(struct cluster *c)
{
	static const struct cluster_label a[] = { { "app", "0" } }, b[] = { { "app", "1" } };
	static const int first[] = { 0, 1 }, second[] = { 1 };
	const struct cluster_group groups[GROUPS] = { group_named("g0", 2, 10), group_named("g1", 8, 10) };
	const struct cluster_pool pools[POOLS] = {
		{ .name = "a",
		  .namespace = "s",
		  .selector = a,
		  .selector_count = 1,
		  .gpus_per_replica = 1,
		  .groups = first,
		  .group_count = 2 },
		{ .name = "b",
		  .namespace = "s",
		  .selector = b,
		  .selector_count = 1,
		  .gpus_per_replica = 4,
		  .groups = second,
		  .group_count = 1 },
	};
	cluster_set_fleet(c, pools, POOLS, groups, GROUPS);
}

static void show_node(const struct world *w, struct cluster *c, int i)
{
	const struct seen_node *n = &w->nodes[i];
	char text[1024];
	/* Nodes of the second group share each device among four. */
	snprintf(text, sizeof text,
		 "{'metadata':{'name':'n%d','uid':'n%d-%d','labels':{'simulated.preheat.dev/"
		 "node-group':'g%d','kubernetes.io/hostname':"
		 "'n%d'%s}%s},'spec':{'providerID':'simulated:///z/"
		 "n%d','unschedulable':%s},'status':{'allocatable':{'cpu':'16',"
		 "'nvidia.com/gpu':'%d'},'conditions':[{'type':'Ready','status':'%s'}]}}",
		 i, i, n->generation, n->group, i, n->group == 1 ? ",'nvidia.com/gpu.replicas':'4'" : "",
		 n->is_draining ? ",'annotations':{'preheat.dev/draining':'1'}" : "", i,
		 n->is_cordoned ? "true" : "false", n->group == 1 ? 8 : 2, n->is_ready ? "True" : "False");
	see(c, CLUSTER_NODES, text, (struct moment){ 1000000, true });
}

static void show_pod(const struct world *w, struct cluster *c, int i)
{
	static const char *const phases[HOWS] = { "Pending", "Pending", "Running", "Running", "Running", "Succeeded" };
	const struct seen_pod *p = &w->pods[i];
	CLEANUP(buf_release) struct buf text = { 0 };
	buf_printf(
		&text,
		"{'metadata':{'namespace':'s','name':'p%d','uid':'p%d-%d','creationTimestamp':'1970-01-01T00:00:%02dZ'",
		i, i, p->generation, i % 7);
	buf_printf(&text, p->is_placeholder ? ",'labels':{'preheat.dev/placeholder':'%c'" : ",'labels':{'app':'%c'",
		   (p->is_placeholder ? 'a' : '0') + p->pool);
	buf_printf(&text, p->gang >= 0 ? ",'kueue.x-k8s.io/pod-group-name':'k%d'}" : "}", p->gang);
	buf_printf(&text, ",'annotations':{'kueue.x-k8s.io/pod-group-total-count':'3'%s}",
		   p->is_safe ? ",'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'" : "");
	if (!p->is_bare)
		buf_text(&text, ",'ownerReferences':[{'kind':'ReplicaSet','name':'r','uid':'r','controller':true}]");
	if (p->how == GOING)
		buf_text(&text, ",'deletionTimestamp':'1970-01-01T00:01:00Z'");
	buf_printf(&text,
		   "},'spec':{'containers':[{'resources':{'requests':{'cpu':'1'},'limits':{'nvidia.com/gpu':'%d'}}}]",
		   p->gpus);
	if (p->how == HELD)
		buf_text(&text, ",'schedulingGates':[{'name':'x'}]");
	if (p->node >= 0)
		buf_printf(&text, ",'nodeName':'n%d'", p->node);
	buf_printf(&text, "},'status':{'phase':'%s'%s}}", phases[p->how],
		   p->how == READY ? ",'conditions':[{'type':'Ready','status':'True'}]" : "");
	see(c, CLUSTER_PODS, text.text, (struct moment){ 1000000, true });
}

static void show_budget(const struct world *w, struct cluster *c, int i)
{
	char text[512];
	snprintf(text, sizeof text,
		 "{'metadata':{'namespace':'s','name':'b%d','uid':'b%d'},'spec':{'selector':{'matchLabels':{'app':'%d'}"
		 "}},"
		 "'status':{'disruptionsAllowed':%d}}",
		 i, i, w->budgets[i].pool, w->budgets[i].allowed);
	see_now(c, CLUSTER_BUDGETS, text);
}

static struct object_uid uid_of(const char *kind, int i, int generation)
{
	char text[64];
	snprintf(text, sizeof text, "%s%d-%d", kind, i, generation);
	return object_uid_of(text);
}

static void change_node(struct world *w)
{
	int i = draw(w, NODES);
	struct seen_node *n = &w->nodes[i];
	if (n->is_there && draw(w, 4) == 0) {
		cluster_node_gone(w->c, uid_of("n", i, n->generation), 1000000);
		n->is_there = false;
		return;
	}
	if (!n->is_there || draw(w, 8) == 0) /* another machine of the same name, perhaps without a farewell */
		*n = (struct seen_node){ .group = draw(w, GROUPS), .generation = n->generation + 1 };
	n->is_there = true;
	n->is_ready = draw(w, 3) > 0;
	n->is_cordoned = draw(w, 6) == 0;
	n->is_draining = draw(w, 8) == 0;
	show_node(w, w->c, i);
}

static void change_pod(struct world *w)
{
	int i = draw(w, PODS);
	struct seen_pod *p = &w->pods[i];
	if (p->is_there && draw(w, 5) == 0) {
		cluster_pod_gone(w->c, uid_of("p", i, p->generation), 1000000);
		p->is_there = false;
		return;
	}
	if (!p->is_there)
		*p = (struct seen_pod){ .node = -1,
					.pool = draw(w, POOLS + 1),
					.gpus = draw(w, 4) == 0 ? draw(w, 10) : draw(w, 3),
					.generation = p->generation + 1,
					.gang = draw(w, 4) == 0 ? draw(w, 2) : -1,
					.is_placeholder = draw(w, 5) == 0,
					.is_safe = draw(w, 4) == 0,
					.is_bare = draw(w, 4) == 0 };
	else if (p->node < 0 && draw(w, 3) > 0)
		p->node = draw(w, NODES);
	p->is_there = true;
	p->how = p->node < 0 ? draw(w, 2) : STARTING + draw(w, 4);
	show_pod(w, w->c, i);
}

static void change_budget(struct world *w)
{
	int i = draw(w, BUDGETS);
	struct seen_budget *b = &w->budgets[i];
	char uid[16];
	snprintf(uid, sizeof uid, "b%d", i);
	if (b->is_there && draw(w, 2) == 0) {
		cluster_budget_gone(w->c, object_uid_of(uid));
		b->is_there = false;
		return;
	}
	*b = (struct seen_budget){ true, draw(w, POOLS), draw(w, 2) };
	show_budget(w, w->c, i);
}

static struct cluster *from_scratch(struct world *w)
{
	struct cluster *c = cluster_new();
	int count = NODES + GROUPS + PODS + BUDGETS, order[NODES + GROUPS + PODS + BUDGETS];
	for (int i = 0; i < count; i++)
		order[i] = i;
	for (int i = count - 1; i > 0; i--) {
		int k = draw(w, i + 1), other = order[k];
		order[k] = order[i];
		order[i] = other;
	}
	bool fleet_first = draw(w, 2) == 0;
	if (fleet_first)
		set_fleet(c);
	for (int i = 0; i < count; i++) {
		int at = order[i];
		if (at < NODES + GROUPS) {
			if (w->nodes[at].is_there)
				show_node(w, c, at);
		} else if (at < NODES + GROUPS + PODS) {
			if (w->pods[at - NODES - GROUPS].is_there)
				show_pod(w, c, at - NODES - GROUPS);
		} else if (w->budgets[at - NODES - GROUPS - PODS].is_there) {
			show_budget(w, c, at - NODES - GROUPS - PODS);
		}
	}
	if (!fleet_first)
		set_fleet(c);
	return c;
}

#define N(x) (long long)(x)

static void tell_views(const struct cluster *c, struct arena *a, struct buf *out)
{
	for (size_t i = 0; i < POOLS; i++) {
		struct pool_view v = cluster_pool_view(c, i, a);
		buf_printf(out,
			   "pool %zu: %lld %lld %lld pending %lld %lld elsewhere %lld held %lld %lld work %lld gang "
			   "%lld\n",
			   i, N(v.ready), N(v.starting), N(v.draining), N(v.pending), N(v.unsatisfiable),
			   N(v.elsewhere), N(v.placeholders), N(v.pending_placeholders), N(v.work), N(v.largest_gang));
		for (size_t k = 0; k < v.group_count; k++) {
			const struct pool_group_view *g = &v.groups[k];
			buf_printf(
				out,
				"  %d: %lld %lld %lld held %lld %lld free %lld least %lld nodes %lld %lld gpus %lld\n",
				g->group, N(g->ready), N(g->starting), N(g->draining), N(g->placeholders),
				N(g->placeholder_places), N(g->free_places), N(g->least_on_node), N(g->nodes),
				N(g->usable_nodes), N(g->gpus_milli));
		}
	}
}

static void tell_nodes(const struct cluster *c, struct arena *a, struct buf *out)
{
	size_t count = 0;
	const struct node **nodes = cluster_nodes(c, -1, a, &count);
	for (size_t i = 0; i < count; i++) {
		const struct node *n = nodes[i];
		buf_printf(out, "node %s %d %d%d%d%d gpus %lld used %lld by id %d;", n->name, n->group, n->is_ready,
			   n->is_cordoned, n->is_draining, node_is_usable(n), N(n->gpus_milli), N(n->gpus_used_milli),
			   cluster_node_by_machine(c, n->provider_id) == n);
		for (int pool = -1; pool < POOLS; pool++) {
			struct drain_verdict v = cluster_drain(c, n, pool, 2000000, a);
			buf_printf(out, " %s '%s'", drain_reason_name(v.reason), v.text);
			for (size_t k = 0; pool < 0 && k < v.evict_count; k++)
				buf_printf(out, " %s", v.evict[k]->name);
		}
		buf_text(out, "\n");
	}
}

static void tell_rest(const struct cluster *c, struct arena *a, struct buf *out)
{
	size_t count = 0;
	const struct pending_shape *shapes = cluster_pending(c, a, &count);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "pending %s %lld of %d, %zu groups, %d: %s\n", shapes[i].example->name,
			   N(shapes[i].count), shapes[i].pool, shapes[i].group_count, shapes[i].is_incomplete_gang,
			   shapes[i].why == NULL ? "" : shapes[i].why);
	const struct gang *gangs = cluster_gangs(c, a, &count);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "gang %s %d: %lld, %lld %lld %lld %lld gpus %lld since %lld\n", gangs[i].name,
			   gangs[i].pool, N(gangs[i].size), N(gangs[i].exist), N(gangs[i].pending), N(gangs[i].running),
			   N(gangs[i].finished), N(gangs[i].gpus_milli), N(gangs[i].since));
	struct cluster_gpus g = cluster_gpus(c);
	buf_printf(out, "gpus %lld %lld %lld\n", N(g.allocatable_milli), N(g.used_milli), N(g.finished_milli));
	const struct pod **pods = cluster_pods(c, -1, a, &count);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s %d state %d on %s\n", pods[i]->name, pods[i]->pool, (int)pods[i]->state,
			   pods[i]->node == NULL ? "-" : pods[i]->node->name);
}

static void tell(const struct cluster *c, struct buf *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	tell_views(c, &a, out);
	tell_nodes(c, &a, out);
	tell_rest(c, &a, out);
}

/* What can be counted without thinking. */
static void check_sums(const struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		char name[16];
		int64_t used = 0;
		snprintf(name, sizeof name, "n%d", i);
		const struct node *n = cluster_node(w->c, name);
		assert_int_equal(n != NULL, w->nodes[i].is_there);
		for (int k = 0; k < PODS; k++)
			if (w->pods[k].is_there && w->pods[k].node == i && w->pods[k].how != DONE)
				used += w->pods[k].gpus * (w->nodes[i].group == 1 ? 250 : 1000);
		if (n != NULL)
			assert_int_equal(n->gpus_used_milli, used);
	}
	for (size_t pool = 0; pool < POOLS; pool++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct pool_view v = cluster_pool_view(w->c, pool, &a);
		int64_t placed = 0;
		for (int k = 0; k < PODS; k++)
			placed += w->pods[k].is_there && w->pods[k].pool == (int)pool && w->pods[k].node >= 0 &&
				  w->pods[k].how != DONE && !w->pods[k].is_placeholder;
		assert_int_equal(v.ready + v.starting + v.draining, placed);
	}
}

static void expect_same(uint64_t seed, int step, const char *told, const char *fresh)
{
	while (*told != '\0' && *fresh != '\0') {
		size_t a = strcspn(told, "\n"), b = strcspn(fresh, "\n");
		if (a != b || memcmp(told, fresh, a) != 0)
			break;
		told += a + (told[a] == '\n');
		fresh += b + (fresh[b] == '\n');
	}
	if (strcmp(told, fresh) != 0)
		fail_msg("seed %llu, step %d: %.*s, but from scratch: %.*s", (unsigned long long)seed, step,
			 (int)strcspn(told, "\n"), told, (int)strcspn(fresh, "\n"), fresh);
}

static void one_world(uint64_t seed)
{
	struct world w = { .r = random_stream(seed, "model"), .c = cluster_new() };
	set_fleet(w.c);
	for (int g = 0; g < GROUPS; g++) {
		w.nodes[NODES + g] = (struct seen_node){ .is_there = true, .is_ready = true, .group = g };
		show_node(&w, w.c, NODES + g);
	}
	for (int step = 0; step < STEPS; step++) {
		int what = draw(&w, 10);
		if (what < 6)
			change_pod(&w);
		else if (what < 9)
			change_node(&w);
		else
			change_budget(&w);
		CLEANUP(buf_release) struct buf told = { 0 }, fresh = { 0 };
		struct cluster *other = from_scratch(&w);
		tell(w.c, &told);
		tell(other, &fresh);
		cluster_free(other);
		expect_same(seed, step, told.text, fresh.text);
		check_sums(&w);
	}
	cluster_free(w.c);
}

static void says_the_same_from_scratch(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++)
		one_world(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(says_the_same_from_scratch) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
