#include "providers/provider.h"

#include <inttypes.h>
#include <string.h>

#define PROVIDER(name, key, help) extern const struct provider_ops provider_##name;
#include "providers/list.def"
#undef PROVIDER

static const struct provider_ops *const providers[] = {
#define PROVIDER(name, key, help) &provider_##name,
#include "providers/list.def"
#undef PROVIDER
};

const struct provider_ops *provider_at(size_t index)
{
	return index < sizeof providers / sizeof(const struct provider_ops *) ? providers[index] : NULL;
}

const struct provider_ops *provider_find(const char *name)
{
	const struct provider_ops *found;

	for (size_t i = 0; (found = provider_at(i)); i++)
		if (strcmp(found->name, name) == 0)
			return found;
	return NULL;
}

void provider_call_release(struct provider_call *c)
{
	arena_release(&c->arena);
	c->description = (struct group_description){ 0 };
	c->operation = c->identity = NULL;
	c->ended = NULL;
	c->ended_count = 0;
	c->permissions = NULL;
	c->permission_count = 0;
}

bool provider_is_outdated(const struct provider_call *c, int64_t size, struct error *e)
{
	int64_t before = c->desired - c->change;

	return c->change > 0 && size < before &&
	       !error_set(e, ERROR_CONFLICT,
			  "it has %" PRId64 " machines by now, and had %" PRId64 " when %" PRId64
			  " more were decided; it is looked at again first",
			  size, before, c->change);
}

bool provider_was_lowered(const struct provider_call *c, int64_t size, int64_t gone, struct error *e)
{
	return c->size > 0 && size < c->size - gone &&
	       !error_set(e, ERROR_CONFLICT,
			  "it has %" PRId64 " machines by now, and had %" PRId64
			  " when fewer were decided; it is looked at again first",
			  size, c->size - gone);
}

const char *provider_verb_name(enum provider_verb verb)
{
	static const char *const names[] = { "describe", "grow",   "remove", "stop",
					     "standby",	 "cancel", "check",  "protect" };

	_Static_assert(sizeof names / sizeof *names == PROVIDER_VERB_COUNT, "a name per verb");
	return verb < PROVIDER_VERB_COUNT ? names[verb] : "unknown";
}

const char *machine_state_name(enum machine_state state)
{
	static const char *const names[] = { "pending", "running", "stopping", "stopped", "waking", "terminating" };

	_Static_assert(sizeof names / sizeof *names == MACHINE_STATE_COUNT, "a name per state");
	return state < MACHINE_STATE_COUNT ? names[state] : "unknown";
}
