/* Common GPU machines as their vendors list them; what pods may have of them is an estimate, and nodes overrule it. */
#include "controller/contract/parts.h"

#include <string.h>

/* clang-format off */
static const struct instance_type types[] = {
	/* name, vCPUs, GiB, GPUs, GPU, GiB of each GPU */
	{ "g4dn.xlarge", 4, 16, 1, "T4", 16 },
	{ "g4dn.2xlarge", 8, 32, 1, "T4", 16 },
	{ "g4dn.4xlarge", 16, 64, 1, "T4", 16 },
	{ "g4dn.8xlarge", 32, 128, 1, "T4", 16 },
	{ "g4dn.12xlarge", 48, 192, 4, "T4", 16 },
	{ "g4dn.16xlarge", 64, 256, 1, "T4", 16 },
	{ "g4dn.metal", 96, 384, 8, "T4", 16 },
	{ "g5.xlarge", 4, 16, 1, "A10G", 24 },
	{ "g5.2xlarge", 8, 32, 1, "A10G", 24 },
	{ "g5.4xlarge", 16, 64, 1, "A10G", 24 },
	{ "g5.8xlarge", 32, 128, 1, "A10G", 24 },
	{ "g5.12xlarge", 48, 192, 4, "A10G", 24 },
	{ "g5.16xlarge", 64, 256, 1, "A10G", 24 },
	{ "g5.24xlarge", 96, 384, 4, "A10G", 24 },
	{ "g5.48xlarge", 192, 768, 8, "A10G", 24 },
	{ "g6.xlarge", 4, 16, 1, "L4", 24 },
	{ "g6.2xlarge", 8, 32, 1, "L4", 24 },
	{ "g6.4xlarge", 16, 64, 1, "L4", 24 },
	{ "g6.8xlarge", 32, 128, 1, "L4", 24 },
	{ "g6.12xlarge", 48, 192, 4, "L4", 24 },
	{ "g6.16xlarge", 64, 256, 1, "L4", 24 },
	{ "g6.24xlarge", 96, 384, 4, "L4", 24 },
	{ "g6.48xlarge", 192, 768, 8, "L4", 24 },
	{ "g6e.xlarge", 4, 32, 1, "L40S", 48 },
	{ "g6e.2xlarge", 8, 64, 1, "L40S", 48 },
	{ "g6e.4xlarge", 16, 128, 1, "L40S", 48 },
	{ "g6e.8xlarge", 32, 256, 1, "L40S", 48 },
	{ "g6e.12xlarge", 48, 384, 4, "L40S", 48 },
	{ "g6e.16xlarge", 64, 512, 1, "L40S", 48 },
	{ "g6e.24xlarge", 96, 768, 4, "L40S", 48 },
	{ "g6e.48xlarge", 192, 1536, 8, "L40S", 48 },
	{ "p3.2xlarge", 8, 61, 1, "V100", 16 },
	{ "p3.8xlarge", 32, 244, 4, "V100", 16 },
	{ "p3.16xlarge", 64, 488, 8, "V100", 16 },
	{ "p4d.24xlarge", 96, 1152, 8, "A100", 40 },
	{ "p4de.24xlarge", 96, 1152, 8, "A100", 80 },
	{ "p5.4xlarge", 16, 256, 1, "H100", 80 },
	{ "p5.48xlarge", 192, 2048, 8, "H100", 80 },
	{ "p5e.48xlarge", 192, 2048, 8, "H200", 141 },
	{ "p5en.48xlarge", 192, 2048, 8, "H200", 141 },
	{ "Standard_NC4as_T4_v3", 4, 28, 1, "T4", 16 },
	{ "Standard_NC8as_T4_v3", 8, 56, 1, "T4", 16 },
	{ "Standard_NC16as_T4_v3", 16, 110, 1, "T4", 16 },
	{ "Standard_NC64as_T4_v3", 64, 440, 4, "T4", 16 },
	{ "Standard_NC6s_v3", 6, 112, 1, "V100", 16 },
	{ "Standard_NC12s_v3", 12, 224, 2, "V100", 16 },
	{ "Standard_NC24s_v3", 24, 448, 4, "V100", 16 },
	{ "Standard_NC24ads_A100_v4", 24, 220, 1, "A100", 80 },
	{ "Standard_NC48ads_A100_v4", 48, 440, 2, "A100", 80 },
	{ "Standard_NC96ads_A100_v4", 96, 880, 4, "A100", 80 },
	{ "Standard_NC40ads_H100_v5", 40, 320, 1, "H100", 94 },
	{ "Standard_NC80adis_H100_v5", 80, 640, 2, "H100", 94 },
	{ "Standard_NV36ads_A10_v5", 36, 440, 1, "A10", 24 },
	{ "Standard_NV72ads_A10_v5", 72, 880, 2, "A10", 24 },
	{ "Standard_ND96asr_v4", 96, 900, 8, "A100", 40 },
	{ "Standard_ND96amsr_A100_v4", 96, 1900, 8, "A100", 80 },
	{ "Standard_ND96isr_H100_v5", 96, 1900, 8, "H100", 80 },
	{ "Standard_ND96isr_H200_v5", 96, 1850, 8, "H200", 141 },
};
/* clang-format on */

const struct instance_type *instances(size_t *count)
{
	*count = sizeof types / sizeof *types;
	return types;
}

const struct instance_type *instance_find(const char *name)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

/* The kubelet keeps about 60m and 2.5m of each further core for itself and the system. */
int64_t instance_cpu_milli(const struct instance_type *t)
{
	return t->vcpus * 1000 - 60 - t->vcpus * 5 / 2;
}

/* The machine itself takes some 3 %, the kubelet about 1 GiB. */
int64_t instance_memory_milli(const struct instance_type *t)
{
	int64_t mib = t->memory_gib * 1024 * 97 / 100 - 1024;

	return mib * (INT64_C(1) << 20) * 1000;
}
