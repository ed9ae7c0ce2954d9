/*
 * A file that appears whole or not at all: written beside its place without
 * a name and put there by output_commit(). Anything that is no regular file
 * (a pipe, /dev/stdout) and standard output are written directly. A name
 * that ends in .gz is compressed; equal text gives equal bytes.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

struct output;

/* "-" is standard output. NULL with an error when it cannot be made. */
struct output *output_open(const char *path, struct error *e) MUST_USE;
/* Never fails: the first failure is kept for output_commit(). */
void output_bytes(struct output *o, const void *bytes, size_t len);
void output_text(struct output *o, const char *text);
/* Flushes, syncs and gives the file its name. Frees `o` whatever happens. ERROR_CANCELLED: who read a pipe left. */
bool output_commit(struct output *o, struct error *e) MUST_USE;
/* Leaves what was there before untouched. Takes NULL. */
void output_abandon(struct output *o);
