#include "controller/cluster/verbs_body.h"

#include <string.h>

enum { ROUNDS = 4 };

/* The kinds of one group and version, as the server lists them. */
struct found_kind {
	const char *plural, *kind;
	bool is_namespaced;
};

static const struct field kind_fields[] = {
	{ .path = "name", .type = FIELD_STRING, .offset = offsetof(struct found_kind, plural), .required = true },
	{ .path = "kind", .type = FIELD_STRING, .offset = offsetof(struct found_kind, kind), .required = true },
	FIELD(struct found_kind, is_namespaced, FIELD_BOOL, "namespaced"),
};
static const struct record_spec kind_record = { "", sizeof(struct found_kind), kind_fields, 3 };

struct found_kinds {
	struct decoded_list resources;
};
static const struct field kinds_fields[] = {
	{ .path = "resources", .type = FIELD_LIST, .offset = 0, .required = true, .of = &kind_record },
};
static const struct record_spec kinds_record = { "", sizeof(struct found_kinds), kinds_fields, 1 };

static bool decode_once(const struct record_spec *spec, const struct api_call *c, struct arena *a, void *record,
			struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, c->response, c->response_len, a, record, e);

	decode_plan_free(plan);
	return ok;
}

static bool has_scale(const struct found_kinds *all, const char *plural)
{
	const struct found_kind *k = all->resources.items;
	size_t len = strlen(plural);

	for (size_t i = 0; i < all->resources.count; i++)
		if (!strncmp(k[i].plural, plural, len) && !strcmp(k[i].plural + len, "/scale"))
			return true;
	return false;
}

static bool take_kind(struct plural_call *c, const struct found_kinds *all)
{
	const struct found_kind *k = all->resources.items;

	for (size_t i = 0; i < all->resources.count; i++) {
		if (strcmp(k[i].kind, c->kind) != 0 || strchr(k[i].plural, '/'))
			continue;
		api_kind_learn(c->api, &(struct api_kind){ .api_version = c->api_version,
							   .kind = c->kind,
							   .plural = k[i].plural,
							   .is_namespaced = k[i].is_namespaced,
							   .has_scale = has_scale(all, k[i].plural) });
		return true;
	}
	return false;
}

static void complete_plural(struct plural_call *c)
{
	const struct api_kind *k = api_kind_known(c->api, c->api_version, c->kind);

	buf_release(&c->path);
	if (k) {
		c->plural = k->plural;
		c->is_namespaced = k->is_namespaced;
		c->has_scale = k->has_scale;
	}
	c->done(c);
}

static void kinds_came(struct api_call *call)
{
	struct plural_call *c = call->user;
	CLEANUP(arena_release) struct arena a = { 0 };
	struct found_kinds all = { 0 };

	c->error = call->error;
	if (call->status == 404)
		error_set(&c->error, ERROR_NOT_FOUND, "the server knows no API %s: install what defines kind %s",
			  c->api_version, c->kind);
	else if (c->error.kind == ERROR_NONE && !decode_once(&kinds_record, call, &a, &all, &c->error))
		error_wrap(&c->error, "the kinds of %s", c->api_version);
	else if (c->error.kind == ERROR_NONE && !take_kind(c, &all))
		error_set(&c->error, ERROR_NOT_FOUND, "the server knows no kind %s in %s: check the spelling", c->kind,
			  c->api_version);
	complete_plural(c);
}

static void known_already(struct timer *t)
{
	complete_plural(t->user);
}

void plural_start(struct api *a, struct plural_call *c)
{
	c->api = a;
	c->error = (struct error){ 0 };
	c->plural = NULL;
	if (api_kind_known(a, c->api_version, c->kind)) {
		c->timer.user = c;
		timer_start(api_loop(a), &c->timer, 0, known_already);
		return;
	}
	buf_clear(&c->path);
	buf_printf(&c->path, "%s/%s", strchr(c->api_version, '/') ? "/apis" : "/api", c->api_version);
	c->call = (struct api_call){ .path = c->path.text, .done = kinds_came, .user = c };
	api_start(a, &c->call);
}

struct found_scale {
	const char *resource_version, *selector;
	int64_t wanted, running;
};

