#include "controller/simulation/rivals/setting.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/decimal.h"
#include "base/nearest.h"

#include <string.h>

enum { KEY_LENGTH = 32 };

static const struct setting_row common[] = {
	{ "pool", 0, 0, 100000, "static:N or total:N; stopped machines kept, or running and stopped together" },
	{ "lent", 0, 0, 1, "1 takes lent nodes first and gives them back first" },
};
enum { COMMON_COUNT = sizeof common / sizeof *common };

static bool parse_number(const char *text, size_t len, double *out)
{
	int64_t millionths;

	if (decimal_parse(text, len, 6, &millionths) != DECIMAL_OK)
		return false;
	*out = (double)millionths / 1e6;
	return true;
}

static bool unknown_key(const char *who, const char *key, const struct setting_row *rows, size_t count, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { 0 };
	const char *names[SETTINGS_MAX + COMMON_COUNT];

	for (size_t i = 0; i < count + COMMON_COUNT; i++) {
		names[i] = i < count ? rows[i].key : common[i - count].key;
		buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	}
	const char *near = nearest_name(key, names, count + COMMON_COUNT);
	return error_set(e, ERROR_INVALID, "%s has no setting \"%s\"%s%s%s; it has %s", who, key,
			 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", known.text);
}

static bool parse_stock(const char *who, const char *text, size_t len, struct settings *out, struct error *e)
{
	static const struct {
		const char *prefix;
		enum stock_kind kind;
	} kinds[] = { { "static:", STOCK_STATIC }, { "total:", STOCK_TOTAL } };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		size_t skip = strlen(kinds[i].prefix);

		if (len > skip && !strncmp(text, kinds[i].prefix, skip) &&
		    parse_number(text + skip, len - skip, &out->stock_size) && out->stock_size <= common[0].most) {
			out->stock = kinds[i].kind;
			return true;
		}
	}
	return error_set(e, ERROR_INVALID, "%s: pool=%.*s is not allowed; pool is static:N or total:N, N replicas", who,
			 (int)(len < 40 ? len : 40), text);
}

/* The row's number, counted through the rival's own rows and then the common ones. */
static bool find_row(const char *key, const struct setting_row *rows, size_t count, size_t *index)
{
	for (size_t i = 0; i < count + COMMON_COUNT; i++) {
		if (!strcmp(i < count ? rows[i].key : common[i - count].key, key)) {
			*index = i;
			return true;
		}
	}
	return false;
}

static bool store(const char *who, const struct setting_row *row, const char *text, size_t len, double *out,
		  struct error *e)
{
	double value;

	if (!parse_number(text, len, &value) || value < row->least || value > row->most)
		return error_set(e, ERROR_INVALID, "%s: %s=%.*s is not allowed; %s is a number from %g to %g (%s)", who,
				 row->key, (int)(len < 40 ? len : 40), text, row->key, row->least, row->most,
				 row->help);
	*out = value;
	return true;
}

struct pair {
	char key[KEY_LENGTH];
	const char *value;
	size_t value_len;
};

static bool split_pair(const char *who, const char *text, size_t len, struct pair *out, struct error *e)
{
	const char *equals = memchr(text, '=', len);
	size_t key_len = equals ? (size_t)(equals - text) : 0;

	if (!key_len || key_len >= sizeof out->key)
		return error_set(e, ERROR_INVALID, "%s: \"%.*s\" is not a setting; write KEY=NUMBER,KEY=NUMBER", who,
				 (int)(len < 40 ? len : 40), text);
	memcpy(out->key, text, key_len);
	out->key[key_len] = '\0';
	out->value = equals + 1;
	out->value_len = len - key_len - 1;
	return true;
}

bool settings_parse(const char *who, const char *text, const struct setting_row *rows, size_t count,
		    struct settings *out, struct error *e)
{
	struct settings read = { 0 };
	unsigned seen = 0;
	double lent = 0;

	for (size_t i = 0; i < count; i++)
		read.values[i] = rows[i].fallback;
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, ","), index;
		struct pair p;

		if (!split_pair(who, at, len, &p, e))
			return false;
		if (!find_row(p.key, rows, count, &index))
			return unknown_key(who, p.key, rows, count, e);
		if (seen & 1U << index)
			return error_set(e, ERROR_INVALID, "%s: %s is given twice; give it once", who, p.key);
		seen |= 1U << index;
		bool ok = index < count	   ? store(who, &rows[index], p.value, p.value_len, &read.values[index], e)
			  : index == count ? parse_stock(who, p.value, p.value_len, &read, e)
					   : store(who, &common[1], p.value, p.value_len, &lent, e);
		if (!ok)
			return false;
		at += len + (at[len] == ',');
	}
	read.uses_lent = lent >= 1;
	*out = read;
	return true;
}
