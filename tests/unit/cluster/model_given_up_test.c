/* Pods that stay although there is a place for them: when they are tried again, how many at a time, and what a later
 * life knows of it. */
#include "tests/unit/cluster/model_objects.h"

#define POD(name, more, status)                                                                                 \
	"{'metadata':{'namespace':'a','name':'" name "','uid':'" name "'},'spec':{'containers':[{'resources':{" \
	"'limits':{'nvidia.com/gpu':'1'}}}]" more "},'status':{'phase':'Pending'" status "}}"
#define WAITS(name)                                                                                     \
	POD(name, "",                                                                                   \
	    ",'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message'" \
	    ":'0/4 nodes are available'}]")
#define NODE(name)                                                                                             \
	"{'metadata':{'name':'" name "','uid':'" name "','labels':{'simulated.preheat.dev/node-group':'g5'}}," \
	"'status':{'allocatable':{'nvidia.com/gpu':'1'},'conditions':[{'type':'Ready','status':'True'}]}}"

static const millis BEGINS = 1000000;

/* Four wait, and four nodes are there that they fit. */
static struct cluster *four_in_vain(void)
{
	struct cluster *c = cluster_new();
	struct cluster_group group = group_named("g5", 1, 10);
	cluster_set_fleet(c, NULL, 0, &group, 1);
	see_now(c, CLUSTER_NODES, NODE("n1"));
	see_now(c, CLUSTER_NODES, NODE("n2"));
	see_now(c, CLUSTER_NODES, NODE("n3"));
	see_now(c, CLUSTER_NODES, NODE("n4"));
	see_now(c, CLUSTER_PODS, WAITS("p1"));
	see_now(c, CLUSTER_PODS, WAITS("p2"));
	see_now(c, CLUSTER_PODS, WAITS("p3"));
	see_now(c, CLUSTER_PODS, WAITS("p4"));
	return c;
}

static void follow_at(struct cluster *c, millis minutes)
{
	cluster_follow_waiting(c, BEGINS + minutes * MINUTE);
}

static void see_at(struct cluster *c, const char *pod, millis minutes)
{
	see(c, CLUSTER_PODS, pod, (struct moment){ BEGINS + minutes * MINUTE, false });
}

/* Those that count as demand: a machine is there for each, or would be bought. */
static int64_t in_demand(const struct cluster *c)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t count = 0;
	int64_t all = 0;
	const struct pending_shape *shapes = cluster_pending(c, &a, &count);
	for (size_t i = 0; i < count; i++)
		all += shapes[i].group_count > 0 ? shapes[i].count : 0;
	return all;
}

static void expect_demand(struct cluster *c, millis minutes, int64_t expected)
{
	follow_at(c, minutes);
	if (in_demand(c) != expected)
		fail_msg("after %lld minutes: %lld", (long long)minutes, (long long)in_demand(c));
}

static void one_at_a_time_is_tried_again(void **state)
{
	(void)state;
	struct cluster *c = four_in_vain();
	expect_demand(c, 0, 4);
	expect_demand(c, 9, 4);
	expect_demand(c, 10, 0);
	expect_demand(c, 69, 0);
	expect_demand(c, 70, 1); /* the first */
	expect_demand(c, 71, 1);
	expect_demand(c, 81, 0);
	expect_demand(c, 82, 1); /* the second; the first is given up for two hours */
	expect_demand(c, 83, 1);
	expect_demand(c, 93, 0);
	cluster_free(c);
}

static void once_it_got_its_node_all_are(void **state)
{
	(void)state;
	struct cluster *c = four_in_vain();
	expect_demand(c, 0, 4);
	expect_demand(c, 10, 0);
	expect_demand(c, 70, 1);
	see_at(c, POD("p1", ",'nodeName':'n1'", ""), 71);
	assert_int_equal(in_demand(c), 3);
	expect_demand(c, 72, 3);
	expect_demand(c, 82, 0);
	expect_demand(c, 82 + 119, 0); /* for twice as long */
	expect_demand(c, 82 + 120, 1);
	cluster_free(c);
}

/* Room fell free for it: that a machine would help the others nobody has seen. */
static void one_that_was_not_tried_helps_nobody(void **state)
{
	(void)state;
	struct cluster *c = four_in_vain();
	expect_demand(c, 0, 4);
	see_at(c, WAITS("other"), 5);
	see_at(c, POD("other", ",'nodeName':'elsewhere'", ""), 5); /* its scheduler is there */
	expect_demand(c, 10, 0);
	see_at(c, POD("p4", ",'nodeName':'n1'", ""), 20);
	expect_demand(c, 20, 0);
	expect_demand(c, 69, 0);
	expect_demand(c, 70, 1);
	cluster_free(c);
}

