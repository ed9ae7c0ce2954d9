#include "controller/traces/trace.h"

#include "base/output.h"

#include <string.h>

static char *put_count(char *p, int64_t n)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + n % 10);
	while ((n /= 10));
	while (count)
		*p++ = digits[--count];
	return p;
}

static char *put_seconds(char *p, millis t)
{
	p = put_count(p, t / SECOND);
	*p++ = '.';
	*p++ = (char)('0' + t / 100 % 10);
	*p++ = (char)('0' + t / 10 % 10);
	*p++ = (char)('0' + t % 10);
	return p;
}

static void write_requests(const struct trace *t, struct output *o)
{
	output_text(o, t->label_count ? "arrival_s,prompt_tokens,output_tokens,class\n"
				      : "arrival_s,prompt_tokens,output_tokens\n");
	for (size_t i = 0; i < t->request_count; i++) {
		const struct request *r = &t->requests[i];
		char row[80], *p = put_seconds(row, r->arrival);
		*p++ = ',';
		p = put_count(p, r->prompt_tokens);
		*p++ = ',';
		p = put_count(p, r->output_tokens);
		if (t->label_count)
			*p++ = ',';
		output_bytes(o, row, (size_t)(p - row));
		if (r->label >= 0)
			output_text(o, t->labels[r->label]);
		output_bytes(o, "\n", 1);
	}
}

static void write_bin(const struct bin *b, struct output *o)
{
	char row[96], *p = b->at % SECOND ? put_seconds(row, b->at) : put_count(row, b->at / SECOND);

	*p++ = ',';
	p = put_count(p, b->requests);
	*p++ = ',';
	p = put_count(p, b->prompt_tokens);
	*p++ = ',';
	p = put_count(p, b->output_tokens);
	*p++ = '\n';
	output_bytes(o, row, (size_t)(p - row));
}

/* Readers take the shortest step for the width: an empty bin shows it where no two bins are neighbours. */
static bool shows_width(const struct trace *t)
{
	for (size_t i = 1; i < t->bin_count; i++)
		if (t->bins[i].at - t->bins[i - 1].at == t->bin_width)
			return true;
	return false;
}

static void write_bins(const struct trace *t, struct output *o)
{
	bool is_shown = shows_width(t);

	output_text(o, "t_s,n_req,prompt_tokens,output_tokens\n");
	for (size_t i = 0; i < t->bin_count; i++) {
		write_bin(&t->bins[i], o);
		if (!i && !is_shown)
			write_bin(&(struct bin){ .at = t->bins[0].at + t->bin_width }, o);
	}
}

bool trace_write(const struct trace *t, const char *path, struct error *e)
{
	struct output *o = output_open(path, e);

	if (!o)
		return false;
	if (t->is_binned)
		write_bins(t, o);
	else
		write_requests(t, o);
	return output_commit(o, e);
}
