/*
 * What a new node of a group will be, for as long as it is not there. Who knows best has the word: its nodes, once one
 * came; else the manifest, whose author may know what the cloud does not (what a bootstrap script or a DaemonSet
 * adds, a device plugin's split); else the cloud, of all that the manifest leaves unsaid.
 */
#include "base/resource.h"
#include "controller/cluster/model_state.h"

#include <string.h>

/* So many machines come elsewhere before a zone is of its group no more. */
enum { ELSEWHERE_MOST = 8 };
/* Once it is whole: its DaemonSets' pods are there, and whoever marks nodes has marked it. */
static const millis DAEMONS_COME = MINUTE, TAINTS_COME = 10 * MINUTE;
/* What two machines got one after the other is believed for so long, once they are gone. */
static const millis DOUBT_RESTS = DAY;

static void template_hold(const struct template *t)
{
	intern_hold(t->labels);
	intern_hold(t->taints);
	intern_hold(t->doubted);
	intern_hold(t->allocatable);
	intern_hold(t->residents.requests);
	intern_hold(t->residents.ports);
	for (size_t i = 0; i < t->zone_count; i++)
		intern_hold(t->zones[i].labels);
}

static void drop_residents(struct cluster *c, const struct residents *r)
{
	intern_drop(&c->intern, r->requests);
	intern_drop(&c->intern, r->ports);
}

void template_drop(struct cluster *c, const struct template *t)
{
	intern_drop(&c->intern, t->labels);
	intern_drop(&c->intern, t->taints);
	intern_drop(&c->intern, t->told_taints);
	intern_drop(&c->intern, t->cloud_taints);
	intern_drop(&c->intern, t->doubted);
	intern_drop(&c->intern, t->allocatable);
	drop_residents(c, &t->residents);
	for (size_t i = 0; i < t->zone_count; i++)
		intern_drop(&c->intern, t->zones[i].labels);
}

/* --- what is told of it --- */

static const struct node_promise *promise_of(const struct cluster_group *g)
{
	static const struct node_promise nothing;
	return g->promise != NULL ? g->promise : &nothing;
}

static bool has_pair(const struct decoded_pair *pairs, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(pairs[i].key, key) == 0)
			return true;
	return false;
}

static const struct label_set *told_labels(struct cluster *c, const struct cluster_group *g,
					   const struct node_promise *cloud)
{
	struct decoded_pair *pairs =
		arena_array(&c->scratch, struct decoded_pair, g->label_count + cloud->label_count + 1);
	size_t count = 0;
	for (size_t i = 0; i < g->label_count; i++)
		pairs[count++] = (struct decoded_pair){ g->labels[i].key, g->labels[i].value };
	if (!has_pair(pairs, count, g->label.key))
		pairs[count++] = (struct decoded_pair){ g->label.key, g->label.value };
	for (size_t i = 0; i < cloud->label_count; i++)
		if (!has_pair(pairs, count, cloud->labels[i].key))
			pairs[count++] = (struct decoded_pair){ cloud->labels[i].key, cloud->labels[i].value };
	const struct decoded_map map = { pairs, count };
	return model_labels(c, &map);
}

/* The cloud gives nodes those of their start, too. */
static bool is_of_start(const struct promised_taint *t, const struct cluster_group *g)
{
	const struct taint taint = { t->key, t->value, t->effect };
	return node_taint_passes(t->key) || node_taint_is_told(&taint, g->startup_taints, g->startup_taint_count);
}

static bool has_record(const struct taint_record *rows, size_t count, const struct promised_taint *t)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].key, t->key) == 0 && strcmp(rows[i].effect, t->effect) == 0)
			return true;
	return false;
}

static const struct taint_set *taints_of(struct cluster *c, struct taint_record *rows, size_t count)
{
	const struct decoded_list list = { rows, count };
	return model_taints(c, &list);
}

static void tell_taints(struct cluster *c, const struct cluster_group *g, struct template *t)
{
	const struct node_promise *cloud = promise_of(g);
	struct taint_record *rows = arena_array(&c->scratch, struct taint_record, g->taint_count + cloud->taint_count);
	size_t count = 0;
	for (size_t i = 0; i < g->taint_count; i++)
		rows[count++] = (struct taint_record){ g->taints[i].key, g->taints[i].value, g->taints[i].effect };
	for (size_t i = 0; i < cloud->taint_count; i++) {
		const struct promised_taint *of = &cloud->taints[i];
		if (!is_of_start(of, g) && !has_record(rows, count, of))
			rows[count++] = (struct taint_record){ of->key, of->value, of->effect };
	}
	t->told_taints = taints_of(c, rows, count);
	t->cloud_taints = taints_of(c, rows + g->taint_count, count - g->taint_count);
}

