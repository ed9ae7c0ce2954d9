#include "providers/azure/pool.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/quote.h"
#include "providers/azure/text.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

enum { MOST = 1000 };

struct size_text {
	const char *size;
	int64_t count;
};

struct pool_text {
	const char *name, *etag, *state, *type, *mode, *scale_down, *priority, *eviction, *os, *vm_size, *power,
		*subnet;
	bool is_autoscaled;
	struct decoded_list zones, sizes;
	struct decoded_text count, problem, autoscale, properties;
};

static const struct field zone_fields[] = { { .path = "", .type = FIELD_STRING } };
static const struct record_spec zone_record = { "", sizeof(const char *), zone_fields, 1 };
static const struct field size_fields[] = {
	FIELD(struct size_text, size, FIELD_STRING, "size"),
	FIELD(struct size_text, count, FIELD_INT, "count"),
};
static const struct record_spec size_record = { "", sizeof(struct size_text), size_fields, 2 };

static const struct field pool_fields[] = {
	FIELD(struct pool_text, name, FIELD_STRING, "name"),
	{ .path = "properties", .type = FIELD_RAW, .offset = offsetof(struct pool_text, properties), .required = true },
};
static const struct record_spec pool_record = { "", sizeof(struct pool_text), pool_fields, 2 };

static const struct field properties_fields[] = {
	FIELD(struct pool_text, etag, FIELD_STRING, "eTag"),
	FIELD(struct pool_text, state, FIELD_STRING, "provisioningState"),
	FIELD(struct pool_text, type, FIELD_STRING, "type"),
	FIELD(struct pool_text, mode, FIELD_STRING, "mode"),
	FIELD(struct pool_text, scale_down, FIELD_STRING, "scaleDownMode"),
	FIELD(struct pool_text, priority, FIELD_STRING, "scaleSetPriority"),
	FIELD(struct pool_text, eviction, FIELD_STRING, "scaleSetEvictionPolicy"),
	FIELD(struct pool_text, os, FIELD_STRING, "osType"),
	FIELD(struct pool_text, vm_size, FIELD_STRING, "vmSize"),
	FIELD(struct pool_text, power, FIELD_STRING, "powerState>code"),
	FIELD(struct pool_text, subnet, FIELD_STRING, "vnetSubnetID"),
	FIELD(struct pool_text, count, FIELD_RAW, "count"),
	FIELD(struct pool_text, is_autoscaled, FIELD_BOOL, "enableAutoScaling"),
	{ .path = "availabilityZones",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct pool_text, zones),
	  .of = &zone_record },
	{ .path = "virtualMachinesProfile>scale>manual",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct pool_text, sizes),
	  .of = &size_record },
	FIELD(struct pool_text, autoscale, FIELD_RAW, "virtualMachinesProfile>scale>autoscale"),
	FIELD(struct pool_text, problem, FIELD_RAW, "status>provisioningError"),
};
static const struct record_spec properties_record = { "", sizeof(struct pool_text), properties_fields,
						      sizeof properties_fields / sizeof *properties_fields };

static const char *or_none(const char *text)
{
	return text ? text : "";
}

static bool is_something(const struct decoded_text *t)
{
	return t->text && t->len && strncmp(t->text, "null", 4) != 0;
}

/* -1: it cannot be, or is not told. */
static int64_t count_of(const struct pool_text *t, bool is_of_machines)
{
	const struct size_text *sizes = t->sizes.items;
	int64_t sum = 0;

	if (!is_of_machines || !t->sizes.count)
		return t->count.text && decimal_parse(t->count.text, t->count.len, 0, &sum) == DECIMAL_OK ? sum : -1;
	for (size_t i = 0; i < t->sizes.count; i++) {
		if (sizes[i].count < 0 || sizes[i].count > MOST)
			return -1;
		sum += sizes[i].count;
	}
	return sum;
}

static void fill(const struct pool_text *t, const char *name, struct azure_pool *out)
{
	const struct size_text *sizes = t->sizes.items;

	*out = (struct azure_pool){
		.name = or_none(name),
		.etag = or_none(t->etag),
		.state = or_none(t->state),
		.type = or_none(t->type),
		.mode = or_none(t->mode),
		.scale_down_mode = or_none(t->scale_down),
		.priority = or_none(t->priority),
		.eviction = or_none(t->eviction),
		.os = or_none(t->os),
		.vm_size = or_none(t->vm_size),
		.power = or_none(t->power),
		.zone = t->zones.count == 1 ? or_none(((const char *const *)t->zones.items)[0]) : "",
		.subnet = or_none(t->subnet),
		.is_of_machines = strcasecmp(or_none(t->type), "VirtualMachines") == 0,
		.zone_count = t->zones.count,
		.size_count = t->sizes.count,
	};
	out->is_autoscaled = t->is_autoscaled || is_something(&t->autoscale);
	out->count = count_of(t, out->is_of_machines);
	if (out->is_of_machines && sizes && sizes[0].size)
		out->vm_size = sizes[0].size;
	if (is_something(&t->problem)) {
		out->problem = t->problem.text;
		out->problem_len = t->problem.len;
	}
}

bool azure_pool_read(const char *text, size_t len, struct arena *a, struct azure_pool *out, struct error *e)
{
	struct pool_text whole, t;

	if (!azure_decode(&pool_record, text, len, a, &whole, e) ||
	    !azure_decode(&properties_record, whole.properties.text, whole.properties.len, a, &t, e))
		return error_wrap(e, "agent pool");
	struct azure_pool p;
	fill(&t, whole.name, &p);
	if (p.count < 0 || p.count > MOST)
		return error_set(e, ERROR_INVALID, "agent pool: found no count from 0 to %d", MOST);
	for (const char *c = p.etag; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			return error_set(e, ERROR_INVALID, "agent pool: found an eTag that fits no header");
	*out = p;
	return true;
}

static bool is(const char *text, const char *other)
{
	return strcasecmp(text, other) == 0;
}

bool azure_pool_is_busy(const struct azure_pool *p)
{
	return *p->state && !is(p->state, "Succeeded") && !is(p->state, "Failed") && !is(p->state, "Canceled");
}

bool azure_pool_has_failed(const struct azure_pool *p)
{
	return is(p->state, "Failed");
}

bool azure_pool_keeps_stopped(const struct azure_pool *p)
{
	return is(p->scale_down_mode, "Deallocate");
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
