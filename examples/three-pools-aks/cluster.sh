#!/usr/bin/env bash
# A cluster for the three pools. The agent pools are Preheat's to size: AKS's own autoscaler stays off. Their taint keeps
# other pods away. Needs the Azure CLI, signed in, and quota for the GPU sizes in the region.
set -euo pipefail
group=llm cluster=prod region=westeurope

az group create --name $group --location $region
az aks create --resource-group $group --name $cluster --node-count 3 --node-vm-size Standard_D4s_v5 \
	--enable-oidc-issuer --enable-workload-identity --generate-ssh-keys

# add NAME SIZE ZONES COUNT OPTION...
add() {
	local name=$1 size=$2 zones=$3 count=$4
	shift 4
	# shellcheck disable=SC2086 # zones are words
	az aks nodepool add --resource-group $group --cluster-name $cluster --name "$name" --mode User \
		--node-vm-size "$size" --zones $zones --node-count "$count" --node-osdisk-type Managed --node-osdisk-size 200 \
		--node-taints nvidia.com/gpu=present:NoSchedule "$@"
}

add a100spot Standard_NC24ads_A100_v4 '1 2' 0 --priority Spot --eviction-policy Delete --spot-max-price -1
add a100 Standard_NC24ads_A100_v4 1 2 --scale-down-mode Deallocate # one zone: which machines stop is known there
add nd96 Standard_ND96amsr_A100_v4 1 0
az aks get-credentials --resource-group $group --name $cluster
