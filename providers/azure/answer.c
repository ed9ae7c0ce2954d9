#include "providers/azure/answer.h"

#include "base/quantity.h"
#include "base/json.h"
#include "base/net/http.h"
#include "base/text.h"
#include "providers/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void azure_write_json(const char *text, size_t len, struct buf *out)
{
	buf_text(out, "\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else
			buf_append(out, text + i, 1);
	}
	buf_text(out, "\"");
}

/* Errors. */

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
	text_show(by->code, SIZE_MAX, f.code, sizeof f.code);
	text_show(by->message, SIZE_MAX, f.message, sizeof f.message);
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

/* Agent pools. */

enum { COUNT_MOST = 1000 };

struct size_text {
	const char *size;
	int64_t count;
};

struct pool_text {
	struct azure_pool pool;
	const char *scale_down;
	struct decoded_list zones, sizes, taints;
	struct decoded_map labels, tags;
	struct decoded_text count, problem, autoscale;
};

static const struct field size_fields[] = {
	FIELD(struct size_text, size, FIELD_STRING, "size"),
	FIELD(struct size_text, count, FIELD_INT, "count"),
};
static const struct record_spec size_record = RECORD(struct size_text, size_fields);
static const struct field pool_fields[] = {
	FIELD(struct pool_text, pool.etag, FIELD_STRING, "eTag"),
	FIELD(struct pool_text, pool.state, FIELD_STRING, "provisioningState"),
	FIELD(struct pool_text, pool.type, FIELD_STRING, "type"),
	FIELD(struct pool_text, pool.mode, FIELD_STRING, "mode"),
	FIELD(struct pool_text, scale_down, FIELD_STRING, "scaleDownMode"),
	FIELD(struct pool_text, pool.priority, FIELD_STRING, "scaleSetPriority"),
	FIELD(struct pool_text, pool.os, FIELD_STRING, "osType"),
	FIELD(struct pool_text, pool.vm_size, FIELD_STRING, "vmSize"),
	FIELD(struct pool_text, pool.power, FIELD_STRING, "powerState>code"),
	FIELD(struct pool_text, count, FIELD_RAW, "count"),
	FIELD(struct pool_text, pool.is_autoscaled, FIELD_BOOL, "enableAutoScaling"),
	FIELD_LIST_OF(struct pool_text, zones, "availabilityZones", text_record),
	FIELD_LIST_OF(struct pool_text, taints, "nodeTaints", text_record),
	FIELD(struct pool_text, labels, FIELD_MAP, "nodeLabels"),
	FIELD(struct pool_text, tags, FIELD_MAP, "tags"),
	FIELD_LIST_OF(struct pool_text, sizes, "virtualMachinesProfile>scale>manual", size_record),
	FIELD(struct pool_text, autoscale, FIELD_RAW, "virtualMachinesProfile>scale>autoscale"),
	FIELD(struct pool_text, problem, FIELD_RAW, "status>provisioningError"),
};
static const struct record_spec pool_record = RECORD(struct pool_text, pool_fields);
static const struct field whole_fields[] = {
	{ .path = "properties", .type = FIELD_RAW, .required = true },
};
static const struct record_spec whole_record = RECORD(struct decoded_text, whole_fields);

static bool is(const char *text, const char *other)
{
	return strcasecmp(text, other) == 0;
}

static bool is_something(const struct decoded_text *t)
{
	return t->text && t->len && strncmp(t->text, "null", 4) != 0;
}

/* -1: it cannot be, or is not told. */
static int64_t count_of(const struct pool_text *t)
{
	const struct size_text *sizes = t->sizes.items;
	int64_t sum = 0;

	if (!t->pool.is_of_machines || !t->sizes.count)
		return t->count.text && decimal_parse(t->count.text, t->count.len, 0, &sum) == DECIMAL_OK ? sum : -1;
	for (size_t i = 0; i < t->sizes.count; i++) {
		if (sizes[i].count < 0 || sizes[i].count > COUNT_MOST)
			return -1;
		sum += sizes[i].count;
	}
	return sum;
}

/* AKS gives nodes these labels and taints, and of tags none. */
static struct node_promise promise_of(const struct pool_text *t, struct arena *a)
{
	const char *const *taints = t->taints.items;
	struct node_promise p = { 0 };

