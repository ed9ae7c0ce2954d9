/* What Azure's errors mean to us: its codes at any depth, both body shapes, and the samples of the field. */
#include "base/file.h"
#include "providers/azure/answer.h"
#include "providers/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SAID(code, message) "{\"code\":\"" code "\",\"message\":\"" message "\"}"
#define WRAPPED(inner)	    "{\"error\":" inner "}"
#define OUTER(details)                                                                                   \
	"{\"code\":\"ReconcileVMSSAgentPoolFailed\",\"message\":\"We are unable to serve.\",\"target\":" \
	"null,\"details\":[" details "]}"

static void codes_are_found_at_any_depth(void **state)
{
	static const struct {
		const char *json;
		bool is_spot;
		enum error_kind kind;
		millis back_off;
		const char *zone;
	} cases[] = {
		{ OUTER(SAID("ZonalAllocationFailed", "no capacity in zone 2. Read more")), false, ERROR_STOCKOUT, HOUR,
		  "2" },
		{ WRAPPED(OUTER(OUTER(OUTER(SAID("AllocationFailed", "in zone 3"))))), false, ERROR_STOCKOUT, HOUR,
		  "" },
		{ OUTER("{\"details\":[{\"code\":\"OverconstrainedZonalAllocationRequest\"}]}"), false, ERROR_STOCKOUT,
		  HOUR, "" },
		{ WRAPPED(SAID("ResourceOperationFailure",
			       "autorest: Code=\\\"ZonalAllocationFailed\\\" Message=\\\"none in "
			       "zone '1'\\\"")),
		  false, ERROR_STOCKOUT, HOUR, "1" },
		{ SAID("SkuNotAvailable", ""), true, ERROR_STOCKOUT, HOUR, "" },
		{ SAID("SkuNotAvailable", ""), false, ERROR_STOCKOUT, 23 * HOUR, "" },
		{ OUTER(SAID("OperationNotAllowed", "exceeding approved X quota. Current Limit: 10")), false,
		  ERROR_QUOTA, 10 * MINUTE, "" },
		{ OUTER(SAID("QuotaExceeded", "Current Limit: 0, Current Usage: 0")), false, ERROR_QUOTA, HOUR, "" },
		{ OUTER(SAID("QuotaExceeded", "Current Limit: 10, Current Usage: 0")), false, ERROR_QUOTA, 10 * MINUTE,
		  "" },
		{ OUTER(SAID("SomethingNew", "at all")), false, ERROR_NONE, 0, "" },
		{ SAID("OperationNotAllowed", "There has to be at least one system agent pool."), false, ERROR_INVALID,
		  0, "" },
		{ "{\"message\":\"The operation was overriden and canceled by a later operation X.\"}", false,
		  ERROR_CONFLICT, 0, "" },
		/* the message may stand before the code, and details between them */
		{ "{\"message\":\"exceeding "
		  "approved\",\"details\":[{\"code\":\"A\"}],\"code\":\"OperationNotAllowed\"}",
		  false, ERROR_QUOTA, 10 * MINUTE, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct azure_failure f = { 0 };
		if (!azure_failure_of(cases[i].json, strlen(cases[i].json), cases[i].is_spot, &f))
			fail_msg("%zu: not read", i);
		if (f.kind != cases[i].kind || f.back_off != cases[i].back_off || strcmp(f.zone, cases[i].zone) != 0)
			fail_msg("%zu: %s, back-off %lld, zone '%s'", i, error_kind_name(f.kind), (long long)f.back_off,
				 f.zone);
	}
}

static void what_is_no_error_is_told_by_its_status(void **state)
{
	static const struct {
		long status;
		const char *body;
		enum error_kind kind;
	} cases[] = {
		{ 500, "", ERROR_UNAVAILABLE },
		{ 502, "<html>", ERROR_UNAVAILABLE },
		{ 503, "{\"error\":3}", ERROR_UNAVAILABLE },
		{ 404, "null", ERROR_NOT_FOUND },
		{ 403, "[]", ERROR_AUTH },
		{ 302, "{}", ERROR_INVALID },
		{ 400, SAID("Unheard", "of"), ERROR_INVALID },
		{ 500, SAID("InternalOperationError", "x"), ERROR_UNAVAILABLE },
		{ 429, SAID("Unheard", "of"), ERROR_THROTTLED },
		{ 409, SAID("OperationNotAllowed", "whatever"), ERROR_CONFLICT },
		{ 409, SAID("Unheard", "of"), ERROR_CONFLICT },
		{ 412, "", ERROR_CONFLICT },
		{ 409, OUTER(SAID("QuotaExceeded", "exceeding approved")), ERROR_QUOTA },
		{ 400, "{\"code\":\"\\u0007\\nA\",\"message\":\"\\r\\n\"}", ERROR_INVALID },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e = { 0 };
		azure_failure_read(cases[i].status, cases[i].body, strlen(cases[i].body), &e);
		if (e.kind != cases[i].kind)
			fail_msg("%zu: %s: %s", i, error_kind_name(e.kind), e.message);
		for (const char *c = e.message; *c; c++)
			assert_true((unsigned char)*c >= 0x20);
	}
}

struct sample {
	const char *code, *inner_code, *message;
	int64_t status;
	struct decoded_text body, error;
};
static const struct field sample_fields[] = {
	FIELD(struct sample, code, FIELD_STRING, "code"),
	FIELD(struct sample, inner_code, FIELD_STRING, "inner_code"),
	FIELD(struct sample, message, FIELD_STRING, "message"),
	FIELD(struct sample, status, FIELD_INT, "status"),
	FIELD(struct sample, body, FIELD_RAW, "body"),
	FIELD(struct sample, error, FIELD_RAW, "error"),
};
static const struct record_spec sample_record = { "", sizeof(struct sample), sample_fields, 6 };
struct samples {
	struct decoded_list sync, async, capacity;
};
static const struct field list_fields[] = {
	{ .path = "sync_http", .type = FIELD_LIST, .offset = offsetof(struct samples, sync), .of = &sample_record },
	{ .path = "async_operation_failed",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct samples, async),
	  .of = &sample_record },
	{ .path = "capacity_and_quota",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct samples, capacity),
	  .of = &sample_record },
};
static const struct record_spec list_record = { "", sizeof(struct samples), list_fields, 3 };

