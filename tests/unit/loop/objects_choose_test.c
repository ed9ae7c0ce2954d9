/* WarmPools that come, change, go and contradict each other: who is in force, and what the others are told. */
#include "controller/loop/objects.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 6 };

struct world {
	struct pool_object items[OBJECTS];
	size_t count;
	bool is_part;
	struct arena arena;
	struct manifest chosen;
};

static char *copy(const char *text)
{
	char *out = strdup(text);

	assert_non_null(out);
	return out;
}

static void set_spec(struct pool_object *o, const char *spec)
{
	pool_object_say(o, spec, strlen(spec));
	o->generation++;
}

/* Names are given in order. */
static struct pool_object *add(struct world *w, const char *name, millis created, const char *spec)
{
	struct pool_object *o = &w->items[w->count++];

	*o = (struct pool_object){ .namespace = copy("llm"), .name = copy(name), .created = created };
	set_spec(o, spec);
	return o;
}

static void take_away(struct world *w, size_t i)
{
	pool_object_release(&w->items[i]);
	memmove(&w->items[i], &w->items[i + 1], (--w->count - i) * sizeof w->items[0]);
}

static void choose(struct world *w)
{
	arena_release(&w->arena);
	assert_true(objects_choose(w->items, w->count, NULL, (struct choice_terms){ w->is_part, false }, &w->arena,
				   &w->chosen));
}

static void close_world(struct world *w)
{
	while (w->count)
		take_away(w, w->count - 1);
	arena_release(&w->arena);
}

/* The names in force, "chat embed". */
static const char *in_force(const struct world *w)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < w->chosen.fleet.pool_count; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, i ? " %s" : "%s", w->chosen.fleet.pools[i].name);
	return text;
}

#define HEAD                                                            \
	"{\"objective\":{\"queueWait\":\"2s\",\"attainment\":\"99%\"}," \
	"\"workload\":{\"selector\":{\"matchLabels\":{\"app\":\"x\"}}},"
#define CLOUD		"\"simulated\":{\"endpoint\":\"http://127.0.0.1:1\"}"
#define ON(group, more) HEAD "\"nodeGroups\":[{\"name\":\"" group "\"," CLOUD more "}]}"

static void expect_told(const struct pool_object *o, const char *part)
{
	if (!o->refusal || !strstr(o->refusal, part))
		fail_msg("%s: found '%s', expected '%s' in it", o->name, o->refusal ? o->refusal : "(not refused)",
			 part);
}

static void all_that_agree_are_in_force(void **state)
{
	struct world w = { 0 };

	(void)state;
	choose(&w);
	assert_string_equal(in_force(&w), "");
	add(&w, "chat", 2, ON("a", ""));
	add(&w, "embed", 1, ON("b", ""));
	choose(&w);
	assert_string_equal(in_force(&w), "chat embed");
	assert_null(w.items[0].refusal);
	take_away(&w, 0);
	choose(&w);
	assert_string_equal(in_force(&w), "embed");
	close_world(&w);
}

