#include "signals/picker.h"

#include "base/text.h"
#include "signals/exposition.h"
#include "signals/page.h"
#include "signals/promql.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 20000 };

/* The best first; what tells that flow control is on stands behind the queues. */
static const char *const names[] = { "llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size",
				     "llm_d_epp_flow_control_pool_saturation",
				     "inference_extension_flow_control_pool_saturation" };
enum { NAMES = sizeof names / sizeof *names, QUEUES = 2 };

struct picker_page {
	const char *pool;
	struct exposition *text;
	int64_t sum[QUEUES];
	bool is_told[NAMES];
};

/* A picker serves one pool; older ones do not name it. */
static bool is_of_pool(const struct picker_page *p, const struct exposition_sample *s)
{
	struct exposition_slice pool;

	return !exposition_label(s, "inference_pool", &pool) ||
	       (pool.len == strlen(p->pool) && !memcmp(pool.text, p->pool, pool.len));
}

static bool on_sample(void *user, const struct exposition_sample *s, struct error *e)
{
	struct picker_page *p = user;
	int64_t value;

	if (!is_of_pool(p, s))
		return true;
	p->is_told[s->name] = true;
	if (s->name >= QUEUES)
		return true;
	if (!page_value(ENGINE_WAITING, s->value, &value, e))
		return error_wrap(e, "%s", names[s->name]);
	p->sum[s->name] += value;
	return true;
}

struct picker_page *picker_page_open(const char *pool)
{
	struct picker_page *p = calloc(1, sizeof *p);

	if (!p)
		abort();
	p->pool = pool;
	p->text = exposition_open((struct exposition_names){ names, NAMES }, MOST_SAMPLES, on_sample, p);
	return p;
}

void picker_page_close(struct picker_page *p)
{
	if (!p)
		return;
	exposition_close(p->text);
	free(p);
}

bool picker_page_feed(struct picker_page *p, const char *bytes, size_t len, struct error *e)
{
	return exposition_feed(p->text, bytes, len, e);
}

bool picker_page_finish(struct picker_page *p, int64_t *waiting, struct error *e)
{
	char room[QUOTE_ROOM];

	if (!exposition_finish(p->text, e))
		return false;
	for (size_t i = 0; i < NAMES; i++)
		if (p->is_told[i]) {
			*waiting = i < QUEUES ? (p->sum[i] + 500) / 1000 : 0;
			return true;
		}
	return error_set(e, ERROR_NOT_FOUND,
			 "no %s of the inference pool %s; is flow control on in the endpoint picker?", names[0],
			 quote(room, p->pool, strlen(p->pool)));
}

void picker_query(const char *pool, struct buf *out)
{
	for (size_t i = 0; i < NAMES; i++) {
		buf_printf(out, "%s%s(%s{inference_pool=", i ? " or " : "", i < QUEUES ? "sum" : "0 * count", names[i]);
		promql_text(pool, out);
		buf_text(out, "})");
	}
}
