/* What is found by reading only where requests were late is what all ticks come to. */
#include "controller/restore/incident_search.h"
#include "tests/unit/restore/recorded_run.h"

static char folder[] = "/tmp/preheat-incidents-XXXXXX";

enum { POOLS_MOST = 8, FOUND_MOST = 4000 };

struct whole {
	struct incident_fold folds[POOLS_MOST];
	struct incident_found found[FOUND_MOST];
	size_t count;
};

static void read_all(struct lived *l, const struct incident_question *q, struct whole *w)
{
	struct tick_cursor *c = tick_cursor_open(l->history, q->first, &l->error);
	struct incident ended;
	struct cursor_tick t;

	*w = (struct whole){ 0 };
	for (int64_t tick = q->first; tick <= q->last; tick++) {
		assert_true(tick_cursor_next(c, &t, &l->error));
		for (size_t i = 0; i < t.snapshot.fleet->pool_count; i++)
			if ((q->pool == ANY || (size_t)q->pool == t.pools[i]) &&
			    incident_add_tick(&w->folds[t.pools[i]], &t.snapshot, i, t.plans[i], &ended))
				w->found[w->count++] = (struct incident_found){ t.pools[i], ended };
	}
	for (size_t i = 0; i < POOLS_MOST; i++)
		if (incident_end(&w->folds[i], &ended))
			w->found[w->count++] = (struct incident_found){ i, ended };
	tick_cursor_close(c);
}

static bool is_among(const struct incident_found *f, const struct whole *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->found[i].pool == f->pool && !memcmp(&w->found[i].what, &f->what, sizeof f->what))
			return true;
	return false;
}

static size_t assert_same(struct lived *l, const struct incident_question *q, uint64_t seed)
{
	static struct whole w;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct incident_found *found;
	size_t count;

	read_all(l, q, &w);
	if (!incident_search(l->history, q, &a, &found, &count, &l->error))
		fail_msg("seed %llu: %s", (unsigned long long)seed, l->error.message);
	assert_int_equal(count, w.count);
	for (size_t i = 0; i < count; i++) {
		if (!is_among(&found[i], &w))
			fail_msg("seed %llu: incident %zu of pool %zu differs", (unsigned long long)seed, i,
				 found[i].pool);
		assert_true(!i || found[i - 1].what.from <= found[i].what.from);
	}
	return count;
}

/* A tick in which some requests are late, in a tenth of the ticks; most are no incident. */
static void late_tick(struct lived *l)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct fleet_spec *fleet = &l->manifest->fleet;
	struct pool_snapshot *pools = arena_array(&a, struct pool_snapshot, fleet->pool_count);

	l->now += LIVED_TICK;
	for (size_t i = 0; i < fleet->pool_count; i++)
		draw_pool(l, &fleet->pools[i], &pools[i], &a);
	struct snapshot s = { history_next_tick(l->history), l->now, LIVED_TICK, fleet, pools };
	struct plan plan = policy_decide(&s, l->memory, &a);
	for (size_t i = 0; i < fleet->pool_count; i++) {
		plan.pools[i].decision.started = 100;
		plan.pools[i].decision.late = draw(l, 10) ? 0 : draw(l, 3);
	}
	assert_true(history_append(l->history, &s, &plan, &l->error));
	lived_keep(l);
}

static void what_is_found_is_what_happened(void **state)
{
	(void)state;
	size_t all = 0;

	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct lived l;

		lived_begin(&l, folder, seed);
		for (int tick = 0; tick < 400; tick++) {
			if (!draw(&l, 100))
				lived_change(&l);
			if (!draw(&l, 8)) /* nobody wrote for a while */
				l.now += draw(&l, 20) * MINUTE;
			late_tick(&l);
		}
		all += assert_same(&l, &(struct incident_question){ .pool = ANY, .last = 399 }, seed);
		for (int i = 0; i < 10; i++) {
			struct incident_question q = { .pool = draw(&l, 2) - 1, .first = draw(&l, 200) };

			q.last = q.first + draw(&l, 200);
			all += assert_same(&l, &q, seed);
		}
		lived_end(&l);
	}
	if (all < 20)
		fail_msg("%zu incidents are too few", all);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char file[64];

	(void)state;
	snprintf(file, sizeof file, "%s/history.db", folder);
	remove_history(file);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_found_is_what_happened) };

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
