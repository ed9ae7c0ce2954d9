/* Any text as a field of the log: one line, JSON that reads back, nothing that a terminal obeys. */
#include "base/json.h"
#include "base/log.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool nothing(void *user, const struct json_event *event, struct error *e)
{
	(void)user;
	(void)event;
	(void)e;
	return true;
}

static void check_json(const char *line)
{
	struct json *j = json_open("line", nothing, NULL);
	struct error e;

	if (!json_feed(j, line, strlen(line), &e) || !json_finish(j, &e))
		abort();
	json_close(j);
}

static void check(void *user, enum log_level level, const char *line)
{
	const bool *is_human = user;

	(void)level;
	if (strlen(line) > LOG_LONGEST)
		abort();
	for (const char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			abort();
	if (!*is_human)
		check_json(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	bool is_human = len % 2 == 1;
	struct log_setup s = { .is_human = is_human, .write = check, .user = &is_human };
	char *text = calloc(1, len + 1);

	memcpy(text, bytes, len);
	log_set_up(&s);
	log_info("fuzz", LOG_S("first", text), LOG_S("second", text), LOG_S("third", text), LOG_END);
	free(text);
	return 0;
}
