#include "signals/exposition.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SLOTS = 4 * EXPOSITION_NAMES, NAME_LONGEST = 128, UNASKED = -1 };

struct exposition {
	struct exposition_names names;
	int16_t slots[SLOTS]; /* index of a name + 1; open addressing */
	exposition_fn *on_sample;
	void *user;
	size_t told, most;
	size_t line;
	bool is_ended;
	char same[NAME_LONGEST]; /* the name of the line before: most lines repeat it */
	size_t same_len;
	int same_index;
	bool is_passing; /* a line too long to keep, of a name that nobody asked for, up to its end */
	char carry[EXPOSITION_LINE];
	size_t carry_len;
};

static uint32_t hash_name(const char *text, size_t len)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 16777619U;
	return h ^ h >> 15;
}

static void put_name(struct exposition *x, size_t index)
{
	const char *name = x->names.names[index];
	uint32_t at = hash_name(name, strlen(name)) % SLOTS;

	while (x->slots[at])
		at = (at + 1) % SLOTS;
	x->slots[at] = (int16_t)(index + 1);
}

static int find_name(const struct exposition *x, const char *text, size_t len)
{
	for (uint32_t at = hash_name(text, len) % SLOTS; x->slots[at]; at = (at + 1) % SLOTS) {
		const char *name = x->names.names[x->slots[at] - 1];
		if (strlen(name) == len && memcmp(name, text, len) == 0)
			return x->slots[at] - 1;
	}
	return UNASKED;
}

struct exposition *exposition_open(struct exposition_names names, size_t most, exposition_fn *on_sample, void *user)
{
	struct exposition *x = malloc(sizeof *x);

	if (!x || names.count > EXPOSITION_NAMES)
		abort();
	memset(x, 0, offsetof(struct exposition, carry));
	x->carry_len = 0;
	x->names = names;
	x->most = most;
	x->on_sample = on_sample;
	x->user = user;
	for (size_t i = 0; i < names.count; i++)
		put_name(x, i);
	return x;
}

void exposition_close(struct exposition *x)
{
	free(x);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && is_blank(*p))
		p++;
	return p;
}

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* From behind the opening quote to the closing one; NULL when there is none. */
static const char *find_quote(const char *p, const char *end)
{
	for (; p < end && *p != '"'; p++)
		if (*p == '\\' && ++p == end)
			return NULL;
	return p < end ? p : NULL;
}

struct label {
	struct exposition_slice name, value;
};

/* One `name="value"` and the comma behind it. NULL with *problem set. */
static const char *take_label(const char *p, const char *end, struct label *out, const char **problem)
{
	out->name.text = p;
	while (p < end && is_label_char(*p))
		p++;
	out->name.len = (size_t)(p - out->name.text);
	p = skip_blanks(p, end);
	*problem = "a label is written name=\"value\"";
	if (!out->name.len || p == end || *p != '=')
		return NULL;
	p = skip_blanks(p + 1, end);
	if (p == end || *p != '"')
		return NULL;
	out->value.text = ++p;
	*problem = "a label's value has no closing quote";
	if (!(p = find_quote(p, end)))
		return NULL;
	out->value.len = (size_t)(p - out->value.text);
	p = skip_blanks(p + 1, end);
	*problem = "after a label comes a comma or the closing brace";
	if (p < end && *p == ',')
		return skip_blanks(p + 1, end);
	return p < end && *p == '}' ? p : NULL;
}

/* From behind the opening brace to behind the closing one. */
static const char *take_labels(const char *p, const char *end, struct exposition_slice *out, const char **problem)
{
	struct label ignored;
	int count = 0;

	out->text = p;
	p = skip_blanks(p, end);
	while (p < end && *p != '}') {
		*problem = "more than 64 labels";
		if (++count > EXPOSITION_LABELS || !(p = take_label(p, end, &ignored, problem)))
			return NULL;
	}
	*problem = "the labels have no closing brace";
	if (p == end)
		return NULL;
	out->len = (size_t)(p - out->text);
	return p + 1;
}

static const char *take_word(const char *p, const char *end, struct exposition_slice *out)
{
	out->text = p;
	while (p < end && !is_blank(*p))
		p++;
	out->len = (size_t)(p - out->text);
	return skip_blanks(p, end);
}

/* What stands behind the name. NULL, or what is wrong with it. */
static const char *read_sample(const char *p, const char *end, struct exposition_sample *s)
{
	const char *problem = NULL;

	p = skip_blanks(p, end);
	if (p < end && *p == '{' && !(p = take_labels(p + 1, end, &s->labels, &problem)))
		return problem;
	p = take_word(skip_blanks(p, end), end, &s->value);
	if (!s->value.len)
		return "no value";
	if (p < end && *p != '#')
		p = take_word(p, end, &s->time);
	return p == end || *p == '#' ? NULL : "more than a value and a time";
}

static bool tell(struct exposition *x, const char *p, const char *end, struct error *e)
{
	struct exposition_sample s = {
		.name = (size_t)x->same_index, .labels.text = "", .value.text = "", .time.text = ""
	};
	const char *name = x->names.names[s.name];
	const char *problem = read_sample(p, end, &s);

	if (problem)
		return error_set(e, ERROR_INVALID, "line %zu: %s: %s", x->line, name, problem);
	if (x->told++ == x->most)
		return error_set(e, ERROR_INVALID, "line %zu: more than %zu samples of the metrics asked for", x->line,
				 x->most);
	return x->on_sample(x->user, &s, e) || error_wrap(e, "line %zu: %s", x->line, name);
}

static bool is_name_end(char c)
{
	return c == '{' || is_blank(c);
}

