#include "controller/cluster/fit.h"

#include "base/quantity.h"
#include "base/resource.h"
#include "controller/cluster/model_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct fit_seat {
	struct fit_seat *next;
	const struct pod *pod;
};

/* --- labels --- */

static const char *value_of(const struct fit_node *n, const char *key)
{
	if (key == NULL)
		return n->name;
	if (strcmp(key, "kubernetes.io/hostname") == 0)
		return n->hostname;
	return label_set_get(n->labels, key);
}

/* A label that is simply not told to us. What a name or a host is, nobody can say of a node to come. */
static bool may_be_there(const struct fit_node *n, const char *key)
{
	bool is_one_host = key == NULL || strcmp(key, "kubernetes.io/hostname") == 0;
	return n->is_guess && !is_one_host && label_set_get(n->labels, key) == NULL;
}

static bool is_beyond(const char *value, const char *bound, bool wants_more)
{
	int64_t a = 0, b = 0;
	if (value == NULL || bound == NULL || !whole_parse(value, strlen(value), &a) ||
	    !whole_parse(bound, strlen(bound), &b))
		return false;
	return wants_more ? a > b : a < b;
}

/* Rows [first, last) are one expression. */
static bool fits_expression(const struct requirement *first, const struct requirement *last, const struct fit_node *n)
{
	const char *value = value_of(n, first->key);
	bool is_listed = false;
	for (const struct requirement *r = first; r < last; r++)
		is_listed = is_listed || (value != NULL && r->value != NULL && strcmp(value, r->value) == 0);
	if (may_be_there(n, first->key))
		return first->operation != REQUIRE_UNKNOWN;
	switch ((enum requirement_operation)first->operation) {
	case REQUIRE_IN:
		return is_listed;
	case REQUIRE_NOT_IN:
		return !is_listed;
	case REQUIRE_EXISTS:
		return value != NULL;
	case REQUIRE_ABSENT:
		return value == NULL;
	case REQUIRE_MORE:
	case REQUIRE_LESS:
		return is_beyond(value, first->value, first->operation == REQUIRE_MORE);
	case REQUIRE_UNKNOWN:
		break;
	}
	return false;
}

/* One of the terms must fit, with all of its expressions. */
bool fit_requirements(const struct requirement_set *set, const struct fit_node *n)
{
	size_t count = intern_count(set), at = 0;
	while (at < count) {
		int64_t term = set->items[at].term;
		bool fits = true;
		while (at < count && set->items[at].term == term) {
			size_t first = at;
			while (at < count && set->items[at].term == term &&
			       set->items[at].expression == set->items[first].expression)
				at++;
			fits = fits && fits_expression(&set->items[first], &set->items[at], n);
		}
		if (fits)
			return true;
	}
	return count == 0;
}