struct amounts {
	struct resource *rows;
	size_t count;
};

static bool has_amount(const struct amounts *a, const char *name)
{
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->rows[i].name, name) == 0)
			return true;
	return false;
}

static void add_amount(struct amounts *a, const char *name, int64_t milli)
{
	if (!has_amount(a, name))
		a->rows[a->count++] = (struct resource){ name, milli };
}

/* Nobody tells whether a plugin or a driver offers the GPUs of a node to come: both may, until one was seen. */
static void add_devices(struct cluster *c, struct amounts *a, const char *resource, int64_t milli)
{
	char driver[DEVICE_NAME_SIZE];
	add_amount(a, resource, milli);
	if (device_driver_of(resource, driver))
		add_amount(a, arena_strdup(&c->scratch, driver, strlen(driver)), milli);
}

/* Tags may say that GPUs are shared, or split into devices of other names; fewer of the same are a tag of another
 * machine. */
static void raise_to_machine(const struct cluster_group *g, struct resource *promised, size_t count)
{
	struct resource *own = NULL;
	for (size_t i = 0; i < count; i++)
		if (strcmp(promised[i].name, group_gpu_resource(g)) == 0)
			own = &promised[i];
		else if (device_is_gpu(promised[i].name))
			return;
	if (own != NULL && own->milli < g->gpus_per_node * 1000)
		own->milli = g->gpus_per_node * 1000;
}

/* GPUs of a machine are what its nodes have to give as long as nobody tells what they give. */
static const struct resources *told_resources(struct cluster *c, const struct cluster_group *g,
					      const struct node_promise *cloud)
{
	size_t promised_count = 0;
	struct decoded_pair *pairs = arena_array(&c->scratch, struct decoded_pair, cloud->resource_count);
	for (size_t i = 0; i < cloud->resource_count; i++)
		pairs[i] = (struct decoded_pair){ cloud->resources[i].key, cloud->resources[i].value };
	const struct decoded_map map = { pairs, cloud->resource_count };
	struct resource *promised = model_amounts(c, &map, &promised_count);
	raise_to_machine(g, promised, promised_count);
	struct amounts a = { arena_array(&c->scratch, struct resource, 2 * (g->device_count + promised_count) + 4), 0 };
	bool tells_gpus = g->device_count > 0;
	for (size_t i = 0; i < g->device_count; i++)
		add_devices(c, &a, g->devices[i].resource, g->devices[i].count * 1000);
	for (size_t i = 0; i < promised_count; i++) {
		add_devices(c, &a, promised[i].name, promised[i].milli);
		tells_gpus = tells_gpus || device_is_gpu(promised[i].name);
	}
	if (!tells_gpus)
		add_devices(c, &a, group_gpu_resource(g), g->gpus_per_node * 1000);
	if (g->cpu_milli > 0)
		add_amount(&a, "cpu", g->cpu_milli);
	if (g->memory_milli > 0)
		add_amount(&a, "memory", g->memory_milli);
	return model_resources(c, a.rows, a.count);
}

static struct template told(struct cluster *c, const struct cluster_group *g)
{
	const struct node_promise *cloud = promise_of(g);
	struct template t = { .labels = told_labels(c, g, cloud), .allocatable = told_resources(c, g, cloud) };
	tell_taints(c, g, &t);
	t.taints = t.told_taints;
	intern_hold(t.taints);
	return t;
}

/* What was learned before it was told that these go. */
static const struct taint_set *without_startup(struct cluster *c, const struct taint_set *set,
					       const struct cluster_group *g)
{
	size_t count = 0, all = intern_count(set);
	struct taint *rows = arena_array(&c->scratch, struct taint, all);
	for (size_t i = 0; i < all; i++)
		if (!node_taint_is_told(&set->items[i], g->startup_taints, g->startup_taint_count))
			rows[count++] = set->items[i];
	return intern_rows(&c->intern, INTERN_TAINTS, rows, count);
}

