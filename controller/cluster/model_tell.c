#include "controller/cluster/model_inside.h"

millis model_moment(const struct cluster *c, const struct watch_seen *seen, millis told)
{
	bool by_arrival = c->ignores_stamps || told == 0 || !seen->is_from_list || told > seen->arrived;
	return by_arrival ? seen->arrived : told;
}

void model_tell_node(struct cluster *c, enum cluster_change what, const struct node *n, millis at, bool is_listed)
{
	struct cluster_event event = { .what = what, .node = n, .at = at, .is_listed = is_listed };
	if (c->on_change != NULL && n->group >= 0)
		c->on_change(c->on_change_user, &event);
}

void model_tell_pod(struct cluster *c, enum cluster_change what, const struct pod *p, millis at, bool is_listed)
{
	struct cluster_event event = { .what = what, .pod = p, .at = at, .is_listed = is_listed };
	if (c->on_change != NULL && (p->has_gpus || p->pool >= 0))
		c->on_change(c->on_change_user, &event);
}