	for (size_t i = 0; i < t->labels.count; i++)
		promise_label(&p, a, t->labels.pairs[i].key, t->labels.pairs[i].value);
	for (size_t i = 0; i < t->taints.count; i++)
		promise_written_taint(&p, a, taints[i]);
	for (size_t i = 0; i < t->tags.count; i++)
		promise_tag(&p, a, t->tags.pairs[i].key, t->tags.pairs[i].value);
	return p;
}

bool azure_pool_read(const char *text, size_t len, struct arena *a, struct azure_pool *out, struct error *e)
{
	struct decoded_text properties;
	struct pool_text t;
	struct azure_pool *p = &t.pool;

	if (!text_decode(&whole_record, text, len, a, &properties, e) ||
	    !text_decode(&pool_record, properties.text, properties.len, a, &t, e))
		return error_wrap(e, "agent pool");
	text_complete(&pool_record, &t);
	const struct size_text *sizes = t.sizes.items;
	p->is_of_machines = is(p->type, "VirtualMachines");
	p->keeps_stopped = is(t.scale_down, "Deallocate");
	p->has_failed = is(p->state, "Failed");
	p->is_autoscaled |= is_something(&t.autoscale);
	p->zone = t.zones.count == 1 ? *(const char *const *)t.zones.items : "";
	p->zone_count = t.zones.count;
	p->size_count = t.sizes.count;
	p->count = count_of(&t);
	p->promise = promise_of(&t, a);
	if (p->is_of_machines && sizes && *sizes[0].size)
		p->vm_size = sizes[0].size;
	if (is_something(&t.problem)) {
		p->problem = t.problem.text;
		p->problem_len = t.problem.len;
	}
	if (p->count < 0 || p->count > COUNT_MOST)
		return error_set(e, ERROR_INVALID, "agent pool: found no count from 0 to %d", COUNT_MOST);
	for (const char *c = p->etag; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			return error_set(e, ERROR_INVALID, "agent pool: found an eTag that fits no header");
	*out = *p;
	return true;
}

bool azure_pool_is_busy(const struct azure_pool *p)
{
	return *p->state && !is(p->state, "Succeeded") && !is(p->state, "Failed") && !is(p->state, "Canceled");
}

bool azure_pool_is_owners(const struct azure_pool *p)
{
	return azure_pool_is_busy(p) && !is(p->state, "Updating") && !is(p->state, "Scaling") &&
	       !is(p->state, "Canceling") && !is(p->state, "Deleting");
}

bool azure_pool_is_ours(const struct azure_pool *p, struct error *e)
{
	char shown[QUOTE_ROOM];

	if (p->is_autoscaled)
		return error_set(
			e, ERROR_INVALID,
			"enableAutoScaling is true: AKS's own autoscaler sets the size of this pool; switch it "
			"off (az aks nodepool update --disable-cluster-autoscaler), or take the group out of the "
			"manifest");
	if (*p->os && !is(p->os, "Linux"))
		return error_set(e, ERROR_INVALID, "osType is %s; allowed: Linux", quote(shown, p->os, strlen(p->os)));
	if (is(p->mode, "Gateway"))
		return error_set(e, ERROR_INVALID, "mode is Gateway: such a pool runs no pods; allowed: User, System");
	if (*p->type && !p->is_of_machines && !is(p->type, "VirtualMachineScaleSets"))
		return error_set(e, ERROR_INVALID, "type is %s; allowed: VirtualMachineScaleSets, VirtualMachines",
				 quote(shown, p->type, strlen(p->type)));
	if (p->is_of_machines && p->size_count != 1)
		return error_set(e, ERROR_INVALID,
				 "a VirtualMachines pool of %zu machine sizes; allowed: one size, as a node group has "
				 "equal machines; make a pool for each",
				 p->size_count);
	if (is(p->power, "Stopped"))
		return error_set(e, ERROR_INVALID,
				 "the pool is stopped as a whole; start it (az aks nodepool start), or take the group "
				 "out of the manifest");
	return true;
}

static const char *const read_only[] = {
#define READ_ONLY(path) path,
#include "providers/azure/pool_read_only.def"
#undef READ_ONLY
};

static const char COUNT[] = "properties>count", OF_SIZE[] = "properties>virtualMachinesProfile>scale>manual[]>count";

struct writing {
	struct buf *out;
	int64_t count;
	bool is_of_machines, has_count;
	int skipping; /* depth of the container that is left out; -1: none */
	struct {
		size_t path_len;
		bool is_array, has_items;
	} open[JSON_MAX_DEPTH];
};

static bool is_left_out(const struct writing *w, const char *path)
{
	for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++)
		if (strcmp(path, read_only[i]) == 0)
			return true;
	return w->is_of_machines && strcmp(path, COUNT) == 0; /* the sum of its sizes */
}