static const struct field scale_fields[] = {
	FIELD(struct found_scale, resource_version, FIELD_STRING, "metadata>resourceVersion"),
	FIELD(struct found_scale, selector, FIELD_STRING, "status>selector"),
	FIELD(struct found_scale, wanted, FIELD_INT, "spec>replicas"),
	FIELD(struct found_scale, running, FIELD_INT, "status>replicas"),
};
static const struct record_spec scale_record = { "", sizeof(struct found_scale), scale_fields, 4 };

static void read_scale(struct scale_call *c);

static void complete_scale(struct scale_call *c, const struct error *e)
{
	struct arena texts = c->arena;

	c->error = *e;
	c->arena = (struct arena){ 0 };
	buf_release(&c->path);
	buf_release(&c->body);
	c->done(c);
	arena_release(&texts);
}

static bool understand_scale(struct scale_call *c, const struct api_call *call, struct found_scale *s, struct error *e)
{
	if (!decode_once(&scale_record, call, &c->arena, s, e))
		return error_wrap(e, "the scale of %s %s/%s", c->kind, c->name_space, c->name);
	c->wanted = s->wanted;
	c->running = s->running;
	c->selector = s->selector;
	return true;
}

static void scale_written(struct api_call *call)
{
	struct scale_call *c = call->user;
	struct error e = call->error;
	struct found_scale s;

	if (call->status == 409 && ++c->rounds < ROUNDS) {
		read_scale(c);
		return;
	}
	if (e.kind == ERROR_NONE && !understand_scale(c, call, &s, &e))
		c->wanted = c->replicas;
	complete_scale(c, &e);
}

/* With the version that was read: whoever sets it at the same time is noticed. */
static void write_scale(struct scale_call *c, const struct found_scale *s)
{
	struct buf *out = &c->body;

	buf_clear(out);
	buf_text(out, "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"metadata\":{");
	verbs_member("name", c->name, out);
	verbs_member("namespace", c->name_space, out);
	verbs_member("resourceVersion", s->resource_version, out);
	buf_printf(out, "},\"spec\":{\"replicas\":%lld}}", (long long)c->replicas);
	c->call = (struct api_call){ .method = "PUT",
				     .path = c->path.text,
				     .body = out->text,
				     .effect = API_WRITE,
				     .done = scale_written,
				     .user = c };
	api_start(c->api, &c->call);
}

static void scale_read(struct api_call *call)
{
	struct scale_call *c = call->user;
	struct error e = call->error;
	struct found_scale s;

	if (e.kind != ERROR_NONE || !understand_scale(c, call, &s, &e)) {
		complete_scale(c, &e);
		return;
	}
	if (!c->rounds)
		c->before = s.wanted;
	bool stays = c->kept_above > 0 && s.wanted > c->kept_above && s.wanted > c->replicas;
	if (c->is_write && s.wanted != c->replicas && !stays)
		write_scale(c, &s);
	else
		complete_scale(c, &e);
}

static void read_scale(struct scale_call *c)
{
	c->call = (struct api_call){ .path = c->path.text, .done = scale_read, .user = c };
	api_start(c->api, &c->call);
}

static void plural_came(struct plural_call *p)
{
	struct scale_call *c = p->user;
	struct error e = p->error;

	if (e.kind == ERROR_NONE && !p->has_scale)
		error_set(&e, ERROR_INVALID, "kind %s of %s has no scale subresource: its replicas cannot be set",
			  c->kind, c->api_version);
	if (e.kind != ERROR_NONE) {
		complete_scale(c, &e);
		return;
	}
	api_object_path(&(struct api_object){ .api_version = c->api_version,
					      .plural = p->plural,
					      .name_space = c->name_space,
					      .name = c->name,
					      .subresource = "scale" },
			&c->path);
	read_scale(c);
}

void scale_start(struct api *a, struct scale_call *c)
{
	c->api = a;
	c->rounds = 0;
	c->selector = NULL;
	c->wanted = c->running = c->before = 0;
	buf_clear(&c->path);
	c->lookup =
		(struct plural_call){ .api_version = c->api_version, .kind = c->kind, .done = plural_came, .user = c };
	plural_start(a, &c->lookup);
}
