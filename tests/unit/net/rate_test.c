#include "base/net/retry.h"
#include "base/random.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct sockaddr *address(const char *text)
{
	static union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at;

	memset(&at, 0, sizeof at);
	if (inet_pton(AF_INET, text, &at.v4.sin_addr) == 1) {
		at.any.sa_family = AF_INET;
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &at.v6.sin6_addr), 1);
		at.any.sa_family = AF_INET6;
	}
	return &at.any;
}

static void each_address_has_its_own(void **state)
{
	static const struct {
		millis now;
		const char *from;
		millis wait;
	} cases[] = {
		{ 0, "10.0.0.1", 0 },
		{ 0, "10.0.0.1", 0 },
		{ 0, "10.0.0.1", 0 },
		{ 0, "10.0.0.1", 500 }, /* two a second, three at once */
		{ 100, "10.0.0.1", 400 },
		{ 100, "10.0.0.2", 0 },
		{ 500, "10.0.0.1", 0 },
		{ 500, "10.0.0.1", 500 },
		{ 500, "::ffff:10.0.0.1", 500 }, /* the same machine */
		{ 500, "2001:db8::1", 0 },
		{ 500, "2001:db8::2", 0 },
		{ 500, "2001:db8::3:4:5", 0 },
		{ 500, "2001:db8::9", 500 }, /* one network */
		{ 500, "2001:db8:0:1::9", 0 },
		{ 1000000, "10.0.0.1", 0 },
		{ 1000000, "10.0.0.1", 0 },
		{ 1000000, "10.0.0.1", 0 },
		{ 1000000, "10.0.0.1", 500 }, /* a rest fills it, and no more */
	};
	struct rates *r = rates_new((struct rate){ 0 }, (struct rate){ .per_second = 2, .burst = 3 });

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		millis wait = rates_take(r, address(cases[i].from), cases[i].now);
		if (wait != cases[i].wait)
			print_error("case %zu\n", i);
		assert_int_equal(wait, cases[i].wait);
	}
	rates_free(r);
}

static void all_share_one(void **state)
{
	struct rates *r = rates_new((struct rate){ .per_second = 1, .burst = 2 }, (struct rate){ 0 });

	(void)state;
	assert_int_equal(rates_take(r, address("10.0.0.1"), 0), 0);
	assert_int_equal(rates_take(r, NULL, 0), 0);
	assert_int_equal(rates_take(r, address("10.0.0.2"), 0), 1000);
	assert_int_equal(rates_take(r, address("10.0.0.3"), 999), 1);
	assert_int_equal(rates_take(r, address("10.0.0.3"), 1000), 0);
	rates_free(r);
	r = rates_new((struct rate){ 0 }, (struct rate){ 0 });
	for (int i = 0; i < 10000; i++)
		assert_int_equal(rates_take(r, address("10.0.0.1"), 0), 0);
	rates_free(r);
}

/* Whatever comes: nobody gets more than the burst and what time brings, and who waits as told is let in. */
static void nobody_gets_more(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct random random = random_stream(seed, "rate");
		struct rate each = { .per_second = 1 + (unsigned)(random_next(&random) % 50),
				     .burst = 1 + (unsigned)(random_next(&random) % 20) };
		struct rates *r = rates_new((struct rate){ 0 }, each);
		int64_t taken[3] = { 0 };
		millis now = 0;
		for (int i = 0; i < 5000; i++) {
			static const char *const from[] = { "10.0.0.1", "10.0.0.2", "2001:db8::1" };
			size_t who = random_next(&random) % 3;
			millis wait = rates_take(r, address(from[who]), now);
			taken[who] += !wait;
			int64_t most = each.burst + now * each.per_second / 1000;
			if (taken[who] > most)
				fail_msg("seed %llu: %lld taken, at most %lld", (unsigned long long)seed,
					 (long long)taken[who], (long long)most);
			now += wait && random_next(&random) % 4 == 0 ? wait : (millis)(random_next(&random) % 30);
			if (wait && random_next(&random) % 8 == 0) {
				now += wait;
				assert_int_equal(rates_take(r, address(from[who]), now), 0);
				taken[who]++;
			}
		}
		rates_free(r);
	}
}

static void too_many_addresses_cost_no_memory(void **state)
{
	struct rates *r = rates_new((struct rate){ 0 }, (struct rate){ .per_second = 1, .burst = 1 });
	char text[64];

	(void)state;
	assert_int_equal(rates_take(r, address("192.0.2.1"), 0), 0);
	assert_int_not_equal(rates_take(r, address("192.0.2.1"), 1), 0);
	for (int i = 0; i < 5 * RATE_ADDRESSES; i++) {
		snprintf(text, sizeof text, "10.%d.%d.1", i / 250, i % 250);
		assert_int_equal(rates_take(r, address(text), 2 + i / 100), 0);
	}
	assert_int_equal(rates_take(r, address("192.0.2.1"), 60), 0); /* forgotten */
	rates_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_has_its_own),
		cmocka_unit_test(all_share_one),
		cmocka_unit_test(nobody_gets_more),
		cmocka_unit_test(too_many_addresses_cost_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
