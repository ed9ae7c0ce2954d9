#include "controller/traces/import.h"

#include "tests/unit/text_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define BURST "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"

static bool import_text(const char *text, const char *values, struct trace *t, struct import_report *r, struct error *e)
{
	struct text_file f = text_file(text, strlen(text));
	const char *path = f.path;
	struct import_options options = { "auto", values };
	bool ok = trace_import(&path, 1, &options, t, r, e);

	text_file_close(&f);
	return ok;
}

/* The rows of a trace, "arrival_ms:prompt:output:label ...", bins as "at:requests:prompt:output ...". */
static void show(const struct trace *t, char *out, size_t room)
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < t->request_count; i++) {
		const struct request *r = &t->requests[i];
		n += (size_t)snprintf(out + n, room - n, "%lld:%d:%d:%s ", (long long)r->arrival, r->prompt_tokens,
				      r->output_tokens, r->label < 0 ? "-" : t->labels[r->label]);
	}
	for (size_t i = 0; i < t->bin_count; i++) {
		const struct bin *b = &t->bins[i];
		n += (size_t)snprintf(out + n, room - n, "%lld:%lld:%lld:%lld ", (long long)b->at,
				      (long long)b->requests, (long long)b->prompt_tokens, (long long)b->output_tokens);
	}
}

