/* Answers of the API server in Protobuf: lists and watches cut anywhere, refusals, and what is none. */
#include "controller/cluster/protobuf_answer.h"
#include "controller/cluster/api.h"
#include "controller/cluster/model_state.h"
#include "tests/unit/cluster/protobuf_pods.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* One line for each thing told. */
static bool tell_object(void *user, const char *event, struct decoded_text object, struct error *e)
{
	(void)e;
	buf_printf(user, "%s %.*s\n", event ? event : "-", (int)object.len, object.text);
	return true;
}

static bool tell_list(void *user, struct decoded_text list, struct error *e)
{
	return tell_object(user, "list", list, e);
}

/* In pieces of `size` bytes; returns whether all was taken. */
static bool read_all(const struct buf *bytes, size_t size, bool is_watch, struct buf *told, struct error *e)
{
	struct protobuf_answer *a = protobuf_answer_open(&(struct protobuf_reader){
		"pods", protobuf_message_of("/api/v1/pods"), is_watch, tell_object, tell_list, told });
	bool ok = true;

	buf_text(told, "");
	for (size_t at = 0; ok && at < bytes->len; at += size) {
		size_t len = bytes->len - at < size ? bytes->len - at : size;
		char *copy = malloc(len); /* ends where it ends, so that a sanitizer sees a step over it */
		memcpy(copy, bytes->text + at, len);
		ok = protobuf_answer_feed(a, copy, len, e);
		free(copy);
	}
	ok = ok && protobuf_answer_finish(a, e);
	protobuf_answer_close(a);
	return ok;
}

/* Of Kubernetes' own PodGroup. */
static void the_group_of_a_pod_is_read(void **state)
{
	struct buf list = { 0 }, meta = { 0 }, item = { 0 }, name = { 0 }, spec = { 0 }, group = { 0 };

	(void)state;
	pb_text(&meta, 2, "42");
	pb_message(&list, 1, &meta);
	pb_text(&name, 1, "a");
	pb_message(&item, 1, &name);
	pb_text(&group, 1, "train");
	pb_message(&spec, 43, &group);
	pb_message(&item, 2, &spec);
	pb_message(&list, 2, &item);
	CLEANUP(buf_release) struct buf bytes = enveloped(&list), told = { 0 };
	struct error e = { 0 };
	assert_true(read_all(&bytes, bytes.len, false, &told, &e));
	assert_string_equal(told.text, "list {\"metadata\":{\"resourceVersion\":\"42\"}}\n"
				       "- {\"metadata\":{\"name\":\"a\"},\"spec\":{\"schedulingGroup\":"
				       "{\"podGroupName\":\"train\"}}}\n");
}

static void a_list_comes_object_by_object(void **state)
{
	CLEANUP(buf_release) struct buf bytes = list_of_two();

	(void)state;
	for (size_t size = 1; size <= bytes.len; size++) {
		CLEANUP(buf_release) struct buf told = { 0 };
		struct error e = { 0 };
		assert_true(read_all(&bytes, size, false, &told, &e));
		assert_string_equal(told.text,
				    "list {\"metadata\":{\"resourceVersion\":\"42\",\"continue\":\"more\"}}\n"
				    "- {\"metadata\":{\"name\":\"a\",\"uid\":\"uid\"},\"spec\":{\"nodeName\":\"n1\"}}\n"
				    "- {\"metadata\":{\"name\":\"b\",\"uid\":\"uid\"},\"spec\":{}}\n");
	}
}

static void an_event_comes_when_it_is_whole(void **state)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };
	struct buf refusal = { 0 };

	(void)state;
	add_event(&bytes, "ADDED", pod("a", "n1"));
	add_event(&bytes, "DELETED", pod("a", ""));
	pb_text(&refusal, 4, "Expired");
	pb_number(&refusal, 6, 410);
	add_event(&bytes, "ERROR", refusal);
	for (size_t size = 1; size <= bytes.len; size++) {
		CLEANUP(buf_release) struct buf told = { 0 };
		struct error e = { 0 };
		assert_true(read_all(&bytes, size, true, &told, &e));
		assert_string_equal(
			told.text,
			"ADDED {\"metadata\":{\"name\":\"a\",\"uid\":\"uid\"},\"spec\":{\"nodeName\":\"n1\"}}\n"
			"DELETED {\"metadata\":{\"name\":\"a\",\"uid\":\"uid\"},\"spec\":{}}\n"
			"ERROR {\"reason\":\"Expired\",\"code\":410}\n");
	}
}

/* Whatever is lacking at the end of a list or of an event is seen. */
static void what_ends_in_the_middle_is_no_answer(void **state)
{
	CLEANUP(buf_release) struct buf list = list_of_two();
	CLEANUP(buf_release) struct buf event = { 0 };

	(void)state;
	add_event(&event, "ADDED", pod("a", "n1"));
	size_t tail = 4; /* the empty fields behind the list */
	for (int is_watch = 0; is_watch < 2; is_watch++) {
		struct buf *whole = is_watch ? &event : &list;
		for (size_t len = is_watch ? 1 : 0; len < whole->len - (is_watch ? 0 : tail); len++) {
			CLEANUP(buf_release) struct buf told = { 0 };
			struct error e = { 0 };
			struct buf cut = { .text = whole->text, .len = len };
			assert_false(read_all(&cut, 7, is_watch, &told, &e));
			assert_int_equal(e.kind, ERROR_INVALID);
			assert_string_equal(e.message, "pods: the answer ends in the middle");
		}
	}
}

