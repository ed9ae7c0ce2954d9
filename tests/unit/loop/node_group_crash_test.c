/*
 * A node group whose process dies at every point where something of it can
 * be seen from outside: after each write of an intent, and with each request
 * done by the cloud and not answered. The history is opened again from its
 * file, and it goes on. In the end the cloud has exactly what is wanted,
 * nothing was bought twice, and no intent is open. Every single point, and
 * every pair of points.
 */
#include "tests/unit/loop/cloud_world.h"

enum { ROUNDS = 60, AIMS = 4, POINTS_MOST = 400 };

struct script {
	const char *name;
	int64_t begin, aims[AIMS]; /* machines, one aim after the other */
	int64_t standby;	   /* from the second aim on */
	bool is_late, has_tokens, has_operations, loses_answers;
};

static const struct script scripts[] = {
	{ "grows", 0, { 2, 5, 5, 9 }, 0, false, true, false, false },
	{ "grows where machines are listed late", 0, { 3, 6, 6, 10 }, 0, true, false, false, false },
	{ "grows and shrinks", 4, { 7, 3, 6, 2 }, 0, true, false, false, false },
	{ "grows by operations that go on", 1, { 4, 2, 6, 6 }, 0, true, false, true, false },
	{ "every first answer is lost", 1, { 4, 2, 6, 3 }, 0, true, false, false, true },
	{ "every first answer is lost of what goes on", 1, { 4, 2, 6, 3 }, 0, false, true, true, true },
	{ "stands by", 2, { 2, 4, 3, 5 }, 2, false, false, false, false },
	{ "stands by where answers are lost", 2, { 2, 4, 3, 5 }, 2, true, true, true, true },
};

static const struct script *script;
static int64_t bought, asked_changes;

static int64_t machines_bought(void)
{
	return w.cloud.serial - script->begin;
}

/* Of the steps of the script: machines more than were there. A standby machine that serves is one less to buy. */
static int64_t machines_needed(void)
{
	int64_t needed = 0, have = script->begin;

	for (int i = 0; i < AIMS; i++) {
		needed += script->aims[i] > have ? script->aims[i] - have : 0;
		have = script->aims[i];
	}
	return needed;
}

static void make_cloud(void)
{
	make_world(7);
	w.group.gpus_per_node = 1;
	w.pools[0].gpus_per_replica = 1;
	w.fleet.pool_count = 1;
	w.cloud = (struct random_cloud){ .max = MAX_NODES,
					 .standby_max = MAX_STANDBY,
					 .abilities = CLOUD_ABILITIES,
					 .is_late = script->is_late,
					 .has_tokens = script->has_tokens,
					 .has_operations = script->has_operations,
					 .serial = script->begin,
					 .desired = script->begin,
					 .count = (size_t)script->begin };
	for (int64_t i = 0; i < script->begin; i++) {
		struct random_machine *m = &w.cloud.machines[i];
		snprintf(m->id, sizeof m->id, "m%d", (int)i + 1);
		m->state = MACHINE_RUNNING;
		m->is_listed = m->has_node = true;
	}
}

static void begin_life(void)
{
	open_group();
	adopt_intents();
}

static void die(int64_t again_after)
{
	close_group();
	history_close(w.history);
	open_history();
	assert_non_null(w.history);
	w.is_dead = false;
	w.writes_left = again_after;
	begin_life();
}

static void shrink(int64_t machines)
{
	for (size_t i = w.g.seen.machine_count; i-- > 0 && machines > 0;) {
		const struct machine *m = &w.g.seen.machines[i];
		if (m->state == MACHINE_RUNNING && !m->is_standby && !node_group_is_removing(&w.g, m->id))
			machines -= node_group_remove(&w.g, m->id, PROVIDER_REMOVE);
	}
}

static void aim(int64_t machines, int64_t standby)
{
	struct start like = { .kind = START_COLD, .asked_at = clock_now(&w.clock), .ends_at_device = true };
	int64_t missing = machines - node_group_size(&w.g);

	if (missing > 0)
		starts_ask(&w.starts, &like, node_group_grow(&w.g, missing));
	else
		shrink(-missing);
	if (w.g.standby_wanted != standby && node_group_count(&w.g, MACHINE_STOPPING) == 0)
		node_group_set_standby(&w.g, standby);
}

