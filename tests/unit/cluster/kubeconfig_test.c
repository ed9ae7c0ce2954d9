#include "controller/cluster/kubeconfig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/kubeconfig.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "a",    "b", "c", "ca.pem", "token", "ca.crt", "namespace", ".kube/config",
					     ".kube" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		remove(path);
	}
	return rmdir(folder);
}

static const char *put(const char *name, const char *text)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

#define CONTEXT(cluster, user)                                                                           \
	"apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- name: here\n  context:\n    " \
	"cluster: " cluster "\n    user: " user "\n"
#define CLUSTER "clusters:\n- name: c\n  cluster:\n    server: https://10.0.0.1:6443/\n"
#define USER	"users:\n- name: u\n  user:\n"
#define PEM_64	"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==" /* "-----BEGIN CERTIFICATE-----\n" */

static bool read_one(const char *text, struct kubeconfig *k, struct error *e)
{
	return kubeconfig_read(&(struct kubeconfig_wish){ .path = put("a", text) }, k, e);
}

static void everything(void **state)
{
	struct kubeconfig k;
	struct error e;
	char path[128];

	(void)state;
	put("ca.pem", "x");
	if (!read_one(
		    CONTEXT("c",
			    "u") "    namespace: llm\n" CLUSTER
				 "    certificate-authority: ca.pem\n    tls-server-name: api.internal\n    proxy-url: "
				 "socks5://127.0.0.1:1080\n" USER "    client-certificate-data: " PEM_64
				 "\n    client-key-data: " PEM_64 "\n    tokenFile: token\n    token: old\n",
		    &k, &e))
		fail_msg("%s", e.message);
	assert_string_equal(k.server, "https://10.0.0.1:6443");
	assert_string_equal(k.name_space, "llm");
	assert_string_equal(k.context, "here");
	assert_string_equal(k.proxy, "socks5://127.0.0.1:1080");
	assert_string_equal(k.tls.server_name, "api.internal");
	assert_string_equal(k.tls.cert, "-----BEGIN CERTIFICATE-----\n");
	assert_string_equal(k.token, "old");
	snprintf(path, sizeof path, "%s/ca.pem", folder);
	assert_string_equal(k.tls.ca_file, path);
	snprintf(path, sizeof path, "%s/token", folder);
	assert_string_equal(k.token_file, path);
	kubeconfig_release(&k);
}

static void a_plugin(void **state)
{
	struct kubeconfig k;
	struct error e;
	char path[128];

	(void)state;
	if (!read_one(CONTEXT("c", "u") CLUSTER USER "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n   "
						     "   command: bin/get-token\n      args: "
						     "[\"--cluster\", prod]\n      env:\n      - {name: AWS_PROFILE, "
						     "value: ops}\n      - {name: EMPTY, value: "
						     "\"\"}\n      interactiveMode: IfAvailable\n      "
						     "provideClusterInfo: true\n      installHint: install it\n",
		      &k, &e))
		fail_msg("%s", e.message);
	snprintf(path, sizeof path, "%s/bin/get-token", folder);
	assert_string_equal(k.exec.command, path);
	assert_string_equal(k.exec.args[1], "prod");
	assert_null(k.exec.args[2]);
	assert_string_equal(k.exec.env[0], "AWS_PROFILE=ops");
	assert_string_equal(k.exec.env[1], "EMPTY=");
	assert_null(k.exec.env[2]);
	assert_true(k.exec.provides_cluster);
	assert_string_equal(k.exec.install_hint, "install it");
	assert_string_equal(k.name_space, "default");
	kubeconfig_release(&k);
}

