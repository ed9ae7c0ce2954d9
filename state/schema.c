#include "state/schema.h"

/* Append only: a released migration never changes. */
static const char *const migrations[] = {
	/* Facts of the whole file, by name. */
	"CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"

	/* A text is kept once; manifest_use says from which tick on it is in force. */
	"CREATE TABLE manifest (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;"
	"CREATE TABLE manifest_use (tick INTEGER PRIMARY KEY, manifest INTEGER NOT NULL REFERENCES manifest) STRICT;"

	"CREATE TABLE pool (id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL) STRICT;"
	"CREATE TABLE pool_group (pool INTEGER NOT NULL REFERENCES pool, position INTEGER NOT NULL, name TEXT NOT NULL,"
	"                         PRIMARY KEY (pool, position)) STRICT, WITHOUT ROWID;"

	/* at: its end, interval: its length, both in ms. at grows with id. */
	"CREATE TABLE tick (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, interval INTEGER NOT NULL) STRICT;"

	/*
	 * input and plan: see record.h. The numbers beside them repeat what is in plan, for finding:
	 * asked: change of hot replicas that the plan asks for, NULL when it asks for nothing;
	 * concerns: a bit per position of a group that was asked for something or held.
	 */
	"CREATE TABLE decision (tick INTEGER NOT NULL, pool INTEGER NOT NULL, is_keyframe INTEGER NOT NULL,"
	"                       held_by INTEGER NOT NULL, asked INTEGER, concerns INTEGER NOT NULL,"
	"                       input BLOB NOT NULL, plan BLOB NOT NULL,"
	"                       PRIMARY KEY (tick, pool)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX decision_asked ON decision (tick, pool) WHERE asked IS NOT NULL;"
	"CREATE INDEX decision_largest ON decision (abs(asked), asked, tick) WHERE asked IS NOT NULL;"
	"CREATE INDEX decision_held ON decision (held_by, tick) WHERE held_by <> 0;"

	/* The policy's memory before it decided this tick: size and crc are of the bytes before compression. */
	"CREATE TABLE checkpoint (tick INTEGER PRIMARY KEY, at INTEGER NOT NULL, size INTEGER NOT NULL,"
	"                         crc INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;"

	/* A purchase: saved before the call that costs money, with its outcome afterwards. */
	"CREATE TABLE launch (token TEXT PRIMARY KEY, pool INTEGER NOT NULL, node_group TEXT NOT NULL,"
	"                     kind INTEGER NOT NULL, count INTEGER NOT NULL, asked_at INTEGER NOT NULL,"
	"                     outcome TEXT, ended_at INTEGER) STRICT;"
	"CREATE INDEX launch_open ON launch (asked_at) WHERE outcome IS NULL;"

	/* What is left of hours whose ticks were dropped. replica_ms: of decided replicas. */
	"CREATE TABLE rollup (hour INTEGER NOT NULL, pool INTEGER NOT NULL, ticks INTEGER NOT NULL,"
	"                     arrived INTEGER NOT NULL, started INTEGER NOT NULL, late INTEGER NOT NULL,"
	"                     replica_ms INTEGER NOT NULL, micro_dollars INTEGER NOT NULL, asked INTEGER NOT NULL,"
	"                     PRIMARY KEY (hour, pool)) STRICT, WITHOUT ROWID;",

	/* From a tick on: the pools of the manifest in force in its order, and where their groups stand in pool_group.
	 */
	"CREATE TABLE pool_use (tick INTEGER NOT NULL, place INTEGER NOT NULL, pool INTEGER NOT NULL REFERENCES pool,"
	"                       PRIMARY KEY (tick, place)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE group_use (tick INTEGER NOT NULL, pool INTEGER NOT NULL, place INTEGER NOT NULL,"
	"                        position INTEGER NOT NULL, PRIMARY KEY (tick, pool, place)) STRICT, WITHOUT ROWID;"
	"INSERT INTO pool_use SELECT 0, id, id FROM pool;"
	"INSERT INTO group_use SELECT 0, pool, position, position FROM pool_group;"

	/* From a tick on: what decided, the layout of its memory, and whether it began with a new one. */
	"CREATE TABLE writer (tick INTEGER PRIMARY KEY, program TEXT NOT NULL, memory TEXT NOT NULL,"
	"                     is_fresh INTEGER NOT NULL) STRICT;"
	"INSERT INTO writer SELECT 0, value, '', 1 FROM fact WHERE name = 'program';"

	/* machines: their ids, a line each. No program ever wrote the table of before. */
	"DROP TABLE launch;"
	"CREATE TABLE launch (token TEXT PRIMARY KEY, node_group TEXT NOT NULL, verb INTEGER NOT NULL,"
	"                     target INTEGER NOT NULL, machines TEXT NOT NULL, tick INTEGER NOT NULL,"
	"                     term INTEGER NOT NULL, asked_at INTEGER NOT NULL, outcome TEXT, ended_at INTEGER) STRICT;"
	"CREATE INDEX launch_open ON launch (asked_at) WHERE outcome IS NULL;"
	"CREATE INDEX launch_asked ON launch (asked_at);",

	/*
	 * What each hour came to, by pool and its class of that time: struct cost_sums in its order. GPU-milliseconds
	 * and micro-dollars; late_* sums to late.
	 */
	"CREATE TABLE cost (hour INTEGER NOT NULL, pool INTEGER NOT NULL, class INTEGER NOT NULL,"
	"                   watched_ms INTEGER NOT NULL, idle_gpu_ms INTEGER NOT NULL, lent_gpu_ms INTEGER NOT NULL,"
	"                   starting_gpu_ms INTEGER NOT NULL, serving_gpu_ms INTEGER NOT NULL,"
	"                   standby_gpu_ms INTEGER NOT NULL, idle_micro_dollars INTEGER NOT NULL,"
	"                   lent_micro_dollars INTEGER NOT NULL, starting_micro_dollars INTEGER NOT NULL,"
	"                   serving_micro_dollars INTEGER NOT NULL, standby_micro_dollars INTEGER NOT NULL,"
	"                   blind_gpu_ms INTEGER NOT NULL, arrived INTEGER NOT NULL, started INTEGER NOT NULL,"
	"                   late INTEGER NOT NULL, completed INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,"
	"                   output_tokens INTEGER NOT NULL, late_burst INTEGER NOT NULL,"
	"                   late_cold_start INTEGER NOT NULL, late_stock_out INTEGER NOT NULL,"
	"                   late_quota INTEGER NOT NULL, late_max INTEGER NOT NULL, late_budget INTEGER NOT NULL,"
	"                   late_rate INTEGER NOT NULL, late_stale INTEGER NOT NULL, late_not_acting INTEGER NOT NULL,"
	"                   PRIMARY KEY (hour, pool, class)) STRICT, WITHOUT ROWID;"

	/* holder: enum cost_holder. A text is empty where pods have no such label. */
	"CREATE TABLE cost_label_set (id INTEGER PRIMARY KEY, holder INTEGER NOT NULL, cost_center TEXT NOT NULL,"
	"                             product TEXT NOT NULL, environment TEXT NOT NULL, workload_type TEXT NOT NULL,"
	"                             UNIQUE (holder, cost_center, product, environment, workload_type)) STRICT;"
	"CREATE TABLE cost_label (hour INTEGER NOT NULL, pool INTEGER NOT NULL, labels INTEGER NOT NULL,"
	"                         gpu_ms INTEGER NOT NULL, micro_dollars INTEGER NOT NULL,"
	"                         PRIMARY KEY (hour, pool, labels)) STRICT, WITHOUT ROWID;"

	/* GPU quotas of namespaces as they were seen: hard and used of the last look, and their sums over time. */
	"CREATE TABLE quota_hour (hour INTEGER NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
	"                         resource TEXT NOT NULL, watched_ms INTEGER NOT NULL, hard INTEGER NOT NULL,"
	"                         used_most INTEGER NOT NULL, hard_gpu_ms INTEGER NOT NULL,"
	"                         used_gpu_ms INTEGER NOT NULL, PRIMARY KEY (hour, namespace, name, resource))"
	"                         STRICT, WITHOUT ROWID;"

	/* Pods that hold GPUs for nothing, for how long: kind is enum holding_kind. */
	"CREATE TABLE gpu_holding (uid TEXT NOT NULL, kind INTEGER NOT NULL, since INTEGER NOT NULL,"
	"                          until INTEGER NOT NULL, namespace TEXT NOT NULL, pod TEXT NOT NULL,"
	"                          node TEXT NOT NULL, gpus_milli INTEGER NOT NULL, used_most_milli INTEGER NOT NULL,"
	"                          PRIMARY KEY (uid, kind, since)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX gpu_holding_until ON gpu_holding (until);",

	/* What the provider calls the operation that goes on after its answer; '': none. */
	"ALTER TABLE launch ADD COLUMN operation TEXT NOT NULL DEFAULT '';",

	/*
	 * What pools were like, struct level_sums in its order. width: enum level_width; number: the row's beginning
	 * over its width.
	 */
	"CREATE TABLE level (pool INTEGER NOT NULL, width INTEGER NOT NULL, number INTEGER NOT NULL,"
	"                    ticks INTEGER NOT NULL, ms INTEGER NOT NULL, heard INTEGER NOT NULL,"
	"                    waited INTEGER NOT NULL, demand_milli INTEGER NOT NULL,"
	"                    running_milli INTEGER NOT NULL, waiting_milli INTEGER NOT NULL,"
	"                    wait_ms INTEGER NOT NULL, hot INTEGER NOT NULL, starting INTEGER NOT NULL,"
	"                    draining INTEGER NOT NULL, standby INTEGER NOT NULL, lent INTEGER NOT NULL,"
	"                    wished INTEGER NOT NULL, decided INTEGER NOT NULL, arrived INTEGER NOT NULL,"
	"                    started INTEGER NOT NULL, late INTEGER NOT NULL, asked INTEGER NOT NULL,"
	"                    released INTEGER NOT NULL, gpu_ms INTEGER NOT NULL, micro_dollars INTEGER NOT NULL,"
	"                    demand_milli_most INTEGER NOT NULL, waiting_milli_most INTEGER NOT NULL,"
	"                    wait_ms_most INTEGER NOT NULL, decided_most INTEGER NOT NULL,"
	"                    PRIMARY KEY (pool, width, number)) STRICT, WITHOUT ROWID;"

	/* How many starts took how long: position of pool_group, kind: enum start_kind, stage: enum stage or 5. */
	"CREATE TABLE lead_time (pool INTEGER NOT NULL, day INTEGER NOT NULL, position INTEGER NOT NULL,"
	"                        kind INTEGER NOT NULL, stage INTEGER NOT NULL, bucket INTEGER NOT NULL,"
	"                        samples INTEGER NOT NULL, ms INTEGER NOT NULL,"
	"                        PRIMARY KEY (pool, day, position, kind, stage, bucket)) STRICT, WITHOUT ROWID;",
};

/* "PrHt". Files of before costs were kept can be read, too: nothing that was there has changed since. */
const struct db_schema history_schema = { 0x50724874, migrations, sizeof migrations / sizeof *migrations, 2 };