static void one_that_makes_no_sense_is_told_and_holds_up_nobody(void **state)
{
	static const struct {
		const char *spec, *told;
	} cases[] = {
		{ "{}", "WarmPool llm/broken: spec.nodeGroups: found nothing" },
		{ "null", "WarmPool llm/broken: spec" },
		{ ON("b", ",\"min\":11"), "spec.nodeGroups[0].min: found '11'; allowed: at most max, which is 10" },
		{ ON("a", ",\"max\":7"), "WarmPool llm/chat" },
		{ HEAD "\"nodeGroups\":[{\"name\":\"b\"}]}", "spec.nodeGroups[0].simulated: found nothing" },
		{ "{\"objective\":{\"queueWait\":\"2s\",\"attainment\":\"99%\"},\"nodeGroups\":[{\"name\":\"b\"," CLOUD
		  "}]}",
		  "selector" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world w = { 0 };
		add(&w, "broken", 1, cases[i].spec);
		add(&w, "chat", 2, ON("a", ",\"max\":3"));
		/* The older one is in the right otherwise. */
		w.items[0].created = 3;
		choose(&w);
		assert_string_equal(in_force(&w), "chat");
		expect_told(&w.items[0], cases[i].told);
		set_spec(&w.items[0], ON("b", ""));
		choose(&w);
		assert_string_equal(in_force(&w), "broken chat");
		assert_null(w.items[0].refusal);
		close_world(&w);
	}
}

static void a_part_of_the_pools_has_none_that_takes_any(void **state)
{
	struct world w = { .is_part = true };

	(void)state;
	add(&w, "chat", 1, ON("a", ""));
	add(&w, "spare", 2, "{\"class\":\"any\",\"nodeGroups\":[{\"name\":\"b\"," CLOUD "}]}");
	choose(&w);
	assert_string_equal(in_force(&w), "chat");
	expect_told(&w.items[1], "found 'any', under --pool-selector");
	w.is_part = false;
	choose(&w);
	assert_string_equal(in_force(&w), "chat spare");
	close_world(&w);
}

static void what_was_said_before_stays_in_force(void **state)
{
	struct world w = { 0 };

	(void)state;
	add(&w, "chat", 1, ON("a", ",\"max\":3"));
	add(&w, "embed", 2, ON("b", ""));
	choose(&w);
	set_spec(&w.items[0], ON("a", ",\"min\":4,\"max\":3"));
	choose(&w);
	assert_string_equal(in_force(&w), "chat embed");
	assert_true(w.items[0].is_former);
	expect_told(&w.items[0], "spec.nodeGroups[0].min: found '4'; allowed: at most max, which is 3");
	assert_int_equal(w.chosen.fleet.groups[0].max_nodes, 3);
	set_spec(&w.items[0], ON("a", ",\"min\":4,\"max\":5"));
	choose(&w);
	assert_false(w.items[0].is_former);
	assert_null(w.items[0].refusal);
	assert_int_equal(w.chosen.fleet.groups[0].max_nodes, 5);
	close_world(&w);
}

/* Pools are told apart by name alone, so two of one name contradict each other. */
static void nobody_is_pushed_out_by_a_newcomer(void **state)
{
	struct world w = { 0 };

	(void)state;
	add(&w, "chat", 5, ON("a", ""));
	choose(&w);
	memmove(&w.items[1], &w.items[0], sizeof w.items[0]);
	w.count = 0;
	free(add(&w, "chat", 9, ON("b", ""))->namespace);
	w.items[0].namespace = copy("aaa");
	w.count = 2;
	choose(&w);
	assert_null(w.items[1].refusal);
	expect_told(&w.items[0],
		    "metadata.name: found 'chat'; allowed: a name of its own; another pool has this one at "
		    "WarmPool llm/chat:1:");
	take_away(&w, 1);
	choose(&w);
	assert_null(w.items[0].refusal);
	close_world(&w);
}

static void of_those_that_come_together_the_oldest_stays(void **state)
{
	struct world w = { 0 };

	(void)state;
	add(&w, "a", 7, ON("g", ",\"max\":3"));
	add(&w, "b", 6, ON("g", ",\"max\":4"));
	add(&w, "c", 8, ON("h", ""));
	choose(&w);
	assert_string_equal(in_force(&w), "b c");
	expect_told(&w.items[0], "max");
	close_world(&w);
}

static void a_group_may_be_told_by_another_pool(void **state)
{
	struct world w = { 0 };

	(void)state;
	add(&w, "a", 1, HEAD "\"nodeGroups\":[{\"name\":\"g\"}]}");
	add(&w, "b", 2, "{}");
	add(&w, "c", 3, ON("g", ",\"max\":4"));
	choose(&w);
	expect_told(&w.items[1], "nodeGroups");
	assert_null(w.items[2].refusal);
	close_world(&w);
}

/* Whatever comes: what is in force is a manifest, who fits is in force, and who is refused is told why. */
static void any_world(void **state)
{
	static const char *const specs[] = { ON("a", ",\"max\":3"), ON("a", ",\"max\":4"),	    ON("b", ""), "{}",
					     ON("a", ""),	    ON("c", ",\"min\":3,\"max\":2") };

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct random r = random_stream(seed, "objects");
		struct world w = { 0 };
		char name[2] = "a";
		for (; w.count < OBJECTS; name[0]++)
			add(&w, name, (millis)(random_next(&r) % 4), specs[random_next(&r) % 6]);
		for (int step = 0; step < 6; step++) {
			choose(&w);
			size_t used = 0;
			for (size_t i = 0; i < w.count; i++) {
				used += !w.items[i].refusal || w.items[i].is_former;
				assert_true(w.items[i].refusal || w.items[i].former == w.items[i].read);
			}
			if (used != w.chosen.fleet.pool_count)
				fail_msg("seed %llu, step %d: %zu used, %zu in force", (unsigned long long)seed, step,
					 used, w.chosen.fleet.pool_count);
			set_spec(&w.items[random_next(&r) % OBJECTS], specs[random_next(&r) % 6]);
		}
		close_world(&w);
	}
}