static void recordings(void **state)
{
	static const struct {
		const char *text, *format, *rows;
		int failed, unsorted;
	} cases[] = {
		{ AZURE "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
			"2023-11-16 18:15:51.2224670,879,55\n",
		  "azure", "0:374:44:- 4315:396:109:- 4542:879:55:- ", 0, 0 },
		{ AZURE "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,76,15\n"
			"2024-05-10 00:00:00.5+00:00,77,16\n",
		  "azure", "0:2162:5:- 490:77:16:- 990:76:15:- ", 0, 1 },
		{ BURST "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n"
			"118,\"GPT-4\",417,276,693,Conversation log\n",
		  "burstgpt", "0:472:18:ChatGPT 113000:417:276:GPT-4 ", 1, 0 },
		{ "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
		  "0.5,1,2,ChatGPT,7,8,15,API log\n",
		  "burstgpt", "0:7:8:ChatGPT ", 0, 0 },
		{ "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47]}\n"
		  "{\"timestamp\": 30535, \"input_length\": 6472, \"output_length\": 26, \"hash_ids\": []}\n",
		  "mooncake", "0:6955:52:- 3053:6472:26:- ", 0, 0 },
		{ "{\"backend\":\"vllm\",\"input_lens\":[10,20,30],\"output_lens\":[5,0,7],\"itls\":[[0.1],[],[]],"
		  "\"start_times\":[1234.5678901,1235.25,1236.5],\"generated_texts\":[\"a\",\"\",\"c\"]}",
		  "vllm", "0:10:5:- 1932:30:7:- ", 1, 0 },
		{ "{\"prompt_len\": 10, \"output_len\": 3, \"start\": 100.5}\n"
		  "{\"prompt_len\": 11, \"output_len\": 4, \"start\": 100.25}\n",
		  "vllm", "0:11:4:- 250:10:3:- ", 0, 1 },
		{ "arrival_s,prompt_tokens,output_tokens,class\n7,1,2,a\n5,3,4,b\n", "preheat",
		  "5000:3:4:b 7000:1:2:a ", 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace t;
		struct import_report r;
		struct error e = { 0 };
		char rows[512];
		if (!import_text(cases[i].text, "auto", &t, &r, &e))
			fail_msg("case %zu: %s", i, e.message);
		show(&t, rows, sizeof rows);
		assert_string_equal(rows, cases[i].rows);
		assert_string_equal(r.format, cases[i].format);
		assert_int_equal(r.failed, cases[i].failed);
		assert_int_equal(r.unsorted, cases[i].unsorted);
		trace_release(&t);
	}
}

#define MATRIX(results)	       "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" results "]}}"
#define COUNTER(name, values)  "{\"metric\":{\"__name__\":\"vllm:" name "\",\"pod\":\"p\"},\"values\":[" values "]}"
#define COMPUTED(name, values) "{\"metric\":{\"preheat\":\"" name "\"},\"values\":[" values "]}"

/* Restarts count from 0, gaps are spread, tokens wait for requests, NaN is left out. */
static void prometheus(void **state)
{
	static const struct {
		const char *text, *values, *rows;
		int missing;
	} cases[] = {
		{ MATRIX(COUNTER(
			  "request_success_total",
			  "[1000,\"10\"],[1015,\"12\"],[1030,\"1\"],[1075,"
			  "\"7\"]") "," COUNTER("request_success_total",
						"[1015,\"0\"],[1030,\"5\"]") "," COUNTER("prompt_tokens_total",
											 "[1000,\"0\"],[1015,\"30\"],["
											 "1030,"
											 "\"90\"]") "," COUNTER("genera"
														"tion_"
														"tokens"
														"_"
														"total",
														"[1000,"
														"\"0\"]"
														",["
														"1015,"
														"\"3\"]"
														",["
														"1030,"
														"\"9\"]"
														","
														"[1045,"
														"\"NaN"
														"\"]")),
		  "auto", "0:2:30:3 15000:6:60:6 30000:2:0:0 45000:2:0:0 60000:2:0:0 ", 1 },
		{ MATRIX(COMPUTED("requests", "[1000,\"0.1\"],[1010,\"0.02\"],[1020,\"0.08\"]") "," COMPUTED(
			  "prompt_tokens",
			  "[1000,\"10\"],[1010,\"5\"],[1020,\"1\"]") "," COMPUTED("output_tokens",
										  "[1000,\"1\"],[1010,\"1\"],["
										  "1020,\"1\"]")),
		  "rate", "0:1:100:10 10000:0:0:0 20000:1:60:20 ", 0 },
		{ MATRIX(COMPUTED("requests", "[1000,\"2\"],[1010,\"3\"]") "," COMPUTED(
			  "prompt_tokens", "[1000,\"10\"],[1010,\"5\"]") "," COMPUTED("output_tokens",
										      "[1000,\"1\"],[1010,\"1\"]")),
		  "increase", "0:2:10:1 10000:3:5:1 ", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace t;
		struct import_report r;
		struct error e = { 0 };
		char rows[512];
		if (!import_text(cases[i].text, cases[i].values, &t, &r, &e))
			fail_msg("case %zu: %s", i, e.message);
		show(&t, rows, sizeof rows);
		assert_string_equal(rows, cases[i].rows);
		assert_int_equal(r.missing, cases[i].missing);
		trace_release(&t);
	}
}

static void bad_recordings(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "", "the file is empty" },
		{ "hello\n", "the format is not recognised" },
		{ AZURE, "no usable requests: 0 rows read" },
		{ AZURE "2023-11-16 18:15:46,NaN,44\n", ":2: column ContextTokens: found 'NaN'" },
		{ AZURE "2023-11-16 18:15:46,-1,44\n", ":2: column ContextTokens: found '-1'" },
		{ AZURE "2023-11-16 18:15:46,1\n", ":2: found 2 columns; allowed: 3" },
		{ AZURE "yesterday,1,2\n", ":2: column TIMESTAMP: found 'yesterday'; allowed: a time like" },
		{ AZURE "1999-01-01 00:00:00,1,2\n2023-11-16 18:15:46,1,2\n", "spans more than ten years" },
		{ BURST "5,m,1,0,1,x\n", "no usable requests: 1 rows read, 1 of them failed" },
		{ BURST "x,m,1,2,3,x\n", ":2: column Timestamp: found 'x'" },
		{ "{\"timestamp\": 1, \"input_length\": 2}\n", ":1:36: output tokens is missing; each line needs" },
		{ "{\"timestamp\": -1, \"input_length\": 2, \"output_length\": 3}\n", "timestamp: found '-1'" },
		{ "{\"timestamp\": 1, \"input_length\": \"2\", \"output_length\": 3}\n", "input_length: found '2'" },
		{ "{\"timestamp\": 1, \"input_length\": [2], \"output_length\": 3}\n", "found a list or an object" },
		{ "{\"timestamp\": 1, \"input_length\": 2, \"output_length\": 3", "truncated" },
		{ "{\"completed\": 5}", "record with: vllm bench serve --save-result --save-detailed" },
		{ "{\"input_lens\":[1,2],\"output_lens\":[1],\"start_times\":[1,2]}", "as many of each" },
		{ "[1]", "not recognised" },
		{ "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}",
		  "Prometheus answered with an error: 'parse error'" },
		{ "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}", "resultType 'vector'; "
												 "allowed: matrix" },
		{ MATRIX(""), "no series with requests" },
		{ MATRIX(COUNTER("request_success_total", "[1,\"1\"],[2,\"2\"]")), "no series with prompt tokens" },
		{ MATRIX(COUNTER("e2e_seconds_sum", "[1,\"1\"]")), "metric 'vllm:e2e_seconds_sum' is not used" },
		{ MATRIX("{\"metric\":{},\"values\":[[1,\"1\"]]}"), "a series without a name" },
		{ MATRIX(COMPUTED("requests", "[1,\"1\"]")), "say what the query was: --values rate" },
		{ MATRIX(COUNTER("request_success_total", "[2,\"1\"],[1,\"2\"]")), "go back in time" },
		{ MATRIX(COUNTER("request_success_total", "[1,\"-1\"]")), "found -1; allowed: 0 or more" },
		{ MATRIX(COUNTER("request_success_total", "[1,\"x\"]")), "found 'x'; allowed: a quoted number" },
		{ MATRIX(COUNTER("request_success_total", "[\"x\",\"1\"]")), "time of a sample: found 'x'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace t = { .length = 77 };
		struct import_report r;
		struct error e = { 0 };
		if (import_text(cases[i].text, "auto", &t, &r, &e) || !strstr(e.message, cases[i].message))
			fail_msg("case %zu: expected '%s', got '%s'", i, cases[i].message, e.message);
		assert_int_equal(e.kind, ERROR_INVALID);
		assert_int_equal(t.length, 77);
	}
}

/* One answer per query, as Prometheus gives them. */
static void several_files(void **state)
{
	const char *texts[] = { MATRIX(COUNTER("request_success_total", "[1000,\"0\"],[1010,\"2\"]")),
				MATRIX(COUNTER("prompt_tokens_total", "[1000,\"0\"],[1010,\"20\"]")),
				MATRIX(COUNTER("generation_tokens_total", "[1000,\"0\"],[1010,\"10\"]")) };
	struct text_file files[3], azure = text_file(AZURE "2023-11-16 18:15:46,1,2\n", 64);
	const char *paths[3];
	struct import_options options = { "auto", "auto" };
	struct import_report r;
	struct trace t;
	struct error e = { 0 };
	char rows[128];

	(void)state;
	for (int i = 0; i < 3; i++) {
		files[i] = text_file(texts[i], strlen(texts[i]));
		paths[i] = files[i].path;
	}
	assert_true(trace_import(paths, 3, &options, &t, &r, &e));
	show(&t, rows, sizeof rows);
	assert_string_equal(rows, "0:2:20:10 ");
	trace_release(&t);
	paths[2] = azure.path;
	assert_false(trace_import(paths, 3, &options, &t, &r, &e));
	assert_non_null(strstr(e.message, "is azure, the file before is prometheus"));
	for (int i = 0; i < 3; i++)
		text_file_close(&files[i]);
	text_file_close(&azure);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recordings),
		cmocka_unit_test(prometheus),
		cmocka_unit_test(bad_recordings),
		cmocka_unit_test(several_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
