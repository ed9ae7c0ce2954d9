#include "signals/prometheus_answer.h"

#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct prometheus_series {
	size_t number, count, used;
	const char *names[PROMETHEUS_LABELS], *values[PROMETHEUS_LABELS];
	char bytes[PROMETHEUS_LABEL_BYTES];
};

struct prometheus_answer {
	struct json *json;
	size_t most;
	prometheus_fn *on_sample;
	void *user;
	struct prometheus_series series;
	struct prometheus_notes notes;
	bool has_status, is_success, has_result, is_scalar, has_labels, has_at;
	millis at;
	char type[40], reason[200];
};

const char *prometheus_label(const struct prometheus_series *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->names[i], name))
			return s->values[i];
	return NULL;
}

size_t prometheus_series_number(const struct prometheus_series *s)
{
	return s->number;
}

/* Cut to the room, with nothing in it that a terminal would obey. */
static size_t show(char *room, size_t size, size_t at, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_plain = c >= ' ' && c < 127;
		if (at + (is_plain ? 1 : 4) >= size)
			break;
		at += (size_t)snprintf(room + at, size - at, is_plain ? "%c" : "\\x%02x", c);
	}
	room[at < size ? at : size - 1] = '\0';
	return at;
}

const char *prometheus_series_text(const struct prometheus_series *s, char *room, size_t size)
{
	size_t at = show(room, size, 0, "{", 1);

	for (size_t i = 0; i < s->count; i++) {
		at = show(room, size, at, i ? ", " : "", i ? 2 : 0);
		at = show(room, size, at, s->names[i], strlen(s->names[i]));
		at = show(room, size, at, "=\"", 2);
		at = show(room, size, at, s->values[i], strlen(s->values[i]));
		at = show(room, size, at, "\"", 1);
	}
	show(room, size, at, "}", 1);
	return room;
}

static bool equals(const struct json_event *ev, const char *text)
{
	return ev->len == strlen(text) && !memcmp(ev->text, text, ev->len);
}

static const char *keep(struct prometheus_series *s, const char *text, size_t len)
{
	char *kept = s->bytes + s->used;

	if (s->used + len + 1 > sizeof s->bytes || memchr(text, '\0', len))
		return NULL;
	memcpy(kept, text, len);
	kept[len] = '\0';
	s->used += len + 1;
	return kept;
}

static bool take_label(struct prometheus_answer *a, const char *name, const struct json_event *ev, struct error *e)
{
	struct prometheus_series *s = &a->series;

	if (ev->type != JSON_STRING)
		return error_set(e, ERROR_INVALID, "a label that is no text");
	if (s->count == PROMETHEUS_LABELS)
		return error_set(e, ERROR_INVALID, "a series with more than %d labels", PROMETHEUS_LABELS);
	const char *kept = keep(s, name, strlen(name)), *value = keep(s, ev->text, ev->len);
	if (!kept || !value)
		return error_set(e, ERROR_INVALID, "a series whose labels are longer than %d bytes, or hold a NUL",
				 PROMETHEUS_LABEL_BYTES);
	s->names[s->count] = kept;
	s->values[s->count++] = value;
	return true;
}

/* Seconds, in a double: more digits than milliseconds are noise of the sender's. */
static bool take_time(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];

	a->has_at = ev->type == JSON_NUMBER && decimal_parse(ev->text, ev->len, 3, &a->at) == DECIMAL_OK;
	return a->has_at || error_set(e, ERROR_INVALID, "the time of a sample: found %s; allowed: seconds since 1970",
				      quote(room, ev->text, ev->len));
}

static bool take_point(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];
	struct prometheus_sample s = { .series = a->is_scalar ? NULL : &a->series };

	if (!a->has_at)
		return take_time(a, ev, e);
	a->has_at = false;
	if (ev->type != JSON_STRING)
		return error_set(e, ERROR_INVALID, "the value of a sample: found %s; allowed: a number in quotes",
				 quote(room, ev->text, ev->len));
	if (!a->is_scalar && !a->has_labels)
		return error_set(e, ERROR_INVALID, "a sample before its labels");
	if ((size_t)a->notes.samples == a->most)
		return error_set(e, ERROR_INVALID, "more than %zu samples; narrow the labels down", a->most);
	a->notes.samples++;
	s.at = a->at;
	s.value = (struct exposition_slice){ ev->text, ev->len };
	return a->on_sample(a->user, &s, e);
}

static bool take_type(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	char room[QUOTE_ROOM];

	a->is_scalar = equals(ev, "scalar");
	return a->is_scalar || equals(ev, "vector") || equals(ev, "matrix") ||
	       error_set(e, ERROR_INVALID, "resultType: found %s; allowed: vector, matrix or scalar",
			 quote(room, ev->text, ev->len));
}

