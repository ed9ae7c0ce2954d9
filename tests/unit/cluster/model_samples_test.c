/* Pages as a real API server wrote them; skipped where they are not. */
#include "tests/unit/cluster/model_objects.h"

#include "base/gzip.h"

#include <stdlib.h>

enum { FIELDS_MOST = 48 };

/* The record first: its table's offsets stay right. */
struct listed_pod {
	struct pod_record record;
	struct object_head head;
};
struct listed_node {
	struct node_record record;
	struct object_head head;
};

static struct record_spec listed_spec(const struct record_spec *of, size_t head, size_t size, struct field fields[])
{
	memcpy(fields, of->fields, of->field_count * sizeof *fields);
	memcpy(fields + of->field_count, head_fields, sizeof head_fields);
	for (size_t i = of->field_count; i < of->field_count + 3; i++)
		fields[i].offset += head;
	return (struct record_spec){ "items[]", size, fields, of->field_count + 3 };
}

static bool add_pod(void *user, void *record, struct error *e)
{
	(void)e;
	struct listed_pod *p = record;
	struct watch_seen seen = seen_of(&p->head, (struct moment){ INT64_C(1800000000000), true });
	return cluster_pod_seen(user, &p->record, &seen);
}

static bool add_node(void *user, void *record, struct error *e)
{
	(void)e;
	struct listed_node *n = record;
	struct watch_seen seen = seen_of(&n->head, (struct moment){ INT64_C(1800000000000), true });
	return cluster_node_seen(user, &n->record, &seen);
}

static void read_page(struct cluster *c, const char *name, const struct record_spec *spec, record_fn *add)
{
	const char *shared = getenv("PREHEAT_SHARED");
	char path[4096], bytes[65536];
	size_t got = 1;
	struct error e;
	snprintf(path, sizeof path, "%s/samples/%s", shared == NULL ? "../shared" : shared, name);
	struct gzip *g = gzip_open(path, &e);
	if (g == NULL) {
		print_message("skipped: %s (set PREHEAT_SHARED)\n", e.message);
		cluster_free(c);
		skip();
	}
	struct decode_plan *plan = decode_plan_new(spec);
	struct decoder *d =
		decoder_open(&(struct decoder_setup){ .name = name, .records = plan, .emit = add, .user = c });
	while (got > 0)
		if (!gzip_read(g, bytes, sizeof bytes, &got, &e) || !decoder_feed(d, bytes, got, &e))
			fail_msg("%s", e.message);
	if (!decoder_finish(d, &e))
		fail_msg("%s", e.message);
	decoder_close(d);
	decode_plan_free(plan);
	gzip_close(g);
}

static void reads_pages_as_served(void **state)
{
	(void)state;
	struct field pod_fields[FIELDS_MOST], node_fields[FIELDS_MOST];
	struct record_spec pods =
		listed_spec(&pod_spec, offsetof(struct listed_pod, head), sizeof(struct listed_pod), pod_fields);
	struct record_spec nodes =
		listed_spec(&node_spec, offsetof(struct listed_node, head), sizeof(struct listed_node), node_fields);
	CLEANUP(arena_release) struct arena a = { 0 };
	struct cluster *c = cluster_new();
	read_page(c, "nodes-limit500.json.gz", &nodes, add_node);
	read_page(c, "pods-limit500.json.gz", &pods, add_pod);
	assert_int_equal(cluster_node_count(c), 500);
	assert_int_equal(cluster_pod_count(c), 500);
	size_t count = 0;
	const struct node **all = cluster_nodes(c, -1, &a, &count);
	int64_t gpus = 0;
	for (size_t i = 0; i < count; i++) {
		assert_true(all[i]->provider_id[0] != '\0' && all[i]->machine_id[0] == 'i' && all[i]->zone[0] != '\0');
		assert_true(all[i]->gpus_milli > 0 && all[i]->gpus_milli % 1000 == 0);
		assert_int_equal(all[i]->owner, NODE_PROVISIONER);
		assert_true(all[i]->gpu_at >= all[i]->registered_at && all[i]->registered_at > 0);
		gpus += all[i]->gpus_used_milli;
	}
	/* Of 500 pods on other pages' nodes too: none of them lost. */
	const struct pod *first = cluster_pod(c, "aeff4461-89d2-4adc-9eec-529f2b625b8c");
	assert_string_equal(first->name, "vllm-deepseek-r1-distill-32b-4-2g4njscbbx-bk285-2089");
	assert_string_equal(first->image, "docker.io/vllm/vllm-openai:v0.10.1.1");
	assert_string_equal(first->owner->name, "vllm-deepseek-r1-distill-32b-2g4njscbbx");
	assert_int_equal(first->gpus_milli, 2000);
	assert_int_equal(first->state, POD_READY);
	assert_true(first->has_local_storage && first->grace_seconds == 120);
	assert_true(first->created_at <= first->scheduled_at && first->scheduled_at <= first->started_at &&
		    first->started_at <= first->ready_at);
	assert_true(gpus > 0);
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reads_pages_as_served) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
