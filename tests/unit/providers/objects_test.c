/* The conformance of providers whose groups are objects of a cluster, against an API server that shows them. */
#include "tests/unit/providers/played_objects.h"

static void write_node_pool(const char *url, struct buf *out)
{
	buf_text(out, "{\"nodePool\":\"");
	objects_name(url, out);
	buf_text(out, "\"}");
}

static void write_no_pool(const char *url, struct buf *out)
{
	buf_text(out, "{\"nodePool\":\"not-");
	objects_name(url, out);
	buf_text(out, "\"}");
}

static void write_deployment(const char *url, struct buf *out)
{
	buf_text(out, "{\"namespace\":\"capi\",\"machineDeployment\":\"");
	objects_name(url, out);
	buf_text(out, "\"}");
}

static void write_no_deployment(const char *url, struct buf *out)
{
	buf_text(out, "{\"namespace\":\"capi\",\"machineDeployment\":\"not-");
	objects_name(url, out);
	buf_text(out, "\"}");
}

#define OWNER(spec) "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{" spec "}}"

static const char *const machines[] = { "{\"metadata\":{},\"items\":[]}", NULL };
static const char *const spoiled[] = {
	"",
	"null",
	"[]",
	"{}",
	"<html></html>",
	OWNER("\"replicas\":-1"),
	OWNER("\"replicas\":1.5"),
	OWNER("\"replicas\":\"two\""),
	OWNER("\"replicas\":1e99"),
	OWNER("\"replicas\":2147483648"),
	OWNER("\"replicas\":1") OWNER("\"replicas\":1"),
	NULL,
};
static const char *const bad_pools[] = {
	"", "{", "{}", "{\"nodePool\":3}", "{\"nodePool\":\"\"}", "{\"nodePool\":\"A/b\"}", NULL
};
static const char *const bad_deployments[] = { "",
					       "{",
					       "{}",
					       "{\"machineDeployment\":\"a\"}",
					       "{\"machineDeployment\":\"a\",\"namespace\":\"../b\"}",
					       "{\"machineDeployment\":\"\",\"namespace\":\"b\"}",
					       NULL };

static const struct wire karpenter = {
	.provider = "karpenter",
	.open = objects_open,
	.close = objects_close,
	.url = objects_url,
	.settings = write_node_pool,
	.settings_of_none = write_no_pool,
	.bad_settings = bad_pools,
	.described = OWNER("\"replicas\":0,\"limits\":{\"nodes\":\"9\"}"),
	.described_more = machines,
	.has_no_min = true,
	.way = &objects_way,
	.spoiled = spoiled,
};
static const struct wire cluster_api = {
	.provider = "clusterApi",
	.open = objects_open,
	.close = objects_close,
	.url = objects_url,
	.settings = write_deployment,
	.settings_of_none = write_no_deployment,
	.bad_settings = bad_deployments,
	.described = OWNER("\"replicas\":0"),
	.described_more = machines,
	.way = &objects_way,
	.spoiled = spoiled,
};

int main(void)
{
	return conformance_run(&karpenter) + conformance_run(&cluster_api);
}