static bool is_same_name(const struct exposition *x, const char *p, size_t len)
{
	return x->same_len && len > x->same_len && is_name_end(p[x->same_len]) && memcmp(p, x->same, x->same_len) == 0;
}

static void learn_name(struct exposition *x, const char *p, const char *end)
{
	size_t len = 0, most = (size_t)(end - p);

	while (len < most && !is_name_end(p[len]))
		len++;
	x->same_len = len <= NAME_LONGEST ? len : 0;
	memcpy(x->same, p, x->same_len);
	x->same_index = x->same_len ? find_name(x, p, len) : UNASKED;
}

static bool read_line(struct exposition *x, const char *p, const char *end, struct error *e)
{
	x->line++;
	if (x->is_ended)
		return true;
	if (end > p && end[-1] == '\r')
		end--;
	p = skip_blanks(p, end);
	if (p == end)
		return true;
	if (*p == '#') {
		x->is_ended = end - p == 5 && memcmp(p, "# EOF", 5) == 0;
		return true;
	}
	if (!is_same_name(x, p, (size_t)(end - p)))
		learn_name(x, p, end);
	return x->same_index == UNASKED || tell(x, p + x->same_len, end, e);
}

static bool too_long(const struct exposition *x, struct error *e)
{
	return error_set(e, ERROR_INVALID, "line %zu: longer than %d bytes", x->line + 1, EXPOSITION_LINE);
}

/* Whether a line that begins so is one that may be of any length: a comment, or of another name. */
static bool is_passed_over(const struct exposition *x, const char *p, size_t len)
{
	size_t name = 0;

	while (name < len && !is_name_end(p[name]))
		name++;
	return *p == '#' || find_name(x, p, name) == UNASKED;
}

static bool keep(struct exposition *x, const char *bytes, size_t len, struct error *e)
{
	if (x->is_passing)
		return true;
	if (len > sizeof x->carry - x->carry_len) {
		bool is_first = !x->carry_len;
		x->is_passing = is_passed_over(x, is_first ? bytes : x->carry, is_first ? len : x->carry_len);
		x->carry_len = 0;
		return x->is_passing || too_long(x, e);
	}
	memcpy(x->carry + x->carry_len, bytes, len);
	x->carry_len += len;
	return true;
}

static bool end_line(struct exposition *x, const char *bytes, const char *newline, struct error *e)
{
	size_t len;

	if (!x->carry_len && !x->is_passing && newline - bytes <= EXPOSITION_LINE)
		return read_line(x, bytes, newline, e);
	if (!keep(x, bytes, (size_t)(newline - bytes), e))
		return false;
	if (x->is_passing) {
		x->is_passing = false;
		x->line++;
		return true;
	}
	len = x->carry_len;
	x->carry_len = 0;
	return read_line(x, x->carry, x->carry + len, e);
}

bool exposition_feed(struct exposition *x, const char *bytes, size_t len, struct error *e)
{
	const char *p = bytes, *end = bytes + len;

	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		if (!newline)
			return keep(x, p, (size_t)(end - p), e);
		if (!end_line(x, p, newline, e))
			return false;
		p = newline + 1;
	}
	return true;
}

bool exposition_finish(struct exposition *x, struct error *e)
{
	bool is_cut = x->carry_len || x->is_passing;
	bool is_end = x->carry_len == 5 && memcmp(x->carry, "# EOF", 5) == 0;

	/* Where nothing was asked for it is no page that was cut, but an answer of another kind. */
	if (is_cut && !is_end && !x->is_ended &&
	    (x->told || (x->carry_len && !is_passed_over(x, x->carry, x->carry_len))))
		return error_set(e, ERROR_INVALID, "line %zu: the page ends within it", x->line + 1);
	return true;
}

static bool is_word(struct exposition_slice s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.text, word, s.len) == 0;
}

enum exposition_number exposition_value(struct exposition_slice value, int places, int64_t *out)
{
	bool is_plus = value.len && value.text[0] == '+', is_minus = value.len && value.text[0] == '-';
	struct exposition_slice word = { value.text + (is_plus || is_minus), value.len - (is_plus || is_minus) };

	if (is_word(word, "nan"))
		return EXPOSITION_NAN;
	if (is_word(word, "inf") || is_word(word, "infinity"))
		return is_minus ? EXPOSITION_NEGATIVE : EXPOSITION_INFINITE;
	if (word.len && word.text[0] == '-')
		return EXPOSITION_NONSENSE;
	if (is_plus)
		value = word;
	switch (decimal_parse(value.text, value.len, places, out)) {
	case DECIMAL_OK:
		return EXPOSITION_NUMBER;
	case DECIMAL_HUGE:
		return EXPOSITION_HUGE;
	case DECIMAL_NEGATIVE:
		return EXPOSITION_NEGATIVE;
	case DECIMAL_MALFORMED:
	case DECIMAL_FRACTION:
		return EXPOSITION_NONSENSE;
	}
	return EXPOSITION_NONSENSE;
}

bool exposition_next_label(const struct exposition_sample *sample, const char **at, struct exposition_slice *name,
			   struct exposition_slice *value)
{
	const char *end = sample->labels.text + sample->labels.len, *problem;
	const char *p = skip_blanks(*at ? *at : sample->labels.text, end);
	struct label found;

	/* The closing brace stands behind the slice. */
	if (p >= end || !(*at = take_label(p, end + 1, &found, &problem)))
		return false;
	*name = found.name;
	*value = found.value;
	return true;
}

bool exposition_label(const struct exposition_sample *sample, const char *name, struct exposition_slice *out)
{
	const char *at = NULL;
	struct exposition_slice found;
	size_t len = strlen(name);

	while (exposition_next_label(sample, &at, &found, out))
		if (found.len == len && memcmp(found.text, name, len) == 0)
			return true;
	return false;
}
