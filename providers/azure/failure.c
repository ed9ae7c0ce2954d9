#include "providers/azure/failure.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/net/http.h"
#include "providers/azure/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
	const char *code, *message;
	enum error_kind kind;
	millis back_off;
	bool is_zonal;
} rows[] = {
#define FAILURE(code, message, kind, back_off, is_zonal) { code, message, ERROR_##kind, back_off, is_zonal },
#include "providers/azure/failure.def"
#undef FAILURE
};
enum { ROWS = sizeof rows / sizeof *rows, PAIRS = 64 };

/* A code and the message beside it. */
struct pair {
	const char *code, *message;
	int depth;
};

struct walk {
	struct arena arena;
	struct pair pairs[PAIRS]; /* outermost first */
	size_t count;
	bool is_error; /* something was a code or a message where an error has one */
};

static bool ends_with(const char *path, const char *key)
{
	size_t len = strlen(path), size = strlen(key);

	return len >= size && strcmp(path + len - size, key) == 0 && (len == size || path[len - size - 1] == '>');
}

/* The pair of the object that is open at this depth: the last one, unless another object was opened since. */
static struct pair *pair_at(struct walk *w, int depth)
{
	for (size_t i = w->count; i-- > 0;)
		if (w->pairs[i].depth == depth)
			return &w->pairs[i];
	return NULL;
}

static bool see(void *user, const struct json_event *v, struct error *e)
{
	struct walk *w = user;

	(void)e;
	if (v->type == JSON_CLOSE && !v->is_array) {
		struct pair *closed = pair_at(w, v->depth + 1);
		if (closed)
			closed->depth = -1;
		return true;
	}
	bool is_code = ends_with(v->path, "code") || ends_with(v->path, "subcode") || ends_with(v->path, "inner_code");
	bool is_message = ends_with(v->path, "message");
	if (v->type != JSON_STRING || !(is_code || is_message))
		return true;
	struct pair *p = pair_at(w, v->depth);
	const char *text = arena_strdup(&w->arena, v->text, v->len);
	w->is_error = true;
	if (!p || (is_code ? p->code : p->message)) {
		if (w->count == PAIRS)
			return true;
		p = &w->pairs[w->count++];
		*p = (struct pair){ .depth = v->depth };
	}
	if (is_code)
		p->code = text;
	else
		p->message = text;
	return true;
}

/* What stands in the quotes behind a mark, or NULL; *end is behind it. */
static const char *take_quoted(struct walk *w, const char *text, const char *mark, const char **end)
{
	const char *at = strstr(text, mark);
	const char *close = at ? strchr(at + strlen(mark), '"') : NULL;

	if (!close)
		return NULL;
	*end = close + 1;
	at += strlen(mark);
	return arena_strdup(&w->arena, at, (size_t)(close - at));
}

/* Code="ZonalAllocationFailed" Message="..." within a message. */
static void see_quoted(struct walk *w, const char *message)
{
	const char *at = message, *end;

	while (at && w->count < PAIRS) {
		const char *code = take_quoted(w, at, "Code=\"", &end);
		if (!code)
			return;
		at = end;
		const char *said = strncmp(at, " Message=\"", 10) == 0 ? take_quoted(w, at, "Message=\"", &end) : NULL;
		w->pairs[w->count++] = (struct pair){ code, said ? said : at, -1 };
	}
}

static bool fits(const struct row *r, const struct pair *p)
{
	if (*r->code && (!p->code || strcasecmp(r->code, p->code) != 0))
		return false;
	return !*r->message || (p->message && strstr(p->message, r->message));
}

static const struct row *find_row(const struct walk *w, const struct pair **by)
{
	for (int i = 0; i < ROWS; i++)
		for (size_t k = 0; k < w->count; k++)
			if (fits(&rows[i], &w->pairs[k])) {
				*by = &w->pairs[k];
				return &rows[i];
			}
	return NULL;
}

/* "... in zone 2. Read more ..." */
static void read_zone(const char *message, char *out, size_t size)
{
	static const char mark[] = "zone ";
	const char *at = message;
	size_t n = 0;

	while ((at = strcasestr(at, mark))) {
		at += sizeof mark - 1;
		while (*at == '\'' || *at == '"')
			at++;
		for (const char *c = at; n + 1 < size && isdigit((unsigned char)*c); c++)
			out[n++] = *c;
		if (n)
			break;
	}
	out[n] = '\0';
}

static void fill(const struct walk *w, bool is_spot, struct azure_failure *out)
{
	const struct pair *by = &w->pairs[0];
	const struct row *r = find_row(w, &by);
	struct azure_failure f = { 0 };

	if (r) {
		f.kind = r->kind;
		f.is_zonal = r->is_zonal;
		f.back_off = is_spot && strcmp(r->code, "SkuNotAvailable") == 0 ? HOUR : r->back_off;
	}
	for (size_t i = 0; f.is_zonal && i < w->count && !*f.zone; i++)
		if (w->pairs[i].message)
			read_zone(w->pairs[i].message, f.zone, sizeof f.zone);
	azure_show(by->code ? by->code : "", f.code, sizeof f.code);
	azure_show(by->message ? by->message : "", f.message, sizeof f.message);
	*out = f;
}

bool azure_failure_of(const char *json, size_t len, bool is_spot, struct azure_failure *out)
{
	struct walk *w = calloc(1, sizeof *w);
	struct error ignored = { 0 };

	if (!w)
		abort();
	struct json *j = json_open("error", see, w);
	bool ok = json_feed(j, json, len, &ignored) && json_finish(j, &ignored) && w->is_error;
	json_close(j);
	for (size_t i = 0, told = w->count; i < told; i++)
		see_quoted(w, w->pairs[i].message);
	if (ok)
		fill(w, is_spot, out);
	arena_release(&w->arena);
	free(w);
	return ok;
}

void azure_failure_read(long status, const char *text, size_t len, struct error *e)
{
	struct azure_failure f = { 0 };
	enum error_kind kind = http_status_kind(status);

	if (!azure_failure_of(text, len, false, &f)) {
		error_set(e, kind == ERROR_NONE ? ERROR_INVALID : kind, "HTTP status %ld", status);
		return;
	}
	/* A code is more than a status, but a conflict is one whatever it is called. */
	bool is_busy = kind == ERROR_CONFLICT && f.kind != ERROR_QUOTA && f.kind != ERROR_STOCKOUT;
	if (f.kind != ERROR_NONE && !is_busy)
		kind = f.kind;
	if (kind == ERROR_NONE)
		kind = ERROR_INVALID;
	error_set(e, kind, "%s%s%s", *f.code ? f.code : "refused", *f.message ? ": " : "", f.message);
}