struct template template_of(struct cluster *c, const struct cluster_group *g)
{
	for (size_t i = 0; i < c->group_count; i++) {
		struct group_known *old = &c->groups[i];
		if (!old->template.is_learned || strcmp(old->name, g->name) != 0 ||
		    strcmp(old->provider, g->provider) != 0)
			continue;
		struct template kept = old->template;
		template_hold(&kept);
		kept.taints = without_startup(c, kept.taints, g);
		intern_drop(&c->intern, old->template.taints);
		tell_taints(c, g, &kept);
		return kept;
	}
	return told(c, g);
}

/* --- what runs on every node of it --- */

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static struct resource *row_of(struct resource *rows, size_t *count, const char *name)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	rows[*count] = (struct resource){ name, 0 };
	return &rows[(*count)++];
}

static void add_ports(struct host_port *rows, size_t *count, const struct host_port_set *more)
{
	for (size_t i = 0; i < intern_count(more); i++) {
		size_t k = 0;
		while (k < *count && memcmp(&rows[k], &more->items[i], sizeof *rows) != 0)
			k++;
		if (k == *count)
			rows[(*count)++] = more->items[i];
	}
}

bool pod_is_resident(const struct pod *p)
{
	return (p->kind == POD_DAEMON || p->kind == POD_STATIC) && pod_counts(p);
}

static struct residents residents_of(struct cluster *c, const struct node *n)
{
	size_t amounts = 1, ports = 0, amount_count = 0, port_count = 0;
	for (const struct pod *p = n->pods; p != NULL; p = p->next) {
		amounts += pod_is_resident(p) ? intern_count(p->shape->requests) : 0;
		ports += pod_is_resident(p) ? intern_count(p->shape->ports) : 0;
	}
	struct resource *sums = arena_array(&c->scratch, struct resource, amounts);
	struct host_port *taken = arena_array(&c->scratch, struct host_port, ports);
	for (const struct pod *p = n->pods; p != NULL; p = p->next) {
		if (!pod_is_resident(p))
			continue;
		row_of(sums, &amount_count, "pods")->milli += 1000;
		for (size_t i = 0; i < intern_count(p->shape->requests); i++) {
			const struct resource *asked = &p->shape->requests->items[i];
			int64_t *milli = &row_of(sums, &amount_count, asked->name)->milli;
			*milli = plus(*milli, asked->milli);
		}
		add_ports(taken, &port_count, p->shape->ports);
	}
	return (struct residents){ model_resources(c, sums, amount_count),
				   intern_rows(&c->intern, INTERN_PORTS, taken, port_count) };
}

static const struct resources *larger(struct cluster *c, const struct resources *a, const struct resources *b)
{
	size_t count = 0;
	struct resource *rows = arena_array(&c->scratch, struct resource, intern_count(a) + intern_count(b));
	for (size_t i = 0; i < intern_count(a); i++)
		rows[count++] = a->items[i];
	for (size_t i = 0; i < intern_count(b); i++) {
		int64_t *milli = &row_of(rows, &count, b->items[i].name)->milli;
		*milli = b->items[i].milli > *milli ? b->items[i].milli : *milli;
	}
	return model_resources(c, rows, count);
}

static const struct host_port_set *both(struct cluster *c, const struct host_port_set *a, const struct host_port_set *b)
{
	size_t count = 0;
	struct host_port *rows = arena_array(&c->scratch, struct host_port, intern_count(a) + intern_count(b));
	add_ports(rows, &count, a);
	add_ports(rows, &count, b);
	return intern_rows(&c->intern, INTERN_PORTS, rows, count);
}

/* To what the node runs, where that is more. */
static void raise_to(struct cluster *c, struct residents *r, const struct node *n)
{
	const struct residents old = *r, own = residents_of(c, n);
	if (own.requests != old.requests || own.ports != old.ports) {
		*r = (struct residents){ larger(c, old.requests, own.requests), both(c, old.ports, own.ports) };
		drop_residents(c, &old);
	}
	drop_residents(c, &own);
}

void template_resident_came(struct cluster *c, const struct node *n)
{
	if (n->group >= 0)
		raise_to(c, &c->groups[n->group].template.residents, n);
}

void template_resident_left(struct cluster *c, const struct node *n)
{
	if (n->group >= 0)
		c->groups[n->group].template.has_residents_less = true;
}

