#include "controller/traces/labels.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4 * TRACE_MAX_LABELS };

static bool is_text(const struct labels *l, size_t i, const char *text, size_t len)
{
	return !strncmp(l->texts[i], text, len) && !l->texts[i][len];
}

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static size_t hash(const char *text, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return (size_t)(h >> 20) % SLOTS;
}

int32_t labels_index(struct labels *l, const char *text, size_t len)
{
	if (!len)
		return -1;
	if (l->count && is_text(l, (size_t)l->last, text, len))
		return l->last;
	if (!l->slots) {
		l->slots = must(calloc(SLOTS, sizeof *l->slots));
		l->texts = must(calloc(TRACE_MAX_LABELS, sizeof *l->texts));
	}
	size_t at = hash(text, len);
	while (l->slots[at] && !is_text(l, l->slots[at] - 1U, text, len))
		at = (at + 1) % SLOTS;
	if (!l->slots[at]) {
		if (l->count == TRACE_MAX_LABELS)
			return -2;
		l->texts[l->count] = must(strndup(text, len));
		l->slots[at] = (uint16_t)++l->count;
	}
	l->last = l->slots[at] - 1;
	return l->last;
}

void labels_release(struct labels *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->texts[i]);
	free(l->texts);
	free(l->slots);
	*l = (struct labels){ 0 };
}

void labels_move(struct labels *l, struct trace *t)
{
	t->labels = l->texts;
	t->label_count = l->count;
	free(l->slots);
	*l = (struct labels){ 0 };
}