static bool same_or_none(const char *a, const char *b)
{
	return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

static bool is_tolerated(const struct taint *t, const struct toleration_set *set)
{
	for (size_t i = 0; i < intern_count(set); i++) {
		const struct toleration *s = &set->items[i];
		bool effect = s->effect == NULL || same_or_none(s->effect, t->effect);
		bool key = s->key == NULL ? s->is_equal == 0 : strcmp(s->key, t->key) == 0;
		if (effect && key && (s->is_equal == 0 || same_or_none(s->value, t->value)))
			return true;
	}
	return false;
}

/* A taint that keeps it away; NULL without. */
static const struct taint *barring(const struct pod_shape *s, const struct fit_node *n)
{
	for (size_t i = 0; i < intern_count(n->taints); i++) {
		const struct taint *t = &n->taints->items[i];
		bool repels = same_or_none(t->effect, "NoSchedule") || same_or_none(t->effect, "NoExecute");
		if (repels && !is_tolerated(t, s->tolerations))
			return t;
	}
	return NULL;
}

static bool is_of_cloud(const struct fit_node *n, const struct taint *t)
{
	for (size_t i = 0; i < intern_count(n->cloud_taints); i++)
		if (memcmp(&n->cloud_taints->items[i], t, sizeof *t) == 0)
			return true;
	return false;
}

static bool fits_taints(const struct pod_shape *s, const struct fit_node *n, char *why)
{
	static const struct taint cordon = { "node.kubernetes.io/unschedulable", NULL, "NoSchedule" };
	const struct taint *t = barring(s, n);
	if (t == NULL && n->node != NULL && n->node->is_cordoned && !is_tolerated(&cordon, s->tolerations))
		t = &cordon;
	if (t == NULL)
		return true;
	snprintf(why, FIT_WHY_SIZE, "does not tolerate the taint %s%s%s:%s%s", t->key, t->value == NULL ? "" : "=",
		 t->value == NULL ? "" : t->value, t->effect,
		 !is_of_cloud(n, t) ? ""
				    : ", which the cloud tells of and no node was seen with: if it goes when a node "
				      "has started, name it in startupTaints");
	return false;
}

static bool fits_selector(const struct pod_shape *s, const struct fit_node *n, char *why)
{
	for (size_t i = 0; i < intern_count(s->selector); i++) {
		const struct label *wanted = &s->selector->items[i];
		const char *value = value_of(n, wanted->key);
		if (may_be_there(n, wanted->key) || (value != NULL && strcmp(value, wanted->value) == 0))
			continue;
		if (value == NULL)
			snprintf(why, FIT_WHY_SIZE, "its node selector wants %s=%s, nodes have no such label",
				 wanted->key, wanted->value);
		else
			snprintf(why, FIT_WHY_SIZE, "its node selector wants %s=%s, nodes have %s", wanted->key,
				 wanted->value, value);
		return false;
	}
	return true;
}

/* --- resources --- */

static int64_t plus(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* Pods are counted, all else is added up. NULL: pods. */
static int64_t share_of(const struct pod *p, const char *resource)
{
	return resource == NULL ? 1000 : resources_get(p->shape->requests, resource);
}

static int64_t used_on(const struct fit_node *n, const char *resource)
{
	int64_t sum =
		n->residents == NULL ? 0 : resources_get(n->residents->requests, resource == NULL ? "pods" : resource);
	for (const struct pod *p = n->node == NULL ? NULL : n->node->pods; p != NULL; p = p->next)
		if (pod_counts(p))
			sum = plus(sum, share_of(p, resource));
	for (const struct fit_seat *s = n->seats; s != NULL; s = s->next)
		sum = plus(sum, share_of(s->pod, resource));
	return sum;
}

/* What a plugin offers of a node and what a driver publishes of it are the same GPUs. */
static int64_t used_of(const struct fit_node *n, const struct pod_shape *asking, const char *resource)
{
	char other[DEVICE_NAME_SIZE];
	bool is_both = device_is_gpu(resource) && device_other_name(resource, other) &&
		       resources_get(n->allocatable, other) > 0;
	int64_t by_other = is_both ? plus(used_on(n, other), resources_get(asking->requests, other)) : 0;
	return plus(used_on(n, resource), by_other);
}

static void print_amount(char *text, size_t size, const char *name, int64_t milli)
{
	static const int64_t gi = INT64_C(1) << 30;
	if (strcmp(name, "memory") == 0)
		snprintf(text, size, "%" PRId64 ".%" PRId64 "Gi", milli / 1000 / gi, milli / 1000 % gi * 10 / gi);
	else if (milli % 1000 != 0)
		snprintf(text, size, "%" PRId64 "m", milli);
	else
		snprintf(text, size, "%" PRId64, milli / 1000);
}

static bool fits_resources(const struct pod_shape *s, const struct fit_node *n, bool gpus, char *why)
{
	for (size_t i = 0; i < intern_count(s->requests); i++) {
		const struct resource *wanted = &s->requests->items[i];
		int64_t there = resources_get(n->allocatable, wanted->name);
		bool is_gpu = device_is_gpu(wanted->name);
		if (is_gpu != gpus || (n->is_guess && there == 0 && !is_gpu))
			continue;
		if (there >= wanted->milli) {
			int64_t used = used_of(n, s, wanted->name);
			if (used <= there - wanted->milli)
				continue;
			there -= used < there ? used : there;
		}
		char a[40], b[40];
		print_amount(a, sizeof a, wanted->name, wanted->milli);
		print_amount(b, sizeof b, wanted->name, there);
		if (there == 0)
			snprintf(why, FIT_WHY_SIZE, "wants %s %s, nodes have none", a, wanted->name);
		else
			snprintf(why, FIT_WHY_SIZE, "wants %s %s, a node has %s", a, wanted->name, b);
		return false;
	}
	return true;
}

static bool has_place(const struct fit_node *n, char *why)
{
	int64_t most = resources_get(n->allocatable, "pods"); /* 0: not told */
	if (most == 0 || used_on(n, NULL) < most)
		return true;
	snprintf(why, FIT_WHY_SIZE, "a node has room for %" PRId64 " pods, and all is taken", most / 1000);
	return false;
}

static bool ports_collide(const struct host_port_set *a, const struct host_port_set *b)
{
	for (size_t i = 0; i < intern_count(a); i++)
		for (size_t k = 0; k < intern_count(b); k++) {
			const struct host_port *x = &a->items[i], *y = &b->items[k];
			if (x->port == y->port && strcmp(x->protocol, y->protocol) == 0 &&
			    (x->ip == NULL || y->ip == NULL || strcmp(x->ip, y->ip) == 0))
				return true;
		}
	return false;
}

static bool fits_ports(const struct pod_shape *s, const struct fit_node *n, char *why)
{
	bool is_free = n->residents == NULL || !ports_collide(s->ports, n->residents->ports);
	if (s->ports == NULL)
		return true;
	for (const struct pod *p = n->node == NULL ? NULL : n->node->pods; p != NULL; p = p->next)
		is_free = is_free && (p->state == POD_FINISHED || !ports_collide(s->ports, p->shape->ports));
	for (const struct fit_seat *t = n->seats; t != NULL; t = t->next)
		is_free = is_free && !ports_collide(s->ports, t->pod->shape->ports);
	if (!is_free)
		snprintf(why, FIT_WHY_SIZE, "its host port %" PRId64 " is taken", s->ports->items[0].port);
	return is_free;
}

bool fit_shape(const struct pod_shape *s, const struct fit_node *n, char why[FIT_WHY_SIZE])
{
	if (!fits_resources(s, n, true, why) || !fits_selector(s, n, why))
		return false;
	if (!fit_requirements(s->affinity, n)) {
		snprintf(why, FIT_WHY_SIZE, "its node affinity selects no such node");
		return false;
	}
	return fits_taints(s, n, why) && fits_resources(s, n, false, why) && has_place(n, why) && fits_ports(s, n, why);
}

struct fit_node fit_node_of(const struct node *n)
{
	return (struct fit_node){ .name = n->name,
				  .hostname = n->hostname,
				  .labels = n->labels,
				  .taints = n->taints,
				  .allocatable = n->allocatable,
				  .node = n,
				  .group = n->group };
}

/* --- what is counted for one kind of pod: who is where of those that its own terms, or those of others, are about ---
 */

enum tally_kind { TALLY_OTHERS_APART, TALLY_APART, TALLY_NEAR, TALLY_SPREAD };

/* Pods of a kind in one place: a value of a topology label. All texts are shared values: equal ones are one. */
struct tally {
	uint32_t hash;
	enum tally_kind kind;
	size_t term;
	const char *key, *value;
	int64_t pods, nodes; /* nodes: of a spread, those that count */
};

enum { KEYS_MOST = 16 };

struct asking {
	struct asking *next;
	uint32_t hash;
	const struct pod_shape *shape;
	const struct label_set *labels;
	const char *name_space;
	struct store tallies;
	const char *others_keys[KEYS_MOST]; /* of terms of others that are about it */
	size_t others_key_count;
	bool has_more_keys;
	int64_t near_pairs;
	int64_t *least, *domains; /* of each spread, valid unless is_stale */
	bool is_stale;
};

/* Whom pods of a namespace keep away. */
struct keeper {
	uint32_t hash;
	const struct pod_term_set *apart;
	const char *name_space;
};

struct fit {
	const struct cluster *cluster;
	struct arena *arena;
	struct asking *askings;
	struct store by_kind; /* of askings */
	struct store keepers; /* once a pod was asked about */
	bool are_keepers_known;
	struct fit_seat *spare;
};

struct tally_key {
	enum tally_kind kind;
	size_t term;
	const char *key, *value;
};

static bool is_tally(const void *item, const void *key)
{
	const struct tally *t = item;
	const struct tally_key *k = key;
	return t->kind == k->kind && t->term == k->term && t->key == k->key && t->value == k->value;
}

static uint32_t tally_hash(const struct tally_key *k)
{
	uintptr_t words[] = { (uintptr_t)k->kind, k->term, (uintptr_t)k->key, (uintptr_t)k->value };
	return hash_bytes(0, words, sizeof words);
}

static const struct tally *tally_of(const struct asking *q, struct tally_key key)
{
	return store_find(&q->tallies, tally_hash(&key), is_tally, &key);
}

static struct tally *tally_make(struct fit *f, struct asking *q, struct tally_key key)
{
	struct tally *t = store_find(&q->tallies, tally_hash(&key), is_tally, &key);
	if (t != NULL)
		return t;
	t = arena_new(f->arena, struct tally);
	*t = (struct tally){ tally_hash(&key), key.kind, key.term, key.key, key.value, 0, 0 };
	store_add(&q->tallies, t);
	return t;
}

static bool labels_match(const struct requirement_set *selector, const struct label_set *labels)
{
	struct fit_node as_node = { .labels = labels };
	return fit_requirements(selector, &as_node);
}

/* Whether a term of a pod in `own` is about a pod of that namespace and with those labels. */
static bool is_about(const struct fit *f, const struct pod_term *t, const char *own, const char *name_space,
		     const struct label_set *labels)
{
	bool is_there = (t->flags & TERM_IN_OWN_NAMESPACE) != 0 && own == name_space;
	for (size_t i = 0; i < intern_count(t->namespaces) && !is_there; i++)
		is_there = t->namespaces->items[i].text == name_space;
	if (!is_there && (t->flags & TERM_SELECTS_NAMESPACES) != 0) {
		const struct namespace_known *n =
			t->of_namespaces == NULL ? NULL : namespace_find(f->cluster, name_space);
		is_there = t->of_namespaces == NULL || (n != NULL && labels_match(t->of_namespaces, n->labels));
	}
	return is_there && (t->flags & TERM_SELECTS_NOTHING) == 0 && labels_match(t->selector, labels);
}

static bool is_about_all(const struct fit *f, const struct asking *q, const char *name_space,
			 const struct label_set *labels)
{
	const struct pod_term_set *near = q->shape->near;
	for (size_t i = 0; i < intern_count(near); i++)
		if (!is_about(f, &near->items[i], q->name_space, name_space, labels))
			return false;
	return intern_count(near) > 0;
}

static void note_key(struct asking *q, const char *key)
{
	for (size_t i = 0; i < q->others_key_count; i++)
		if (q->others_keys[i] == key)
			return;
	if (q->others_key_count == KEYS_MOST)
		q->has_more_keys = true;
	else
		q->others_keys[q->others_key_count++] = key;
}

static void count_terms(struct fit *f, struct asking *q, const struct pod *e, const struct fit_node *n, int sign)
{
	const struct pod_term_set *theirs = e->shape->apart, *own = q->shape->apart, *near = q->shape->near;
	for (size_t i = 0; i < intern_count(theirs); i++) {
		const char *key = theirs->items[i].topology, *value = value_of(n, key);
		if (value == NULL || !is_about(f, &theirs->items[i], e->namespace, q->name_space, q->labels))
			continue;
		note_key(q, key);
		tally_make(f, q, (struct tally_key){ TALLY_OTHERS_APART, 0, key, value })->pods += sign;
	}
	for (size_t i = 0; i < intern_count(own); i++) {
		const char *key = own->items[i].topology, *value = value_of(n, key);
		if (value != NULL && is_about(f, &own->items[i], q->name_space, e->namespace, e->labels))
			tally_make(f, q, (struct tally_key){ TALLY_APART, i, key, value })->pods += sign;
	}
	if (!is_about_all(f, q, e->namespace, e->labels))
		return;
	for (size_t i = 0; i < intern_count(near); i++) {
		const char *key = near->items[i].topology, *value = value_of(n, key);
		if (value == NULL)
			continue;
		tally_make(f, q, (struct tally_key){ TALLY_NEAR, i, key, value })->pods += sign;
		q->near_pairs += sign;
	}
}

/* Whether the node is one over which a constraint spreads. */
static bool is_spread_over(const struct asking *q, const struct spread *s, const struct fit_node *n)
{
	char unused[FIT_WHY_SIZE];
	const struct spread_set *all = q->shape->spreads;
	for (size_t i = 0; i < intern_count(all); i++)
		if (value_of(n, all->items[i].topology) == NULL)
			return false;
	if ((s->flags & SPREAD_HONORS_TAINTS) != 0 && barring(q->shape, n) != NULL)
		return false;
	return (s->flags & SPREAD_OVER_ALL_NODES) != 0 ||
	       (fits_selector(q->shape, n, unused) && fit_requirements(q->shape->affinity, n));
}

static bool counts_for(const struct asking *q, const struct spread *s, const struct pod *e)
{
	return e->namespace == q->name_space && e->state != POD_TERMINATING &&
	       (s->flags & SPREAD_SELECTS_NOTHING) == 0 && labels_match(s->selector, e->labels);
}

static struct tally *spread_tally(struct fit *f, struct asking *q, size_t i, const struct fit_node *n)
{
	const struct spread *s = &q->shape->spreads->items[i];
	if (!is_spread_over(q, s, n))
		return NULL;
	return tally_make(f, q, (struct tally_key){ TALLY_SPREAD, i, s->topology, value_of(n, s->topology) });
}

static void count_pod(struct fit *f, struct asking *q, const struct pod *e, const struct fit_node *n, int sign)
{
	count_terms(f, q, e, n, sign);
	for (size_t i = 0; i < intern_count(q->shape->spreads); i++) {
		struct tally *t = counts_for(q, &q->shape->spreads->items[i], e) ? spread_tally(f, q, i, n) : NULL;
		if (t != NULL)
			t->pods += sign;
	}
	q->is_stale = true;
}

static void count_node(struct fit *f, struct asking *q, const struct fit_node *n, int sign)
{
	for (size_t i = 0; i < intern_count(q->shape->spreads); i++) {
		struct tally *t = spread_tally(f, q, i, n);
		if (t != NULL)
			t->nodes += sign;
	}
	q->is_stale = true;
}

static void count_pods(struct fit *f, struct asking *q, const struct node *n, int sign)
{
	bool is_selective = q->shape->near != NULL || q->shape->apart != NULL || q->shape->spreads != NULL;
	const struct fit_node as = fit_node_of(n);
	for (const struct pod *p = n->pods; p != NULL; p = p->next)
		if (p->state != POD_FINISHED && (is_selective || p->shape->apart != NULL))
			count_pod(f, q, p, &as, sign);
}

static void count_all(struct fit *f, struct asking *q)
{
	const struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&f->cluster->nodes, &i)) != NULL;) {
		if (!n->is_known)
			continue;
		const struct fit_node as = fit_node_of(n);
		count_node(f, q, &as, 1);
		count_pods(f, q, n, 1);
	}
}

