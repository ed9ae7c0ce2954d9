#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 64 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: insert, delete, change, swap neighbours. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][LONGEST + 1], m = strlen(a), n = strlen(b);

	if (m > LONGEST || n > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= n; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= m; i++) {
		size_t *now = rows[i % 3], *last = rows[(i - 1) % 3];
		const size_t *before = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= n; j++) {
			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return rows[m % 3][n];
}

static bool is_beginning(const char *word, const char *name)
{
	return strlen(word) >= 3 && strncmp(word, name, strlen(word)) == 0;
}

const char *nearest_name(const char *word, const char *const *names, size_t count)
{
	const char *nearest = NULL;
	size_t best = (strlen(word) + 2) / 3 + 1;

	if (strlen(word) < 2)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t d = is_beginning(word, names[i]) ? 0 : distance(word, names[i]);

		if (d < best) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}
