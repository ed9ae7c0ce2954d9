/*
 * Some space beside a history that is kept for a full disk: a file of zeros,
 * PATH-reserve. A leader gives it up when the disk is as good as full, and
 * records on for some hours, with its log saying so; it is made again when
 * there is room. What is not recorded is never done, so without it scaling
 * ends with the first tick that finds no space.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { RESERVE_BYTES = 8 << 20 };
/* Less free space than this is a full disk: a tick's record may be so large. */
enum { RESERVE_LOW = 2 << 20 };

/* Free bytes of the disk that a history is on; -1: not known. */
int64_t reserve_free(const char *path);
/* All bytes of that disk; -1: not known. */
int64_t reserve_disk(const char *path);
/* Makes the reserve of a history, when there is none and room for it many times over. Whether it did. */
bool reserve_make(const char *path, int64_t free_bytes);
bool reserve_is_there(const char *path);
/* Gives it up when the disk is as good as full. Whether there was one. */
bool reserve_give_up(const char *path, int64_t free_bytes);
