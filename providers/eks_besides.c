#include "base/buf.h"
#include "providers/eks_exchange.h"

#include <inttypes.h>

enum { MOST = 4 };

static void tell(struct exchange *x, const char **list, const char *text, size_t len)
{
	struct group_description *d = &x->call->description;

	list[d->beside_count++] = arena_strdup(&x->call->arena, text, len);
	d->besides = list;
}

#define TELL(x, list, text) tell(x, list, text, sizeof(text) - 1)

void eks_tell_besides(struct exchange *x)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	const struct eks_group *g = &x->seen.group;
	const struct eks_pool *p = &g->pool;
	const char **list = arena_array(&x->call->arena, const char *, MOST);
	int64_t open = 0;

	for (size_t i = 0; i < g->instance_count; i++)
		open += eks_is_in_service(&g->instances[i]) && !g->instances[i].is_protected;
	buf_printf(&text, "protect %" PRId64 " machine%s in service from scale-in, so that none ends by chance", open,
		   open == 1 ? "" : "s");
	if (open)
		tell(x, list, text.text, text.len);
	if (p->exists && p->least > 0 && p->prepared >= 0 && !eks_pool_is_nodegroups(&x->seen))
		TELL(x, list, "set MinSize of the warm pool to 0, so that growing takes its machines and buys none");
	if (p->exists && x->settings.launch == EKS_LAUNCH_INSTANCES)
		TELL(x, list, "grow by SetDesiredCapacity, not by LaunchInstances, as there is a warm pool");
	if (g->is_tagged)
		TELL(x, list,
		     "size the group though it is tagged for Cluster Autoscaler, as clusterAutoscalerTags: ignore "
		     "says");
}
