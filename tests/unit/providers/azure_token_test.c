/* How tokens are asked for by each kind of credential, what the answers say, and where a token may be shown. */
#include "base/signature.h"
#include "providers/azure/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct azure_place home = { "https://management.azure.com", "https://management.azure.com/",
					 "https://login.microsoftonline.com" };

static const char *write_file(const char *text, char room[32])
{
	snprintf(room, 32, "/tmp/azure_token_XXXXXX");
	int fd = mkstemp(room);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return room;
}

static void each_credential_asks_in_its_way(void **state)
{
	char path[32];
	static const char tail[] = "&scope=https%3A%2F%2Fmanagement.azure.com%2F.default";
	struct token_request secret = { 0 }, federated = { 0 }, managed = { 0 }, other = { 0 };
	struct azure_environment env = { .tenant = "t/1", .client = "c", .secret = "a&b=c +%" };
	CLEANUP(buf_release) struct buf expected = { 0 };
	struct error e = { 0 };

	(void)state;
	assert_true(token_request_write(&env, &home, 0, &secret, &e));
	assert_string_equal(secret.url.text, "https://login.microsoftonline.com/t%2F1/oauth2/v2.0/token");
	buf_printf(&expected, "grant_type=client_credentials&client_id=c%s&client_secret=a%%26b%%3Dc%%20%%2B%%25",
		   tail);
	assert_string_equal(secret.body.text, expected.text);
	env = (struct azure_environment){ .tenant = "t", .client = "c", .token_file = write_file("ey.J.wt \n", path) };
	assert_true(token_request_write(&env, &home, 0, &federated, &e));
	buf_clear(&expected);
	buf_printf(
		&expected,
		"grant_type=client_credentials&client_id=c%s&client_assertion_type=urn%%3Aietf%%3Aparams%%3Aoauth%%3A"
		"client-assertion-type%%3Ajwt-bearer&client_assertion=ey.J.wt",
		tail);
	assert_string_equal(federated.body.text, expected.text);
	unlink(path);
	env = (struct azure_environment){ .client = "c 1" };
	assert_true(token_request_write(&env, &home, 0, &managed, &e));
	assert_string_equal(managed.url.text,
			    "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource="
			    "https%3A%2F%2Fmanagement.azure.com%2F&client_id=c%201");
	assert_int_equal(managed.body.len, 0);
	env = (struct azure_environment){ .imds = "http://127.0.0.1:2579/" };
	assert_true(token_request_write(&env, &home, 0, &other, &e));
	assert_memory_equal(other.url.text, "http://127.0.0.1:2579/metadata/", 31);
	token_request_release(&secret);
	token_request_release(&federated);
	token_request_release(&managed);
	token_request_release(&other);
}

