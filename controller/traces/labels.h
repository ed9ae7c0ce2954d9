/* The texts of a label column, numbered in order of first appearance. */
#pragma once
#include "controller/traces/trace.h"

#include <stdint.h>

struct labels {
	char **texts;
	size_t count;
	uint16_t *slots; /* hash table: index + 1, 0 for free */
	int32_t last;	 /* rows with the same label often follow each other */
};

/* Index of the text, added when new; -1 for an empty text, -2 when TRACE_MAX_LABELS are taken. */
int32_t labels_index(struct labels *l, const char *text, size_t len);
void labels_release(struct labels *l);
/* Hands the texts over and releases the rest. */
void labels_move(struct labels *l, struct trace *t);