static bool is_point(const char *path)
{
	return !strcmp(path, "data>result[]>value[]") || !strcmp(path, "data>result[]>values[][]");
}

static bool on_scalar(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	static const char labels[] = "data>result[]>metric>";

	if (!strncmp(ev->path, labels, sizeof labels - 1))
		return take_label(a, ev->path + sizeof labels - 1, ev, e);
	if (is_point(ev->path) || (a->is_scalar && !strcmp(ev->path, "data>result[]")))
		return take_point(a, ev, e);
	if (!strcmp(ev->path, "data>result[]"))
		return error_set(e, ERROR_INVALID, "a series that is no object");
	if (!strcmp(ev->path, "data>resultType"))
		return take_type(a, ev, e);
	if (!strcmp(ev->path, "status")) {
		a->has_status = true;
		a->is_success = equals(ev, "success");
	} else if (!strcmp(ev->path, "errorType")) {
		show(a->type, sizeof a->type, 0, ev->text, ev->len);
	} else if (!strcmp(ev->path, "error")) {
		show(a->reason, sizeof a->reason, 0, ev->text, ev->len);
	} else if (!strcmp(ev->path, "warnings[]")) {
		if (!a->notes.warnings++)
			show(a->notes.warning, sizeof a->notes.warning, 0, ev->text, ev->len);
	} else if (!strcmp(ev->path, "infos[]")) {
		a->notes.infos++;
	}
	return true;
}

static bool open_container(struct prometheus_answer *a, const struct json_event *ev, struct error *e)
{
	if (!strcmp(ev->path, "data>result"))
		a->has_result = true;
	if (!strcmp(ev->path, "data>result[]")) {
		a->series.number = (size_t)a->notes.series++;
		a->series.count = a->series.used = 0;
		a->has_labels = false;
	}
	if (!strcmp(ev->path, "data>result[]>metric"))
		a->has_labels = true;
	if (!strcmp(ev->path, "data>result[]>value") || !strcmp(ev->path, "data>result[]>values[]"))
		a->has_at = false;
	if (is_point(ev->path))
		return error_set(e, ERROR_INVALID, "a sample that is no pair of time and value");
	if (!strcmp(ev->path, "data>result[]>histogram") || !strcmp(ev->path, "data>result[]>histograms"))
		return error_set(e, ERROR_INVALID, "a native histogram, where numbers were asked for");
	return true;
}

static bool on_event(void *user, const struct json_event *ev, struct error *e)
{
	struct prometheus_answer *a = user;

	if (ev->depth == 0 && (ev->type != JSON_OPEN || ev->is_array) && ev->type != JSON_CLOSE)
		return error_set(e, ERROR_INVALID, "no answer of Prometheus' API, which is an object with a status");
	if (ev->type == JSON_OPEN)
		return open_container(a, ev, e);
	return ev->type == JSON_CLOSE || on_scalar(a, ev, e);
}

struct prometheus_answer *prometheus_answer_open(size_t most, prometheus_fn *on_sample, void *user)
{
	struct prometheus_answer *a = calloc(1, sizeof *a);

	if (!a)
		abort();
	a->most = most;
	a->on_sample = on_sample;
	a->user = user;
	a->json = json_open("answer", on_event, a);
	return a;
}

void prometheus_answer_close(struct prometheus_answer *a)
{
	if (!a)
		return;
	json_close(a->json);
	free(a);
}

bool prometheus_answer_feed(struct prometheus_answer *a, const char *bytes, size_t len, struct error *e)
{
	return json_feed(a->json, bytes, len, e);
}

static enum error_kind kind_of(const char *type)
{
	static const struct {
		const char *type;
		enum error_kind kind;
	} kinds[] = { { "timeout", ERROR_TIMEOUT },	    { "canceled", ERROR_TIMEOUT },
		      { "unavailable", ERROR_UNAVAILABLE }, { "internal", ERROR_UNAVAILABLE },
		      { "not_found", ERROR_NOT_FOUND },	    { "too_many_requests", ERROR_THROTTLED } };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].type, type))
			return kinds[i].kind;
	return ERROR_INVALID;
}

const char *prometheus_answer_reason(const struct prometheus_answer *a)
{
	return a->has_status && !a->is_success && a->reason[0] ? a->reason : NULL;
}

bool prometheus_answer_finish(struct prometheus_answer *a, struct prometheus_notes *out, struct error *e)
{
	if (!json_finish(a->json, e))
		return false;
	if (!a->has_status)
		return error_set(e, ERROR_INVALID, "no answer of Prometheus' API, which has a status");
	if (!a->is_success)
		return error_set(e, kind_of(a->type), "%s: %s", a->type[0] ? a->type : "an error",
				 a->reason[0] ? a->reason : "no reason is given");
	if (!a->has_result)
		return error_set(e, ERROR_INVALID, "an answer without data.result");
	*out = a->notes;
	return true;
}
