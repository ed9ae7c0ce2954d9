/* A Resource Manager that a test plays: replies by a table, what was asked noted down; and provider aks, opened on it.
 */
#pragma once
#include "base/net/http.h"
#include "base/net/server.h"
#include "providers/provider.h"

enum { REQUESTS_MOST = 64 };

/* What is answered to a request; the first row that fits and is not used up. */
struct reply {
	const char *method, *path; /* path: how it ends */
	int status;
	const char *body;
	const char *headers[3]; /* "@" is where the server is */
	int times;		/* 0: any */
};

struct seen {
	char method[8], path[400], match[64], bearer[64], type[64], version[24];
	char *body;
};

struct stage {
	struct loop *loop;
	struct http *http;
	struct server *server;
	struct server_route routes[3];
	const struct provider_ops *ops;
	struct provider *provider;
	char url[64], settings[400];
	const struct reply *replies;
	int used[REQUESTS_MOST], tokens;
	struct seen seen[REQUESTS_MOST];
	size_t count; /* of seen, tokens left out */
	char headers[3][256], body[4096];
	bool is_done;
};

#define POOL_PATH                                                                                                     \
	"/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.ContainerService/" \
	"managedClusters/c/agentPools/gpu1"
#define POOL(state, count, more)                                                                            \
	"{\"id\":\"/s\",\"name\":\"gpu1\",\"type\":\"T\",\"properties\":{\"eTag\":\"e1\",\"count\":" #count \
	",\"vmSize\":\"Standard_ND96isr_H100_v5\",\"mode\":\"User\",\"provisioningState\":\"" state "\"" more "}}"
#define MACHINE(name) \
	"{\"name\":\"" name "\",\"properties\":{\"resourceId\":\"/subscriptions/S/resourceGroups/MC/x/" name "\"}}"
#define OPERATION "/subscriptions/s/providers/Microsoft.ContainerService/locations/eastus/operations/op1"
#define GOES_ON                                                                                 \
	{                                                                                       \
		"Azure-AsyncOperation: @" OPERATION "?api-version=2017-08-31", "Retry-After: 0" \
	}

int played_arm_set_up(void **state);
int played_arm_tear_down(void **state);
/* A call of the group "gpu", with a token. */
struct provider_call played_call(struct stage *s, enum provider_verb verb, int64_t desired);
/* To its end, out of these replies (ending in one without a method); what was sent before is forgotten. */
enum error_kind played_run(struct stage *s, struct provider_call *c, const struct reply *replies);
void played_forget(struct stage *s);
/* "GET gpu1, PUT gpu1" */
void played_expect(const struct stage *s, const char *expected);
/* The text with "@" replaced by where the server is; returns room. */
const char *played_place(const struct stage *s, const char *text, char *room, size_t size);
