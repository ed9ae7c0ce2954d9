/* Errors travel as values that the caller owns; nothing here allocates. */
#pragma once
#include <stdbool.h>

/* What a decision or a caller must be able to tell apart. */
enum error_kind {
	ERROR_NONE,
	ERROR_STOCKOUT,	   /* the vendor has no such machines now      */
	ERROR_QUOTA,	   /* our account may not have more            */
	ERROR_THROTTLED,   /* slow down and repeat                     */
	ERROR_AUTH,	   /* a person must give or renew a permission */
	ERROR_NOT_FOUND,   /* the thing named does not exist           */
	ERROR_CONFLICT,	   /* someone else changed the object first    */
	ERROR_INVALID,	   /* the input or an answer makes no sense    */
	ERROR_TIMEOUT,	   /* no answer within the deadline            */
	ERROR_UNAVAILABLE, /* network, 5xx, full disk, locked file     */
	ERROR_CANCELLED,   /* we stopped it ourselves                  */
	ERROR_INTERNAL,	   /* a mistake of ours                        */
};

struct error {
	enum error_kind kind;
	char message[512];
};

#define MUST_USE     __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Both return false, so that a failing branch is one line. error_wrap puts
 * the context before the cause: "history.db: disk full". */
bool error_set(struct error *e, enum error_kind kind, const char *fmt, ...) PRINTF(3, 4);
bool error_wrap(struct error *e, const char *fmt, ...) PRINTF(2, 3);
#ifdef __clang_analyzer__ /* sees one file at a time, and would follow a failure as if it were success */
#define error_set(...)	((void)error_set(__VA_ARGS__), false)
#define error_wrap(...) ((void)error_wrap(__VA_ARGS__), false)
#endif
const char *error_kind_name(enum error_kind kind);
/* Worth trying again as it is, after a wait: throttled, timed out, unavailable. */
bool error_is_transient(const struct error *e);
