#include "tests/world/lines.h"

#include "tests/world/apiserver.h"
#include "tests/world/replica.h"

#include <string.h>

static struct {
	enum line state;
	millis since;
} lines[WORLD_REPLICAS][PEER_COUNT];

enum peer line_peer(const struct wire_call *c)
{
	return !strncmp(c->host, APISERVER, strlen(APISERVER)) ? PEER_API
	       : !strncmp(c->host, "http://10.", 10)	       ? PEER_METRICS
	       : !strncmp(c->host, "http://replica-", 15)      ? PEER_REPLICA
							       : PEER_CLOUD;
}

static bool is_unheard(const struct wire_call *c)
{
	enum line state = lines[c->from][line_peer(c)].state;

	return state == LINE_LOSES_ANSWERS || state == LINE_DEAD;
}

void lines_begin(void)
{
	lines_mend();
	wire_on_leave(line_fate);
	wire_on_hear(is_unheard);
}

void lines_mend(void)
{
	memset(lines, 0, sizeof lines);
}

void line_set(int who, enum peer peer, enum line state)
{
	lines[who][peer].state = state;
	lines[who][peer].since = state == LINE_WORKS ? 0 : wire_now();
}

struct wire_fate line_fate(const struct wire_call *c)
{
	enum line state = lines[c->from][line_peer(c)].state;

	return (struct wire_fate){ .is_refused = state == LINE_REFUSES,
				   .is_swallowed = state == LINE_LOSES_REQUESTS || state == LINE_DEAD };
}

millis line_down_since(int who, enum peer peer)
{
	return lines[who][peer].since;
}
