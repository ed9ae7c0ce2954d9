/*
 * `preheat provider check`: what a node group's cloud tells of us and of the
 * group, put beside what the manifest wants of it.
 */
#pragma once
#include "base/buf.h"
#include "controller/manifest/manifest.h"
#include "providers/provider.h"

/* Ordered by weight: of all groups the heaviest counts. */
enum group_verdict { GROUP_FINE, GROUP_REFUSED, GROUP_UNANSWERED };

struct sentences {
	const char **items;
	size_t count, room;
};

struct group_check {
	const struct group_spec *spec;
	const char *pools;		      /* "llm/chat, llm/batch" */
	bool is_watched;		      /* none of these pools acts */
	struct error error;		      /* why nobody could be asked; then neither call was made */
	struct provider_call check, describe; /* as they ended */

	/* filled in by group_check_judge() */
	enum group_verdict verdict;
	struct sentences refused, would, notes; /* sentences in the arena given */
};

/* Weighs one group's answers. */
void group_check_judge(struct group_check *g, struct arena *a);
const char *group_verdict_name(enum group_verdict verdict);
const char *permission_state_name(enum permission_state state);
/* Whether the group can do without it: standby that is not wanted, or what only helps. */
bool group_check_can_do_without(const struct group_check *g, const struct permission *p);

/* Machines of one kind. */
struct machine_row {
	enum machine_state state;
	const char *zone, *instance_type;
	bool is_standby;
	int64_t count;
};
/* By state, zone and type; in the arena. */
size_t machine_rows(const struct group_description *d, struct arena *a, struct machine_row **out);

/* On standard output. */
/* For people; wide with what each permission's answer said. */
void provider_check_print(const struct group_check *groups, size_t count, bool is_wide, struct arena *a);
void provider_check_write_json(const struct group_check *groups, size_t count, struct arena *a, struct buf *out);

/* Asks all at once; `timeout` for each group. What cannot be asked is told in the group's error. */
struct access_options;
bool provider_check_ask(struct group_check *groups, size_t count, const struct access_options *o, millis timeout,
			struct error *e) MUST_USE;