static bool is_keeper(const void *item, const void *key)
{
	const struct keeper *k = item, *wanted = key;
	return k->apart == wanted->apart && k->name_space == wanted->name_space;
}

/* Also of those that wait: they keep others away from where they sit down. */
static void find_keepers(struct fit *f)
{
	const struct pod *p = NULL;
	f->are_keepers_known = true;
	for (size_t i = 0; f->cluster->apart_count > 0 && (p = store_next(&f->cluster->pods, &i)) != NULL;) {
		uintptr_t words[] = { (uintptr_t)p->shape->apart, (uintptr_t)p->namespace };
		struct keeper k = { hash_bytes(0, words, sizeof words), p->shape->apart, p->namespace };
		if (k.apart == NULL || store_find(&f->keepers, k.hash, is_keeper, &k) != NULL)
			continue;
		struct keeper *kept = arena_new(f->arena, struct keeper);
		*kept = k;
		store_add(&f->keepers, kept);
	}
}

/* Whether where it fits changes with who sits where, by its own terms or by those of others. */
static bool minds_others(struct fit *f, const struct pod *p)
{
	const struct keeper *k = NULL;
	if (p->shape->near != NULL || p->shape->apart != NULL || p->shape->spreads != NULL)
		return true;
	if (!f->are_keepers_known)
		find_keepers(f);
	for (size_t i = 0; (k = store_next(&f->keepers, &i)) != NULL;)
		for (size_t t = 0; t < intern_count(k->apart); t++)
			if (is_about(f, &k->apart->items[t], k->name_space, p->namespace, p->labels))
				return true;
	return false;
}

