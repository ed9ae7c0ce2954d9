#include "controller/simulation/files/world_reference.h"

#include "base/schema_reference.h"
#include "controller/simulation/files/world_text.h"

void world_write_reference(struct buf *out)
{
	buf_text(out, "## The world file\n"
		      "\n"
		      "Written by `preheat simulate --print-world` from the table that reads world files\n"
		      "(controller/simulation/files/world_text.c): change the table, not this part.\n"
		      "\n");
	schema_write_markdown(&world_text_table, "", out);
}
