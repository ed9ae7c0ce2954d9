package main

import (
	"encoding/json"
	"fmt"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const loadGPUs = 8

func loadNodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i/62500%250, i/250%250, i%250)
}

// loadNode has the labels that device discovery gives, and the images that a node of some age has.
func loadNode(i int) *core.Node {
	g := &groupConfig{Name: fmt.Sprintf("load-%d", i%20), InstanceType: "g5.48xlarge", CPU: "192", Memory: "768Gi",
		Resource: "nvidia.com/gpu", Count: loadGPUs, Zones: []string{"eu-west-1a"}}
	m := snapshot{machine{ID: loadNodeName(i), Zone: fmt.Sprintf("eu-west-1%c", 'a'+i%3),
		ProviderID: fmt.Sprintf("aws:///eu-west-1%c/i-%017x", 'a'+i%3, i)}, g}
	node := m.object()
	for _, feature := range []string{"ADX", "AESNI", "AVX", "AVX2", "AVX512BF16", "AVX512BITALG", "AVX512BW", "AVX512CD",
		"AVX512DQ", "AVX512F", "AVX512FP16", "AVX512VNNI", "FMA3", "GFNI", "SHA", "VAES", "VPCLMULQDQ"} {
		node.Labels["feature.node.kubernetes.io/cpu-cpuid."+feature] = "true"
	}
	for _, part := range []string{"container-toolkit", "dcgm", "dcgm-exporter", "device-plugin", "driver",
		"gpu-feature-discovery", "node-status-exporter", "operator-validator"} {
		node.Labels["nvidia.com/gpu.deploy."+part] = "true"
	}
	for key, value := range map[string]string{"eks.amazonaws.com/nodegroup": g.Name, "nvidia.com/gpu.present": "true",
		"simulated.preheat.dev/node-group": g.Name,
		"eks.amazonaws.com/capacityType":   "ON_DEMAND", "nvidia.com/gpu.product": "NVIDIA-A10G",
		"nvidia.com/gpu.memory": "23028", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.family": "ampere",
		"nvidia.com/gpu.machine": g.InstanceType, "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.replicas": "1",
		"nvidia.com/gpu.compute.minor": "6", "nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/mig.capable": "false",
		"nvidia.com/cuda.driver.major": "570", "nvidia.com/cuda.runtime.major": "12", "nvidia.com/mig.strategy": "single",
		"nvidia.com/cuda.driver.minor": "124", "nvidia.com/cuda.runtime.minor": "8", "nvidia.com/cuda.driver.rev": "06",
		"nvidia.com/gfd.timestamp": "1763640000", "k8s.io/cloud-provider-aws": "3f1c2d4e5a6b7c8d9e0f"} {
		node.Labels[key] = value
	}
	node.Annotations = map[string]string{"node.alpha.kubernetes.io/ttl": "0",
		"volumes.kubernetes.io/controller-managed-attach-detach": "true",
		"csi.volume.kubernetes.io/nodeid":                        fmt.Sprintf(`{"ebs.csi.aws.com":"i-%017x"}`, i)}
	node.Spec.Taints = []core.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: core.TaintEffectNoSchedule}}
	node.Status.Conditions = conditions(true, "")
	for name, quantity := range g.devices() {
		node.Status.Capacity[name], node.Status.Allocatable[name] = quantity, quantity
	}
	for n := range 31 {
		repository := fmt.Sprintf("602401143452.dkr.ecr.eu-west-1.amazonaws.com/serving/part-%d", n)
		node.Status.Images = append(node.Status.Images, core.ContainerImage{SizeBytes: int64(n+1) * 12345678,
			Names: []string{fmt.Sprintf("%s@sha256:%064x", repository, n*7919), repository + ":v1.0.0-build.1"}})
	}
	return node
}

func loadPodName(i int) string { return fmt.Sprintf("vllm-llama-3-1-70b-%d-6d9f7c54b8-%05d", i%40, i) }

