/*
 * A node group on provider eks, which launches by count, and an Auto Scaling
 * group whose describes are a minute old.
 */
#include "base/net/http.h"
#include "base/net/server.h"
#include "controller/loop/group_operations.h"
#include "state/history.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZES = 64 };

static struct {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct server_route route;
	struct provider *provider;
	struct clock clock;
	struct history *history;
	struct starts starts;
	struct group_context context;
	struct throttle throttle;
	provider_counts calls;
	struct node_group g;
	struct group_spec group;
	struct pool_spec pool;
	struct fleet_spec fleet;
	char settings[200], path[64];
	struct {
		millis at;
		int64_t size;
	} sizes[SIZES]; /* the last is the true one */
	size_t count;
	millis lag;
	int64_t launches; /* calls */
	int lost;	  /* answers of launches */
	int left;	  /* machines that can be had; -1: any */
} t;

static int64_t size_at(millis at)
{
	size_t i = t.count;

	while (--i > 0 && t.sizes[i].at > at)
		;
	return t.sizes[i].size;
}

static void show(struct buf *out)
{
	int64_t size = size_at(clock_mono(&t.clock) - t.lag);

	buf_printf(out,
		   "<AutoScalingGroups><member><AutoScalingGroupName>a</AutoScalingGroupName><MinSize>0</MinSize>"
		   "<MaxSize>50</MaxSize><DesiredCapacity>%" PRId64 "</DesiredCapacity><Instances>",
		   size);
	for (int64_t i = 0; i < size; i++)
		buf_printf(out,
			   "<member><InstanceId>i-%04d</InstanceId><LifecycleState>Pending</LifecycleState>"
			   "<ProtectedFromScaleIn>true</ProtectedFromScaleIn></member>",
			   (int)i);
	buf_text(out, "</Instances></member></AutoScalingGroups>");
}

/* The effect is there; who lost the answer asks again with the same token, which launches nothing more. */
static void launch(const char *body, struct server_answer *a)
{
	static char tokens[SIZES][100];
	const char *count = strstr(body, "RequestedCapacity="), *token = strstr(body, "ClientToken=");
	int asked, did;

	assert_non_null(count);
	assert_non_null(token);
	asked = did = atoi(count + strlen("RequestedCapacity="));
	if (t.left >= 0 && did > t.left)
		did = t.left;
	for (int64_t i = 0; i < t.launches; i++)
		assert_string_not_equal(tokens[i], token);
	snprintf(tokens[t.launches++], sizeof tokens[0], "%s", token);
	t.left -= t.left > 0 ? did : 0;
	t.sizes[t.count].at = clock_mono(&t.clock);
	t.sizes[t.count].size = t.sizes[t.count - 1].size + did;
	t.count++;
	if (t.lost && t.lost--) {
		a->status = 500;
		return;
	}
	buf_text(&a->body, "<Instances><member><InstanceIds>");
	for (int i = 0; i < did; i++)
		buf_printf(&a->body, "<member>i-%d-%d</member>", (int)t.launches, i);
	buf_text(&a->body, "</InstanceIds></member></Instances>");
	if (did < asked)
		buf_text(&a->body,
			 "<Errors><member><InstanceType>g5</InstanceType><AvailabilityZone>z</AvailabilityZone>"
			 "<ErrorCode>InsufficientInstanceCapacity</ErrorCode><ErrorMessage>none</ErrorMessage>"
			 "</member></Errors>");
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	int name = (int)strcspn(q->body, "&") - 7;

	buf_printf(&a->body, "<%.*sResponse><%.*sResult>", name, q->body + 7, name, q->body + 7);
	if (!strncmp(q->body, "Action=DescribeAutoScalingGroups&", 33))
		show(&a->body);
	else if (!strncmp(q->body, "Action=LaunchInstances&", 23))
		launch(q->body, a);
	else if (!strncmp(q->body, "Action=DescribeScalingActivities&", 33))
		buf_text(&a->body, "<Activities/>");
	buf_printf(&a->body, "</%.*sResult></%.*sResponse>", name, q->body + 7, name, q->body + 7);
}

static struct node_stages stages(void *user, const char *machine)
{
	(void)user;
	(void)machine;
	return (struct node_stages){ 0 };
}

static bool runs_work(void *user, size_t pool)
{
	(void)user;
	(void)pool;
	return false;
}

static bool may_act(void *user)
{
	(void)user;
	return true;
}

static void refused(void *user, const struct start *s, enum error_kind why)
{
	(void)user;
	(void)s;
	(void)why;
}

static void nothing(void *user)
{
	(void)user;
}