/* Each is refused with one message that holds this, and never the secret. */
static void refusals(void **state)
{
	static const struct {
		const char *text, *message;
		enum error_kind kind;
	} cases[] = {
		{ "", "no current-context", ERROR_INVALID },
		{ "just text", "no kubeconfig", ERROR_INVALID },
		{ "a: [", "the YAML cannot be read from here", ERROR_INVALID },
		{ "users:\n- name: u\n  user: {token: SECRET\n", "the YAML cannot be read", ERROR_INVALID },
		{ "a: SECRET\na: SECRET\n", "the YAML cannot be read", ERROR_INVALID },
		{ "current-context: nowhere\n", "there is no entry 'nowhere' in contexts", ERROR_INVALID },
		{ CONTEXT("d", "u") CLUSTER USER "    token: x\n", "there is no entry 'd' in clusters", ERROR_INVALID },
		{ CONTEXT("c", "v") CLUSTER USER "    token: x\n", "there is no entry 'v' in users", ERROR_INVALID },
		{ CONTEXT("c", "u") "clusters: {c: 1}\n", "a list is allowed here", ERROR_INVALID },
		{ CONTEXT("c", "u") "clusters:\n- name: c\n", "an object is needed beside the name", ERROR_INVALID },
		{ "current-context: x\ncontexts:\n- name: x\n  context: {user: u}\n", "names no cluster",
		  ERROR_INVALID },
		{ CONTEXT("c", "u") "clusters:\n- name: c\n  cluster: {server: 10.0.0.1}\n",
		  "needs a server like https://", ERROR_INVALID },
		{ CONTEXT("c", "u") "clusters:\n- name: c\n  cluster: {server: 'https://me:SECRET@x'}\n",
		  "needs a server", ERROR_INVALID },
		{ CONTEXT("c", "u") "clusters:\n- name: c\n  cluster: {}\n", "needs a server like https://",
		  ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER "    certificate-authority: missing.pem\n", "missing.pem cannot be read",
		  ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER "    certificate-authority-data: '!!'\n", "base64 of a PEM text",
		  ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER "    certificate-authority-data: QUJD\n", "base64 of a PEM text",
		  ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER "    insecure-skip-tls-verify: maybe\n", "true or false", ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER
		  "    insecure-skip-tls-verify: true\n    certificate-authority-data: " PEM_64 "\n",
		  "contradicts certificate-authority", ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER "    proxy-url: ftp://x\n", "http, https or socks5", ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER USER "    client-certificate-data: " PEM_64 "\n", "go together",
		  ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER USER "    client-key-data: SECRET\n", "base64 of a PEM text",
		  ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER USER "    token: [SECRET]\n", "a text is allowed here", ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER USER "    username: me\n    password: SECRET\n", "passwords are gone",
		  ERROR_AUTH },
		{ CONTEXT("c", "u") CLUSTER USER "    auth-provider: {name: gcp}\n", "auth-provider is gone",
		  ERROR_AUTH },
		{ CONTEXT("c", "u") CLUSTER USER "    token: SECRET\n    as: root\n", "impersonation", ERROR_AUTH },
		{ CONTEXT("c", "u") CLUSTER USER "    exec: {command: x}\n", "client.authentication.k8s.io/v1",
		  ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER USER
		  "    exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}\n",
		  "client.authentication.k8s.io/v1 or v1beta1", ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER USER "    exec: {apiVersion: client.authentication.k8s.io/v1}\n",
		  "has no command", ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER USER
		  "    exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}\n",
		  "needs a person", ERROR_AUTH },
		{ CONTEXT("c", "u") CLUSTER USER
		  "    exec: {apiVersion: client.authentication.k8s.io/v1, command: x, args: {a: b}}\n",
		  "a list of texts", ERROR_INVALID },
		{ CONTEXT("c", "u") CLUSTER USER
		  "    exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [{name: A=B}]}\n",
		  "name and value", ERROR_INVALID },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct kubeconfig k = { .server = "untouched" };
		struct error e = { 0 };
		if (read_one(cases[i].text, &k, &e) || e.kind != cases[i].kind ||
		    !strstr(e.message, cases[i].message) || strstr(e.message, "SECRET") || !strstr(e.message, folder))
			fail_msg("%s\ngot: %s %s", cases[i].text, error_kind_name(e.kind), e.message);
		assert_string_equal(k.server, "untouched");
	}
}

