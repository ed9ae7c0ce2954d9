#include "controller/commands/answer.h"

#include "base/arena.h"
#include "base/table.h"
#include "base/yaml.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool answer_is_for_programs(const char *form)
{
	return table_is_for_programs(table_format_of(form));
}

void answer_print(const struct answer *a, const char *form)
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

void answer_release(struct answer *a)
{
	buf_release(&a->json);
}
