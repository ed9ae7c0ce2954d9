/* The machines of an agent pool, page by page, and how an operation went. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/millis.h"

/* Texts live in the arena, "" when not told. */
struct azure_machine {
	const char *name, *resource, *zone, *vm_size;
	const char *state; /* "Creating", "Deleting", ... */
	const char *vm_state;
	bool has_address;
	millis created_at; /* 0: not told */
};

struct azure_machines {
	struct azure_machine *items;
	size_t count, room;
};

/* Adds a page; *next is where the rest is, "" after the last. */
bool azure_machines_read(const char *text, size_t len, struct arena *a, struct azure_machines *list, const char **next,
			 struct error *e) MUST_USE;

/* An operation that went on after the answer, as its URL tells. */
struct azure_operation {
	bool is_over, has_failed;
	millis ended_at;     /* 0: not told */
	const char *problem; /* JSON of why it failed, in the text that was read; NULL */
	size_t problem_len;
};

/* Of a 2xx. */
bool azure_operation_read(long status, const char *text, size_t len, struct arena *a, struct azure_operation *out,
			  struct error *e) MUST_USE;
