#include "base/metric_name.h"

#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS	"0123456789"

static size_t word(const char *text, const char *first, const char *rest)
{
	return *text && strchr(first, *text) ? strspn(text, rest) : 0;
}

bool metric_name_parse(const char *text, struct metric_name *out)
{
	struct metric_name m = { .name_len = word(text, LETTERS ":", LETTERS DIGITS ":") };
	const char *p = text + m.name_len;

	if (!m.name_len || strlen(text) > METRIC_NAME_LONGEST)
		return false;
	if (*p == '{') {
		m.label = p + 1;
		m.label_len = word(m.label, LETTERS, LETTERS DIGITS);
		p = m.label + m.label_len;
		if (!m.label_len || strncmp(p, "=\"", 2) != 0)
			return false;
		m.value = p + 2;
		m.value_len = strspn(m.value, LETTERS DIGITS ":./ -");
		p = m.value + m.value_len;
		if (!m.value_len || strncmp(p, "\"}", 2) != 0)
			return false;
		p += 2;
	}
	if (*p)
		return false;
	*out = m;
	return true;
}