/* --- what is remembered of objects changes nothing --- */

#define TARGET(name)                                                                                         \
	"\"mode\":\"act\",\"workload\":{\"selector\":{\"matchLabels\":{\"app\":\"x\"}},\"scaleTargetRef\":{" \
	"\"apiVersion\":"                                                                                    \
	"\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"" name "\"}},"
#define MORE(more, group)                                                                                         \
	"{" more "\"objective\":{\"queueWait\":\"2s\",\"attainment\":\"99%\"},\"nodeGroups\":[{\"name\":\"" group \
	"\"," CLOUD ",\"pricePerHour\":2,\"min\":1}]}"
#define PLAIN "\"workload\":{\"selector\":{\"matchLabels\":{\"app\":\"x\"}}},"

/* Alone, of two, and wrong: groups, workloads, budgets, Services, shares, the default pool. */
static const char *const said[] = {
	ON("a", ",\"max\":3"),
	ON("a", ",\"max\":4"),
	ON("a", ""),
	ON("b", ",\"min\":2"),
	HEAD "\"nodeGroups\":[{\"name\":\"a\"}]}",
	HEAD "\"nodeGroups\":[{\"name\":\"b\"},{\"name\":\"c\"," CLOUD ",\"provider\":\"simulated\"}]}",
	HEAD "\"nodeGroups\":[{\"name\":\"a\",\"external\":{\"label\":\"l\",\"value\":\"v\"}}]}",
	ON("c", ",\"min\":3,\"max\":2"),
	ON("c", ",\"max\":1,\"standby\":{\"max\":2}"),
	"{}",
	"null",
	MORE(TARGET("x"), "d"),
	MORE(TARGET("y"), "d"),
	MORE(PLAIN "\"budget\":{\"name\":\"all\",\"dollarsPerHour\":4},", "e"),
	MORE(PLAIN "\"budget\":{\"name\":\"all\",\"dollarsPerHour\":5},", "f"),
	MORE(PLAIN "\"budget\":{\"name\":\"all\",\"dollarsPerHour\":4},", "f"),
	MORE(PLAIN "\"budget\":{\"dollarsPerHour\":1},", "f"),
	MORE(PLAIN "\"signals\":{\"engine\":\"vllm\",\"scrape\":{},\"queue\":{\"activator\":{\"service\":\"s\"}}},",
	     "g"),
	MORE(PLAIN
	     "\"signals\":{\"engine\":\"vllm\",\"scrape\":{\"scheme\":\"https\",\"tls\":{\"caFile\":\"/etc/x\"}}},",
	     "g"),
	MORE(PLAIN "\"headroom\":{\"min\":11},", "h"),
	MORE(PLAIN "\"signals\":{\"engine\":\"vllm\",\"scrape\":{}},\"share\":{\"name\":\"s\",\"level\":1},", "h"),
	"{\"class\":\"any\",\"nodeGroups\":[{\"name\":\"i\"," CLOUD "}]}",
};
enum { SAID = sizeof said / sizeof *said };

static void set_anything(struct pool_object *o, struct random *r)
{
	set_spec(o, said[random_next(r) % SAID]);
}

/* Two namespaces, so that names meet. */
static void insert_anything(struct world *w, struct random *r)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	const char *space = random_next(r) % 3 ? "llm" : "chat", *name = names[random_next(r) % 4];
	size_t at = 0;

	while (at < w->count && (strcmp(w->items[at].namespace, space) < 0 ||
				 (!strcmp(w->items[at].namespace, space) && strcmp(w->items[at].name, name) < 0)))
		at++;
	if (at < w->count && !strcmp(w->items[at].namespace, space) && !strcmp(w->items[at].name, name))
		return;
	memmove(&w->items[at + 1], &w->items[at], (w->count++ - at) * sizeof w->items[0]);
	w->items[at] = (struct pool_object){ .namespace = copy(space),
					     .name = copy(name),
					     .created = (millis)(random_next(r) % 4) };
	set_anything(&w->items[at], r);
}

