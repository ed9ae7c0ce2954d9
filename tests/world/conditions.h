/*
 * What stands on nodes and pods of the world: conditions, taints, and by these what a cloud's own program tells of a
 * machine that it will take.
 */
#pragma once
#include "tests/world/apiserver.h"
#include "tests/world/cloud.h"

void condition_set(struct value *status, const char *type, bool is_so, const char *reason);
/* A taint goes; whether it was there. The caller tells that the node changed. */
bool node_untaint(struct object *node, const char *key);
/* Of a machine that is taken, or may be; once. */
void node_give_notice(const struct cloud_machine *m, struct object *node);
/* Its machine does not run any more. */
void node_notice_over(struct object *node);
