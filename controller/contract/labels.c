/* Labels by which pods choose machines: what stands, and what it took the place of. */
#include "controller/contract/parts.h"

/* clang-format off */
static const struct known_label labels[] = {
	{ "accelerator", "nvidia.com/gpu.product", "model of the GPU, by GPU feature discovery", NULL },
	{ "accelerator", "karpenter.k8s.aws/instance-gpu-name", "model of the GPU, by Karpenter on AWS", NULL },
	{ "accelerator", "amd.com/gpu.product-name", "model of the GPU, by AMD's node labeller", NULL },
	{ "accelerator", "cloud.google.com/gke-accelerator", "model of the GPU on GKE", NULL },
	{ "accelerator", "accelerator", "kubectl's early examples", "nvidia.com/gpu.product" },
	{ "accelerator", "beta.amd.com/gpu.product-name", "before it was stable", "amd.com/gpu.product-name" },
	{ "accelerator", "k8s.amazonaws.com/accelerator", "for Cluster Autoscaler only", "nvidia.com/gpu.product" },
	{ "memory", "nvidia.com/gpu.memory", "MiB of one GPU, by GPU feature discovery", NULL },
	{ "memory", "karpenter.k8s.aws/instance-gpu-memory", "MiB of one GPU, by Karpenter on AWS", NULL },
	{ "MIG profile", "nvidia.com/mig.config", "profile that the MIG manager applies", NULL },
	{ "MIG profile", "nvidia.com/mig.strategy", "single: the profile is in gpu.product; mixed: in the resource", NULL },
	{ "topology", "topology.kubernetes.io/region", "region", NULL },
	{ "topology", "nvidia.com/gpu.clique", "NVLink domain", NULL },
	{ "topology", "nvidia.com/gpu.count", "GPUs of the machine", NULL },
	{ "topology", "topology.k8s.aws/network-node-layer-3", "switch nearest to the machine, on AWS", NULL },
	{ "topology", "failure-domain.beta.kubernetes.io/region", "before it was stable", "topology.kubernetes.io/region" },
	{ "zone", "topology.kubernetes.io/zone", "zone", NULL },
	{ "zone", "failure-domain.beta.kubernetes.io/zone", "before it was stable", "topology.kubernetes.io/zone" },
	{ "lifecycle", "eks.amazonaws.com/capacityType", "ON_DEMAND, SPOT or CAPACITY_BLOCK on EKS", NULL },
	{ "lifecycle", "kubernetes.azure.com/scalesetpriority", "spot on AKS; regular machines lack it", NULL },
	{ "lifecycle", "karpenter.sh/capacity-type", "on-demand, spot or reserved, by Karpenter", NULL },
	{ "lifecycle", "node.kubernetes.io/lifecycle", "spot or normal, where a team sets it", NULL },
	{ "machine", "node.kubernetes.io/instance-type", "instance type", NULL },
	{ "machine", "beta.kubernetes.io/instance-type", "before it was stable", "node.kubernetes.io/instance-type" },
	{ "machine", "kubernetes.io/arch", "architecture of the CPU", NULL },
	{ "machine", "beta.kubernetes.io/arch", "before it was stable", "kubernetes.io/arch" },
	{ "machine", "kubernetes.io/os", "operating system", NULL },
	{ "machine", "beta.kubernetes.io/os", "before it was stable", "kubernetes.io/os" },
	{ "machine", "eks.amazonaws.com/nodegroup", "node group on EKS", NULL },
	{ "machine", "kubernetes.azure.com/agentpool", "agent pool on AKS", NULL },
	{ "machine", "agentpool", "agent pool on AKS", "kubernetes.azure.com/agentpool" },
	{ "machine", "karpenter.sh/nodepool", "NodePool of Karpenter", NULL },
};
/* clang-format on */

const struct known_label *known_labels(size_t *count)
{
	*count = sizeof labels / sizeof *labels;
	return labels;
}
