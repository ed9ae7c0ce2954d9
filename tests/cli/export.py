"""Reads an export with DuckDB by its own schema.json, compares it with the history, and writes Parquet."""
import json, sqlite3, sys
import duckdb

folder = sys.argv[1]
history = sqlite3.connect(f"{folder}/out/history.db")
history.row_factory = sqlite3.Row
db = duckdb.connect()
db.execute("SET TimeZone = 'UTC'")
TYPES = {"text": "VARCHAR", "bigint": "BIGINT", "timestamp": "TIMESTAMP WITH TIME ZONE"}
done = 0


def same(what, found, wanted):
    global done
    done += 1
    if found != wanted:
        raise SystemExit(f"FAILED: {what}: found {found!r}, expected {wanted!r}")


def number(sql):
    return history.execute(sql).fetchone()[0]


schema = json.load(open(f"{folder}/csv/schema.json"))
same("schema.json of both", json.load(open(f"{folder}/jsonl/schema.json")), schema)
for table in schema["tables"]:
    name, columns = table["name"], {c["name"]: TYPES[c["type"]] for c in table["columns"]}
    sources = {
        "csv": f"read_csv('{folder}/csv/day=*/{name}.csv', header = true, hive_partitioning = true, nullstr = '', columns = {columns})",
        "json": f"read_json('{folder}/jsonl/day=*/{name}.jsonl.gz', format = 'newline_delimited', hive_partitioning = true, columns = {columns})",
    }
    keys = ", ".join(list(columns)[:5])
    rows = {}
    for form, source in sources.items():
        parquet = f"{folder}/{name}.{form}.parquet"
        db.execute(f"COPY (SELECT * FROM {source} ORDER BY {keys}) TO '{parquet}' (FORMAT parquet)")
        types = {c[0]: c[1] for c in db.execute(f"DESCRIBE SELECT * EXCLUDE (day) FROM '{parquet}'").fetchall()}
        same(f"{name}: types in Parquet from {form}", types, columns)
        rows[form] = db.execute(f"SELECT * EXCLUDE (day) FROM '{parquet}'").fetchall()
    same(f"{name}: rows of csv and jsonl", rows["csv"] == rows["json"], True)
    # By looking at them, without the schema: names stay, and no number becomes a text.
    guessed = {c[0]: c[1] for c in db.execute(f"DESCRIBE SELECT * FROM read_csv('{folder}/csv/day=*/{name}.csv', sample_size = -1)").fetchall()}
    wrong = [c for c, t in columns.items() if t == "BIGINT" and guessed[c] not in ("BIGINT", "VARCHAR")]
    same(f"{name}: columns guessed otherwise", wrong, [])

D, G, C, L = (f"'{folder}/{n}.csv.parquet'" for n in ("decisions", "group_decisions", "costs", "launches"))
same("decisions", db.execute(f"SELECT count(*) FROM {D}").fetchone()[0], number("SELECT count(*) FROM decision"))
same("group decisions", db.execute(f"SELECT count(*) FROM {G}").fetchone()[0], number("SELECT count(*) FROM decision"))
same("ticks, each once", db.execute(f"SELECT count(DISTINCT tick), max(tick) + 1 FROM {D}").fetchone(), (number("SELECT count(*) FROM tick"),) * 2)
same("days of the folders are those of the times", db.execute(f"SELECT count(*) FROM {D} WHERE strftime(time, '%Y-%m-%d') <> day::VARCHAR").fetchone()[0], 0)
same("three days", db.execute(f"SELECT count(DISTINCT day) FROM {D}").fetchone()[0], 3)
same("the first time", db.execute(f"SELECT epoch_ms(min(time)) FROM {D}").fetchone()[0], number("SELECT min(at) FROM tick"))
same("dollars", db.execute(f"SELECT sum(COLUMNS('.*_dollars_micro')) FROM {C}").fetchone(),
     tuple(history.execute("SELECT sum(idle_micro_dollars), sum(lent_micro_dollars), sum(starting_micro_dollars), sum(serving_micro_dollars), sum(standby_micro_dollars) FROM cost").fetchone()))
same("late requests are those of their causes", db.execute(f"SELECT sum(late) = sum(late_by_burst + late_by_starting + late_by_stock_out + late_by_quota + late_by_max + late_by_budget + late_by_rate + late_by_stale + late_by_not_acting) FROM {C}").fetchone()[0], True)
same("launches", db.execute(f"SELECT token, node_group, target, epoch_ms(asked_at), outcome, ended_at IS NULL FROM {L} ORDER BY token").fetchall(),
     [("t-1", 'g5, "odd"', 7, 1704067265500, "done", False), ("t-2", "g5", 8, 1704067365000, None, True)])
print(f"[==========] {done} test(s) run.\n[  PASSED  ] {done} test(s).")
