/* Where credentials come from, against a server that plays STS, the Pod Identity agent and the metadata service. */
#include "providers/aws/keyring.h"
#include "base/net/server.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct server_route routes[4];
	struct aws_environment env;
	struct aws_keyring *keyring;
	int asked, status; /* status 0: 200 */
	millis lasts;	   /* of the credentials given */
	char url[80], full[96], folder[64], token_file[96], profile_file[96];
	char seen[1024];     /* the last request's body, or a header that matters */
	const char *spoiled; /* in place of the answer */
};

static void write_time(millis at, char room[32])
{
	time_t seconds = (time_t)(at / 1000);
	struct tm t;

	gmtime_r(&seconds, &t);
	strftime(room, 32, "%Y-%m-%dT%H:%M:%SZ", &t);
}

static millis now(void)
{
	return (millis)time(NULL) * 1000;
}

static void write_json(struct scene *s, struct buf *out)
{
	char until[32];

	write_time(now() + s->lasts, until);
	buf_printf(
		out,
		"{\"Code\":\"Success\",\"AccessKeyId\":\"ASIA%d\",\"SecretAccessKey\":\"secret\",\"Token\":\"session\","
		"\"Expiration\":\"%s\"}",
		s->asked, until);
}

static bool spoil(struct scene *s, struct server_answer *a)
{
	a->status = s->status ? s->status : 200;
	if (s->spoiled)
		buf_text(&a->body, s->spoiled);
	return s->spoiled;
}

static void play_sts(const struct server_request *q, struct server_answer *a)
{
	struct scene *s = q->user;
	char until[32];

	s->asked++;
	assert_null(server_header(q, "Authorization"));
	snprintf(s->seen, sizeof s->seen, "%s", q->body);
	if (spoil(s, a))
		return;
	write_time(now() + s->lasts, until);
	buf_printf(
		&a->body,
		"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA%d"
		"</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</"
		"SessionToken><Expiration>%s"
		"</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
		s->asked, until);
}

static void play_agent(const struct server_request *q, struct server_answer *a)
{
	struct scene *s = q->user;
	const char *token = server_header(q, "Authorization");

	s->asked++;
	snprintf(s->seen, sizeof s->seen, "%s", token ? token : "");
	if (!spoil(s, a))
		write_json(s, &a->body);
}

static void play_session(const struct server_request *q, struct server_answer *a)
{
	struct scene *s = q->user;

	s->asked++;
	assert_string_equal(server_header(q, "X-aws-ec2-metadata-token-ttl-seconds"), "21600");
	if (!spoil(s, a))
		buf_text(&a->body, "TOKEN==");
}

static void play_metadata(const struct server_request *q, struct server_answer *a)
{
	struct scene *s = q->user;

	s->asked++;
	assert_string_equal(server_header(q, "X-aws-ec2-metadata-token"), "TOKEN==");
	if (strcmp(q->path, "/latest/meta-data/iam/security-credentials/") == 0)
		buf_text(&a->body, "node+role\n");
	else if (strcmp(q->path, "/latest/meta-data/iam/security-credentials/node+role") == 0)
		write_json(s, &a->body);
	else
		a->status = 404;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	s->loop = loop_open();
	s->http = http_open(s->loop, "test", &e);
	s->routes[0] = (struct server_route){ "POST", "/", play_sts, s };
	s->routes[1] = (struct server_route){ "GET", "/v1/credentials", play_agent, s };
	s->routes[2] = (struct server_route){ "PUT", "/latest/api/token", play_session, s };
	s->routes[3] = (struct server_route){ "GET", "/latest/meta-data/*", play_metadata, s };
	s->server = server_open(
		s->loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = s->routes, .route_count = 4 },
		&e);
	assert_non_null(s->server);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", server_port(s->server));
	snprintf(s->full, sizeof s->full, "%s/v1/credentials", s->url);
	snprintf(s->folder, sizeof s->folder, "/tmp/keyring-test-XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->token_file, sizeof s->token_file, "%s/token", s->folder);
	snprintf(s->profile_file, sizeof s->profile_file, "%s/credentials", s->folder);
	s->lasts = HOUR;
	s->env.endpoint_sts = s->url;
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	aws_keyring_close(s->keyring);
	server_close(s->server);
	http_close(s->http);
	loop_close(s->loop);
	unlink(s->token_file);
	unlink(s->profile_file);
	rmdir(s->folder);
	free(s);
	return 0;
}