/* The comma and the key. */
static void begin(struct writing *w, const struct json_event *v)
{
	if (!v->depth)
		return;
	size_t parent = w->open[v->depth - 1].path_len;
	if (w->open[v->depth - 1].has_items)
		buf_text(w->out, ",");
	w->open[v->depth - 1].has_items = true;
	if (w->open[v->depth - 1].is_array)
		return;
	const char *key = v->path + parent + (parent ? 1 : 0);
	azure_write_json(key, strlen(key), w->out);
	buf_text(w->out, ":");
}

static void write_scalar(struct writing *w, const struct json_event *v)
{
	bool is_size = strcmp(v->path, w->is_of_machines ? OF_SIZE : COUNT) == 0;

	begin(w, v);
	if (is_size && v->type == JSON_NUMBER) {
		w->has_count = true;
		buf_printf(w->out, "%" PRId64, w->count);
	} else if (v->type == JSON_STRING) {
		azure_write_json(v->text, v->len, w->out);
	} else if (v->type == JSON_NULL) {
		buf_text(w->out, "null");
	} else {
		buf_append(w->out, v->text, v->len);
	}
}

static bool take(void *user, const struct json_event *v, struct error *e)
{
	struct writing *w = user;

	(void)e;
	if (w->skipping >= 0) {
		if (v->type == JSON_CLOSE && v->depth == w->skipping)
			w->skipping = -1;
		return true;
	}
	if (v->type == JSON_CLOSE) {
		buf_text(w->out, v->is_array ? "]" : "}");
		return true;
	}
	if (is_left_out(w, v->path)) {
		if (v->type == JSON_OPEN)
			w->skipping = v->depth;
		return true;
	}
	if (v->type != JSON_OPEN) {
		write_scalar(w, v);
		return true;
	}
	begin(w, v);
	buf_text(w->out, v->is_array ? "[" : "{");
	w->open[v->depth].path_len = strlen(v->path);
	w->open[v->depth].is_array = v->is_array;
	w->open[v->depth].has_items = false;
	return true;
}

bool azure_pool_write(const char *text, size_t len, int64_t count, struct buf *out, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct azure_pool pool;

	if (!azure_pool_read(text, len, &scratch, &pool, e))
		return false;
	struct writing w = { .out = out, .count = count, .is_of_machines = pool.is_of_machines, .skipping = -1 };
	struct json *j = json_open("agent pool", take, &w);
	bool ok = json_feed(j, text, len, e) && json_finish(j, e);
	json_close(j);
	if (!ok)
		return false;
	if (!w.has_count)
		return error_set(e, ERROR_INVALID, "agent pool: found no count to change");
	return true;
}

/* Machines and operations. */

enum { MACHINES_MOST = 5000 };

struct machine_text {
	struct azure_machine machine;
	struct decoded_list zones, addresses;
};

struct page_text {
	const char *next;
	struct decoded_list items;
};

static const struct field address_fields[] = { { .path = "ip", .type = FIELD_STRING } };
static const struct record_spec address_record = RECORD(const char *, address_fields);
static const struct field machine_fields[] = {
	FIELD_NEEDED(struct machine_text, machine.name, FIELD_STRING, "name"),
	FIELD(struct machine_text, machine.resource, FIELD_STRING, "properties>resourceId"),
	FIELD(struct machine_text, machine.state, FIELD_STRING, "properties>provisioningState"),
	FIELD(struct machine_text, machine.vm_state, FIELD_STRING, "properties>status>vmState"),
	FIELD(struct machine_text, machine.created_at, FIELD_TIME, "properties>status>creationTimestamp"),
	FIELD(struct machine_text, machine.vm_size, FIELD_STRING, "properties>hardware>vmSize"),
	FIELD_LIST_OF(struct machine_text, addresses, "properties>network>ipAddresses", address_record),
	FIELD_LIST_OF(struct machine_text, zones, "zones", text_record),
};
static const struct record_spec machine_record = RECORD(struct machine_text, machine_fields);
static const struct field page_fields[] = {
	FIELD(struct page_text, next, FIELD_STRING, "nextLink"),
	FIELD_LIST_NEEDED(struct page_text, items, "value", machine_record),
};
static const struct record_spec page_record = RECORD(struct page_text, page_fields);