static bool is_asked_by(const void *item, const void *key)
{
	const struct asking *q = item;
	const struct pod *p = key;
	return q->shape == p->shape && q->labels == p->labels && q->name_space == p->namespace;
}

static uint32_t asking_hash(const struct pod *p)
{
	uintptr_t words[] = { (uintptr_t)p->shape, (uintptr_t)p->labels, (uintptr_t)p->namespace };
	return hash_bytes(0, words, sizeof words);
}

/* NULL: no term of its own or of others is about it. Made before anybody sits down, or all of them are counted in. */
static struct asking *asking_of(struct fit *f, const struct pod *p)
{
	return store_find(&f->by_kind, asking_hash(p), is_asked_by, p);
}

static void settle_spreads(struct asking *q)
{
	const struct tally *t = NULL;
	size_t count = intern_count(q->shape->spreads);
	for (size_t i = 0; i < count; i++) {
		q->least[i] = INT32_MAX;
		q->domains[i] = 0;
	}
	for (size_t i = 0; (t = store_next(&q->tallies, &i)) != NULL;) {
		if (t->kind != TALLY_SPREAD || t->nodes == 0)
			continue;
		q->domains[t->term]++;
		q->least[t->term] = t->pods < q->least[t->term] ? t->pods : q->least[t->term];
	}
	q->is_stale = false;
}