/* The cloud does it; then the process may die before it hears of that. */
static void answer(void)
{
	struct provider_call *c = w.change;
	bool is_lost = script->loses_answers && asked_changes++ % 2 == 0;

	if (w.is_dead)
		return;
	if (random_cloud_refuses(&w.cloud, c)) {
		w.change = NULL;
		c->error = (struct error){ .kind = ERROR_CONFLICT };
		c->done(c);
		return;
	}
	random_cloud_change(&w.cloud, c);
	const char *operation = random_cloud_operation(&w.cloud, &w.chance);
	wrote();
	if (w.is_dead)
		return;
	w.change = NULL;
	c->error = (struct error){ .kind = is_lost ? ERROR_TIMEOUT : ERROR_NONE };
	c->operation = is_lost ? NULL : operation;
	c->done(c);
}

static void play_round(int i)
{
	w.g.quiet_until = w.throttle.until = 0;
	node_group_look(&w.g);
	if (w.look)
		answer_look(false);
	if (w.g.is_known && !w.is_dead) {
		aim(script->aims[i / (ROUNDS / AIMS)], i < ROUNDS / AIMS ? 0 : script->standby);
		node_group_drive(&w.g);
	}
	if (w.change)
		answer();
	random_cloud_move(&w.cloud, &w.chance);
	for (size_t k = 0; k < w.cloud.count; k++) {
		struct node_stages up = { 1, 2, 3 };
		if (w.cloud.machines[k].has_node)
			starts_follow_node(&w.starts, w.cloud.machines[k].id, &up);
	}
	clock_turn(&w.clock, 20 * SECOND);
	assert_true(w.cloud.desired <= MAX_NODES && w.cloud.standby <= MAX_STANDBY);
}

static void check_end(void)
{
	struct arena a = { 0 };
	struct launch *open;
	size_t count = 0;
	struct error e;

	assert_int_equal(w.cloud.desired, script->aims[AIMS - 1]);
	assert_int_equal(node_group_count(&w.g, MACHINE_RUNNING), w.cloud.desired);
	assert_int_equal(w.g.wanted, w.cloud.desired);
	assert_int_equal(w.cloud.standby, script->standby);
	assert_int_equal(w.starts.count, 0);
	assert_int_equal(w.g.removal_count, 0);
	assert_true(launch_open_ones(w.history, &a, &open, &count, &e));
	arena_release(&a);
	assert_int_equal(count, 0);
	if (!script->standby && machines_bought() != machines_needed())
		fail_msg("%d machines were bought, %d needed", (int)machines_bought(), (int)machines_needed());
	if (machines_bought() > bought)
		fail_msg("%d machines were bought, %d without dying", (int)machines_bought(), (int)bought);
}

/* Dies at the first and, counted from there, at the second point; 0: never. False when it came to no point any more. */
static bool play(int64_t first, int64_t second)
{
	bool has_died = false;

	make_cloud();
	asked_changes = 0;
	w.writes_left = first;
	begin_life();
	for (int i = 0; i < ROUNDS + ROUNDS / 2; i++) {
		play_round(i < ROUNDS ? i : ROUNDS - 1);
		while (w.is_dead) {
			die(has_died ? 0 : second);
			has_died = true;
		}
	}
	bool is_reached = !w.writes_left;
	w.writes_left = 0;
	if (first)
		check_end();
	bought = first ? bought : machines_bought();
	close_group();
	arena_release(&w.shown_arena);
	return is_reached;
}

static int64_t failing[2];

static void every_point(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		script = &scripts[i];
		play(0, 0);
		int64_t first = 1;
		for (failing[0] = first; first < POINTS_MOST && play(first, 0); failing[0] = ++first)
			;
		print_message("%s: %d points\n", script->name, (int)first - 1);
		assert_true(first > 4 && first < POINTS_MOST);
	}
	failing[0] = 0;
}

static void every_pair_of_points(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		script = &scripts[i];
		play(0, 0);
		for (int64_t first = 1; play(first, 0); first++)
			for (int64_t second = 1; second < POINTS_MOST; second++) {
				failing[0] = first;
				failing[1] = second;
				if (!play(first, second))
					break;
			}
	}
	failing[0] = failing[1] = 0;
}

static int tell(void **state)
{
	(void)state;
	if (failing[0])
		print_message("%s: died at %d, and then at %d\n", script->name, (int)failing[0], (int)failing[1]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_point, tell),
		cmocka_unit_test_teardown(every_pair_of_points, tell),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
