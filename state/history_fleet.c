/* Pools and manifests, and from which tick on each is in force. Pools and their groups keep their number for ever. */
#include "state/history_file.h"

#include <string.h>

/* --- reading them --- */

static bool count_rows(struct history *h, const char *sql, int64_t of, size_t *count, struct error *e)
{
	struct statement *s = db_prepare(h->db, sql);
	bool row;

	if (of >= 0)
		db_bind_int(s, of);
	if (!db_step(s, &row, e))
		return false;
	*count = (size_t)db_column_int(s, 0);
	db_reset(s);
	return true;
}

static const char *copy_text(struct history *h, const struct statement *s, int column)
{
	const char *text = db_column_text(s, column);

	return arena_strdup(&h->arena, text, strlen(text));
}

static bool load_groups(struct history *h, size_t pool, struct error *e)
{
	struct history_pool *p = &h->pools[pool];
	size_t count;
	bool row;

	if (!count_rows(h, "SELECT count(*) FROM pool_group WHERE pool = ?", (int64_t)pool, &count, e))
		return false;
	const char **groups = arena_array(&h->arena, const char *, count + 1);
	struct statement *s = db_prepare(h->db, "SELECT name FROM pool_group WHERE pool = ? ORDER BY position");

	db_bind_int(s, (int64_t)pool);
	for (size_t i = 0; i < count; i++) {
		if (!db_step(s, &row, e))
			return false;
		groups[i] = row ? copy_text(h, s, 0) : "";
	}
	db_reset(s);
	p->groups = groups;
	p->group_count = count;
	return true;
}

static bool load_names(struct history *h, struct history_pool *pools, size_t count, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT name, namespace, id FROM pool ORDER BY id");
	bool row;

	for (size_t i = 0; i < count; i++) {
		if (!db_step(s, &row, e))
			return false;
		if (!row || db_column_int(s, 2) != (int64_t)i)
			return error_set(e, ERROR_INVALID, "%s: damaged: pools are missing", db_path(h->db));
		pools[i].name = copy_text(h, s, 0);
		pools[i].namespace = copy_text(h, s, 1);
	}
	db_reset(s);
	return true;
}

