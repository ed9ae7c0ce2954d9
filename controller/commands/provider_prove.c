#include "controller/commands/provider_prove.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/terminal.h"
#include "controller/commands/command.h"
#include "controller/commands/print.h"
#include "providers/provider.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MOST = 1 << 20, ACCOUNT_DIGITS = 12, KEY_ID_LENGTH = 20, SECRET_LENGTH = 40, ENCODED_LENGTH = 64 };

/* --- commands with a group's names in them --- */

struct wanted_key {
	const char *name;
	size_t len;
	struct buf *out;
};

static bool take_key(void *user, const struct json_event *event, struct error *e)
{
	struct wanted_key *k = user;

	(void)e;
	if (event->type == JSON_STRING && strlen(event->path) == k->len && !strncmp(event->path, k->name, k->len))
		buf_append(k->out, event->text, event->len);
	return true;
}

/* As it stands in the manifest; false: it is not there. */
static bool write_given(const struct group_spec *g, const char *name, size_t len, struct buf *out)
{
	struct wanted_key wanted = { name, len, out };
	struct json *j = json_open("settings", take_key, &wanted);
	struct error e = { 0 };
	size_t before = out->len;
	bool is_given = json_feed(j, g->settings, strlen(g->settings), &e) && json_finish(j, &e) && out->len > before;

	json_close(j);
	return is_given;
}

/* A key that is not there is left to the person. */
static void write_key(const struct group_spec *g, const char *name, size_t len, struct buf *out)
{
	if (!write_given(g, name, len, out))
		buf_printf(out, "{%.*s}", (int)len, name);
}

static bool is_asked(const struct group_spec *g, const struct provider_question *q)
{
	for (const char *key = q->when; *key; key += strcspn(key, " "), key += *key == ' ') {
		CLEANUP(buf_release) struct buf value = { 0 };
		bool shall_be = *key != '-';
		key += !shall_be;
		if (write_given(g, key, strcspn(key, " "), &value) != shall_be)
			return false;
	}
	return true;
}