static bool fits_spreads(struct asking *q, const struct fit_node *n, char *why)
{
	if (q->is_stale)
		settle_spreads(q);
	for (size_t i = 0; i < intern_count(q->shape->spreads); i++) {
		const struct spread *s = &q->shape->spreads->items[i];
		const char *value = value_of(n, s->topology);
		if (may_be_there(n, s->topology))
			continue;
		if (value == NULL) {
			snprintf(why, FIT_WHY_SIZE, "is spread over %s, nodes have no such label", s->topology);
			return false;
		}
		const struct tally *t = tally_of(q, (struct tally_key){ TALLY_SPREAD, i, s->topology, value });
		bool counts_itself = (s->flags & SPREAD_SELECTS_NOTHING) == 0 && labels_match(s->selector, q->labels);
		int64_t least = q->domains[i] < s->min_domains ? 0 : q->least[i];
		if ((t == NULL ? 0 : t->pods) + counts_itself - least <= s->max_skew)
			continue;
		snprintf(why, FIT_WHY_SIZE, "its topology spread over %s allows no more there", s->topology);
		return false;
	}
	return true;
}

static bool is_kept_away(const struct asking *q, const struct fit_node *n)
{
	for (size_t i = 0; i < q->others_key_count; i++) {
		const char *key = q->others_keys[i], *value = value_of(n, key);
		const struct tally *t =
			value == NULL ? NULL : tally_of(q, (struct tally_key){ TALLY_OTHERS_APART, 0, key, value });
		if (t != NULL && t->pods > 0)
			return true;
	}
	return q->has_more_keys; /* more topologies than any cluster has: rather not */
}

static bool keeps_away(const struct asking *q, const struct fit_node *n)
{
	for (size_t i = 0; i < intern_count(q->shape->apart); i++) {
		const char *key = q->shape->apart->items[i].topology, *value = value_of(n, key);
		const struct tally *t =
			value == NULL ? NULL : tally_of(q, (struct tally_key){ TALLY_APART, i, key, value });
		if (t != NULL && t->pods > 0)
			return true;
	}
	return false;
}

/* The first of those that want to be together may be anywhere that the labels are. */
static bool is_near(const struct fit *f, const struct asking *q, const struct fit_node *n)
{
	bool are_there = true;
	for (size_t i = 0; i < intern_count(q->shape->near); i++) {
		const char *key = q->shape->near->items[i].topology, *value = value_of(n, key);
		if (may_be_there(n, key))
			continue;
		if (value == NULL)
			return false;
		const struct tally *t = tally_of(q, (struct tally_key){ TALLY_NEAR, i, key, value });
		are_there = are_there && t != NULL && t->pods > 0;
	}
	return are_there || (q->near_pairs == 0 && is_about_all(f, q, q->name_space, q->labels));
}

