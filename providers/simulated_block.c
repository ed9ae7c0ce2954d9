/* What a node group of the modelled cloud says in the manifest. */
#include "providers/block.h"
#include "providers/simulated.h"

struct simulated_block {
	const struct yaml_node *node;
	const char *endpoint, *group; /* group "": the name that it has here */
};
BLOCK_FITS(struct simulated_block);

/* A row reads best on two lines. */
/* clang-format off */
static const struct schema_row rows[] = {
	{ .key = "endpoint", .type = SCHEMA_URL, BLOCK_AT(simulated_block, endpoint), .is_required = true,
	  .help = "Where the modelled cloud listens." },
	{ .key = "group", .type = SCHEMA_TEXT, BLOCK_AT(simulated_block, group), .fallback = "", .max = 100,
	  .shown = "the name of the node group",
	  .help = "What it calls the group." },
};
/* clang-format on */

static bool read(const char *settings, struct arena *a, struct error *e)
{
	struct simulated_settings s;

	return simulated_read_settings(settings, a, &s, e);
}

const struct provider_block provider_block_simulated = {
	.table = { "simulated", sizeof(struct simulated_block), SCHEMA_ROWS(rows) },
	.is_trial = true,
	.read = read,
	.label = { "simulated.preheat.dev/node-group", 0, offsetof(struct simulated_block, group) },
	.sets_zone = true,
};
