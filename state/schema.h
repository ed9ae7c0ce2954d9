/* The tables of a history and how they came to be. */
#pragma once
#include "state/db.h"

extern const struct db_schema history_schema;
