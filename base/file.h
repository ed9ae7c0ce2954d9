/*
 * Whole files: reading with a cap, so that a file of any size costs no more
 * than the cap, and writing so that a reader sees the old content or the new
 * one, never a part. Messages name the path and what to do.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"

/* Appends the content to `out`. "-" is standard input. More than `cap` bytes is ERROR_INVALID; nothing more is read. */
bool file_read(const char *path, size_t cap, struct buf *out, struct error *e) MUST_USE;
/* Writes beside the file, syncs, renames over it; on failure nothing is left behind. */
bool file_write(const char *path, const void *bytes, size_t len, struct error *e) MUST_USE;
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
