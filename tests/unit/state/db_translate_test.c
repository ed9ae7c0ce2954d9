#include "base/arena.h"
#include "state/db_engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void statements(void **unused)
{
	static const struct {
		const char *sql, *wanted, *table;
		enum db_conflict conflict;
	} cases[] = {
		{ "SELECT at FROM tick WHERE id = ?", "SELECT at FROM tick WHERE id = $1", "", DB_CONFLICT_FAILS },
		{ "SELECT ?, ?, ?", "SELECT $1, $2, $3", "", DB_CONFLICT_FAILS },
		{ "WHERE tick BETWEEN ?2 AND ?13 OR ?2", "WHERE tick BETWEEN $2 AND $13 OR $2", "", DB_CONFLICT_FAILS },
		{ "FROM decision INDEXED BY decision_held WHERE 1", "FROM decision WHERE 1", "", DB_CONFLICT_FAILS },
		{ "FROM decision INDEXED BY decision_held", "FROM decision ", "", DB_CONFLICT_FAILS },
		{ "WHERE name <> '? INDEXED BY x' AND a = ?", "WHERE name <> '? INDEXED BY x' AND a = $1", "",
		  DB_CONFLICT_FAILS },
		{ "CAST(?1 AS INTEGER)", "CAST($1 AS bigint)", "", DB_CONFLICT_FAILS },
		{ "min(until, ?2) - max(since, ?1)", "least(until, $2) - greatest(since, $1)", "", DB_CONFLICT_FAILS },
		{ "min(tick), max(f(a, b)), amin(a, b)", "min(tick), max(f(a, b)), amin(a, b)", "", DB_CONFLICT_FAILS },
		{ "INSERT INTO tick VALUES (?)", "INSERT INTO tick VALUES ($1)", "", DB_CONFLICT_FAILS },
		{ "INSERT OR IGNORE INTO pool (id, name) VALUES (?, ?)",
		  "INSERT INTO pool (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING", "pool", DB_CONFLICT_IGNORES },
		{ "INSERT OR REPLACE INTO cost VALUES (?, ?)", "INSERT INTO cost VALUES ($1, $2)", "cost",
		  DB_CONFLICT_REPLACES },
	};
	(void)unused;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct db_translation t;

		db_translate(cases[i].sql, &t);
		assert_string_equal(t.sql.text, cases[i].wanted);
		assert_string_equal(t.table, cases[i].table);
		assert_int_equal(t.conflict, cases[i].conflict);
		buf_release(&t.sql);
	}
}

static void tables(void **unused)
{
	static const struct db_column columns[] = {
		{ "tick", "INTEGER", "", true, 2 },	{ "pool", "INTEGER", "", false, 1 },
		{ "plan", "BLOB", "", true, 0 },	{ "asked", "INTEGER", "", false, 0 },
		{ "operation", "TEXT", "''", true, 0 },
	};
	CLEANUP(buf_release) struct buf sql = { 0 };
	(void)unused;

	db_translate_table("decision", columns, 5, &sql);
	assert_string_equal(
		sql.text,
		"CREATE TABLE IF NOT EXISTS \"decision\" (\"tick\" bigint NOT NULL, \"pool\" bigint NOT NULL, "
		"\"plan\" bytea NOT NULL, \"asked\" bigint, \"operation\" text NOT NULL DEFAULT '', "
		"PRIMARY KEY (\"pool\", \"tick\"));\n"
		"ALTER TABLE \"decision\" ADD COLUMN IF NOT EXISTS \"plan\" bytea NOT NULL;\n"
		"ALTER TABLE \"decision\" ADD COLUMN IF NOT EXISTS \"asked\" bigint;\n"
		"ALTER TABLE \"decision\" ADD COLUMN IF NOT EXISTS \"operation\" text NOT NULL DEFAULT '';\n");
	buf_clear(&sql);
	db_translate_index("CREATE INDEX launch_open ON launch (asked_at) WHERE outcome IS NULL", &sql);
	assert_string_equal(sql.text,
			    "CREATE INDEX IF NOT EXISTS launch_open ON launch (asked_at) WHERE outcome IS NULL;\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(statements), cmocka_unit_test(tables) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
