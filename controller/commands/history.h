/* What was asked of providers: saved before it was asked, with what came of it. */
#pragma once
#include "controller/commands/history_args.h"
#include "state/launch.h"

/* What was asked, in a word; "?" for what this program does not know. */
const char *history_launches_verb(int64_t verb);
