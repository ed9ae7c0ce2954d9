#include "controller/commands/answer.h"

#include "base/arena.h"
#include "base/yaml_write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool answer_is_tree(const char *form)
{
	return !strcmp(form, "json") || !strcmp(form, "yaml");
}

void answer_print_tree(const struct buf *json, const char *form)
{
	CLEANUP(buf_release) struct buf yaml = { 0 };
	struct error e;

	if (strcmp(form, "yaml") != 0) {
		fwrite(json->text, 1, json->len, stdout);
		return;
	}
	bool ok = yaml_write_json(json->text, json->len, &yaml, &e);
	assert(ok); /* what a verb writes is JSON */
	(void)ok;
	fwrite(yaml.text, 1, yaml.len, stdout);
}