struct asker {
	struct aws_wait wait;
	int granted;
	char key[64], token[64];
	bool is_asking;
};

static void on_granted(struct aws_wait *w)
{
	struct asker *a = w->user;

	assert_false(a->is_asking);
	a->granted++;
	if (w->error.kind == ERROR_NONE) {
		snprintf(a->key, sizeof a->key, "%s", w->credentials->access_key_id);
		snprintf(a->token, sizeof a->token, "%s", w->credentials->session_token);
	}
}

static void begin(struct scene *s, struct asker *a)
{
	if (!s->keyring)
		s->keyring = aws_keyring_open(s->loop, s->http, &s->env, NULL);
	*a = (struct asker){ .wait = { .granted = on_granted, .user = a }, .is_asking = true };
	aws_keyring_ask(s->keyring, "eu-west-1", &a->wait);
	a->is_asking = false;
}

static enum error_kind ask(struct scene *s, struct asker *a)
{
	begin(s, a);
	while (!a->granted)
		assert_true(loop_once(s->loop));
	assert_int_equal(a->granted, 1);
	return a->wait.error.kind;
}

static void use_web_identity(struct scene *s)
{
	write_file(s->token_file, "jwt.one\n");
	s->env.role_arn = "arn:aws:iam::1:role/preheat";
	s->env.web_identity_token_file = s->token_file;
}

static void the_environment_comes_first(void **state)
{
	struct scene *s = *state;
	struct asker a;

	use_web_identity(s);
	s->env.access_key_id = "AKIDEXAMPLE";
	s->env.secret_access_key = "secret";
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "AKIDEXAMPLE");
	assert_string_equal(a.token, "");
	assert_int_equal(s->asked, 0);
}

static void half_of_a_key_is_told(void **state)
{
	struct scene *s = *state;
	struct asker a;

	s->env.access_key_id = "AKIDEXAMPLE";
	assert_int_equal(ask(s, &a), ERROR_AUTH);
	assert_non_null(strstr(a.wait.error.message, "only one of"));
}

static void a_web_identity_is_exchanged_and_read_anew(void **state)
{
	struct scene *s = *state;
	struct asker a;

	use_web_identity(s);
	s->lasts = 3 * MINUTE; /* so near its end that each needs another */
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "ASIA1");
	assert_string_equal(a.token, "session");
	assert_string_equal(s->seen,
			    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole"
			    "%2Fpreheat&RoleSessionName=preheat&WebIdentityToken=jwt.one");
	write_file(s->token_file, "jwt.two");
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "ASIA2");
	assert_non_null(strstr(s->seen, "WebIdentityToken=jwt.two"));
}

static void credentials_are_kept_until_shortly_before_their_end(void **state)
{
	struct scene *s = *state;
	struct asker a;

	use_web_identity(s);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_int_equal(s->asked, 1);
	aws_keyring_refused(s->keyring, "ASIAother");
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_int_equal(s->asked, 1);
	aws_keyring_refused(s->keyring, "ASIA1");
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "ASIA2");
}

static void all_who_wait_share_one_request(void **state)
{
	struct scene *s = *state;
	struct asker askers[20];
	int granted = 0;

	use_web_identity(s);
	for (size_t i = 0; i < 20; i++)
		begin(s, &askers[i]);
	while (granted < 20) {
		assert_true(loop_once(s->loop));
		granted = 0;
		for (size_t i = 0; i < 20; i++)
			granted += askers[i].granted;
	}
	for (size_t i = 0; i < 20; i++)
		assert_string_equal(askers[i].key, "ASIA1");
	assert_int_equal(s->asked, 1);
}

