/* The first line of any bytes as a path, the rest as a document, cut anywhere: the cut makes no difference. */
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool read(const char *path, const char *text, size_t len, size_t cut, int64_t *out)
{
	struct json_number *n = json_number_open(path);
	struct error e = { 0 };
	bool ok = json_number_feed(n, text, cut, &e) && json_number_feed(n, text + cut, len - cut, &e) &&
		  json_number_finish(n, out, &e);

	json_number_close(n);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const uint8_t *end = memchr(bytes, '\n', len);
	char path[JSON_NUMBER_PATH + 10] = "";
	int64_t whole = 0, halves = 0;
	struct error e;

	if (!end || (size_t)(end - bytes) >= sizeof path)
		return 0;
	memcpy(path, bytes, (size_t)(end - bytes));
	if (!json_number_check(path, &e))
		return 0;
	const char *text = (const char *)end + 1;
	size_t rest = len - (size_t)(end - bytes) - 1;
	bool is_whole = read(path, text, rest, 0, &whole), is_halves = read(path, text, rest, rest / 2, &halves);
	if (is_whole != is_halves || whole != halves || whole < 0)
		abort();
	return 0;
}