static int set_up(void **state)
{
	static const size_t indices[] = { 0 };
	struct error e = { 0 };

	(void)state;
	memset(&t, 0, sizeof t);
	t.loop = loop_open();
	t.http = http_open(t.loop, "test", &e);
	t.route = (struct server_route){ "POST", "/", answer, NULL };
	t.server = server_open(
		t.loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = &t.route, .route_count = 1 }, &e);
	assert_non_null(t.server);
	snprintf(t.settings, sizeof t.settings,
		 "{\"region\":\"eu-west-1\",\"autoScalingGroup\":\"a\",\"launch\":\"instances\","
		 "\"endpoint\":\"http://127.0.0.1:%d\"}",
		 server_port(t.server));
	t.group = (struct group_spec){ .name = "g5",
				       .provider = "eks",
				       .settings = t.settings,
				       .zone = "",
				       .instance_type = "",
				       .gpus_per_node = 1,
				       .max_nodes = 20 };
	t.pool = (struct pool_spec){ .name = "chat",
				     .namespace = "llm",
				     .gpus_per_replica = 1,
				     .groups = indices,
				     .group_count = 1,
				     .budget_name = "" };
	static const struct group_user user = { 0, 0 };
	static const struct group_users users = { &user, 1 };
	t.fleet = (struct fleet_spec){ &t.group, 1, &t.pool, 1, &users };
	t.clock = clock_open_by_hand(1000000);
	t.sizes[0].size = 0;
	t.count = 1;
	t.left = -1;
	t.provider = provider_find("eks")->open(&(struct provider_setup){ t.loop, t.http, NULL }, &e);
	snprintf(t.path, sizeof t.path, "/tmp/node_group_eks_test.%d.db", (int)getpid());
	t.history = history_resume(&(struct history_setup){ .path = t.path,
							    .manifest = "chat",
							    .fleet = &t.fleet,
							    .program = "test",
							    .policy = "preheat",
							    .run = "test",
							    .ticks_per_commit = 1,
							    .checkpoint_every = HOUR },
				   &e);
	assert_non_null(t.history);
	t.throttle = throttle_make(random_stream(1, "throttle"));
	t.context = (struct group_context){ .loop = t.loop,
					    .clock = &t.clock,
					    .history = t.history,
					    .fleet = &t.fleet,
					    .starts = &t.starts,
					    .term = 3,
					    .node_stages = stages,
					    .runs_work = runs_work,
					    .may_act = may_act,
					    .changed = nothing,
					    .refused = refused };
	const struct group_access access = {
		provider_find("eks"), t.provider, t.calls, &t.throttle, false, t.settings
	};
	node_group_open(&t.g, &t.context, 0, &access);
	t.g.opened_at = -HOUR; /* for two minutes sizes are set */
	return 0;
}

static int tear_down(void **state)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	char name[80];

	(void)state;
	node_group_stop(&t.g);
	node_group_close(&t.g);
	starts_release(&t.starts);
	provider_find("eks")->close(t.provider);
	history_close(t.history);
	server_close(t.server);
	http_close(t.http);
	loop_close(t.loop);
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", t.path, ends[i]);
		unlink(name);
	}
	return 0;
}

static void settle(void)
{
	while (!node_group_is_idle(&t.g))
		assert_true(loop_once(t.loop));
}

/* A look every 15 s; what is due is sent. */
static void live(millis duration)
{
	for (; duration > 0; duration -= 15 * SECOND) {
		clock_turn(&t.clock, 15 * SECOND);
		t.g.quiet_until = t.throttle.until = 0;
		node_group_look(&t.g);
		settle();
		node_group_drive(&t.g);
		settle();
	}
}

static void ask(int64_t machines)
{
	struct start like = { .kind = START_COLD, .asked_at = clock_now(&t.clock) };

	starts_ask(&t.starts, &like, node_group_grow(&t.g, machines));
	node_group_drive(&t.g);
	settle();
}

static int64_t size(void)
{
	return t.sizes[t.count - 1].size;
}

static void four_pods_buy_four_machines(void **state)
{
	(void)state;
	t.lag = MINUTE;
	live(15 * SECOND);
	ask(4);
	live(10 * MINUTE);
	assert_int_equal(size(), 4);
	assert_int_equal(t.launches, 1);
	assert_int_equal(t.g.resized, 0);
}

/* Two more while the first do not show yet: they are counted from what was accepted. */
static void more_of_them_later_are_counted_on_top(void **state)
{
	(void)state;
	t.lag = MINUTE;
	live(15 * SECOND);
	ask(4);
	live(30 * SECOND);
	ask(2);
	live(10 * MINUTE);
	assert_int_equal(size(), 6);
	assert_int_equal(t.launches, 2);
	assert_int_equal(t.g.resized, 0);
}

static void a_lost_answer_launches_nothing_again(void **state)
{
	(void)state;
	t.lag = MINUTE;
	t.lost = 1;
	live(15 * SECOND);
	ask(4);
	live(10 * MINUTE);
	assert_int_equal(size(), 4);
	assert_int_equal(t.launches, 1);
}

static void a_part_of_them_is_kept_and_told(void **state)
{
	(void)state;
	t.lag = MINUTE;
	t.left = 3;
	live(15 * SECOND);
	ask(4);
	live(10 * MINUTE);
	assert_int_equal(size(), 3);
	assert_int_equal(t.g.wanted, 3);
	assert_int_equal(t.starts.count, 3);
	assert_int_equal(t.g.resized, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(four_pods_buy_four_machines),
		CASE(more_of_them_later_are_counted_on_top),
		CASE(a_lost_answer_launches_nothing_again),
		CASE(a_part_of_them_is_kept_and_told),
	};

	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
	unsetenv("AWS_CA_BUNDLE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