static void credentials_by_halves_are_told(void **state)
{
	char empty[32];
	const struct {
		struct azure_environment env;
		const char *says;
	} cases[] = {
		{ { .secret = "s", .tenant = "t" }, "AZURE_CLIENT_ID" },
		{ { .secret = "s", .client = "c" }, "AZURE_TENANT_ID" },
		{ { .token_file = "/nowhere" }, "AZURE_FEDERATED_TOKEN_FILE is set" },
		{ { .token_file = "/nowhere/t", .client = "c", .tenant = "t" }, "/nowhere/t" },
		{ { .token_file = write_file(" \n", empty), .client = "c", .tenant = "t" }, "empty" },
		{ { .certificate = "/nowhere/c", .client = "c", .tenant = "t" }, "AZURE_CLIENT_CERTIFICATE_PATH" },
		{ { .certificate = empty, .client = "c", .tenant = "t" }, "empty" },
		{ { .certificate = "/etc/passwd", .client = "c", .tenant = "t" }, "no certificate" },
		{ { .imds = "http://example.com" }, "AZURE_POD_IDENTITY_AUTHORITY_HOST" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct token_request r = { 0 };
		struct error e = { 0 };
		assert_false(token_request_write(&cases[i].env, &home, 0, &r, &e));
		if (e.kind != ERROR_AUTH || !strstr(e.message, cases[i].says))
			fail_msg("%zu: %s", i, e.message);
		token_request_release(&r);
	}
	unlink(empty);
}

static void answers_are_read_whole_or_refused(void **state)
{
	static const struct {
		const char *text, *token;
		millis lives;
	} cases[] = {
		{ "{\"token_type\":\"Bearer\",\"expires_in\":86399,\"access_token\":\"abc\"}", "abc", 86399 * SECOND },
		{ "{\"token_type\":\"bearer\",\"expires_in\":\"3599\",\"expires_on\":\"1\",\"access_token\":\"abc\"}",
		  "abc", 3599 * SECOND },
		{ "{\"expires_in\":1,\"access_token\":\"abc\",\"new\":{}}", "abc", SECOND },
		{ "{\"expires_in\":86399}", NULL, 0 },
		{ "{\"expires_in\":86399,\"access_token\":\"\"}", NULL, 0 },
		{ "{\"expires_in\":86399,\"access_token\":\"a b\"}", NULL, 0 },
		{ "{\"expires_in\":86399,\"access_token\":\"a\\r\\nb\"}", NULL, 0 },
		{ "{\"expires_in\":-1,\"access_token\":\"abc\"}", NULL, 0 },
		{ "{\"expires_in\":1e99,\"access_token\":\"abc\"}", NULL, 0 },
		{ "{\"access_token\":\"abc\"}", NULL, 0 },
		{ "{\"token_type\":\"mac\",\"expires_in\":1,\"access_token\":\"abc\"}", NULL, 0 },
		{ "<html>", NULL, 0 },
		{ "", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		const char *token = NULL;
		millis lives = 0;
		struct error e = { 0 };
		bool ok = token_answer_read(cases[i].text, strlen(cases[i].text), &a, &token, &lives, &e);
		if (ok != (cases[i].token != NULL) || lives != cases[i].lives ||
		    (ok && strcmp(token, cases[i].token) != 0))
			fail_msg("%zu: %s", i, e.message);
		if (!ok)
			assert_null(strstr(e.message, "abc"));
	}
}

static void refusals_say_what_a_person_must_do(void **state)
{
	static const struct {
		long status;
		const char *text;
		enum error_kind kind;
		const char *says;
	} cases[] = {
		{ 401,
		  "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid client secret "
		  "provided.\\r\\n"
		  "Trace ID: 1\"}",
		  ERROR_AUTH, "no token: invalid_client: AADSTS7000215: Invalid client secret provided." },
		{ 400, "{\"error\":\"invalid_request\"}", ERROR_AUTH, "invalid_request" },
		{ 404, "not here", ERROR_AUTH, "404" },
		{ 429, "{}", ERROR_THROTTLED, "429" },
		{ 503, "<html>", ERROR_UNAVAILABLE, "503" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error e = { 0 };
		token_refusal_read(cases[i].status, cases[i].text, strlen(cases[i].text), &e);
		if (e.kind != cases[i].kind || !strstr(e.message, cases[i].says) || strstr(e.message, "Trace"))
			fail_msg("%zu: %s: %s", i, error_kind_name(e.kind), e.message);
	}
}

static void the_machines_own_service_is_asked_again_for_a_while(void **state)
{
	static const long passing[] = { 404, 429, 500, 503 };
	millis all = 0;

	(void)state;
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
		assert_int_equal(token_imds_wait(passing[i], 1, 0), 3 * SECOND);
		assert_int_equal(token_imds_wait(passing[i], 4, 0), 24 * SECOND);
		assert_int_equal(token_imds_wait(passing[i], 5, 0), -1);
	}
	assert_int_equal(token_imds_wait(400, 1, 0), -1);
	while (token_imds_wait(410, 50, all) > 0)
		all += token_imds_wait(410, 50, all);
	assert_true(all >= 70 * SECOND && all < 2 * MINUTE);
}

static void a_token_says_whose_it_is(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf token = { 0 };
	static const char claims[] =
		"{\"aud\":\"x\",\"appid\":\"app\",\"oid\":\"object\",\"tid\":\"tenant\",\"exp\":1}";
	struct token_claims c;

	(void)state;
	buf_text(&token, "e30.");
	base64url_write(claims, strlen(claims), &token);
	buf_text(&token, ".sig");
	assert_true(token_claims_read(token.text, &a, &c));
	assert_string_equal(c.application, "app");
	assert_string_equal(c.object, "object");
	assert_string_equal(c.tenant, "tenant");
	assert_false(token_claims_read("opaque", &a, &c));
	assert_false(token_claims_read("a.b", &a, &c));
	assert_false(token_claims_read("a.!!.c", &a, &c));
	assert_false(token_claims_read("a..c", &a, &c));
}

static void places_are_known_clouds_or_the_environments(void **state)
{
	static const struct {
		struct azure_environment env;
		const char *wanted, *endpoint, *audience, *authority; /* endpoint NULL: refused */
	} cases[] = {
		{ { 0 },
		  NULL,
		  "https://management.azure.com",
		  "https://management.azure.com/",
		  "https://login.microsoftonline.com" },
		{ { .cloud = "azureusgovernment" },
		  NULL,
		  "https://management.usgovcloudapi.net",
		  "https://management.usgovcloudapi.net/",
		  "https://login.microsoftonline.us" },
		{ { .cloud = "Mars" }, NULL, NULL, NULL, NULL },
		{ { 0 },
		  "https://management.chinacloudapi.cn/",
		  "https://management.chinacloudapi.cn",
		  "https://management.chinacloudapi.cn/",
		  "https://login.chinacloudapi.cn" },
		{ { .authority = "https://login.example/" },
		  NULL,
		  "https://management.azure.com",
		  "https://management.azure.com/",
		  "https://login.example" },
		{ { .endpoint = "https://arm.local:30024/", .authority = "https://login.local" },
		  NULL,
		  "https://arm.local:30024",
		  "https://arm.local:30024/",
		  "https://login.local" },
		{ { .endpoint = "https://arm.local", .audience = "https://aud" },
		  "https://arm.local/",
		  "https://arm.local",
		  "https://aud/",
		  "https://login.microsoftonline.com" },
		{ { 0 },
		  "http://127.0.0.1:9/",
		  "http://127.0.0.1:9",
		  "http://127.0.0.1:9/",
		  "https://login.microsoftonline.com" },
		{ { 0 }, "https://evil.example", NULL, NULL, NULL },
		{ { .endpoint = "https://arm.local" }, "https://arm.local.evil", NULL, NULL, NULL },
		{ { 0 }, "http://management.azure.com", NULL, NULL, NULL },
		{ { .endpoint = "http://arm.local" }, NULL, NULL, NULL, NULL },
		{ { .authority = "http://login.example" }, NULL, NULL, NULL, NULL },
		{ { .authority = "login.example" }, NULL, NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct azure_place p = { 0 };
		struct error e = { 0 };
		bool ok = azure_place_find(&cases[i].env, cases[i].wanted, &a, &p, &e);
		if (ok != (cases[i].endpoint != NULL))
			fail_msg("%zu: %s", i, e.message);
		if (!ok) {
			assert_true(e.kind == ERROR_INVALID && strstr(e.message, "allowed"));
			continue;
		}
		assert_string_equal(p.endpoint, cases[i].endpoint);
		assert_string_equal(p.audience, cases[i].audience);
		assert_string_equal(p.authority, cases[i].authority);
	}
}

static void a_token_is_shown_to_the_resource_manager_only(void **state)
{
	static const struct {
		const char *url;
		bool is_below;
	} cases[] = {
		{ "https://management.azure.com/x?y", true },
		{ "HTTPS://Management.Azure.COM:443/x", true },
		{ "https://eastus.management.azure.com/x", true },
		{ "http://management.azure.com/x", false },
		{ "https://management.azure.com:444/x", false },
		{ "https://evilmanagement.azure.com/x", false },
		{ "https://management.azure.com.evil/x", false },
		{ "https://evil/https://management.azure.com/", false },
		{ "https://evil?management.azure.com", false },
		{ "https://evil#.management.azure.com", false },
		{ "https://u@management.azure.com/", false },
		{ "https://management.azure.com@evil/", false },
		{ "https://management.azure.com\\@evil/", false },
		{ "https://management.azure.com:@evil/", false },
		{ "https://management.azure.com:443@evil/", false },
		{ "https:// management.azure.com/", false },
		{ "//management.azure.com/", false },
		{ "/x", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if ((azure_url_is_safe(cases[i].url) && azure_url_is_below(cases[i].url, home.endpoint)) !=
		    cases[i].is_below)
			fail_msg("%s", cases[i].url);
	assert_true(azure_url_is_safe("http://localhost:1/") && azure_url_is_safe("http://[::1]:1/"));
	assert_false(azure_url_is_safe("http://127.0.0.1.example/") || azure_url_is_safe("http://[::2]/") ||
		     azure_url_is_safe("ftp://localhost/") || azure_url_is_safe("https://") ||
		     azure_url_is_safe("https://a:b/"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_credential_asks_in_its_way),
		cmocka_unit_test(credentials_by_halves_are_told),
		cmocka_unit_test(answers_are_read_whole_or_refused),
		cmocka_unit_test(refusals_say_what_a_person_must_do),
		cmocka_unit_test(the_machines_own_service_is_asked_again_for_a_while),
		cmocka_unit_test(a_token_says_whose_it_is),
		cmocka_unit_test(places_are_known_clouds_or_the_environments),
		cmocka_unit_test(a_token_is_shown_to_the_resource_manager_only),
	};

	return cmocka_run_group_tests_name("azure_token", tests, NULL, NULL);
}
