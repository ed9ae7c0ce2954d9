#include "providers/block.h"

#include "base/json.h"

#include <string.h>

const struct provider_block *provider_block(enum provider_choice p)
{
	static const struct provider_block *const blocks[] = {
#define PROVIDER(name, key, help) &provider_block_##name,
#include "providers/list.def"
#undef PROVIDER
	};

	return blocks[p];
}

const char *provider_name(enum provider_choice p)
{
	static const char *const names[] = {
#define PROVIDER(name, key, help) key,
#include "providers/list.def"
#undef PROVIDER
	};

	return names[p];
}

static bool is_cloud_name(const char *text)
{
	return strspn(text, BLOCK_LETTERS BLOCK_DIGITS "-_") == strlen(text) && !strchr("-_", *text);
}

static bool is_dns_label(const char *text)
{
	size_t len = strlen(text);

	return len && strspn(text, BLOCK_LOWER BLOCK_DIGITS "-") == len && text[0] != '-' && text[len - 1] != '-';
}

static bool is_object(const char *text)
{
	return schema_is_subdomain(text, strlen(text));
}

const struct block_form form_cloud_name = { is_cloud_name, "^[A-Za-z0-9][-_A-Za-z0-9]*$" };
const struct block_form form_dns_label = { is_dns_label, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" };
const struct block_form form_object_name = { is_object, "^" SCHEMA_SUBDOMAIN "$" };
const struct block_form form_label_value = { schema_is_label_value, "^" SCHEMA_LABEL_NAME "$" };
const struct block_form form_label_key = { schema_is_label_key, "^(" SCHEMA_SUBDOMAIN "/)?" SCHEMA_LABEL_NAME "$" };

static const char *text_at(const struct block_record *r, size_t offset)
{
	const char *text = *(const char *const *)(const void *)((const char *)r + offset);

	return text ? text : "";
}

static const struct schema_row *row_of(const struct schema_table *t, const char *key, size_t len)
{
	for (size_t i = 0; i < t->count; i++)
		if (strlen(t->rows[i].key) == len && !strncmp(t->rows[i].key, key, len))
			return &t->rows[i];
	return NULL;
}

const char *provider_settings(enum provider_choice p, const struct block_record *r, struct arena *a)
{
	const struct schema_table *t = &provider_block(p)->table;
	CLEANUP(buf_release) struct buf json = { 0 };
	CLEANUP(buf_release) struct buf value = { 0 };

	buf_text(&json, "{");
	for (size_t i = 0; i < t->count; i++) {
		buf_clear(&value);
		schema_format(&t->rows[i], r, &value);
		if (!value.len)
			continue;
		json_write_comma(&json);
		json_write_text(t->rows[i].key, &json);
		buf_text(&json, ":");
		json_write_text(value.text, &json);
	}
	buf_text(&json, "}");
	return arena_strdup(a, json.text, json.len);
}

/* "settings of eks: tags: found more than 10; allowed: 10 at most": a finding at the key that it begins with. */
static void find_refusal(const struct provider_block *b, const struct block_record *r, const char *message,
			 struct findings *f)
{
	static const char found[] = "found ",
			  allowed[] = "; allowed: ", remedy[] = "correct it: the provider refuses it";
	const char *wrap = strncmp(message, "settings", 8) ? NULL : strstr(message, ": ");
	const char *rest = wrap ? wrap + 2 : message;
	size_t len = strspn(rest, BLOCK_LETTERS);
	const struct schema_row *row = row_of(&b->table, rest, len);
	CLEANUP(buf_release) struct buf what = { 0 };

	rest += row && rest[len] == ':' ? len + 2 : 0;
	rest += strncmp(rest, found, strlen(found)) ? 0 : strlen(found);
	const char *bound = strstr(rest, allowed);
	buf_append(&what, rest, bound ? (size_t)(bound - rest) : strlen(rest));
	bound = bound ? bound + strlen(allowed) : "what the provider takes";
	if (row)
		schema_find_key(f, r->node, row->key, what.text, bound, remedy);
	else
		schema_find(f, r->node, what.text, bound, remedy);
}

/* What is required and not there has been found before. */
static bool is_complete(const struct provider_block *b, const struct block_record *r)
{
	for (size_t i = 0; i < b->table.count; i++)
		if (b->table.rows[i].is_required && !*text_at(r, b->table.rows[i].offset))
			return false;
	return true;
}

void provider_block_check(enum provider_choice p, const struct block_record *r, const struct block_group *g,
			  struct findings *f)
{
	const struct provider_block *b = provider_block(p);
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t before = f->count;
	struct error e = { 0 };

	if (!r->node)
		return;
	if (b->check)
		b->check(r, g, f);
	for (size_t i = 0; i < b->key_count; i++) {
		const struct block_key *k = &b->keys[i];
		const char *text = text_at(r, row_of(&b->table, k->key, strlen(k->key))->offset);
		if (*text && !k->form->fits(text))
			schema_find_key(f, r->node, k->key, NULL, k->allowed,
					"write it as the cloud or the cluster shows it");
	}
	if (b->read && f->count == before && is_complete(b, r) && !b->read(provider_settings(p, r, &a), &a, &e))
		find_refusal(b, r, e.message, f);
}

struct schema_label provider_node_label(enum provider_choice p, const struct block_record *r, const char *group)
{
	const struct provider_block *b = provider_block(p);
	const char *value = text_at(r, b->label.value_at);

	return (struct schema_label){ b->label.key ? b->label.key : text_at(r, b->label.key_at),
				      *value || !b->is_trial ? value : group };
}

struct schema_label provider_own_name(enum provider_choice p, const struct block_record *r, size_t i)
{
	const struct provider_block *b = provider_block(p);
	const char *key = b->own_names[i].key;

	return (struct schema_label){ key, key ? text_at(r, b->own_names[i].value_at) : "" };
}

/* Keys that are words of CEL stand between underscores. */
static struct openapi_rule key_rule(const struct provider_block *b, const struct block_key *k, struct arena *a)
{
	CLEANUP(buf_release) struct buf rule = { 0 };
	CLEANUP(buf_release) struct buf message = { 0 };
	const char *mark = strcmp(k->key, "namespace") ? "" : "__";

	buf_printf(&rule, "!has(self.%s%s%s) || self.%s%s%s == '' || self.%s%s%s.matches('%s')", mark, k->key, mark,
		   mark, k->key, mark, mark, k->key, mark, k->form->pattern);
	buf_printf(&message, "%s must be %s", k->key, k->allowed);
	return (struct openapi_rule){ b->table.name, arena_strdup(a, rule.text, rule.len),
				      arena_strdup(a, message.text, message.len) };
}

const struct openapi_rule *provider_block_rules(struct arena *a, size_t *count)
{
	size_t most = 0;

	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++)
		most += provider_block(p)->rule_count + provider_block(p)->key_count;
	struct openapi_rule *rules = arena_array(a, struct openapi_rule, most);
	*count = 0;
	for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++) {
		const struct provider_block *b = provider_block(p);
		for (size_t i = 0; i < b->rule_count; i++)
			rules[(*count)++] = b->rules[i];
		for (size_t i = 0; i < b->key_count; i++)
			rules[(*count)++] = key_rule(b, &b->keys[i], a);
	}
	return rules;
}

void provider_list_blocks(bool with_trials, struct buf *out)
{
	const char *names[PROVIDER_COUNT];
	size_t count = 0;

	for (int trial = 0; trial <= with_trials; trial++)
		for (enum provider_choice p = 0; p < PROVIDER_COUNT; p++)
			if (provider_block(p)->is_trial == trial)
				names[count++] = provider_name(p);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s:", !i ? "" : i + 1 < count ? ", " : " or ", names[i]);
}
