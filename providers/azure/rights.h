/*
 * What Azure's roles let us do, as GET .../Microsoft.Authorization/permissions
 * tells it: for each assignment its actions, less its notActions, both with
 * wildcards. Pure.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"

struct azure_right {
	const char *const *actions, *const *not_actions;
	size_t action_count, not_action_count;
};

struct azure_rights {
	const struct azure_right *items;
	size_t count;
};

bool azure_rights_read(const char *text, size_t len, struct arena *a, struct azure_rights *out,
		       struct error *e) MUST_USE;
/* Whether any assignment allows the action: "Microsoft.ContainerService/managedClusters/read". */
bool azure_rights_allow(const struct azure_rights *r, const char *action);
