/*
 * The tables of protobuf_answer.h, and what they make of an answer.
 *	protobuf_lines table		a line for each message and each field: MESSAGE NUMBER NAME KIND one|many OF
 *	protobuf_lines read PATH	a list of that resource on standard input: a line of JSON for each object
 */
#include "controller/cluster/protobuf_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_message(const struct protobuf_message *m)
{
	static const char *const kinds[] = { "text",	"int",	  "bool", "time",	 "quantity",
					     "message", "inline", "map",  "quantity-map" };

	printf("%s 0 - - one -\n", m->name);
	for (size_t i = 0; i < m->count; i++) {
		const struct protobuf_field *f = &m->fields[i];
		printf("%s %u %s %s %s %s\n", m->name, (unsigned)f->number, f->name, kinds[f->kind],
		       f->is_list ? "many" : "one", f->of ? f->of->name : "-");
		if (f->of)
			print_message(f->of);
	}
}

static bool print_object(void *user, const char *event, struct decoded_text object, struct error *e)
{
	(void)user, (void)event, (void)e;
	printf("%.*s\n", (int)object.len, object.text);
	return true;
}

static bool pass_list(void *user, struct decoded_text list, struct error *e)
{
	(void)user, (void)list, (void)e;
	return true;
}

static int read_list(const char *path)
{
	struct protobuf_answer *a = protobuf_answer_open(
		&(struct protobuf_reader){ path, protobuf_message_of(path), false, print_object, pass_list, NULL });
	char bytes[4096];
	struct error e = { 0 };
	size_t got;
	bool ok = true;

	while (ok && (got = fread(bytes, 1, sizeof bytes, stdin)) > 0)
		ok = protobuf_answer_feed(a, bytes, got, &e);
	ok = ok && protobuf_answer_finish(a, &e);
	protobuf_answer_close(a);
	if (!ok)
		fprintf(stderr, "%s\n", e.message);
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "read"))
		return read_list(argv[2]);
	for (size_t i = 0; protobuf_messages[i]; i++)
		print_message(protobuf_messages[i]);
	return 0;
}
