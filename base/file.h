/*
 * Whole files: reading with a cap, so that a file of any size costs no more
 * than the cap, and writing so that a reader sees the old content or the new
 * one, never a part. Messages name the path.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stddef.h>

/* Appends the content to `out`. "-" is standard input. More than `cap` bytes is ERROR_INVALID; nothing more is read. */
bool file_read(const char *path, size_t cap, struct buf *out, struct error *e) MUST_USE;
/* All of it to a descriptor; false with errno. */
bool file_write_all(int fd, const void *bytes, size_t len);

struct folder {
	bool is_folder;		  /* false: `path` is something else, or nothing */
	const char *const *paths; /* sorted by name */
	size_t count;
};

/* The paths of what lies in a folder and is wanted by name. */
bool folder_list(const char *path, bool (*is_wanted)(const char *name), struct arena *a, struct folder *out,
		 struct error *e) MUST_USE;
/* The kind that an errno of opening, reading or writing belongs to. */
enum error_kind file_error_kind(int number);

/*
 * A file that appears whole or not at all: written beside its place without
 * a name and put there by output_commit(). Anything that is no regular file
 * (a pipe, /dev/stdout) and standard output are written directly. A name
 * that ends in .gz is compressed; equal text gives equal bytes.
 */
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
/* All of a file in one piece, as it is. */
bool file_write(const char *path, const void *bytes, size_t len, struct error *e) MUST_USE;