// loadPod is a model server as a Helm chart makes it: some 4 KB as a manifest.
func loadPod(i, nodes int) *core.Pod {
	grace, model := int64(120), fmt.Sprintf("llama-3-1-70b-%d", i%40)
	labels := map[string]string{"app": "vllm", "model": model, "app.kubernetes.io/name": "vllm",
		"app.kubernetes.io/instance": model, "app.kubernetes.io/component": "serving-engine", "environment": "production",
		"helm-release-name": "vllm", "pod-template-hash": "6d9f7c54b8"}
	pod := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: loadPodName(i), Labels: labels, Annotations: map[string]string{
			"checksum/config":                   fmt.Sprintf("%064x", i%40),
			"kubectl.kubernetes.io/restartedAt": "2026-11-20T09:12:44Z", "prometheus.io/path": "/metrics",
			"prometheus.io/port": "8000", "prometheus.io/scrape": "true"}},
		Spec: core.PodSpec{
			TerminationGracePeriodSeconds: &grace, NodeSelector: map[string]string{"nvidia.com/gpu.present": "true"},
			InitContainers: []core.Container{fetcher(model)}, Containers: []core.Container{vllm(model)},
			Volumes: []core.Volume{{Name: "models"}, {Name: "shm"}},
			Tolerations: []core.Toleration{{Key: "nvidia.com/gpu", Operator: core.TolerationOpExists,
				Effect: core.TaintEffectNoSchedule},
				{Key: "node.kubernetes.io/not-ready", Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute},
				{Key: "node.kubernetes.io/unreachable", Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute}},
			TopologySpreadConstraints: []core.TopologySpreadConstraint{{MaxSkew: 5, WhenUnsatisfiable: core.ScheduleAnyway,
				TopologyKey: core.LabelTopologyZone, LabelSelector: &meta.LabelSelector{
					MatchLabels: map[string]string{"model": model}}}},
			Affinity: products("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-40GB", "NVIDIA-L40S", "NVIDIA-A10G"),
		},
	}
	if nodes > 0 {
		pod.Spec.NodeName = loadNodeName(i % nodes)
	}
	size := resource.MustParse("64Gi")
	pod.Spec.Volumes[0].HostPath = &core.HostPathVolumeSource{Path: "/mnt/nvme/models"}
	pod.Spec.Volumes[1].EmptyDir = &core.EmptyDirVolumeSource{Medium: core.StorageMediumMemory, SizeLimit: &size}
	return pod
}

func products(names ...string) *core.Affinity {
	one := core.NodeSelectorRequirement{Key: "nvidia.com/gpu.product", Operator: core.NodeSelectorOpIn, Values: names}
	return &core.Affinity{NodeAffinity: &core.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &core.NodeSelector{
			NodeSelectorTerms: []core.NodeSelectorTerm{{MatchExpressions: []core.NodeSelectorRequirement{one}}}}}}
}