/* Its group gives no machine: the others have their turn, the one that waits longest for it first. */
static void nobody_keeps_the_turn_who_gets_nothing(void **state)
{
	(void)state;
	struct cluster *c = four_in_vain();
	expect_demand(c, 0, 4);
	expect_demand(c, 10, 0);
	for (int i = 1; i <= 4; i++)
		cluster_node_gone(c, object_uid_of((const char *[]){ "n1", "n2", "n3", "n4" }[i - 1]), 11);
	for (int turn = 0; turn < 8; turn++) {
		millis begins = 70 + turn * 61;
		expect_demand(c, begins, 1);
		expect_demand(c, begins + 59, 1);
		for (int i = 0; i < 4; i++)
			if ((cluster_pod(c, (const char *[]){ "p1", "p2", "p3", "p4" }[i])->given_up_until == 0) !=
			    (turn % 4 == i))
				fail_msg("turn %d: p%d", turn, i + 1);
		expect_demand(c, begins + 60, 0);
	}
	cluster_free(c);
}

static char *told_by(const struct cluster *c, struct arena *a)
{
	const char *text = cluster_given_up(c, a);
	return arena_strdup(a, text, strlen(text));
}

static void a_later_life_knows(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = four_in_vain();
	follow_at(c, 0);
	assert_string_equal(cluster_given_up(c, &a), "");
	follow_at(c, 10);
	char *text = told_by(c, &a);
	cluster_free(c);
	c = four_in_vain();
	cluster_recall_given_up(c, text, BEGINS + 12 * MINUTE);
	assert_int_equal(in_demand(c), 0);
	expect_demand(c, 69, 0);
	expect_demand(c, 70, 1);
	/* In the midst of its trial as well. */
	text = told_by(c, &a);
	cluster_free(c);
	c = four_in_vain();
	cluster_recall_given_up(c, text, BEGINS + 72 * MINUTE);
	expect_demand(c, 72, 1);
	expect_demand(c, 82, 0);
	cluster_free(c);
}

/* In one process: what it followed in an earlier reign is nobody's any more. */
static void who_led_before_knows_only_what_the_last_leader_told(void **state)
{
	(void)state;
	char nothing[] = "";
	struct cluster *c = four_in_vain();
	expect_demand(c, 0, 4);
	expect_demand(c, 10, 0);
	cluster_recall_given_up(c, nothing, BEGINS + 30 * MINUTE);
	expect_demand(c, 30, 4);
	expect_demand(c, 39, 4);
	expect_demand(c, 40, 0);
	cluster_free(c);
}

static void who_was_helped_while_nobody_led_helps(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = four_in_vain();
	expect_demand(c, 0, 4);
	expect_demand(c, 10, 0);
	expect_demand(c, 70, 1);
	char *text = told_by(c, &a);
	cluster_free(c);
	c = four_in_vain();
	see_at(c, POD("p1", ",'nodeName':'n1'", ""), 71);
	cluster_recall_given_up(c, text, BEGINS + 72 * MINUTE);
	assert_int_equal(in_demand(c), 3);
	cluster_free(c);
}

/* Written by a clock that was a year ahead. */
static void it_waits_no_longer_than_it_would(void **state)
{
	(void)state;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = four_in_vain();
	const millis ahead = (millis)365 * 24 * 60;
	follow_at(c, ahead);
	follow_at(c, ahead + 10);
	char *text = told_by(c, &a);
	cluster_free(c);
	c = four_in_vain();
	cluster_recall_given_up(c, text, BEGINS);
	expect_demand(c, 59, 0);
	expect_demand(c, 60, 1);
	cluster_free(c);
}

static const char *const unreadable[] = {
	"",
	" ",
	" 1",
	" x 0 0 1 0",
	" 9999999999 0 0 9 0",
	" 9999999999 0 0 1 2",
	" -1 0 0 1 0",
	" 9999999999 0 0 1",
	" 99999999999999999999 0 0 1 0",
	"0 9999999999 0 0 1 0",
	"\n9999999999 0 0 1 0",
};

static void what_cannot_be_read_is_left_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
		struct cluster *c = four_in_vain();
		char uid[37], line[120];
		pod_uid_text(cluster_pod(c, "p1"), uid);
		snprintf(line, sizeof line, "%s%s", uid, unreadable[i]);
		cluster_recall_given_up(c, line, BEGINS);
		if (in_demand(c) != 4)
			fail_msg("'%s': %lld", unreadable[i], (long long)in_demand(c));
		cluster_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time_is_tried_again),
		cmocka_unit_test(once_it_got_its_node_all_are),
		cmocka_unit_test(one_that_was_not_tried_helps_nobody),
		cmocka_unit_test(nobody_keeps_the_turn_who_gets_nothing),
		cmocka_unit_test(a_later_life_knows),
		cmocka_unit_test(who_led_before_knows_only_what_the_last_leader_told),
		cmocka_unit_test(who_was_helped_while_nobody_led_helps),
		cmocka_unit_test(it_waits_no_longer_than_it_would),
		cmocka_unit_test(what_cannot_be_read_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
