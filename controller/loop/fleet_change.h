/*
 * Another manifest while we lead. It touches the pools that it is about, and
 * nobody else: what it ends or lets act no more stops at once, the rest goes
 * on, and with the next tick that is due it is in force. Pools are the same
 * by namespace and name, node groups by name and what their provider is told
 * of them; what stays keeps its sources, calls, drains and starts, and its
 * place in the policy's memory. The history has it from that tick on.
 */
#pragma once
#include "base/error.h"

struct controller;

/* The next manifest is there, or is another one now (leader.next). */
void fleet_change_begin(struct controller *c);
/* There is one, and nothing that it ends is under way any more. */
bool fleet_change_is_due(const struct controller *c);
/* Takes it up. False when it cannot be recorded, or a group not be opened. */
bool fleet_change(struct controller *c, struct error *e) MUST_USE;