static void write_command(const struct group_spec *g, const char *command, struct buf *out)
{
	for (const char *p = command; *p;) {
		size_t len = *p == '{' ? strspn(p + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") : 0;
		if (len && p[1 + len] == '}') {
			write_key(g, p + 1, len, out);
			p += len + 2;
		} else {
			buf_append(out, p++, 1);
		}
	}
}

/* --- what is kept --- */

static const char no_uuid[] = "00000000-0000-0000-0000-000000000000";

static bool is_token(char c)
{
	return isalnum((unsigned char)c) || c == '/' || c == '+' || c == '=' || c == '_' || c == '-' || c == '.';
}

static bool is_mixed(const char *word, size_t len)
{
	bool has_digit = false, has_upper = false, has_lower = false;

	for (size_t i = 0; i < len; i++) {
		has_digit |= isdigit((unsigned char)word[i]) != 0;
		has_upper |= isupper((unsigned char)word[i]) != 0;
		has_lower |= islower((unsigned char)word[i]) != 0;
	}
	return has_digit && has_upper && has_lower;
}

/* How much of the word is a key's id, a secret key or a token: nothing that a describing command prints and that a
 * recording needs. 0: nothing. */
static size_t secret_length(const char *word, size_t len)
{
	bool is_id = !strncmp(word, "AKIA", 4) || !strncmp(word, "ASIA", 4);
	bool is_token_text = len > SECRET_LENGTH && !strncmp(word, "eyJ", 3);

	if (is_id && len >= KEY_ID_LENGTH && !isalnum((unsigned char)word[KEY_ID_LENGTH]))
		return KEY_ID_LENGTH;
	if (is_token_text)
		return len;
	while (len && strchr(".=", word[len - 1])) /* the end of a sentence */
		len--;
	return len == SECRET_LENGTH && is_mixed(word, len) && !memchr(word, '-', len) ? len : 0;
}

/* A session token, a key in base64, a line of one; names and resource ids have a dash, a dot or an underline before. */
static bool is_encoded(const char *text, size_t len)
{
	return len >= ENCODED_LENGTH && is_mixed(text, len);
}

static size_t digits_at(const char *text)
{
	return strspn(text, "0123456789");
}

/* An account number: twelve digits, or three times four as the console shows it. 0: there is none. */
static size_t account_length(const char *text)
{
	size_t len = 0;

	if (digits_at(text) == ACCOUNT_DIGITS)
		return ACCOUNT_DIGITS;
	for (int part = 0; part < 3; part++, len += 4) {
		if (part && text[len++] != '-')
			return 0;
		if (digits_at(text + len) != 4)
			return 0;
	}
	return len;
}

static size_t uuid_length(const char *text)
{
	size_t hex = 0;

	while (hex < sizeof no_uuid - 1 &&
	       (no_uuid[hex] == '-' ? text[hex] == '-' : isxdigit((unsigned char)text[hex])))
		hex++;
	return hex == sizeof no_uuid - 1 ? hex : 0;
}

/* What stands at the begin of the text, which ends with a zero byte, and must not be kept: so many bytes, for which
 * *instead is written. */
static size_t masked_length(const char *text, const char **instead)
{
	size_t word = 0, encoded = 0, found;

	while (is_token(text[word]))
		word++;
	while (encoded < word && !strchr("_-.", text[encoded]))
		encoded++;
	*instead = "REDACTED";
	if ((found = secret_length(text, word)) || (found = is_encoded(text, encoded) ? encoded : 0))
		return found;
	*instead = "111122223333";
	if ((found = account_length(text)))
		return found;
	*instead = no_uuid;
	return uuid_length(text);
}

/* Nothing of a word stands before it: also behind \n, \u0022 and %3A. */
static bool begins_word(const char *text, const char *p)
{
	ptrdiff_t before = p - text;

	return !before || !isalnum((unsigned char)p[-1]) || (before > 1 && p[-2] == '\\') ||
	       (before > 2 && p[-3] == '%') || (before > 5 && p[-6] == '\\' && p[-5] == 'u');
}

/* Account numbers and subscriptions become those of examples. */
static void write_masked(const char *text, struct buf *out)
{
	for (const char *p = text; *p;) {
		bool begins = isalnum((unsigned char)*p) && begins_word(text, p);
		const char *instead;
		size_t len = begins ? masked_length(p, &instead) : 0;

		if (len)
			buf_text(out, instead);
		else
			buf_append(out, p, 1);
		p += len ? len : 1;
	}
}

static bool is_answer(const char *answers, const char *word, size_t len)
{
	for (const char *p = answers; *p; p += strcspn(p, " "), p += *p == ' ')
		if (strcspn(p, " ") == len && !strncmp(p, word, len))
			return true;
	return len == 4 && !strncmp(word, "skip", 4);
}

/* A word alone on its line; "": more than one, or none. */
static void take_word(const char *line, struct buf *out)
{
	size_t from = strspn(line, " \t"), len = strcspn(line + from, " \t\r\n");

	buf_clear(out);
	if (line[from + len + strspn(line + from + len, " \t\r\n")] == '\0')
		buf_append(out, line + from, len);
}

/* A word that somebody meant as an answer, and not the end of what a command prints. */
static bool is_typed(const struct buf *word)
{
	for (size_t i = 0; i < word->len; i++)
		if (!isalpha((unsigned char)word->text[i]))
			return false;
	return word->len > 0;
}

/* One line with its end, or so much of it as there is room for; zero bytes become spaces. False: there is no more. */
static bool read_line(char *line, size_t room)
{
	size_t len = 0;

	for (int c; len + 1 < room && (c = getchar()) != EOF;) {
		line[len++] = c ? (char)c : ' ';
		if (c == '\n')
			break;
	}
	line[len] = '\0';
	return len > 0;
}

/*
 * Lines up to one that is an answer. *found is false where they ended before; an error, where they go on for longer
 * than any command prints.
 */
static bool read_answer(const struct provider_question *q, struct buf *output, struct buf *answer, bool *found,
			struct error *e)
{
	static char line[ANSWER_MOST + 2];
	bool is_told = false;
	size_t read = 0;

	*found = false;
	while (read_line(line, sizeof line)) {
		take_word(line, answer);
		*found = answer->len && is_answer(q->answers, answer->text, answer->len);
		if (*found)
			return true;
		if (is_typed(answer) && !is_told) {
			printf("Kept as output. The answer is one of: %s skip\n", q->answers);
			fflush(stdout);
			is_told = true;
		}
		read += strlen(line);
		if (read > ANSWER_MOST)
			return error_set(
				e, ERROR_INVALID,
				"question %s: %d bytes and no answer among them; do: paste less, and end it with "
				"one of these on a line of its own: %s skip",
				q->id, ANSWER_MOST, q->answers);
		write_masked(line, output);
	}
	return true;
}

/* --- the questions --- */

static void print_question(const struct group_spec *g, const struct provider_question *q, size_t number, size_t count)
{
	CLEANUP(buf_release) struct buf command = { 0 };
	struct terminal t = terminal_of(stdout);

	write_command(g, q->command, &command);
	printf("%s%zu of %zu: %s%s\nWhy: %s.\n\n", terminal_style(&t, STYLE_STRONG), number, count, q->asks,
	       terminal_style(&t, STYLE_PLAIN), q->why);
	for (const char *line = command.text ? command.text : ""; *line;
	     line += strcspn(line, "\n"), line += *line == '\n')
		printf("    %.*s\n", (int)strcspn(line, "\n"), line);
	printf("\n");
}

static void write_answer(const struct group_spec *g, const struct provider_question *q, const struct buf *output,
			 const struct buf *answer, struct buf *out)
{
	CLEANUP(buf_release) struct buf command = { 0 }, masked = { 0 };

	write_command(g, q->command, &command);
	write_masked(command.text ? command.text : "", &masked);
	json_write_comma(out);
	buf_text(out, "\n{");
	print_json_text("id", q->id, out);
	print_json_text("asks", q->asks, out);
	print_json_text("command", masked.text, out);
	print_json_text("answer", answer->text, out);
	print_json_text("output", output->text ? output->text : "", out);
	buf_text(out, "}");
}

static void write_head(const struct group_spec *g, struct buf *out)
{
	struct clock wall = clock_open();
	time_t seconds = (time_t)(clock_now(&wall) / SECOND);
	struct tm tm;
	char at[32] = "";

	if (gmtime_r(&seconds, &tm))
		strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_text(out, "{");
	print_json_text("provider", g->provider, out);
	print_json_text("instanceType", g->instance_type, out);
	print_json_text("version", command_version_text(), out);
	print_json_text("at", at, out);
	print_json_name("answers", out);
	buf_text(out, "[");
}

/* Each answer is in the file before the next question is asked. */
static bool save(const char *path, const struct buf *answers, struct error *e)
{
	CLEANUP(buf_release) struct buf whole = { 0 };

	buf_append(&whole, answers->text, answers->len);
	buf_text(&whole, "\n]}\n");
	return file_write(path, whole.text, whole.len, e);
}

static bool refuse_provider(const struct group_spec *g, struct error *e)
{
	CLEANUP(buf_release) struct buf asking = { 0 };

	for (size_t i = 0; provider_at(i); i++)
		if (provider_at(i)->questions)
			buf_printf(&asking, "%s%s", asking.len ? " or " : "", provider_at(i)->name);
	return error_set(e, ERROR_INVALID,
			 "--prove: node group %s is of provider %s, which leaves no question open; do: name a group of "
			 "provider %s with --group",
			 g->name, g->provider, asking.text);
}

bool provider_prove(const struct group_spec *g, const char *out, struct error *e)
{
	const struct provider_question *all = provider_find(g->provider)->questions;
	CLEANUP(buf_release) struct buf answers = { .cap = (size_t)64 << 20 }, name = { 0 };
	size_t told = 0, count = 0, number = 0;
	bool goes_on = true;

	if (!all)
		return refuse_provider(g, e);
	for (size_t i = 0; all[i].id; i++)
		count += is_asked(g, &all[i]);
	buf_printf(&name, out ? "%s" : "%s.proof.json", out ? out : g->name);
	const char *path = name.text;
	if (access(path, F_OK) == 0)
		return error_set(e, ERROR_INVALID, "%s: is there already; do: name another file with --out", path);
	write_head(g, &answers);
	for (size_t i = 0; all[i].id; i++) {
		CLEANUP(buf_release) struct buf output = { 0 }, answer = { 0 };
		if (!is_asked(g, &all[i]))
			continue;
		print_question(g, &all[i], ++number, count);
		printf("Paste what it prints, if you like; then one of these on a line of its own: %s skip\n",
		       all[i].answers);
		fflush(stdout);
		if (goes_on && !read_answer(&all[i], &output, &answer, &goes_on, e))
			return told ? error_wrap(e, "%zu answers are in %s", told, path) : false;
		puts("");
		if (!goes_on && output.len)
			printf("Not kept: what was pasted to question %s, as no answer came behind it.\n", all[i].id);
		if (!goes_on || !strcmp(answer.text, "skip"))
			continue;
		write_answer(g, &all[i], &output, &answer, &answers);
		told++;
		if (!save(path, &answers, e))
			return false;
	}
	if (told)
		printf("%zu of %zu answers are in %s. Account numbers, subscriptions and keys were taken out; read it "
		       "before you pass it on, with an issue of Preheat.\n",
		       told, count, path);
	else
		printf("Nothing was answered, and nothing written.\n");
	return true;
}
