/*
 * The rule that each share follows, chosen by its shadows (policy/share_shadow.h). What they have counted is a row of
 * the history, written every five minutes and at each choice: a next process and a next leader go on from it.
 */
#pragma once
#include "controller/policy/share_shadow.h"

struct controller;
struct share_follow;

const struct share_rule *share_follow_rule(struct controller *c, const char *share);
/* The share has decided. */
void share_follow_seen(struct controller *c, const char *share, const struct share_seen *seen);
/* Read again from the history when they are next asked for. */
void share_follow_forget(struct controller *c);
