#include "controller/commands/print.h"

#include "base/arena.h"
#include "base/table.h"
#include "base/json.h"
#include "base/yaml.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool print_is_for_programs(const char *form)
{
	return table_is_for_programs(table_format_of(form));
}

void print_tree(const struct printed_tree *a, const char *form)
{
	CLEANUP(buf_release) struct buf out = { 0 };
	const struct buf *shown = strcmp(form, "json") ? &out : &a->json;
	bool ok = true;
	struct error e;

	if (!strcmp(form, "yaml"))
		ok = yaml_write_json(a->json.text, a->json.len, &out, &e);
	else if (!strcmp(form, "csv"))
		ok = csv_write_json(&a->json, a->rows, a->key, &out, &e);
	assert(ok); /* what a verb writes is JSON */
	(void)ok;
	fwrite(shown->text ? shown->text : "", 1, shown->len, stdout);
}

void print_tree_release(struct printed_tree *a)
{
	buf_release(&a->json);
}

void print_json_name(const char *key, struct buf *out)
{
	json_write_comma(out);
	buf_printf(out, "\"%s\":", key);
}

void print_json_text(const char *key, const char *text, struct buf *out)
{
	print_json_name(key, out);
	if (text)
		json_write_text(text, out);
	else
		buf_text(out, "null");
}

void print_json_number(const char *key, int64_t number, struct buf *out)
{
	print_json_name(key, out);
	if (number == ABSENT)
		buf_text(out, "null");
	else
		buf_printf(out, "%" PRId64, number);
}

void print_json_bool(const char *key, bool is_so, struct buf *out)
{
	print_json_name(key, out);
	buf_text(out, is_so ? "true" : "false");
}