/* Nothing runs there less because it starts or ends. */
static bool stands(const struct cluster *c, const struct node *n)
{
	bool is_settled = n->gpu_at != 0 && c->followed_at - n->gpu_at > DAEMONS_COME;
	return n->is_ready && is_settled && !n->is_cordoned && !n->is_draining && !n->is_leaving &&
	       n->interruption == NODE_STAYS;
}

/* By the nodes of the group that there are; as it was, while none of them shows all. */
static void count_residents(struct cluster *c, int group)
{
	struct template *t = &c->groups[group].template;
	struct residents most = { 0 };
	const struct node *n = NULL;
	bool is_known = false, is_empty = true;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;) {
		if (n->group != group)
			continue;
		raise_to(c, &most, n);
		is_known = is_known || stands(c, n);
		is_empty = false;
		arena_clear(&c->scratch);
	}
	drop_residents(c, is_known ? &t->residents : &most);
	t->has_residents_less = !is_empty;
	if (!is_known)
		return;
	t->residents = most;
	t->has_residents_less = false;
	c->generation++;
}

/* --- taints --- */

static bool has_taint(const struct taint_set *set, const struct taint *wanted)
{
	for (size_t i = 0; i < intern_count(set); i++)
		if (memcmp(&set->items[i], wanted, sizeof *wanted) == 0)
			return true;
	return false;
}

static const struct taint_set *common(struct cluster *c, const struct taint_set *a, const struct taint_set *b)
{
	size_t count = 0;
	struct taint *rows = arena_array(&c->scratch, struct taint, intern_count(a));
	for (size_t i = 0; i < intern_count(a); i++)
		if (has_taint(b, &a->items[i]))
			rows[count++] = a->items[i];
	return intern_rows(&c->intern, INTERN_TAINTS, rows, count);
}

/* Those of `a` that neither of the others has. */
static const struct taint_set *without(struct cluster *c, const struct taint_set *a, const struct taint_set *b,
				       const struct taint_set *more)
{
	size_t count = 0;
	struct taint *rows = arena_array(&c->scratch, struct taint, intern_count(a));
	for (size_t i = 0; i < intern_count(a); i++)
		if (!has_taint(b, &a->items[i]) && !has_taint(more, &a->items[i]))
			rows[count++] = a->items[i];
	return intern_rows(&c->intern, INTERN_TAINTS, rows, count);
}

/*
 * What a node starts with is the group's, and what it gets later its own: else one that somebody shuts would shut its
 * group. Of nodes that were there before us, or lose what they had, it is what they have in common.
 */
static void learn_taints(struct cluster *c, struct template *t, struct node *n)
{
	bool is_first = n->taught_at == 0;
	bool is_fresh = !n->was_listed && (is_first || n->told_at - n->taught_at <= TAINTS_COME);
	const struct taint_set *old = t->taints, *before = n->born_taints, *lasting = node_lasting_taints(c, n);
	if (is_fresh || is_first) {
		n->born_taints = lasting;
	} else {
		n->born_taints = common(c, before, lasting);
		intern_drop(&c->intern, lasting);
	}
	if (is_fresh || !t->is_learned) {
		intern_hold(n->born_taints);
		t->taints = n->born_taints;
		intern_drop(&c->intern, old);
	} else if (is_first || n->born_taints != before) {
		t->taints = common(c, old, n->born_taints);
		intern_drop(&c->intern, old);
	}
	intern_drop(&c->intern, before);
	t->doubted_until = 0;
}

static void forget_taints(struct cluster *c, struct template *t, const struct taint_set *what)
{
	const struct taint_set *old = t->taints;
	t->taints = without(c, old, what, NULL);
	intern_drop(&c->intern, old);
}

/* But for what is told by now. */
static void forget_doubted(struct cluster *c, struct template *t)
{
	const struct taint_set *what = without(c, t->doubted, t->told_taints, NULL);
	forget_taints(c, t, what);
	intern_drop(&c->intern, what);
	t->doubted_until = 0;
}

/*
 * No node is left to ask. What the last one got after it came may be what is put on all of them, or why it went: the
 * next one shows, and is believed if it is the same.
 */
static void doubt(struct cluster *c, struct template *t, const struct node *gone, millis at)
{
	const struct taint_set *before = t->doubted, *news = NULL;
	t->doubted = without(c, t->taints, t->told_taints, gone->came_taints);
	news = without(c, t->doubted, before, NULL);
	t->doubted_until = at + DOUBT_RESTS;
	forget_taints(c, t, news);
	intern_drop(&c->intern, news);
	intern_drop(&c->intern, before);
}