func quantities(pairs ...string) core.ResourceList {
	list := core.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[core.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func fetcher(model string) core.Container {
	return core.Container{Name: "fetch-model", Image: "public.ecr.aws/aws-cli/aws-cli:2.17.0",
		Command:      []string{"sh", "-c", "aws s3 sync s3://models-prod/" + model + " /models/hf/" + model + " --no-progress"},
		Env:          []core.EnvVar{{Name: "AWS_REGION", Value: "eu-west-1"}},
		Resources:    core.ResourceRequirements{Requests: quantities("cpu", "2", "memory", "4Gi")},
		VolumeMounts: []core.VolumeMount{{Name: "models", MountPath: "/models"}}}
}

func vllm(model string) core.Container {
	refuse := false
	health := func(every, failures int32) *core.Probe {
		return &core.Probe{InitialDelaySeconds: 30, TimeoutSeconds: 5, PeriodSeconds: every, FailureThreshold: failures,
			ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Path: "/health", Port: intstr.FromString("http")}}}
	}
	field := func(path string) *core.EnvVarSource {
		return &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: path}}
	}
	secret := func(name string) *core.EnvVarSource {
		return &core.EnvVarSource{SecretKeyRef: &core.SecretKeySelector{Key: "token",
			LocalObjectReference: core.LocalObjectReference{Name: name}}}
	}
	return core.Container{Name: "vllm", Image: "docker.io/vllm/vllm-openai:v0.10.1.1", Command: []string{"vllm", "serve"},
		Args: []string{"/models/hf/" + model, "--host", "0.0.0.0", "--port", "8000", "--tensor-parallel-size", "1",
			"--gpu-memory-utilization", "0.92", "--max-model-len", "32768", "--enable-prefix-caching",
			"--enable-chunked-prefill", "--max-num-seqs", "256", "--served-model-name", model},
		Ports: []core.ContainerPort{{Name: "http", ContainerPort: 8000}, {Name: "zmq", ContainerPort: 55555}},
		Env: []core.EnvVar{{Name: "POD_IP", ValueFrom: field("status.podIP")},
			{Name: "NODE_NAME", ValueFrom: field("spec.nodeName")}, {Name: "HF_HOME", Value: "/models/hf"},
			{Name: "VLLM_PORT", Value: "8000"}, {Name: "VLLM_LOGGING_LEVEL", Value: "INFO"},
			{Name: "VLLM_USE_V1", Value: "1"}, {Name: "NCCL_DEBUG", Value: "WARN"},
			{Name: "NCCL_SOCKET_IFNAME", Value: "eth0"}, {Name: "FI_PROVIDER", Value: "efa"},
			{Name: "LMCACHE_USE_EXPERIMENTAL", Value: "True"}, {Name: "LMCACHE_LOCAL_CPU", Value: "True"},
			{Name: "LMCACHE_CHUNK_SIZE", Value: "256"}, {Name: "LMCACHE_MAX_LOCAL_CPU_SIZE", Value: "40"},
			{Name: "VLLM_ATTENTION_BACKEND", Value: "FLASH_ATTN"}, {Name: "VLLM_WORKER_MULTIPROC_METHOD", Value: "spawn"},
			{Name: "CUDA_DEVICE_ORDER", Value: "PCI_BUS_ID"}, {Name: "PROMETHEUS_MULTIPROC_DIR", Value: "/tmp/metrics"},
			{Name: "AWS_REGION", Value: "eu-west-1"}, {Name: "HUGGING_FACE_HUB_TOKEN", ValueFrom: secret("hf-token")},
			{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://otel-collector.observability.svc:4317"}},
		Resources: core.ResourceRequirements{Limits: quantities("memory", "60Gi", "nvidia.com/gpu", "1"),
			Requests: quantities("cpu", "6", "memory", "48Gi", "ephemeral-storage", "30Gi", "nvidia.com/gpu", "1")},
		VolumeMounts:  []core.VolumeMount{{Name: "models", MountPath: "/models"}, {Name: "shm", MountPath: "/dev/shm"}},
		LivenessProbe: health(10, 3), ReadinessProbe: health(5, 3), StartupProbe: health(10, 120),
		SecurityContext: &core.SecurityContext{AllowPrivilegeEscalation: &refuse,
			Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}}}
}

func loadAddress(i int) string { return fmt.Sprintf("10.%d.%d.%d", 64+i/62500, i/250%250, i%250+1) }

// statusPatch makes a pod run and be ready; message, when given, makes the patch differ from the last.
func statusPatch(pod *core.Pod, i int, message string) []byte {
	status := podStatus{phase: core.PodRunning, up: true, ready: true, ip: loadAddress(i),
		state: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: meta.Now()}}}.of(pod)
	status.Conditions = append(status.Conditions, core.PodCondition{Type: core.PodScheduled, Status: core.ConditionTrue,
		LastTransitionTime: meta.Now()})
	if message != "" {
		status = core.PodStatus{Conditions: []core.PodCondition{{Type: core.PodReady, Status: core.ConditionTrue,
			LastTransitionTime: meta.Now(), Message: message}}}
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		panic(err)
	}
	return patch
}
