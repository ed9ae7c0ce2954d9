/* "Did you mean": the known name that a mistyped word is closest to. */
#pragma once
#include <stddef.h>

/* One of `names`, or NULL when none is near: at most a third of the letters wrong, swapped letters count once. */
const char *nearest_name(const char *word, const char *const *names, size_t count);