static void who_gives_up_does_not_end_it_for_others(void **state)
{
	struct scene *s = *state;
	struct asker one, other;

	use_web_identity(s);
	begin(s, &one);
	begin(s, &other);
	loop_poll(s->loop);
	aws_keyring_cancel(s->keyring, &one.wait);
	while (!one.granted || !other.granted)
		assert_true(loop_once(s->loop));
	assert_int_equal(one.wait.error.kind, ERROR_CANCELLED);
	assert_string_equal(other.key, "ASIA1");
	assert_int_equal(one.granted + other.granted, 2);
	/* the last one who waits ends it; whoever comes then is served */
	aws_keyring_refused(s->keyring, "ASIA1");
	begin(s, &one);
	loop_poll(s->loop);
	aws_keyring_cancel(s->keyring, &one.wait);
	begin(s, &other);
	while (!one.granted || !other.granted)
		assert_true(loop_once(s->loop));
	assert_int_equal(one.wait.error.kind, ERROR_CANCELLED);
	assert_int_equal(other.wait.error.kind, ERROR_NONE);
}

struct passing {
	struct aws_wait wait;
	char *region; /* freed once its call is over */
};

static void forget_region(struct aws_wait *w)
{
	struct passing *p = w->user;

	free(p->region);
	p->region = NULL;
}

static void ask_for(struct scene *s, struct passing *p, const char *region)
{
	*p = (struct passing){ .wait = { .granted = forget_region, .user = p }, .region = strdup(region) };
	assert_non_null(p->region);
	aws_keyring_ask(s->keyring, p->region, &p->wait);
}

/* What a call that was given up had in its memory is gone when those that still wait go on. */
static void the_region_is_one_of_who_still_waits(void **state)
{
	struct scene *s = *state;
	struct passing one, other;

	use_web_identity(s);
	s->env.endpoint_sts = NULL;
	s->keyring = aws_keyring_open(s->loop, s->http, &s->env, NULL);
	ask_for(s, &one, "no host"); /* so that nobody is asked */
	ask_for(s, &other, "eu-north-1");
	aws_keyring_cancel(s->keyring, &other.wait);
	while (one.region || other.region)
		assert_true(loop_once(s->loop));
	assert_int_equal(other.wait.error.kind, ERROR_CANCELLED);
	assert_true(one.wait.error.kind != ERROR_NONE && one.wait.error.kind != ERROR_CANCELLED);
}

static void what_goes_wrong_is_told_once_and_without_secrets(void **state)
{
	static const struct {
		const char *answer;
		int status;
		enum error_kind kind;
		const char *message;
	} cases[] = {
		{ "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform "
		  "sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>",
		  403, ERROR_AUTH, "AccessDenied: Not authorized" },
		{ "<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error></ErrorResponse>", 400, ERROR_AUTH,
		  "InvalidIdentityToken" },
		{ "<ErrorResponse><Error><Code>IDPCommunicationError</Code></Error></ErrorResponse>", 400,
		  ERROR_UNAVAILABLE, "IDPCommunicationError" },
		{ "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>", 400, ERROR_THROTTLED,
		  "Throttling" },
		{ "busy", 503, ERROR_UNAVAILABLE, "HTTP status 503" },
		{ "<html>", 200, ERROR_INVALID, "XML line 1" },
		{ "<R><AssumeRoleWithWebIdentityResult><Credentials><SecretAccessKey>hidden</"
		  "SecretAccessKey><Expiration>hidden"
		  "</Expiration></Credentials></AssumeRoleWithWebIdentityResult></R>",
		  200, ERROR_INVALID, "not whole" },
		{ "<R><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>a\nb</"
		  "AccessKeyId><SecretAccessKey>hidden"
		  "</SecretAccessKey><SessionToken/><Expiration>2026-01-01T00:00:00Z</Expiration></Credentials>"
		  "</AssumeRoleWithWebIdentityResult></R>",
		  200, ERROR_INVALID, "no key has" },
	};
	struct scene *s = *state;

	use_web_identity(s);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct asker a;
		int before = s->asked;
		s->spoiled = cases[i].answer;
		s->status = cases[i].status;
		assert_int_equal(ask(s, &a), cases[i].kind);
		assert_non_null(strstr(a.wait.error.message, "AWS credentials of a web identity"));
		assert_non_null(strstr(a.wait.error.message, cases[i].message));
		assert_null(strstr(a.wait.error.message, "hidden"));
		assert_null(strstr(a.wait.error.message, "jwt"));
		/* asked again at once, nobody is bothered; unless the first pause, of a random length, was over already
		 */
		assert_int_equal(ask(s, &a), cases[i].kind);
		assert_true(s->asked - before <= 2);
		aws_keyring_close(s->keyring);
		s->keyring = NULL;
	}
}