static bool fits_others(const struct fit *f, struct asking *q, const struct fit_node *n, char *why)
{
	const char *said = is_kept_away(q, n)  ? "the anti-affinity of pods there keeps it away"
			   : keeps_away(q, n)  ? "its pod anti-affinity keeps it away"
			   : !is_near(f, q, n) ? "its pod affinity wants pods that are not there"
					       : NULL;
	if (said != NULL)
		snprintf(why, FIT_WHY_SIZE, "%s", said);
	return said == NULL;
}

/* --- volumes and devices --- */

static enum fit_verdict missing(char *why, const char *kind, const char *name, const char *what)
{
	snprintf(why, FIT_WHY_SIZE, "%s %s %s", kind, name, what);
	return FIT_NEVER;
}

/* FIT_MAY where nobody tells us: then only the scheduler knows. */
static enum fit_verdict reading(const struct fit *f, enum cluster_kind kind)
{
	return cluster_needed(f->cluster, kind) == NEEDED_COMING ? FIT_UNKNOWN : FIT_MAY;
}

static bool can_read(const struct fit *f, enum cluster_kind kind)
{
	return cluster_needed(f->cluster, kind) == NEEDED_KNOWN;
}

static enum fit_verdict volume_there(const struct fit *f, const struct pod *p, const char *name, char *why)
{
	static const char kind[] = "PersistentVolumeClaim";
	const struct volume_claim *v = volume_claim_find(f->cluster, p->namespace, name);
	const struct storage_class *s = NULL;
	if (reading(f, CLUSTER_VOLUME_CLAIMS) != FIT_MAY || reading(f, CLUSTER_VOLUMES) != FIT_MAY ||
	    reading(f, CLUSTER_STORAGE_CLASSES) != FIT_MAY)
		return FIT_UNKNOWN;
	if (!can_read(f, CLUSTER_VOLUME_CLAIMS))
		return FIT_MAY;
	if (v == NULL)
		return missing(why, kind, name, "is missing");
	if (v->is_leaving)
		return missing(why, kind, name, "is being deleted");
	if (v->is_lost)
		return missing(why, kind, name, "has lost its volume");
	if (v->is_bound && v->volume != NULL)
		return volume_find(f->cluster, v->volume) != NULL || !can_read(f, CLUSTER_VOLUMES)
			       ? FIT_MAY
			       : missing(why, "PersistentVolume", v->volume, "is missing");
	if (v->storage_class == NULL || v->volume != NULL)
		return missing(why, kind, name, "is not bound");
	s = storage_class_find(f->cluster, v->storage_class);
	if (!can_read(f, CLUSTER_STORAGE_CLASSES))
		return FIT_MAY;
	if (s == NULL)
		return missing(why, "StorageClass", v->storage_class, "is missing");
	return s->waits ? FIT_MAY : missing(why, kind, name, "is not bound");
}

static enum fit_verdict device_there(const struct fit *f, const struct pod *p, const struct claim *k, char *why)
{
	if (k->kind == CLAIM_DEVICE_TO_COME)
		return missing(why, "the ResourceClaim for", k->name, "is not made yet");
	if (reading(f, CLUSTER_RESOURCE_CLAIMS) != FIT_MAY)
		return FIT_UNKNOWN;
	if (can_read(f, CLUSTER_RESOURCE_CLAIMS) && device_claim_find(f->cluster, p->namespace, k->name) == NULL)
		return missing(why, "ResourceClaim", k->name, "is missing");
	return FIT_MAY;
}

static bool needs_namespaces(const struct pod_term_set *terms)
{
	for (size_t i = 0; i < intern_count(terms); i++)
		if (terms->items[i].of_namespaces != NULL)
			return true;
	return false;
}

enum fit_verdict fit_anywhere(const struct fit *f, const struct pod *p, char why[FIT_WHY_SIZE])
{
	enum fit_verdict worst = FIT_MAY;
	bool by_namespaces = needs_namespaces(p->shape->near) || needs_namespaces(p->shape->apart) ||
			     f->cluster->apart_by_labels > 0;
	if (by_namespaces && reading(f, CLUSTER_NAMESPACES) != FIT_MAY)
		return FIT_UNKNOWN;
	for (size_t i = 0; i < intern_count(p->shape->claims) && worst != FIT_NEVER; i++) {
		const struct claim *k = &p->shape->claims->items[i];
		enum fit_verdict v =
			k->kind == CLAIM_VOLUME ? volume_there(f, p, k->name, why) : device_there(f, p, k, why);
		worst = v == FIT_MAY ? worst : v;
	}
	return worst;
}