static void several_files_are_merged(void **state)
{
	char list[400];
	struct kubeconfig k;
	struct error e;

	(void)state;
	put("a", "current-context: here\nusers:\n- name: u\n  user: {token: first}\n");
	put("b", CONTEXT("c", "u") CLUSTER USER "    token: second\n");
	put("c", "current-context: other\ncontexts:\n- name: there\n  context: {cluster: c, namespace: far}\n");
	snprintf(list, sizeof list, ":%s/missing:%s/a:%s/b::%s/c", folder, folder, folder, folder);
	assert_true(kubeconfig_read(&(struct kubeconfig_wish){ .environment = list }, &k, &e));
	assert_string_equal(k.context, "here");
	assert_string_equal(k.token, "first");
	kubeconfig_release(&k);
	assert_true(kubeconfig_read(&(struct kubeconfig_wish){ .environment = list, .context = "there" }, &k, &e));
	assert_string_equal(k.name_space, "far");
	assert_null(k.token);
	kubeconfig_release(&k);
	snprintf(list, sizeof list, "%s/missing", folder);
	assert_false(kubeconfig_read(&(struct kubeconfig_wish){ .environment = list }, &k, &e));
	assert_int_equal(e.kind, ERROR_UNAVAILABLE);
}

static void where_it_is_looked_for(void **state)
{
	struct kubeconfig k;
	struct error e;
	char path[128];

	(void)state;
	assert_false(kubeconfig_read(&(struct kubeconfig_wish){ 0 }, &k, &e));
	assert_non_null(strstr(e.message, "--kubeconfig"));
	assert_false(kubeconfig_read(&(struct kubeconfig_wish){ .home = folder, .environment = "" }, &k, &e));
	assert_int_equal(e.kind, ERROR_UNAVAILABLE);
	snprintf(path, sizeof path, "%s/.kube", folder);
	mkdir(path, 0700);
	put(".kube/config", CONTEXT("c", "u") CLUSTER USER "    token: x\n");
	assert_true(kubeconfig_read(&(struct kubeconfig_wish){ .home = folder }, &k, &e));
	kubeconfig_release(&k);
	snprintf(path, sizeof path, "%s/nothing", folder);
	assert_false(kubeconfig_read(&(struct kubeconfig_wish){ .home = folder, .path = path }, &k, &e));
	assert_non_null(strstr(e.message, path));
}

static void in_a_pod(void **state)
{
	struct kubeconfig k;
	struct error e;

	(void)state;
	assert_false(in_cluster_is_present(&(struct in_cluster_wish){ .host = "", .port = "443" }));
	assert_false(in_cluster_read(&(struct in_cluster_wish){ 0 }, &k, &e));
	struct in_cluster_wish w = { .host = "fd00::1", .port = "443", .folder = folder };
	assert_false(in_cluster_read(&w, &k, &e));
	assert_non_null(strstr(e.message, "ServiceAccount"));
	put("token", "t");
	put("ca.crt", "x");
	assert_true(in_cluster_read(&w, &k, &e));
	assert_string_equal(k.server, "https://[fd00::1]:443");
	assert_string_equal(k.name_space, "default");
	kubeconfig_release(&k);
	put("namespace", "llm\n");
	w.host = "10.0.0.1";
	assert_true(in_cluster_read(&w, &k, &e));
	assert_string_equal(k.server, "https://10.0.0.1:443");
	assert_string_equal(k.name_space, "llm");
	kubeconfig_release(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),
		cmocka_unit_test(a_plugin),
		cmocka_unit_test(refusals),
		cmocka_unit_test(several_files_are_merged),
		cmocka_unit_test(where_it_is_looked_for),
		cmocka_unit_test(in_a_pod),
	};

	return cmocka_run_group_tests_name("kubeconfig", tests, make_folder, remove_folder);
}