bool azure_machines_read(const char *text, size_t len, struct arena *a, struct azure_machines *list, const char **next,
			 struct error *e)
{
	struct page_text page;

	if (!text_decode(&page_record, text, len, a, &page, e))
		return error_wrap(e, "machines");
	text_complete(&page_record, &page);
	if (list->count + page.items.count > MACHINES_MOST)
		return error_set(e, ERROR_INVALID, "machines: found more than %d", MACHINES_MOST);
	if (list->count + page.items.count > list->room) {
		list->room = 2 * (list->count + page.items.count);
		struct azure_machine *items = arena_array(a, struct azure_machine, list->room);
		if (list->count)
			memcpy(items, list->items, list->count * sizeof *items);
		list->items = items;
	}
	const struct machine_text *texts = page.items.items;
	for (size_t i = 0; i < page.items.count; i++) {
		struct azure_machine *m = &list->items[list->count];
		*m = texts[i].machine;
		if (!*m->name)
			return error_set(e, ERROR_INVALID, "machines: found one without a name");
		m->zone = texts[i].zones.count ? *(const char *const *)texts[i].zones.items : "";
		m->has_address = texts[i].addresses.count > 0;
		list->count++;
	}
	*next = page.next;
	return true;
}

struct operation_text {
	const char *status;
	millis ended_at;
	struct decoded_text problem;
};
static const struct field operation_fields[] = {
	FIELD(struct operation_text, status, FIELD_STRING, "status"),
	FIELD(struct operation_text, ended_at, FIELD_TIME, "endTime"),
	FIELD(struct operation_text, problem, FIELD_RAW, "error"),
};
static const struct record_spec operation_record = RECORD(struct operation_text, operation_fields);

bool azure_operation_read(long status, const char *text, size_t len, struct arena *a, struct azure_operation *out,
			  struct error *e)
{
	struct operation_text t = { 0 };

	*out = (struct azure_operation){ .is_over = status != 202 };
	if (!len || status == 204)
		return true;
	if (!text_decode(&operation_record, text, len, a, &t, e))
		return error_wrap(e, "operation");
	if (!t.status) /* the result itself, where a Location was followed */
		return true;
	out->has_failed = strcasecmp(t.status, "Failed") == 0;
	out->is_over = out->has_failed || strcasecmp(t.status, "Succeeded") == 0 ||
		       strcasecmp(t.status, "Canceled") == 0 || strcasecmp(t.status, "Cancelled") == 0;
	out->ended_at = t.ended_at;
	if (is_something(&t.problem)) {
		out->problem = t.problem.text;
		out->problem_len = t.problem.len;
	}
	return true;
}

/* Roles. */

static const struct field right_fields[] = {
	FIELD_LIST_OF(struct azure_right, actions, "actions", text_record),
	FIELD_LIST_OF(struct azure_right, not_actions, "notActions", text_record),
};
static const struct record_spec right_record = RECORD(struct azure_right, right_fields);
static const struct field rights_fields[] = { FIELD_LIST_NEEDED(struct azure_rights, items, "value", right_record) };
static const struct record_spec rights_record = RECORD(struct azure_rights, rights_fields);

bool azure_rights_read(const char *text, size_t len, struct arena *a, struct azure_rights *out, struct error *e)
{
	struct azure_rights rights;

	if (!text_decode(&rights_record, text, len, a, &rights, e))
		return error_wrap(e, "permissions");
	*out = rights;
	return true;
}

static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static bool matches(const char *pattern, const char *text)
{
	const char *star = NULL, *again = text;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			again = text;
		} else if (is_same(*pattern, *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++again;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool any_matches(const struct decoded_list *patterns, const char *action)
{
	const char *const *texts = patterns->items;

	for (size_t i = 0; i < patterns->count; i++)
		if (texts[i] && matches(texts[i], action))
			return true;
	return false;
}

bool azure_rights_allow(const struct azure_rights *r, const char *action)
{
	const struct azure_right *rights = r->items.items;

	for (size_t i = 0; i < r->items.count; i++)
		if (any_matches(&rights[i].actions, action) && !any_matches(&rights[i].not_actions, action))
			return true;
	return false;
}