bool history_load_pools(struct history *h, struct error *e)
{
	size_t count;

	if (!count_rows(h, "SELECT count(*) FROM pool", -1, &count, e))
		return false;
	struct history_pool *pools = arena_array(&h->arena, struct history_pool, count + 1);
	struct pool_position *positions = arena_array(&h->arena, struct pool_position, count + 1);
	if (!load_names(h, pools, count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		positions[i] = i < h->pool_count ? h->positions[i] : (struct pool_position){ .tick = -1 };
	h->pools = pools;
	h->positions = positions;
	h->pool_count = count;
	for (size_t i = 0; i < count; i++)
		if (!load_groups(h, i, e))
			return false;
	return true;
}

bool history_stretch_at(struct history *h, int64_t tick, struct arena *a, struct history_stretch *out, struct error *e)
{
	struct history_stretch found = { .until = INT64_MAX };
	struct statement *s = db_prepare(h->db, "SELECT max(tick), (SELECT min(tick) FROM manifest_use WHERE tick > ?1)"
						" FROM manifest_use WHERE tick <= ?1");
	bool row;

	db_bind_int(s, tick);
	if (!db_step(s, &row, e))
		return false;
	found.from = db_column_int(s, 0);
	if (!db_column_is_null(s, 1))
		found.until = db_column_int(s, 1) - 1;
	db_reset(s);
	if (!count_rows(h, "SELECT count(*) FROM pool_use WHERE tick = ?", found.from, &found.pool_count, e))
		return false;
	size_t *pools = arena_array(a, size_t, found.pool_count + 1);
	s = db_prepare(h->db, "SELECT pool FROM pool_use WHERE tick = ? ORDER BY place");
	db_bind_int(s, found.from);
	for (size_t i = 0; i < found.pool_count; i++) {
		if (!db_step(s, &row, e))
			return false;
		pools[i] = row ? (size_t)db_column_int(s, 0) : h->pool_count;
		if (pools[i] >= h->pool_count) {
			db_reset(s);
			return error_set(e, ERROR_INVALID, "%s: damaged: pools are missing", db_path(h->db));
		}
	}
	db_reset(s);
	found.pools = pools;
	*out = found;
	return true;
}

bool history_manifest(struct history *h, int64_t tick, struct arena *a, const char **text, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT text FROM manifest_use u JOIN manifest m ON m.id = u.manifest"
						" WHERE u.tick <= ? ORDER BY u.tick DESC LIMIT 1");
	bool row;

	db_bind_int(s, tick);
	if (!db_step(s, &row, e))
		return false;
	if (!row)
		return error_set(e, ERROR_INVALID, "%s: damaged: no manifest for tick %lld", db_path(h->db),
				 (long long)tick);
	const char *found = db_column_text(s, 0);
	*text = arena_strdup(a, found, strlen(found));
	db_reset(s);
	return true;
}

/* Where the groups of the pool's snapshot stand in pool_group at this tick; is_there is false for a pool that was not
 * in the manifest then. */
bool history_find_places(struct history *h, int64_t tick, size_t pool, struct group_places *out, struct error *e)
{
	struct history_span span;
	bool row = true;

	if (tick >= out->from && tick < out->end)
		return true;
	if (!history_span(h, &span, e))
		return false;
	*out = (struct group_places){ 0 };
	struct statement *s = db_prepare(
		h->db, "SELECT u.tick, g.position, (SELECT min(tick) FROM manifest_use WHERE tick > ?1) FROM pool_use u"
		       " LEFT JOIN group_use g ON g.tick = u.tick AND g.pool = u.pool WHERE u.pool = ?2 AND u.tick ="
		       " (SELECT max(tick) FROM manifest_use WHERE tick <= ?1) ORDER BY g.place");
	db_bind_int(s, tick);
	db_bind_int(s, (int64_t)pool);
	for (;;) {
		if (!db_step(s, &row, e))
			return false;
		if (!row)
			break;
		out->is_there = true;
		out->from = db_column_int(s, 0);
		/* The newest may end with any tick that is still to come. */
		out->end = db_column_is_null(s, 2) ? span.last_tick + 1 : db_column_int(s, 2);
		if (!db_column_is_null(s, 1) && out->count < PLACES_MAX)
			out->position[out->count++] = (uint32_t)db_column_int(s, 1);
	}
	db_reset(s);
	return true;
}

/* --- changing them --- */

static bool save_manifest(struct history *h, const char *text, struct error *e)
{
	struct statement *s = db_prepare(h->db, "INSERT INTO manifest (text) VALUES (?) ON CONFLICT DO NOTHING");

	db_bind_text(s, text);
	if (!db_run(s, e))
		return false;
	s = db_prepare(h->db, "INSERT INTO manifest_use (tick, manifest) SELECT ?, id FROM manifest WHERE text = ?");
	db_bind_int(s, h->next_tick);
	db_bind_text(s, text);
	return db_run(s, e);
}

/* The pool's number for ever; a new one when it has none. */
static bool number_pool(struct history *h, const struct pool_spec *p, size_t *pool, struct error *e)
{
	for (*pool = 0; *pool < h->pool_count; ++*pool)
		if (!strcmp(h->pools[*pool].name, p->name) && !strcmp(h->pools[*pool].namespace, p->namespace))
			return true;
	struct statement *s = db_prepare(h->db, "INSERT INTO pool (id, namespace, name) VALUES (?, ?, ?)");
	db_bind_int(s, (int64_t)*pool);
	db_bind_text(s, p->namespace);
	db_bind_text(s, p->name);
	return db_run(s, e) && history_load_pools(h, e);
}

static bool number_group(struct history *h, size_t pool, const char *name, size_t *position, struct error *e)
{
	const struct history_pool *p = &h->pools[pool];

	for (*position = 0; *position < p->group_count; ++*position)
		if (!strcmp(p->groups[*position], name))
			return true;
	struct statement *s = db_prepare(h->db, "INSERT INTO pool_group (pool, position, name) VALUES (?, ?, ?)");
	db_bind_int(s, (int64_t)pool);
	db_bind_int(s, (int64_t)*position);
	db_bind_text(s, name);
	return db_run(s, e) && load_groups(h, pool, e);
}

static bool use_group(struct history *h, size_t pool, size_t place, size_t position, struct error *e)
{
	struct statement *s =
		db_prepare(h->db, "INSERT INTO group_use (tick, pool, place, position) VALUES (?, ?, ?, ?)");

	db_bind_int(s, h->next_tick);
	db_bind_int(s, (int64_t)pool);
	db_bind_int(s, (int64_t)place);
	db_bind_int(s, (int64_t)position);
	return db_run(s, e);
}

static bool use_pool(struct history *h, const struct fleet_spec *fleet, size_t place, struct fleet_place *out,
		     struct error *e)
{
	const struct pool_spec *p = &fleet->pools[place];
	struct group_places groups = { .is_there = true };
	size_t pool = 0;

	if (p->group_count > PLACES_MAX)
		return error_set(e, ERROR_INTERNAL, "%s: pool %s has %zu node groups; allowed: %d", db_path(h->db),
				 p->name, p->group_count, PLACES_MAX);
	if (!number_pool(h, p, &pool, e))
		return false;
	struct statement *s = db_prepare(h->db, "INSERT INTO pool_use (tick, place, pool) VALUES (?, ?, ?)");
	db_bind_int(s, h->next_tick);
	db_bind_int(s, (int64_t)place);
	db_bind_int(s, (int64_t)pool);
	if (!db_run(s, e))
		return false;
	for (size_t i = 0; i < p->group_count; i++) {
		size_t position = 0;

		if (!number_group(h, pool, fleet->groups[p->groups[i]].name, &position, e) ||
		    !use_group(h, pool, i, position, e))
			return false;
		groups.position[groups.count++] = (uint32_t)position;
	}
	*out = (struct fleet_place){ pool, groups };
	return true;
}

static bool forget_use(struct history *h, struct error *e)
{
	static const char *const sql[] = { "DELETE FROM manifest_use WHERE tick = ?",
					   "DELETE FROM pool_use WHERE tick = ?",
					   "DELETE FROM group_use WHERE tick = ?",
					   "DELETE FROM checkpoint WHERE tick = ?" };

	for (size_t i = 0; i < sizeof sql / sizeof *sql; i++) {
		struct statement *s = db_prepare(h->db, sql[i]);

		db_bind_int(s, h->next_tick);
		if (!db_run(s, e))
			return false;
	}
	return true;
}

/* Within the open transaction. */
bool history_put_fleet(struct history *h, const char *manifest, const struct fleet_spec *fleet, struct error *e)
{
	struct fleet_place *places = arena_array(&h->arena, struct fleet_place, fleet->pool_count + 1);

	if (!forget_use(h, e) || !save_manifest(h, manifest, e))
		return false;
	for (size_t i = 0; i < fleet->pool_count; i++)
		if (!use_pool(h, fleet, i, &places[i], e))
			return false;
	h->places = places;
	h->place_count = fleet->pool_count;
	h->is_keyframe_due = true;
	h->is_checkpoint_due |= h->next_tick > 0; /* the first tick begins with a new memory */
	return true;
}

bool history_use_manifest(struct history *h, const char *manifest, const struct fleet_spec *fleet, struct error *e)
{
	if (!history_begin(h, e))
		return false;
	if (history_put_fleet(h, manifest, fleet, e) && history_commit(h, e))
		return true;
	struct error second;
	history_undo(h);
	/* Without the pools that were to be new. */
	if (!history_load_pools(h, &second) || !history_take_fleet(h, &second))
		h->place_count = 0;
	return false;
}

/* What is in force, for writing on. */
bool history_take_fleet(struct history *h, struct error *e)
{
	struct history_stretch in_force;

	if (!history_stretch_at(h, h->next_tick, &h->arena, &in_force, e))
		return false;
	h->places = arena_array(&h->arena, struct fleet_place, in_force.pool_count + 1);
	for (size_t i = 0; i < in_force.pool_count; i++) {
		struct fleet_place *p = &h->places[i];

		*p = (struct fleet_place){ .pool = in_force.pools[i] };
		if (!history_find_places(h, h->next_tick, p->pool, &p->groups, e))
			return false;
	}
	h->place_count = in_force.pool_count;
	return true;
}
