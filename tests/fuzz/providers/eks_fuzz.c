/* Any bytes as an answer of AWS: what is believed can be. The first byte says which answer. */
#include "providers/eks_group.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check(const struct group_description *d)
{
	if (d->min < 0 || d->max < d->min || d->desired < 0 || d->standby < 0 || !d->lacks)
		abort();
	for (size_t i = 0; i < d->machine_count; i++)
		if (!*d->machines[i].id || d->machines[i].state >= MACHINE_STATE_COUNT || !d->machines[i].zone)
			abort();
	for (size_t i = 1; i < d->failure_count; i++)
		if (d->failures[i].id < d->failures[i - 1].id)
			abort();
}

/* A group, and after a NUL byte its activities. */
static bool read_group(const char *text, size_t len, struct arena *a, struct error *e)
{
	const char *rest = len ? memchr(text, 0, len) : NULL;
	size_t own = rest ? (size_t)(rest - text) : len;
	struct eks_seen seen = { .now = 1 };
	struct eks_list list = { 0 };
	struct group_description d;

	if (!eks_read_sole_group(text, own, "g", a, &seen.group, e))
		return false;
	if (rest && !eks_read_activities(rest + 1, len - own - 1, a, &list, e))
		return false;
	seen.activities = list.items;
	seen.activity_count = list.count;
	seen.told_before = INT64_MAX;
	eks_describe(&seen, a, &d);
	check(&d);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const char *text = (const char *)bytes + 1, *name;
	struct eks_list list;
	struct eks_launched launched;
	struct eks_hooks hooks;
	struct eks_refresh refresh;
	struct eks_nodegroup nodegroup;
	struct eks_update update;
	struct eks_template template;
	struct error e = { 0 };
	bool ok = false;

	if (!len)
		return 0;
	len--;
	switch (bytes[0] % 9) {
	case 0:
		ok = read_group(text, len, &a, &e);
		break;
	case 1:
		ok = eks_read_pool(text, len, &a, &list, &e);
		break;
	case 2:
		ok = eks_read_found(text, len, &a, &name, &e);
		break;
	case 3:
		ok = eks_read_launched(text, len, &a, &launched, &e);
		break;
	case 4:
		ok = eks_read_identity(text, len, &a, &name, &e);
		break;
	case 7:
		ok = eks_read_hooks(text, len, &a, &hooks, &e);
		if (ok && (hooks.end_hold < 0 || hooks.start_hold < 0))
			abort();
		ok = ok || eks_read_refresh(text, len, &a, &refresh, &e);
		break;
	case 8:
		ok = eks_read_template(text, len, &a, &template, &e);
		break;
	case 5:
		ok = eks_read_nodegroup(text, len, &a, &nodegroup, &e);
		break;
	default:
		ok = eks_read_update(text, len, &a, &update, &e);
		break;
	}
	if (!ok && e.kind != ERROR_INVALID && e.kind != ERROR_NOT_FOUND)
		abort();
	return 0;
}
