/* Which settings are compared: a family's own, and some of them with stocks of stopped machines. */
#include "base/buf.h"
#include "controller/simulation/rivals/rival.h"

#include <assert.h>

enum { SWEEP_MOST = 4096 };

struct sweep {
	struct arena *arena;
	struct rival_setting *rows;
	size_t count;
	const char *suffix; /* appended to each setting */
	bool only_stocked, uses_standby, uses_lent, has_no_default;
};

void sweep_add(struct sweep *s, bool is_stocked, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	va_list ap;

	if (s->only_stocked && !is_stocked)
		return;
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	buf_text(&text, s->suffix);
	assert(s->count < SWEEP_MOST);
	s->rows[s->count] = (struct rival_setting){ .text = arena_strdup(s->arena, text.text, text.len),
						    .is_default = s->count == 0 && !s->has_no_default,
						    .uses_standby = s->uses_standby,
						    .uses_lent = s->uses_lent };
	s->count++;
}

/* One stock size with every stocked setting; the size of the one before is not repeated. */
static int64_t sweep_stock(struct sweep *s, const struct family *family, const struct rival_scale *scale,
			   const char *kind, double size)
{
	CLEANUP(buf_release) struct buf suffix = { 0 };

	buf_printf(&suffix, ",pool=%s:%lld%s", kind, (long long)whole_above(size), scale->has_lent ? ",lent=1" : "");
	s->suffix = suffix.text;
	family->sweep(s, scale);
	s->suffix = "";
	return whole_above(size);
}

static void sweep_stocks(struct sweep *s, const struct family *family, const struct rival_scale *scale)
{
	static const double of_mean[] = { 0.1, 0.2, 0.4, 0.8, 1.5 }, of_peak[] = { 0.7, 0.9, 1.1, 1.4 };
	int64_t last = 0;

	s->only_stocked = s->uses_standby = true;
	s->uses_lent = scale->has_lent;
	for (size_t i = 0; i < sizeof of_mean / sizeof *of_mean; i++)
		if (whole_above(of_mean[i] * scale->mean) != last)
			last = sweep_stock(s, family, scale, "static", of_mean[i] * scale->mean);
	last = 0;
	for (size_t i = 0; i < sizeof of_peak / sizeof *of_peak; i++)
		if (whole_above(of_peak[i] * scale->peak) != last)
			last = sweep_stock(s, family, scale, "total", of_peak[i] * scale->peak);
}

size_t sweep_settings(const struct family *family, const struct rival_scale *scale, struct arena *a,
		      const struct rival_setting **out)
{
	struct sweep s = { .arena = a,
			   .rows = arena_array(a, struct rival_setting, SWEEP_MOST),
			   .suffix = "",
			   .has_no_default = family->has_no_default };

	family->sweep(&s, scale);
	if (scale->has_lent) {
		s.only_stocked = s.uses_lent = true;
		s.suffix = ",lent=1";
		family->sweep(&s, scale);
		s.suffix = "";
	}
	if (scale->has_standby)
		sweep_stocks(&s, family, scale);
	*out = s.rows;
	return s.count;
}