static void expect(const struct decoded_list *list, const enum error_kind *kinds, size_t count, const char *name)
{
	const struct sample *samples = list->items;

	assert_int_equal(list->count, count);
	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &samples[i];
		CLEANUP(buf_release) struct buf made = { 0 };
		struct azure_failure f = { 0 };
		struct error e = { 0 };
		if (s->body.text) {
			azure_failure_read((long)s->status, s->body.text, s->body.len, &e);
			f.kind = e.kind;
		} else if (s->error.text) {
			assert_true(azure_failure_of(s->error.text, s->error.len, false, &f));
		} else {
			buf_text(&made, "{\"code\":\"ReconcileVMSSAgentPoolFailed\",\"details\":[{\"code\":");
			azure_write_json(s->code, strlen(s->code), &made);
			buf_text(&made, ",\"inner_code\":");
			azure_write_json(s->inner_code ? s->inner_code : "", s->inner_code ? strlen(s->inner_code) : 0,
					 &made);
			buf_text(&made, ",\"message\":");
			azure_write_json(s->message, strlen(s->message), &made);
			buf_text(&made, "}]}");
			assert_true(azure_failure_of(made.text, made.len, false, &f));
		}
		if (f.kind != kinds[i])
			fail_msg("%s %zu: %s", name, i, error_kind_name(f.kind));
	}
}

static void samples_of_the_field_are_told_apart(void **state)
{
	static const enum error_kind sync[] = { ERROR_CONFLICT, ERROR_CONFLICT, ERROR_INVALID,	 ERROR_INVALID,
						ERROR_INVALID,	ERROR_INVALID,	ERROR_THROTTLED, ERROR_CONFLICT };
	static const enum error_kind async[] = { ERROR_CONFLICT, ERROR_CONFLICT };
	static const enum error_kind capacity[] = { ERROR_STOCKOUT, ERROR_STOCKOUT, ERROR_STOCKOUT, ERROR_STOCKOUT,
						    ERROR_STOCKOUT, ERROR_QUOTA,    ERROR_QUOTA,    ERROR_QUOTA };
	const char *shared = getenv("PREHEAT_SHARED");
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	char path[512];
	struct samples samples;
	struct error e = { 0 };

	(void)state;
	snprintf(path, sizeof path, "%s/contracts/azure/error-samples.json", shared ? shared : "../shared");
	if (!file_read(path, 1 << 20, &text, &e)) {
		printf("skipped: %s is not there (set PREHEAT_SHARED)\n", path);
		skip();
	}
	assert_true(text_decode(&list_record, text.text, text.len, &a, &samples, &e));
	expect(&samples.sync, sync, 8, "sync_http");
	expect(&samples.async, async, 2, "async_operation_failed");
	expect(&samples.capacity, capacity, 8, "capacity_and_quota");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_are_found_at_any_depth),
		cmocka_unit_test(what_is_no_error_is_told_by_its_status),
		cmocka_unit_test(samples_of_the_field_are_told_apart),
	};

	return cmocka_run_group_tests_name("azure_failure", tests, NULL, NULL);
}