/* What those that stay got, too: the last of them is not the first that had it. */
static void confirm(struct cluster *c, struct template *t, const struct node *gone, const struct taint_set *shared)
{
	const struct taint_set *before = t->doubted, *both = common(c, gone->born_taints, shared);
	t->doubted = without(c, both, t->told_taints, gone->came_taints);
	intern_drop(&c->intern, both);
	intern_drop(&c->intern, before);
}

void template_node_left(struct cluster *c, const struct node *gone, millis at)
{
	struct template *t = &c->groups[gone->group].template;
	const struct taint_set *shared = NULL;
	const struct node *n = NULL;
	bool is_left = false;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;) {
		if (n == gone || n->group != gone->group || n->taught_at == 0)
			continue;
		const struct taint_set *before = shared;
		shared = is_left ? common(c, before, n->born_taints) : n->born_taints;
		if (!is_left)
			intern_hold(shared);
		else
			intern_drop(&c->intern, before);
		is_left = true;
	}
	if (is_left)
		confirm(c, t, gone, shared);
	if (!is_left) {
		doubt(c, t, gone, at);
	} else if (t->taints == gone->born_taints) {
		intern_drop(&c->intern, t->taints);
		t->taints = shared;
	} else {
		intern_drop(&c->intern, shared);
	}
	arena_clear(&c->scratch);
}

/* --- zones --- */

static void forget_zone(struct cluster *c, struct template *t, size_t at)
{
	intern_drop(&c->intern, t->zones[at].labels);
	t->zone_count--;
	memmove(&t->zones[at], &t->zones[at + 1], (t->zone_count - at) * sizeof t->zones[0]);
}

/* Any of them may be the next one's. A machine that comes elsewhere speaks against those where none comes. */
static void learn_zone(struct cluster *c, struct template *t, const struct node *n)
{
	bool is_new = n->taught_at == 0 && !n->was_listed;
	intern_hold(n->labels);
	for (size_t i = t->zone_count; i-- > 0;) {
		struct zone_seen *z = &t->zones[i];
		z->elsewhere += is_new;
		if (z->elsewhere >= ELSEWHERE_MOST || strcmp(node_zone_of(z->labels), n->zone) == 0)
			forget_zone(c, t, i);
	}
	if (t->zone_count == ZONES_MOST)
		forget_zone(c, t, 0);
	t->zones[t->zone_count++] = (struct zone_seen){ n->labels, 0 };
}

/* --- all of it --- */

static void learn_labels(struct cluster *c, struct template *t, const struct node *n)
{
	const struct label_set *old = t->labels;
	intern_hold(n->labels);
	t->labels = n->labels;
	intern_drop(&c->intern, old);
}

static void learn_resources(struct cluster *c, struct template *t, const struct node *n)
{
	const struct resources *old = t->allocatable;
	struct resource devices[DEVICE_ROWS_MOST];
	t->allocatable = model_with_devices(c, n->own_whole, devices, device_slices_rows(c, n, devices));
	intern_drop(&c->intern, old);
}

/* A node that is whole tells what the next one will be. */
void template_learn(struct cluster *c, struct node *n)
{
	struct template *t = &c->groups[n->group].template;
	bool is_lent = label_set_get(n->labels, "preheat.dev/lent-by") != NULL;
	bool is_worn = t->is_learned && !device_slices_are_whole(n);
	if (!n->is_ready || n->gpu_at == 0 || n->is_leaving || is_lent || is_worn)
		return;
	learn_labels(c, t, n);
	learn_taints(c, t, n);
	learn_resources(c, t, n);
	learn_zone(c, t, n);
	raise_to(c, &t->residents, n);
	t->is_learned = true;
	if (n->taught_at == 0)
		n->taught_at = n->told_at;
}

void template_follow(struct cluster *c)
{
	for (size_t i = 0; i < c->group_count; i++) {
		struct template *t = &c->groups[i].template;
		if (t->has_residents_less)
			count_residents(c, (int)i);
		if (t->doubted_until != 0 && t->doubted_until <= c->followed_at) {
			forget_doubted(c, t);
			c->generation++;
			arena_clear(&c->scratch);
		}
	}
}
