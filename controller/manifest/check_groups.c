#include "controller/manifest/draft.h"

#include <string.h>

static const struct yaml_node *block_of(const struct group_text *g, enum provider_choice p)
{
	return *(const struct yaml_node *const *)(const void *)((const char *)g + provider_row(p)->offset);
}

static void require_block(struct draft *d, const struct group_draft *g)
{
	enum provider_choice p = (enum provider_choice)g->merged.provider;
	CLEANUP(buf_release) struct buf allowed = { 0 };

	if (!provider_needs_block(p) || block_of(&g->merged, p))
		return;
	schema_allowed(provider_row(p), &allowed);
	schema_find_key(d->findings, g->merged.node, provider_row(p)->key, NULL, allowed.text,
			"add the block; check --print-reference shows its keys");
}

static void settle_provider(struct draft *d, struct group_draft *g)
{
	enum provider_choice settled =
		group_gives(g, "provider") ? (enum provider_choice)g->merged.provider : PROVIDER_COUNT;

	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++) {
		const struct yaml_node *block = block_of(&g->merged, p);
		if (!block || settled == p)
			continue;
		if (settled == PROVIDER_COUNT) {
			settled = p;
			continue;
		}
		CLEANUP(buf_release) struct buf allowed = { 0 };
		buf_printf(&allowed, "the block of provider %s only", provider_name(settled));
		schema_find(d->findings, block, "settings of another provider", allowed.text,
			    "delete them, or change provider");
	}
	g->merged.provider = settled == PROVIDER_COUNT ? PROVIDER_SIMULATED : settled;
	require_block(d, g);
}

static void check_standby(struct draft *d, const struct group_draft *g)
{
	const struct standby_text *s = &g->merged.standby;

	if (!s->node)
		return;
	if (s->max > g->merged.max)
		find_above(d, s->node, "max", "max of the group", g->merged.max,
			   "raise the group's max or lower standby.max");
	if (s->max && !g->merged.price_per_hour)
		schema_find_key(d->findings, g->merged.node, "pricePerHour", "standby of a group without a price",
				"more than 0", "give the price: whether standby pays is a question of price");
	check_quantiles(d, &s->lead_time);
}

static void check_eks(struct draft *d, const struct group_draft *g)
{
	const struct eks_text *eks = &g->merged.eks;

	if (!eks->node)
		return;
	if (eks->auto_scaling_group[0] && eks->tags[0])
		schema_find_key(d->findings, eks->node, "tags", "tags beside autoScalingGroup", "one of the two",
				"delete one");
	if (g->merged.standby.max && g->merged.capacity_type == CAPACITY_SPOT)
		schema_find_key(d->findings, g->merged.standby.node, "max", "standby of spot machines on EKS",
				"0: a warm pool holds no spot machines", "give standby to an on-demand group");
}

static void check_group(struct draft *d, struct group_draft *g)
{
	if (g->merged.min > g->merged.max)
		find_above(d, g->merged.node, "min", "max", g->merged.max,
			   group_gives(g, "max") ? "raise max or lower min" : "add max; it is 10 by default");
	settle_provider(d, g);
	check_standby(d, g);
	check_eks(d, g);
	check_clouds(d, &g->merged);
}

/* Of one pool: named twice, too small for a replica, priced and unpriced mixed. Returns the replicas that fit. */
static int64_t check_membership(struct draft *d, const struct spec_text *s)
{
	const struct group_text *groups = draft_groups(s);
	const struct group_draft *priced = NULL, *unpriced = NULL;
	int64_t room = 0;

	for (size_t i = 0; i < s->groups.count; i++) {
		if (!groups[i].name)
			continue;
		for (size_t k = 0; k < i; k++)
			if (groups[k].name && !strcmp(groups[k].name, groups[i].name))
				schema_find_key(d->findings, groups[i].node, "name", "the same group twice in one pool",
						"every group once", "delete one");
		const struct group_draft *g = &d->groups[draft_group_index(d, groups[i].name)];
		if (g->merged.gpus_per_node < s->workload.gpus_per_replica) {
			CLEANUP(buf_release) struct buf found = { 0 };
			buf_printf(&found, "nodes of %lld GPUs for replicas of %lld",
				   (long long)g->merged.gpus_per_node, (long long)s->workload.gpus_per_replica);
			schema_find_key(d->findings, groups[i].node, "gpusPerNode", found.text,
					"at least spec.workload.gpusPerReplica",
					"take larger machines, or correct one");
		}
		room += g->merged.max * (g->merged.gpus_per_node / s->workload.gpus_per_replica);
		*(group_gives(g, "pricePerHour") ? &priced : &unpriced) = g;
	}
	if (priced && unpriced)
		schema_find_key(d->findings, unpriced->merged.node, "pricePerHour", NULL,
				"a price for all groups of a pool or for none", "add it; prices are compared");
	return room;
}

static void check_room(struct draft *d, const struct spec_text *s, int64_t room)
{
	const struct headroom_text *h = &s->headroom;
	const struct window_text *windows = h->schedule.items;
	CLEANUP(buf_release) struct buf allowed = { 0 };
	static const char remedy[] = "raise max of its node groups, or lower this";

	buf_printf(&allowed, "at most the %lld replicas that the pool's node groups can hold", (long long)room);
	if (h->node && h->min > room)
		schema_find_key(d->findings, h->node, "min", NULL, allowed.text, remedy);
	for (size_t i = 0; i < h->schedule.count; i++)
		if (windows[i].node && windows[i].min > room)
			schema_find_key(d->findings, windows[i].node, "min", NULL, allowed.text, remedy);
}

void check_groups(struct draft *d)
{
	for (size_t i = 0; i < d->group_count; i++)
		check_group(d, &d->groups[i]);
	for (size_t i = 0; i < d->pool_count; i++) {
		const struct spec_text *s = draft_spec(d, i);
		if (!s->groups.count)
			continue;
		check_room(d, s, check_membership(d, s));
	}
}
