/* "Did you mean": the known name that a mistyped word is closest to. */
#pragma once
#include <stddef.h>

/* One of `names`, or NULL when none is near: it begins with the word, or at most a third of the letters
 * are wrong; swapped neighbours count once. */
const char *nearest_name(const char *word, const char *const *names, size_t count);
