/* What a tree of YAML says. */
#include "base/yaml.h"

#include <string.h>

const struct yaml_node *yaml_child(const struct yaml_node *map, const char *key)
{
	if (!map || map->kind != YAML_MAP)
		return NULL;
	for (const struct yaml_node *n = map->first; n; n = n->next)
		if (!strcmp(n->key, key))
			return n;
	return NULL;
}

void yaml_path(const struct yaml_node *node, struct buf *out)
{
	if (!node->parent) {
		buf_text(out, "");
		return;
	}
	yaml_path(node->parent, out);
	if (node->key)
		buf_printf(out, out->len ? ".%s" : "%s", node->key);
	else
		buf_printf(out, "[%zu]", node->index);
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(text, *words))
			return true;
	return false;
}

static bool looks_like_number(const char *t)
{
	size_t digits = 0;

	t += *t == '-' || *t == '+';
	if (t[0] == '0' && (t[1] == 'x' || t[1] == 'o' || t[1] == 'b'))
		return true;
	for (; (*t >= '0' && *t <= '9') || *t == '.' || *t == '_'; t++)
		digits += *t >= '0' && *t <= '9';
	if (digits && (*t == 'e' || *t == 'E')) {
		t += 1 + (t[1] == '-' || t[1] == '+');
		for (; *t >= '0' && *t <= '9'; t++)
			digits++;
	}
	return digits && !*t;
}

const char *yaml_plain_meaning(const struct yaml_node *scalar)
{
	static const char *const truths[] = { "true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes",
					      "YES",  "no",   "No",   "NO",    "on",	"On",	 "ON",	"off",
					      "Off",  "OFF",  "y",    "Y",     "n",	"N",	 NULL };
	static const char *const nothings[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const numbers[] = { ".inf", "-.inf", "+.inf", ".nan", ".Inf", ".NaN", NULL };

	if (!scalar->is_plain)
		return NULL;
	if (is_one_of(scalar->text, nothings))
		return "nothing";
	if (is_one_of(scalar->text, truths))
		return "a truth value";
	return looks_like_number(scalar->text) || is_one_of(scalar->text, numbers) ? "a number" : NULL;
}