static void step_anything(struct world *w, struct random *r)
{
	uint64_t what = random_next(r) % 4;

	if (!w->count || (what == 0 && w->count < OBJECTS))
		insert_anything(w, r);
	else if (what == 1)
		take_away(w, random_next(r) % w->count);
	else
		set_anything(&w->items[random_next(r) % w->count], r);
}

/* The same as it is before the choice, with nothing that was read. */
static void forget_all(const struct world *w, struct world *out)
{
	*out = (struct world){ .count = w->count, .is_part = w->is_part };
	for (size_t i = 0; i < w->count; i++) {
		const struct pool_object *o = &w->items[i];
		struct findings f = { 0 };
		struct error e;
		out->items[i] = (struct pool_object){ .namespace = copy(o->namespace),
						      .name = copy(o->name),
						      .created = o->created,
						      .refusal = o->refusal ? copy(o->refusal) : NULL };
		set_spec(&out->items[i], o->spec);
		if (o->former)
			out->items[i].former = manifest_part_read(o->former->name, o->former->text, &f, &e);
		findings_release(&f);
	}
}

static const char *difference(const struct world *w, const struct world *anew)
{
	const struct manifest *a = &w->chosen, *b = &anew->chosen;

	for (size_t i = 0; i < w->count; i++) {
		const struct pool_object *x = &w->items[i], *y = &anew->items[i];
		if (x->is_former != y->is_former || !x->refusal != !y->refusal ||
		    (x->refusal && strcmp(x->refusal, y->refusal) != 0))
			return "an object is refused otherwise";
	}
	if (!a->text != !b->text || (a->text && strcmp(a->text, b->text) != 0))
		return "another text is in force";
	for (size_t i = 0; i < a->fleet.pool_count; i++)
		if (!schema_equal(&warm_pool_table, &a->pools[i], &b->pools[i]) ||
		    a->pools[i].spec.workload.warm != b->pools[i].spec.workload.warm ||
		    a->pools[i].spec.signals.engine != b->pools[i].spec.signals.engine)
			return "a pool is another one";
	for (size_t i = 0; i < a->fleet.group_count; i++)
		if (!schema_equal(&group_table, &a->groups[i], &b->groups[i]) ||
		    a->groups[i].provider != b->groups[i].provider ||
		    strcmp(a->fleet.groups[i].settings, b->fleet.groups[i].settings) != 0)
			return "a node group is another one";
	return NULL;
}

/* Objects are created, changed and deleted: what was read before gives what reading all anew gives. */
static void a_change_is_worth_a_full_reading(void **state)
{
	enum { STEPS = 40 };

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct random r = random_stream(seed, "remembered");
		struct world w = { .is_part = seed % 5 == 0 }, anew;
		for (int step = 0; step < STEPS; step++) {
			for (uint64_t n = random_next(&r) % 3 + 1; n; n--)
				step_anything(&w, &r);
			forget_all(&w, &anew);
			choose(&w);
			choose(&anew);
			const char *found = difference(&w, &anew);
			if (found)
				fail_msg("seed %llu, step %d: %s", (unsigned long long)seed, step, found);
			close_world(&anew);
		}
		close_world(&w);
	}
}

/* A group that another pool named, too, is checked anew once it is left alone. */
static void a_group_left_alone_is_checked_again(void **state)
{
	struct world w = { 0 };

	(void)state;
	add(&w, "a", 1, ON("g", ",\"min\":11"));
	add(&w, "b", 2, ON("g", ",\"max\":12"));
	choose(&w);
	assert_string_equal(in_force(&w), "a b");
	take_away(&w, 1);
	choose(&w);
	assert_string_equal(in_force(&w), "");
	expect_told(&w.items[0], "spec.nodeGroups[0].min: found '11'; allowed: at most max, which is 10");
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_agree_are_in_force),
		cmocka_unit_test(one_that_makes_no_sense_is_told_and_holds_up_nobody),
		cmocka_unit_test(a_part_of_the_pools_has_none_that_takes_any),
		cmocka_unit_test(what_was_said_before_stays_in_force),
		cmocka_unit_test(nobody_is_pushed_out_by_a_newcomer),
		cmocka_unit_test(of_those_that_come_together_the_oldest_stays),
		cmocka_unit_test(a_group_may_be_told_by_another_pool),
		cmocka_unit_test(any_world),
		cmocka_unit_test(a_change_is_worth_a_full_reading),
		cmocka_unit_test(a_group_left_alone_is_checked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
