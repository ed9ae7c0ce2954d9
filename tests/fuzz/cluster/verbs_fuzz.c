/*
 * Any texts as the API server's answers to what is asked once: the reviews of a token and of what its user may do, the
 * scale of a workload, an eviction, an object. The first byte says which, the answers follow between NUL bytes; one
 * that begins with a digit is refused with such a status.
 */
#include "base/log.h"
#include "controller/cluster/verbs.h"
#include "tests/unit/cluster/played_api.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct api_call *asked; /* NULL: none waits for an answer */
static struct api *api;
static int done, begun;

static void serve(struct api_call *c)
{
	asked = c;
}

static void access_done(struct access_review *r)
{
	done++;
	if (r->error.kind != ERROR_NONE && r->is_allowed)
		abort();
	free(r);
}

/* Who is known can be asked about. */
static void token_done(struct token_review *t)
{
	struct access_review *r = calloc(1, sizeof *r);
	struct error e;

	done++;
	if (!r || (t->error.kind != ERROR_NONE && t->is_known) || (t->is_known && (!t->name || !t->who)))
		abort();
	r->who = t->who ? t->who : "{}";
	r->verb = "get";
	r->path = "/api/v1/pools";
	r->done = access_done;
	bool is_begun = t->is_known && access_review_start(api, r, &e);
	begun += is_begun;
	if (!is_begun)
		free(r);
	free(t);
}

static void scale_done(struct scale_call *c)
{
	done++;
	if (c->error.kind == ERROR_NONE && (c->wanted < 0 || c->running < 0))
		abort();
	free(c);
}

static void evicted(struct eviction *v)
{
	done++;
	free(v);
}

static void object_done(struct object_call *c)
{
	done++;
	free(c);
}

static void *made(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	begun++;
	return p;
}

static void begin_token(void)
{
	struct token_review *t = made(sizeof *t);

	t->token = "t";
	t->done = token_done;
	token_review_start(api, t);
}

static void begin_scale(bool is_write)
{
	struct scale_call *s = made(sizeof *s);

	*s = (struct scale_call){ .api_version = "apps/v1",
				  .kind = "Deployment",
				  .name_space = "llm",
				  .name = "chat",
				  .is_write = is_write,
				  .replicas = 3,
				  .done = scale_done };
	scale_start(api, s);
}

static void begin_eviction(void)
{
	struct eviction *v = made(sizeof *v);

	*v = (struct eviction){ .name_space = "llm", .pod = "chat-1", .grace_seconds = -1, .done = evicted };
	eviction_start(api, v);
}

static void begin_object(void)
{
	struct object_call *o = made(sizeof *o);

	*o = (struct object_call){ .verb = OBJECT_PATCH,
				   .object = { .api_version = "v1", .plural = "nodes", .name = "n" },
				   .body = "{}",
				   .done = object_done };
	object_start(api, o);
}

static void begin(uint8_t which)
{
	if (which % 5 == 0)
		begin_token();
	else if (which % 5 == 1)
		begin_eviction();
	else if (which % 5 == 2)
		begin_object();
	else
		begin_scale(which % 5 == 3);
}

static void answer(const char *text, size_t len)
{
	static const int statuses[] = { 201, 400, 401, 403, 404, 409, 422, 429, 500, 503 };
	int status = len && *text >= '0' && *text <= '9' ? statuses[*text - '0'] : 200;
	char *copy = strndup(text, len);
	struct api_call *c = asked;

	asked = NULL;
	play_answer(c, status, copy);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *text = (const char *)bytes + 1, *last = (const char *)bytes + len;

	if (!len)
		return 0;
	log_level_set(LEVEL_ERROR);
	done = begun = 0;
	asked = NULL;
	api = play_begin(serve);
	begin(bytes[0]);
	for (int steps = 0; done < begun; steps++) {
		if (steps > 1000)
			abort();
		if (asked) {
			size_t n = text < last ? strnlen(text, (size_t)(last - text)) : 0;
			answer(n ? text : "4", n ? n : 1);
			text += n + (text < last);
		}
		play_step(play_now() + SECOND);
	}
	play_until(play_now() + 1);
	play_end();
	return 0;
}