/* "z1__z2" holds z1. */
static bool holds_zone(const char *list, const char *zone)
{
	size_t len = strlen(zone);
	for (const char *at = list; at != NULL;) {
		const char *end = strstr(at, "__");
		size_t part = end == NULL ? strlen(at) : (size_t)(end - at);
		if (part == len && memcmp(at, zone, len) == 0)
			return true;
		at = end == NULL ? NULL : end + 2;
	}
	return false;
}

static const char *zone_of(const struct fit_node *n, const char *key)
{
	static const char beta[] = "failure-domain.beta.kubernetes.io/";
	char today[80];
	const char *value = label_set_get(n->labels, key);
	if (value != NULL || strncmp(key, beta, sizeof beta - 1) != 0)
		return value;
	snprintf(today, sizeof today, "topology.kubernetes.io/%s", key + sizeof beta - 1);
	return label_set_get(n->labels, today);
}

static bool is_in_zone(const struct volume *v, const struct fit_node *n)
{
	bool has_zone = false;
	for (const char *const *key = volume_zone_labels; *key != NULL; key++)
		has_zone = has_zone || label_set_get(n->labels, *key) != NULL;
	for (size_t i = 0; has_zone && i < intern_count(v->labels); i++) {
		const char *zone = zone_of(n, v->labels->items[i].key);
		if (zone == NULL || !holds_zone(v->labels->items[i].value, zone))
			return false;
	}
	return true;
}

static bool may_be_bound(const struct volume *v, const struct volume_claim *k, const struct fit_node *n)
{
	bool is_its_own = v->claim_name != NULL && v->claim_name == k->name && v->claim_namespace == k->name_space;
	return (is_its_own || (v->is_free && v->claim_name == NULL)) && v->storage_class == k->storage_class &&
	       v->milli >= k->milli && fit_requirements(v->affinity, n) && is_in_zone(v, n);
}

static bool reaches_volume(const struct fit *f, const struct volume_claim *k, const struct fit_node *n)
{
	const struct volume *v = k->volume == NULL ? NULL : volume_find(f->cluster, k->volume);
	const struct storage_class *s =
		k->storage_class == NULL ? NULL : storage_class_find(f->cluster, k->storage_class);
	if (k->is_bound)
		return v == NULL || (fit_requirements(v->affinity, n) && is_in_zone(v, n));
	if (k->chosen_node != NULL && (n->node == NULL || n->name != k->chosen_node))
		return false;
	if (s == NULL || (s->makes && fit_requirements(s->topologies, n)) || !can_read(f, CLUSTER_VOLUMES))
		return true;
	const struct store *volumes = &f->cluster->needed[CLUSTER_VOLUMES - CLUSTER_VOLUME_CLAIMS];
	for (size_t i = 0; (v = store_next(volumes, &i)) != NULL;)
		if (may_be_bound(v, k, n))
			return true;
	return false;
}

/* What the scheduler said of it was said with the node and its devices there. */
static bool was_heard_of(const struct cluster *c, const struct node *n)
{
	return n->is_ready && n->gpu_at != 0 && c->followed_at - n->gpu_at > WAITING_IS_SLOW;
}

/* No device of it is used in part: those that are free are whole. */
static bool is_whole_or_free(const struct node *n)
{
	return n->gpus_used_milli % 1000 == 0;
}

/*
 * A node of the group has room for it, and the scheduler does not take it: another like it would be no better. A node
 * where devices are used may lack just those that a claim wants of which it is not known how many: that says nothing.
 */
static bool was_refused_by_group(const struct cluster *c, const struct pod *p, const struct device_claim *k, int group)
{
	char unused[FIT_WHY_SIZE];
	bool is_counted = k != NULL && device_claim_is_counted(c, k);
	const struct node *n = NULL;
	for (size_t i = 0; (n = store_next(&c->nodes, &i)) != NULL;) {
		const struct fit_node there = fit_node_of(n);
		bool has_room = n->gpus_used_milli == 0 || (is_counted && is_whole_or_free(n));
		if (n->is_known && n->group == group && has_room && was_heard_of(c, n) &&
		    fit_shape(p->shape, &there, unused))
			return true;
	}
	return false;
}

/* The scheduler is believed where more is asked than a number of devices. */
static bool is_for_scheduler(const struct cluster *c, const struct device_claim *k)
{
	return k == NULL || (!k->is_allocated && !device_claim_is_plain(c, k));
}

bool fit_was_refused(const struct cluster *c, const struct pod *p, int group)
{
	for (size_t i = 0; p->trouble == POD_UNSCHEDULABLE && i < intern_count(p->shape->claims); i++) {
		const struct claim *of = &p->shape->claims->items[i];
		const struct device_claim *k =
			of->kind == CLAIM_DEVICE ? device_claim_find(c, p->namespace, of->name) : NULL;
		if (k != NULL && is_for_scheduler(c, k) && was_refused_by_group(c, p, k, group))
			return true;
	}
	return false;
}

/*
 * Devices are counted like resources. Where more is asked of them than how many, only the scheduler knows which a claim
 * will get: where it found none it is believed, until it says else.
 */
