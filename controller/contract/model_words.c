#include "controller/contract/model_words.h"

#include <ctype.h>
#include <string.h>

/* "70" and "1.5" in thousandths; `end` is behind it. */
static int64_t thousandths(const char *p, const char **end)
{
	int64_t value = 0, unit = 1000;

	for (; isdigit((unsigned char)*p) && value < 10000000; p++)
		value = value * 10 + (*p - '0') * 1000;
	if (*p == '.' && isdigit((unsigned char)p[1]))
		for (p++; isdigit((unsigned char)*p); p++) {
			unit /= 10;
			value += (*p - '0') * unit;
		}
	*end = p;
	return value;
}

/* "Llama-3.1-70B-Instruct": 70000, thousandths of 10^9 parameters; 0 when the name does not say. */
static int64_t parameters_in(const char *name)
{
	for (const char *p = name; *p; p++) {
		bool starts =
			isdigit((unsigned char)*p) && (p == name || (!isalnum((unsigned char)p[-1]) && p[-1] != '.'));
		const char *end;
		if (!starts)
			continue;
		int64_t value = thousandths(p, &end);
		if ((*end == 'B' || *end == 'b') && !isalnum((unsigned char)end[1]) && value < 3000000)
			return value;
	}
	return 0;
}

static bool mentions(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(text, *words))
			return true;
	return false;
}

void container_words(const struct container *k, struct buf *out)
{
	const struct yaml_node *lists[] = { k->command, k->args };

	for (size_t l = 0; l < 2; l++)
		for (const struct yaml_node *n = lists[l] && lists[l]->kind == YAML_LIST ? lists[l]->first : NULL; n;
		     n = n->next)
			if (n->kind == YAML_SCALAR)
				buf_printf(out, "%s ", n->text);
}

int64_t container_weights_gib(const struct container *k)
{
	static const char *const halves[] = { "awq", "gptq", "int4", "4bit", "fp4", "q4_", "w4a16", NULL };
	static const char *const bytes[] = { "fp8", "int8", "8bit", "q8_", "w8a8", "bitsandbytes", "quantiz", NULL };
	CLEANUP(buf_release) struct buf words = { .cap = 1 << 16 };

	container_words(k, &words);
	if (!words.len || !buf_ok(&words))
		return 0;
	int64_t bytes_x2 = mentions(words.text, halves) ? 1 : mentions(words.text, bytes) ? 2 : 4;
	return parameters_in(words.text) * bytes_x2 * 1000000 / 2 / (1 << 30);
}