static void what_is_none_is_refused(void **state)
{
	static const struct {
		bool is_watch;
		const char *bytes;
		size_t len;
		const char *says;
	} cases[] = {
		{ false, "{\"kind\":\"PodList\"}", 18, "pods: no answer in Protobuf" },
		{ false,
		  "k8s\0\x12\x05\x12\x09"
		  "abc",
		  11, "pods: no list in Protobuf" }, /* an item longer than its list */
		{ false, "k8s\0\x12\x02\x0b\x00", 8, "pods: no list in Protobuf" },
		{ false, "k8s\0\x12\x04\x12\x02\x08\x01", 10, "" }, /* an item that is no pod */
		{ false, "k8s\0\x12\xff\xff\xff\x0f\x12\xff\xff\xff\x07", 14, "pods: an object of more than 8 MiB" },
		{ true, "\x7f\xff\xff\xff", 4, "pods: an event of more than 8 MiB" },
		{ true, "\0\0\0\x02\x0a\x00", 6, "pods: no event of a watch" },
		{ true,
		  "\0\0\0\x04\x0a\x09"
		  "AB",
		  8, "pods: no event of a watch" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf told = { 0 };
		struct error e = { 0 };
		struct buf bytes = { .text = (char *)(uintptr_t)cases[i].bytes, .len = cases[i].len };
		assert_false(read_all(&bytes, 3, cases[i].is_watch, &told, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		if (*cases[i].says)
			assert_string_equal(e.message, cases[i].says);
	}
}

static void a_refusal_is_read_in_either_form(void **state)
{
	struct buf refusal = { 0 }, details = { 0 }, cause = { 0 };
	CLEANUP(arena_release) struct arena arena = { 0 };
	struct api_status s;

	(void)state;
	pb_text(&refusal, 3, "too old resource version");
	pb_text(&refusal, 4, "Expired");
	pb_text(&cause, 1, "ResourceVersionTooLarge");
	pb_message(&details, 4, &cause);
	pb_number(&details, 5, 7);
	pb_message(&refusal, 5, &details);
	pb_number(&refusal, 6, 410);
	CLEANUP(buf_release) struct buf bytes = enveloped(&refusal);
	status_read(bytes.text, bytes.len, &arena, &s);
	assert_string_equal(s.message, "too old resource version");
	assert_string_equal(s.reason, "Expired");
	assert_int_equal(s.code, 410);
	assert_int_equal(s.retry_after_seconds, 7);
	assert_true(status_has_cause(&s, "ResourceVersionTooLarge"));
	status_read("{\"code\":403}", 12, &arena, &s);
	assert_int_equal(s.code, 403);
	status_read("k8s\0\x12\x09", 6, &arena, &s);
	assert_int_equal(s.code, 0);
}

static const struct protobuf_field *named(const struct protobuf_message *m, const char *name, size_t len)
{
	const struct protobuf_field *found = NULL;

	for (size_t i = 0; !found && i < m->count; i++) {
		const struct protobuf_field *f = &m->fields[i];
		if (f->kind == PROTOBUF_INLINE)
			found = named(f->of, name, len);
		else if (strlen(f->name) == len && !strncmp(f->name, name, len))
			found = f;
	}
	return found;
}

/* The path's last field; fails the test where a step of it is in no table. */
static const struct protobuf_field *find(const struct protobuf_message *m, const char *path)
{
	const struct protobuf_field *f = NULL;

	for (const char *at = path; *at;) {
		size_t len = strcspn(at, ">");
		f = m ? named(m, at, len) : NULL;
		if (!f)
			fail_msg("%s: what base/decode reads is not read of Protobuf", path);
		m = f->of;
		at += len + (at[len] == '>');
	}
	return f;
}

static void assert_all_read(const struct record_spec *spec, const struct protobuf_message *m)
{
	for (size_t i = 0; i < spec->field_count; i++) {
		const struct field *f = &spec->fields[i];
		/* Topologies have no operator; they are read with the table of expressions that have one. */
		bool is_none = !strcmp(f->path, "operator") && strstr(m->name, ".TopologySelectorLabelRequirement");
		if (!*f->path || is_none)
			continue;
		const struct protobuf_field *p = find(m, f->path);
		if (f->of && p->of)
			assert_all_read(f->of, p->of);
	}
}

/* Whoever reads one more field reads it in either form. */
static void all_that_is_read_of_json_is_read_of_protobuf(void **state)
{
	static const struct {
		const char *path;
		const struct record_spec *spec;
	} cases[] = {
		{ "/api/v1/nodes", &node_spec },
		{ "/api/v1/pods", &pod_spec },
		{ "/api/v1/events", &node_event_spec },
		{ "/api/v1/persistentvolumeclaims", &volume_claim_spec },
		{ "/api/v1/persistentvolumes", &volume_spec },
		{ "/api/v1/namespaces", &namespace_spec },
		{ "/api/v1/resourcequotas", &quota_spec },
		{ "/apis/policy/v1/poddisruptionbudgets", &budget_spec },
		{ "/apis/batch/v1/jobs", &job_spec },
		{ "/apis/storage.k8s.io/v1/storageclasses", &storage_class_spec },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_all_read(cases[i].spec, protobuf_message_of(cases[i].path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_comes_object_by_object),
		cmocka_unit_test(the_group_of_a_pod_is_read),
		cmocka_unit_test(an_event_comes_when_it_is_whole),
		cmocka_unit_test(what_ends_in_the_middle_is_no_answer),
		cmocka_unit_test(what_is_none_is_refused),
		cmocka_unit_test(a_refusal_is_read_in_either_form),
		cmocka_unit_test(all_that_is_read_of_json_is_read_of_protobuf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