static bool reaches_devices(const struct fit *f, const struct pod *p, const char *name, const struct fit_node *n)
{
	const struct device_claim *k = device_claim_find(f->cluster, p->namespace, name);
	if (k != NULL && k->is_allocated)
		return fit_requirements(k->nodes, n);
	if (k != NULL && !device_claim_has_drivers(f->cluster, k, n->allocatable))
		return false;
	bool is_for_us = !is_for_scheduler(f->cluster, k);
	if (p->trouble != POD_UNSCHEDULABLE || (is_for_us && (n->node == NULL || is_whole_or_free(n->node))))
		return true;
	if (n->node != NULL)
		return !was_heard_of(f->cluster, n->node);
	return !pod_is_refused_by(f->cluster, p, n->group) && !was_refused_by_group(f->cluster, p, k, n->group);
}

static bool fits_claims(const struct fit *f, const struct pod *p, const struct fit_node *n, char *why)
{
	for (size_t i = 0; i < intern_count(p->shape->claims); i++) {
		const struct claim *k = &p->shape->claims->items[i];
		const struct volume_claim *v =
			k->kind == CLAIM_VOLUME ? volume_claim_find(f->cluster, p->namespace, k->name) : NULL;
		if (v != NULL && !reaches_volume(f, v, n)) {
			snprintf(why, FIT_WHY_SIZE, "the volume of PersistentVolumeClaim %s is not to be had there",
				 k->name);
			return false;
		}
		if (k->kind == CLAIM_DEVICE && !reaches_devices(f, p, k->name, n)) {
			snprintf(why, FIT_WHY_SIZE, "the devices of ResourceClaim %s are not there", k->name);
			return false;
		}
	}
	return true;
}

/* --- all of it --- */

void fit_expect(struct fit *f, const struct pod *p)
{
	size_t spreads = intern_count(p->shape->spreads);
	if (asking_of(f, p) != NULL || !minds_others(f, p))
		return;
	struct asking *q = arena_new(f->arena, struct asking);
	*q = (struct asking){ .next = f->askings,
			      .hash = asking_hash(p),
			      .shape = p->shape,
			      .labels = p->labels,
			      .name_space = p->namespace,
			      .tallies = { .hash_offset = offsetof(struct tally, hash) },
			      .least = arena_array(f->arena, int64_t, spreads),
			      .domains = arena_array(f->arena, int64_t, spreads) };
	f->askings = q;
	store_add(&f->by_kind, q);
	count_all(f, q);
}

struct fit *fit_new(const struct cluster *c, struct arena *a)
{
	struct fit *f = arena_new(a, struct fit);
	*f = (struct fit){ .cluster = c,
			   .arena = a,
			   .by_kind = { .hash_offset = offsetof(struct asking, hash) },
			   .keepers = { .hash_offset = offsetof(struct keeper, hash) } };
	/* All that will be asked about, so that whoever sits down is counted for each of them. */
	for (const struct pod *p = c->waiting; p != NULL; p = p->next)
		if (p->state == POD_UNSCHEDULED && pod_is_ours(p))
			fit_expect(f, p);
	return f;
}

void fit_release(struct fit *f)
{
	if (f == NULL)
		return;
	for (struct asking *q = f->askings; q != NULL; q = q->next)
		store_release(&q->tallies);
	store_release(&f->by_kind);
	store_release(&f->keepers);
}

bool fit_minds_others(struct fit *f, const struct pod *p)
{
	return asking_of(f, p) != NULL;
}

bool fit_pod(struct fit *f, const struct pod *p, const struct fit_node *n, char why[FIT_WHY_SIZE])
{
	if (!fit_shape(p->shape, n, why) || !fits_claims(f, p, n, why))
		return false;
	struct asking *q = asking_of(f, p);
	return q == NULL || (fits_spreads(q, n, why) && fits_others(f, q, n, why));
}

void fit_add(struct fit *f, const struct fit_node *n)
{
	for (struct asking *q = f->askings; q != NULL; q = q->next)
		count_node(f, q, n, 1);
}

void fit_take_away(struct fit *f, const struct fit_node *n)
{
	for (struct asking *q = f->askings; q != NULL; q = q->next)
		count_node(f, q, n, -1);
}

void fit_empty(struct fit *f, const struct node *n)
{
	for (struct asking *q = f->askings; q != NULL; q = q->next)
		count_pods(f, q, n, -1);
}

void fit_sit(struct fit *f, const struct pod *p, struct fit_node *n)
{
	struct fit_seat *s = f->spare != NULL ? f->spare : arena_new(f->arena, struct fit_seat);
	f->spare = f->spare == NULL ? NULL : f->spare->next;
	*s = (struct fit_seat){ n->seats, p };
	n->seats = s;
	for (struct asking *q = f->askings; q != NULL; q = q->next)
		count_pod(f, q, p, n, 1);
}

void fit_leave(struct fit *f, struct fit_node *n)
{
	struct fit_seat *s = n->seats;
	n->seats = s->next;
	for (struct asking *q = f->askings; q != NULL; q = q->next)
		count_pod(f, q, s->pod, n, -1);
	s->next = f->spare;
	f->spare = s;
}
