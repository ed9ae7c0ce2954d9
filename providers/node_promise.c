#include "providers/node_promise.h"

#include "base/resource.h"
#include "base/schema.h"
#include "base/text.h"
#include "providers/text.h"

#include <stdint.h>
#include <string.h>

static void leave_out(struct node_promise *p, struct arena *a, const char *what, const char *name, const char *value)
{
	char shown[QUOTE_ROOM], with[QUOTE_ROOM];

	if (!p->unread_count++)
		p->unread = text_printf(a, "%s %s: found %s", what, quote(shown, name, strlen(name)),
					quote(with, value, strlen(value)));
}

static bool is_told(const struct promised_pair *pairs, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(pairs[i].key, key) == 0)
			return true;
	return false;
}

static void add_pair(struct promised_pair **list, size_t *count, struct arena *a, const char *key, const char *value)
{
	if (!*count)
		*list = arena_array(a, struct promised_pair, PROMISE_MOST);
	if (!is_told(*list, *count, key))
		(*list)[(*count)++] = (struct promised_pair){ text_keep(a, key), text_keep(a, value) };
}

void promise_label(struct node_promise *p, struct arena *a, const char *key, const char *value)
{
	if (p->label_count == PROMISE_MOST || !schema_is_label_key(key) || !schema_is_label_value(value))
		leave_out(p, a, "label", key, value);
	else
		add_pair(&p->labels, &p->label_count, a, key, value);
}

static void add_resource(struct node_promise *p, struct arena *a, const char *name, const char *amount)
{
	int64_t milli;

	if (p->resource_count == PROMISE_MOST || !schema_is_label_key(name) || !amount_milli(amount, &milli) ||
	    milli < 0)
		leave_out(p, a, "resource", name, amount);
	else
		add_pair(&p->resources, &p->resource_count, a, name, amount);
}

static bool is_effect(const char *text)
{
	static const char *const effects[] = { "NoSchedule", "PreferNoSchedule", "NoExecute" };

	return text_is_among(text, effects, sizeof effects / sizeof *effects);
}

void promise_taint(struct node_promise *p, struct arena *a, const char *key, const char *value, const char *effect)
{
	if (p->taint_count == PROMISE_MOST || !schema_is_label_key(key) || !schema_is_label_value(value) ||
	    !is_effect(effect)) {
		leave_out(p, a, "taint", key, text_printf(a, "%s:%s", value, effect));
		return;
	}
	for (size_t i = 0; i < p->taint_count; i++)
		if (strcmp(p->taints[i].key, key) == 0 && strcmp(p->taints[i].effect, effect) == 0)
			return;
	if (!p->taint_count)
		p->taints = arena_array(a, struct promised_taint, PROMISE_MOST);
	p->taints[p->taint_count++] =
		(struct promised_taint){ text_keep(a, key), text_keep(a, value), text_keep(a, effect) };
}

/* "VALUE:EFFECT" of a taint whose key is known. */
static void add_taint_of(struct node_promise *p, struct arena *a, const char *key, const char *text)
{
	const char *colon = strrchr(text, ':');

	if (!colon)
		leave_out(p, a, "taint", key, text);
	else
		promise_taint(p, a, key, arena_strdup(a, text, (size_t)(colon - text)), colon + 1);
}

void promise_written_taint(struct node_promise *p, struct arena *a, const char *text)
{
	size_t len = strcspn(text, "=:");
	const char *key = arena_strdup(a, text, len);

	add_taint_of(p, a, key, text[len] == '=' ? text + len + 1 : text + len);
}

/* What is behind the tag's beginning, NULL where it has another. */
static const char *behind(const char *tag, const char *beginning)
{
	size_t len = strlen(beginning);

	return strncmp(tag, beginning, len) == 0 ? tag + len : NULL;
}

#define TEMPLATE_OF_AWS	  "k8s.io/cluster-autoscaler/node-template/"
#define TEMPLATE_OF_AZURE "k8s.io_cluster-autoscaler_node-template_"

/* "label/NAME", in the arena; NULL: it tells of no new node. */
static const char *template_part(const char *tag, struct arena *a)
{
	const char *azure = behind(tag, TEMPLATE_OF_AZURE);
	char *part = azure ? arena_strdup(a, azure, strlen(azure)) : NULL, *to = part;

	for (const char *from = part; from && *from; to++) {
		bool is_line = from[0] == '~' && from[1] == '2';
		*to = (char)(is_line ? '_' : *from == '_' ? '/' : *from);
		from += is_line ? 2 : 1;
	}
	if (part)
		*to = '\0';
	return part ? part : behind(tag, TEMPLATE_OF_AWS);
}

void promise_tag_of_resource(struct node_promise *p, struct arena *a, const char *tag, const char *value)
{
	const char *part = template_part(tag, a), *name = part ? behind(part, "resources/") : NULL;

	if (name)
		add_resource(p, a, name, value);
}

void promise_tag(struct node_promise *p, struct arena *a, const char *tag, const char *value)
{
	const char *part = template_part(tag, a), *name;

	if (!part)
		return;
	if ((name = behind(part, "label/")))
		promise_label(p, a, name, value);
	else if ((name = behind(part, "taint/")))
		add_taint_of(p, a, name, value);
	else
		promise_tag_of_resource(p, a, tag, value);
}

void promise_add(struct node_promise *p, struct arena *a, const struct node_promise *more)
{
	for (size_t i = 0; i < more->label_count; i++)
		promise_label(p, a, more->labels[i].key, more->labels[i].value);
	for (size_t i = 0; i < more->taint_count; i++)
		promise_taint(p, a, more->taints[i].key, more->taints[i].value, more->taints[i].effect);
	for (size_t i = 0; i < more->resource_count; i++)
		add_resource(p, a, more->resources[i].key, more->resources[i].value);
	if (!p->unread)
		p->unread = text_keep(a, more->unread);
	p->unread_count += more->unread_count;
}
