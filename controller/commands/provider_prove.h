/*
 * What only a real account can tell of a node group's cloud, question by question with the commands that show it. What
 * a person pastes and answers is kept as a file, without keys and account numbers.
 */
#pragma once
#include "base/error.h"
#include "controller/policy/pool.h"

/* Asks on standard output, reads standard input; without answers there it only prints. `out` NULL: GROUP.proof.json. */
bool provider_prove(const struct group_spec *g, const char *out, struct error *e) MUST_USE;
