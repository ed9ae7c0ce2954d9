/* Whether a pod could run on an empty node, as the scheduler's filters say; and if not, why. */
#include "controller/cluster/model_inside.h"

#include "base/decimal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	if (value == NULL || bound == NULL || decimal_parse(value, strlen(value), 0, &a) != DECIMAL_OK ||
	    decimal_parse(bound, strlen(bound), 0, &b) != DECIMAL_OK)
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

static bool fits_taints(const struct pod_shape *s, const struct fit_node *n, char *why, size_t size)
{
	for (size_t i = 0; i < intern_count(n->taints); i++) {
		const struct taint *t = &n->taints->items[i];
		bool repels = same_or_none(t->effect, "NoSchedule") || same_or_none(t->effect, "NoExecute");
		if (!repels || is_tolerated(t, s->tolerations))
			continue;
		snprintf(why, size, "does not tolerate the taint %s%s%s:%s", t->key, t->value == NULL ? "" : "=",
			 t->value == NULL ? "" : t->value, t->effect);
		return false;
	}
	return true;
}

static bool fits_selector(const struct pod_shape *s, const struct fit_node *n, char *why, size_t size)
{
	for (size_t i = 0; i < intern_count(s->selector); i++) {
		const struct label *wanted = &s->selector->items[i];
		const char *value = value_of(n, wanted->key);
		if (may_be_there(n, wanted->key) || (value != NULL && strcmp(value, wanted->value) == 0))
			continue;
		if (value == NULL)
			snprintf(why, size, "its node selector wants %s=%s, nodes have no such label", wanted->key,
				 wanted->value);
		else
			snprintf(why, size, "its node selector wants %s=%s, nodes have %s", wanted->key, wanted->value,
				 value);
		return false;
	}
	return true;
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

static bool fits_resources(const struct pod_shape *s, const struct fit_node *n, bool gpus, char *why, size_t size)
{
	for (size_t i = 0; i < intern_count(s->requests); i++) {
		const struct resource *wanted = &s->requests->items[i];
		int64_t there = resources_get(n->allocatable, wanted->name);
		bool is_gpu = device_is_gpu(wanted->name);
		if (is_gpu != gpus || there >= wanted->milli || (n->is_guess && !is_gpu))
			continue;
		char a[40], b[40];
		print_amount(a, sizeof a, wanted->name, wanted->milli);
		print_amount(b, sizeof b, wanted->name, there);
		if (there == 0)
			snprintf(why, size, "wants %s %s, nodes have none", a, wanted->name);
		else
			snprintf(why, size, "wants %s %s, a node has %s", a, wanted->name, b);
		return false;
	}
	return true;
}

bool fit_shape(const struct pod_shape *s, const struct fit_node *n, char *why, size_t size)
{
	if (!fits_resources(s, n, true, why, size) || !fits_selector(s, n, why, size))
		return false;
	if (!fit_requirements(s->affinity, n)) {
		snprintf(why, size, "its node affinity selects no such node");
		return false;
	}
	return fits_taints(s, n, why, size) && fits_resources(s, n, false, why, size);
}
