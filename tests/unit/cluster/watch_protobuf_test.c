/* A watch whose server writes Protobuf: what is told is the same, and what cannot be read is asked for as JSON. */
#include "base/log.h"
#include "tests/unit/cluster/protobuf_pods.h"
#include "tests/unit/cluster/watch_reader.h"

struct seen_pod {
	const char *node;
};
static const struct field pod_fields[] = { FIELD(struct seen_pod, node, FIELD_STRING, "spec>nodeName") };
static const struct record_spec pod_record = { "", sizeof(struct seen_pod), pod_fields, 1 };

/* NAME@NODE of each pod told. */
static bool on_pod(void *user, const void *record, const struct watch_seen *seen)
{
	const struct seen_pod *p = record;
	size_t used = strlen(told.names);

	(void)user;
	snprintf(told.names + used, sizeof told.names - used, "%s@%s ", seen->name, p->node ? p->node : "");
	return true;
}

static struct watch *begin_pods(const char *path)
{
	memset(&told, 0, sizeof told);
	return watch_start(play_begin(note_call), &(struct watch_spec){ .name = "pods",
									.path = path,
									.object = &pod_record,
									.way = WATCH_WHOLE,
									.on_object = on_pod,
									.on_gone = on_gone,
									.on_synced = on_synced,
									.on_stopped = on_stopped });
}

static void send_protobuf(const struct buf *bytes)
{
	asked->is_protobuf = true;
	play_chunk(asked, bytes->text, bytes->len);
}

static void a_list_and_its_watch_are_told(void **state)
{
	struct watch *w = begin_pods("/api/v1/pods");
	CLEANUP(buf_release) struct buf list = list_of_two();
	CLEANUP(buf_release) struct buf event = { 0 };

	(void)state;
	assert_true(asked->takes_protobuf);
	send_protobuf(&list);
	play_answer(asked, 200, "");
	next_call(1); /* the list goes on */
	assert_non_null(strstr(asked->path, "continue=more"));
	assert_int_equal(told.synced, 0);
	asked->is_protobuf = false; /* another server of them, an older one */
	play_answer(asked, 200, LIST("43", "", ""));
	next_call(1);
	assert_int_equal(told.synced, 1);
	assert_non_null(strstr(asked->path, "resourceVersion=43"));
	assert_true(asked->takes_protobuf);
	add_event(&event, "MODIFIED", pod("b", "n2"));
	send_protobuf(&event);
	assert_string_equal(told.names, "a@n1 b@ b@n2 ");
	end_watch(w);
}

static void what_cannot_be_read_is_asked_for_as_json(void **state)
{
	struct watch *w = begin_pods("/api/v1/pods");
	struct buf broken = { .text = (char *)(uintptr_t) "k8s\0\x12\x02\x0b", .len = 7 };

	(void)state;
	log_level_set(LEVEL_ERROR);
	send_protobuf(&broken);
	next_call(WATCH_FIRST);
	assert_false(asked->takes_protobuf);
	play_answer(asked, 200, LIST("42", "", OBJECT("a", "3", "1")));
	next_call(1);
	assert_int_equal(told.synced, 1);
	assert_string_equal(told.names, "na@ ");
	assert_false(asked->takes_protobuf);
	end_watch(w);
}

static void what_the_server_has_as_json_only_is_asked_for_as_json(void **state)
{
	struct watch *w = begin_pods("/apis/preheat.dev/v1alpha1/warmpools");

	(void)state;
	assert_false(asked->takes_protobuf);
	play_answer(asked, 200, LIST("42", "", ""));
	next_call(1);
	end_watch(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_and_its_watch_are_told),
		cmocka_unit_test(what_cannot_be_read_is_asked_for_as_json),
		cmocka_unit_test(what_the_server_has_as_json_only_is_asked_for_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