static void a_refresh_that_fails_leaves_what_still_holds(void **state)
{
	struct scene *s = *state;
	struct asker a;

	use_web_identity(s);
	s->lasts = 3 * MINUTE;
	assert_int_equal(ask(s, &a), ERROR_NONE);
	s->spoiled = "busy";
	s->status = 503;
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "ASIA1");
	assert_int_equal(s->asked, 2);
}

static void tokens_that_are_none_are_told(void **state)
{
	struct scene *s = *state;
	struct asker a;

	use_web_identity(s);
	write_file(s->token_file, "  \n");
	assert_int_equal(ask(s, &a), ERROR_AUTH);
	assert_non_null(strstr(a.wait.error.message, "is empty"));
	aws_keyring_close(s->keyring);
	s->keyring = NULL;
	unlink(s->token_file);
	assert_int_equal(ask(s, &a), ERROR_AUTH);
	assert_non_null(strstr(a.wait.error.message, s->token_file));
}

static void pod_identity_gives_credentials(void **state)
{
	struct scene *s = *state;
	struct asker a;

	write_file(s->token_file, "pod.token\n");
	s->env.container_full_uri = s->full;
	s->env.container_token_file = s->token_file;
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "ASIA1");
	assert_string_equal(s->seen, "pod.token");
}

static void pod_identity_is_asked_near_by_only(void **state)
{
	static const char *const urls[] = {
		"http://example.com/v1/credentials",
		"http://169.254.170.23.example.com/",
		"http://127.0.0.1.example.com/",
		"http://user@169.254.170.23/",
		"ftp://127.0.0.1/",
		"169.254.170.23",
		"http://[fd00:ec2::24]/",
		"http://169.254.169.254/",
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct asker a;
		s->env.container_full_uri = urls[i];
		assert_int_equal(ask(s, &a), ERROR_AUTH);
		assert_non_null(strstr(a.wait.error.message, "AWS_CONTAINER_CREDENTIALS_FULL_URI"));
		aws_keyring_close(s->keyring);
		s->keyring = NULL;
	}
}

static void the_metadata_service_comes_last(void **state)
{
	struct scene *s = *state;
	struct asker a;

	s->env.metadata_endpoint = s->url;
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "ASIA3");
	assert_int_equal(s->asked, 3);
	aws_keyring_close(s->keyring);
	s->keyring = NULL;
	s->status = 403;
	s->spoiled = "";
	assert_int_equal(ask(s, &a), ERROR_AUTH);
	assert_non_null(strstr(a.wait.error.message, "instance metadata service"));
}

static void a_profile_that_nobody_named_may_be_absent(void **state)
{
	struct scene *s = *state;
	struct asker a;

	write_file(s->profile_file, "[other]\naws_access_key_id=AKIDOTHER\naws_secret_access_key=s2\n");
	s->env.credentials_file = s->profile_file;
	s->env.container_full_uri = s->full;
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "ASIA1");
}

