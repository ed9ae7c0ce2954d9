/* The table and the shared values against the simplest thing that could be right. */
#include "tests/unit/cluster/model_objects.h"

#include "base/random.h"
#include "controller/cluster/intern.h"

struct item {
	uint32_t hash;
	int key;
};

static bool has_key(const void *item, const void *key)
{
	return ((const struct item *)item)->key == *(const int *)key;
}

/* Few different hashes, so that runs of slots grow, wrap and close up. */
static void finds_what_is_there(void **state)
{
	(void)state;
	enum { KEYS = 200 };
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct random r = random_stream(seed, "store");
		struct store s = { .hash_offset = offsetof(struct item, hash) };
		struct item items[KEYS];
		bool is_in[KEYS] = { false };
		size_t count = 0;
		for (int i = 0; i < KEYS; i++)
			items[i] = (struct item){ (uint32_t)(random_next(&r) % 37), i };
		for (int step = 0; step < 3000; step++) {
			int key = (int)(random_next(&r) % KEYS);
			if (is_in[key])
				store_remove(&s, &items[key]);
			else
				store_add(&s, &items[key]);
			count += is_in[key] ? (size_t)-1 : 1;
			is_in[key] = !is_in[key];
			int asked = (int)(random_next(&r) % KEYS);
			const void *found = store_find(&s, items[asked].hash, has_key, &asked);
			assert_ptr_equal(found, is_in[asked] ? &items[asked] : NULL);
			assert_int_equal(s.count, count);
		}
		size_t walked = 0;
		for (size_t at = 0; store_next(&s, &at) != NULL;)
			walked++;
		assert_int_equal(walked, count);
		store_release(&s);
	}
}

static void equal_values_are_one(void **state)
{
	(void)state;
	struct intern in;
	intern_open(&in);
	const char *a = intern_text(&in, "zone"), *b = intern_bytes(&in, "zonefuge", 4);
	const char *value = intern_text(&in, "eu-west-1a");
	assert_ptr_equal(a, b);
	struct label row = { a, value };
	const struct label_set *x = intern_rows(&in, INTERN_LABELS, &row, 1),
			       *y = intern_rows(&in, INTERN_LABELS, &row, 1);
	assert_ptr_equal(x, y);
	intern_drop(&in, a);
	intern_drop(&in, b);
	intern_drop(&in, value);
	/* The set holds its texts. */
	assert_string_equal(label_set_get(x, "zone"), "eu-west-1a");
	assert_null(label_set_get(x, "zon"));
	assert_null(label_set_get(NULL, "zone"));
	intern_drop(&in, x);
	intern_drop(&in, y);
	intern_close(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_there),
		cmocka_unit_test(equal_values_are_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
