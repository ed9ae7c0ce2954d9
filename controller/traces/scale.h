/* The two halves of trace_scale(); both fill a zeroed trace. */
#pragma once
#include "controller/traces/trace.h"

enum { SCALE_PLAIN_UP_TO = 6, SCALE_GROUP = 5 };
