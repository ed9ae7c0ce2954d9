#include "state/db_translate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* "?" is the next parameter, "?3" the third. */
static const char *parameter(const char *c, int *next, struct buf *out)
{
	const char *end = c + 1;

	while (isdigit((unsigned char)*end))
		end++;
	if (end == c + 1)
		buf_printf(out, "$%d", ++*next);
	else
		buf_printf(out, "$%.*s", (int)(end - c - 1), c + 1);
	return end;
}

/* Past "INDEXED BY name": a hint to SQLite. */
static const char *past_hint(const char *c)
{
	c += strlen("INDEXED BY ");
	while (isalnum((unsigned char)*c) || *c == '_')
		c++;
	return *c == ' ' ? c + 1 : c;
}

/* The smaller of two has a name of its own there; of one it is what groups have. */
static const char *past_extreme(const char *c, struct buf *out)
{
	bool is_least = begins(c, "min(");
	int depth = 0;

	for (const char *in = c + 3; *in; in++) {
		depth += *in == '(' ? 1 : *in == ')' ? -1 : 0;
		if (!depth)
			return NULL;
		if (depth == 1 && *in == ',') {
			buf_text(out, is_least ? "least(" : "greatest(");
			return c + 4;
		}
	}
	return NULL;
}

static bool begins_word(const char *sql, const char *c, const char *word)
{
	return begins(c, word) && (c == sql || (!isalnum((unsigned char)c[-1]) && c[-1] != '_'));
}

/* One piece of a statement; returns what is behind it. */
static const char *piece(const char *sql, const char *c, int *next, struct buf *out)
{
	if (*c == '?')
		return parameter(c, next, out);
	if (begins_word(sql, c, "INDEXED BY "))
		return past_hint(c);
	if (begins_word(sql, c, "AS INTEGER)")) {
		buf_text(out, "AS bigint)");
		return c + strlen("AS INTEGER)");
	}
	const char *inside = begins_word(sql, c, "min(") || begins_word(sql, c, "max(") ? past_extreme(c, out) : NULL;
	if (inside)
		return inside;
	const char *quoted = *c == '\'' ? strchr(c + 1, '\'') : NULL;
	size_t len = quoted ? (size_t)(quoted - c) + 1 : 1;
	buf_append(out, c, len);
	return c + len;
}

static const char *past_insert(const char *sql, struct db_translation *out)
{
	static const struct {
		const char *words;
		enum db_conflict conflict;
	} forms[] = { { "INSERT OR REPLACE INTO ", DB_CONFLICT_REPLACES },
		      { "INSERT OR IGNORE INTO ", DB_CONFLICT_IGNORES } };

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (!begins(sql, forms[i].words))
			continue;
		sql += strlen(forms[i].words);
		snprintf(out->table, sizeof out->table, "%.*s", (int)strcspn(sql, " ("), sql);
		out->conflict = forms[i].conflict;
		buf_text(&out->sql, "INSERT INTO ");
		return sql;
	}
	return sql;
}

void db_translate(const char *sql, struct db_translation *out)
{
	int next = 0;

	*out = (struct db_translation){ .conflict = DB_CONFLICT_FAILS };
	for (const char *c = past_insert(sql, out); *c;)
		c = piece(sql, c, &next, &out->sql);
	if (out->conflict == DB_CONFLICT_IGNORES)
		buf_text(&out->sql, " ON CONFLICT DO NOTHING");
}

static const char *type_of(const char *type)
{
	if (!strcmp(type, "TEXT"))
		return "text";
	return strcmp(type, "BLOB") ? "bigint" : "bytea";
}

static void put_column(const struct db_column *c, struct buf *out)
{
	buf_printf(out, "\"%s\" %s%s", c->name, type_of(c->type), c->is_required || c->key ? " NOT NULL" : "");
	if (*c->fallback)
		buf_printf(out, " DEFAULT %s", c->fallback);
}

static void put_key(const struct db_column *columns, size_t count, struct buf *out)
{
	const char *before = ", PRIMARY KEY (";
	bool has_key = false;

	for (int place = 1; place <= (int)count; place++)
		for (size_t i = 0; i < count; i++)
			if (columns[i].key == place) {
				buf_printf(out, "%s\"%s\"", before, columns[i].name);
				before = ", ";
				has_key = true;
			}
	if (has_key)
		buf_text(out, ")");
}

void db_translate_table(const char *table, const struct db_column *columns, size_t count, struct buf *out)
{
	buf_printf(out, "CREATE TABLE IF NOT EXISTS \"%s\" (", table);
	for (size_t i = 0; i < count; i++) {
		buf_text(out, i ? ", " : "");
		put_column(&columns[i], out);
	}
	put_key(columns, count, out);
	buf_text(out, ");\n");
	for (size_t i = 0; i < count; i++) {
		if (columns[i].key)
			continue;
		buf_printf(out, "ALTER TABLE \"%s\" ADD COLUMN IF NOT EXISTS ", table);
		put_column(&columns[i], out);
		buf_text(out, ";\n");
	}
}

void db_translate_index(const char *sql, struct buf *out)
{
	static const char words[] = "CREATE INDEX ";

	buf_printf(out, "CREATE INDEX IF NOT EXISTS %s;\n", begins(sql, words) ? sql + strlen(words) : sql);
}
