#include "controller/cluster/verbs_body.h"

static void marked(struct api_call *c)
{
	struct mark_call *m = c->user;

	m->error = c->error;
	buf_release(&m->path);
	buf_release(&m->body);
	m->done(m);
}

void mark_start(struct api *a, struct mark_call *m)
{
	buf_clear(&m->path);
	buf_clear(&m->body);
	api_object_path(&m->object, &m->path);
	buf_text(&m->body, "{\"metadata\":{");
	verbs_pairs("annotations", m->annotations, m->annotation_count, &m->body);
	verbs_pairs("labels", m->labels, m->label_count, &m->body);
	buf_text(&m->body, "}}");
	m->call = (struct api_call){ .method = "PATCH",
				     .path = m->path.text,
				     .body = m->body.text,
				     .content_type = MERGE_PATCH,
				     .effect = API_WRITE,
				     .is_repeatable = true,
				     .done = marked,
				     .user = m };
	api_start(a, &m->call);
}

static const struct {
	const char *method, *content_type;
	bool is_repeatable;
} verbs[] = {
	[OBJECT_GET] = { "GET", NULL, true },
	[OBJECT_CREATE] = { "POST", NULL, false },
	[OBJECT_PUT] = { "PUT", NULL, false },
	[OBJECT_PATCH] = { "PATCH", MERGE_PATCH, true },
	[OBJECT_APPLY] = { "PATCH", "application/apply-patch+yaml", true },
	[OBJECT_DELETE] = { "DELETE", NULL, true },
};

static void answered(struct api_call *c)
{
	struct object_call *o = c->user;

	o->error = c->error;
	o->status = c->status;
	o->response = c->response;
	o->response_len = c->response_len;
	buf_release(&o->path);
	o->done(o);
}

void object_start(struct api *a, struct object_call *o)
{
	buf_clear(&o->path);
	api_object_path(&o->object, &o->path);
	if (o->verb == OBJECT_APPLY) {
		api_query(&o->path, "fieldManager", "preheat");
		api_query(&o->path, "force", "true");
	}
	o->call = (struct api_call){ .method = verbs[o->verb].method,
				     .path = o->path.text,
				     .body = o->body,
				     .content_type = verbs[o->verb].content_type,
				     .effect = o->verb == OBJECT_GET ? API_READ : API_WRITE,
				     .is_repeatable = verbs[o->verb].is_repeatable,
				     .done = answered,
				     .user = o };
	api_start(a, &o->call);
}
