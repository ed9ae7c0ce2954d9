#include "providers/eks_lookup.h"

#include "base/clock.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

static const millis KEPT = 6 * MINUTE, LEAST_JITTER = 5 * SECOND, MOST_JITTER = 60 * SECOND;
static const millis REFUSAL_KEPT = 30 * SECOND;

struct entry {
	struct entry *next;
	char *settings;
	struct arena arena;
	struct eks_nodegroup nodegroup;
	struct error refusal; /* ERROR_NONE: found */
	millis until;
	int64_t newest_failure;
};

struct eks_lookup {
	struct entry *entries;
	struct random random;
};

struct eks_lookup *eks_lookup_open(void)
{
	struct eks_lookup *l = calloc(1, sizeof *l);
	struct clock now = clock_open();

	if (!l)
		abort();
	l->random = random_stream((uint64_t)clock_now(&now), "eks-lookup");
	return l;
}

static void release(struct entry *n)
{
	arena_release(&n->arena);
	free(n->settings);
	free(n);
}

void eks_lookup_close(struct eks_lookup *l)
{
	while (l && l->entries) {
		struct entry *n = l->entries;
		l->entries = n->next;
		release(n);
	}
	free(l);
}

static const char *copy(struct arena *a, const char *text)
{
	return text ? arena_strdup(a, text, strlen(text)) : NULL;
}

static struct eks_nodegroup copy_nodegroup(struct arena *a, const struct eks_nodegroup *n)
{
	struct eks_nodegroup c = *n;

	c.group = copy(a, n->group);
	c.status = copy(a, n->status);
	c.capacity_type = copy(a, n->capacity_type);
	c.image = copy(a, n->image);
	c.pool.state = copy(a, n->pool.state);
	return c;
}

enum eks_known eks_lookup_find(const struct eks_lookup *l, const char *settings, millis now, struct arena *a,
			       struct eks_nodegroup *out, struct error *e)
{
	for (const struct entry *n = l->entries; n; n = n->next) {
		if (strcmp(n->settings, settings) != 0 || now >= n->until)
			continue;
		if (n->refusal.kind != ERROR_NONE) {
			*e = n->refusal;
			return EKS_REFUSED;
		}
		*out = copy_nodegroup(a, &n->nodegroup);
		return EKS_FOUND;
	}
	return EKS_UNKNOWN;
}

/* A group for each settings text of the manifest: few, and kept until the end. */
static struct entry *entry_of(struct eks_lookup *l, const char *settings)
{
	struct entry *n = l->entries;

	while (n && strcmp(n->settings, settings) != 0)
		n = n->next;
	if (n)
		return n;
	n = calloc(1, sizeof *n);
	if (!n || !(n->settings = strdup(settings)))
		abort();
	n->next = l->entries;
	l->entries = n;
	return n;
}

static struct entry *emptied(struct entry *n)
{
	arena_release(&n->arena);
	n->nodegroup = (struct eks_nodegroup){ 0 };
	n->refusal = (struct error){ 0 };
	n->until = 0;
	return n;
}

void eks_lookup_forget(struct eks_lookup *l, const char *settings)
{
	emptied(entry_of(l, settings));
}

int64_t eks_lookup_see(struct eks_lookup *l, const char *settings, int64_t newest)
{
	struct entry *n = entry_of(l, settings);
	int64_t before = n->newest_failure;

	n->newest_failure = newest;
	return before;
}

void eks_lookup_keep(struct eks_lookup *l, const char *settings, millis now, const struct eks_nodegroup *n)
{
	struct entry *entry = emptied(entry_of(l, settings));
	millis jitter = (millis)(random_next(&l->random) % (uint64_t)(MOST_JITTER - LEAST_JITTER));

	entry->nodegroup = copy_nodegroup(&entry->arena, n);
	entry->until = now + KEPT + LEAST_JITTER + jitter;
}

void eks_lookup_keep_refusal(struct eks_lookup *l, const char *settings, millis now, const struct error *e)
{
	if (e->kind != ERROR_NOT_FOUND && e->kind != ERROR_AUTH && e->kind != ERROR_INVALID)
		return;
	struct entry *entry = emptied(entry_of(l, settings));
	entry->refusal = *e;
	entry->until = now + REFUSAL_KEPT;
}
