/*
 * What may stand where the cursor is: one answer for all shells and for
 * kubectl, in the form that cobra's programs have it: a candidate a line,
 * a tab and its meaning after it, and at the end ":N", what the shell shall
 * do besides.
 */
#pragma once
#include "controller/commands/command.h"

#define COMPLETE_VERB "__complete"

/* Words as typed, the last one being the one to complete, "" for a new one. */
extern const struct command command_complete;