static void nothing_at_all_is_told_with_what_was_looked_for(void **state)
{
	struct scene *s = *state;
	struct asker a;

	s->env.metadata_disabled = "true";
	assert_int_equal(ask(s, &a), ERROR_AUTH);
	assert_non_null(strstr(a.wait.error.message, "AWS_WEB_IDENTITY_TOKEN_FILE"));
	assert_non_null(strstr(a.wait.error.message, "service account"));
}

static void a_profile_is_read(void **state)
{
	struct scene *s = *state;
	struct asker a;

	write_file(s->profile_file,
		   "# keys\n[default]\naws_access_key_id = AKIDDEFAULT\r\naws_secret_access_key=s1\n\n[ other ]\n"
		   "region = x\naws_access_key_id=AKIDOTHER\n;aws_access_key_id=AKIDNOT\naws_secret_access_key = s2 "
		   "\naws_session_token=t2\n[half]\naws_access_key_id=AKIDHALF\n");
	s->env.credentials_file = s->profile_file;
	assert_int_equal(ask(s, &a), ERROR_NONE);
	assert_string_equal(a.key, "AKIDDEFAULT");
	static const struct {
		const char *profile, *key, *message;
	} cases[] = { { "other", "AKIDOTHER", NULL },
		      { "half", NULL, "profile [half] has no" },
		      { "none", NULL, "there is no profile [none]" } };
	for (size_t i = 0; i < 3; i++) {
		aws_keyring_close(s->keyring);
		s->keyring = NULL;
		s->env.profile = cases[i].profile;
		assert_int_equal(ask(s, &a), cases[i].key ? ERROR_NONE : ERROR_AUTH);
		if (cases[i].key)
			assert_string_equal(a.key, cases[i].key);
		else
			assert_non_null(strstr(a.wait.error.message, cases[i].message));
	}
}

static void a_clock_that_is_wrong_is_put_right(void **state)
{
	struct scene *s = *state;
	struct asker a;
	char date[64];
	time_t ahead = time(NULL) + 3600, near = time(NULL) + 60;
	struct tm t;

	s->env.metadata_disabled = "true";
	ask(s, &a);
	gmtime_r(&near, &t);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &t);
	assert_false(aws_keyring_set_clock(s->keyring, date));
	assert_false(aws_keyring_set_clock(s->keyring, NULL));
	assert_false(aws_keyring_set_clock(s->keyring, "tomorrow"));
	gmtime_r(&ahead, &t);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &t);
	assert_true(aws_keyring_set_clock(s->keyring, date));
	millis off = aws_keyring_now(s->keyring) - now() - HOUR;
	assert_true(off > -3 * SECOND && off < 3 * SECOND);
	assert_false(aws_keyring_set_clock(s->keyring, date));
	assert_true(aws_keyring_set_clock(s->keyring, "Sun, 06 Nov 1994 08:49:37 GMT"));
	assert_true(aws_keyring_now(s->keyring) - 784111777000 < 3 * SECOND);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_environment_comes_first),
		TEST(half_of_a_key_is_told),
		TEST(a_web_identity_is_exchanged_and_read_anew),
		TEST(credentials_are_kept_until_shortly_before_their_end),
		TEST(all_who_wait_share_one_request),
		TEST(who_gives_up_does_not_end_it_for_others),
		TEST(the_region_is_one_of_who_still_waits),
		TEST(what_goes_wrong_is_told_once_and_without_secrets),
		TEST(a_refresh_that_fails_leaves_what_still_holds),
		TEST(tokens_that_are_none_are_told),
		TEST(pod_identity_gives_credentials),
		TEST(pod_identity_is_asked_near_by_only),
		TEST(the_metadata_service_comes_last),
		TEST(a_profile_that_nobody_named_may_be_absent),
		TEST(nothing_at_all_is_told_with_what_was_looked_for),
		TEST(a_profile_is_read),
		TEST(a_clock_that_is_wrong_is_put_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
