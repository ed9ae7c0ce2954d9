#include "controller/simulation/rivals/rivals.h"

#include "controller/simulation/rivals/rival.h"

#include <string.h>

/* One set of functions a family: a row in list.def makes it. */
#define RIVAL(name, help)                                                                              \
	static void *open_##name(const struct fleet_spec *fleet, const char *setting, struct error *e) \
	{                                                                                              \
		return rival_open(&family_##name, fleet, setting, e);                                  \
	}
#include "controller/simulation/rivals/list.def"
#undef RIVAL

static void close_rival(void *state)
{
	rival_close(state);
}

static struct plan decide(void *state, const struct snapshot *s, struct arena *a)
{
	return rival_decide(state, s, a);
}

#define RIVAL(name, help) { #name, help, open_##name, close_rival, decide },
static const struct policy_ops policies[] = {
#include "controller/simulation/rivals/list.def"
};
#undef RIVAL

#define RIVAL(name, help) &family_##name,
static const struct family *const families[] = {
#include "controller/simulation/rivals/list.def"
};
#undef RIVAL

size_t rival_count(void)
{
	return sizeof policies / sizeof *policies;
}

const struct policy_ops *rival_at(size_t index)
{
	return &policies[index];
}

const struct policy_ops *rival_find(const char *name)
{
	for (size_t i = 0; i < rival_count(); i++)
		if (!strcmp(policies[i].name, name))
			return &policies[i];
	return NULL;
}

size_t rival_settings(const struct policy_ops *rival, const struct rival_scale *scale, struct arena *a,
		      const struct rival_setting **out)
{
	for (size_t i = 0; i < rival_count(); i++)
		if (rival == &policies[i])
			return sweep_settings(families[i], scale, a, out);
	return 0;
}
