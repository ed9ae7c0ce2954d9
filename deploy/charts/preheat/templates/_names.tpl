{{- /* Values that are absent, as those of an older release are under helm upgrade --reuse-values, or set to null: filled in here. Every
       template begins with it, since no order of theirs is promised. What a pod can do without (nodeSelector, resources ...) stays out. */ -}}
{{- define "preheat.defaults" -}}
image: { repository: preheat, pullPolicy: IfNotPresent }
serviceAccount: { create: true, annotations: {} }
replicas: 2
identity: { provider: none }
watchPools: true
interval: 15s
retain: 400d
retainSize: 80%
logLevel: info
credentialsSecret: preheat-credentials
persistence: { enabled: true, size: 10Gi }
rbac: {}
priorityClasses: { create: true }
crds: { create: true }
metrics:
  scrapeAnnotations: true
  serviceMonitor: { interval: 15s }
  prometheusRule: { labels: {} }
  dashboard: { labels: { grafana_dashboard: "1" } }
web: {}
networkPolicy: { enabled: true, scrapeNamespaces: [monitoring] }
{{- end }}

{{- define "preheat.fill" -}}
{{- include "preheat.fillFrom" (list .Values (include "preheat.defaults" . | fromYaml)) }}
{{- end }}

{{- /* A list of two: the values, and what they lack. */ -}}
{{- define "preheat.fillFrom" -}}
{{- $values := index . 0 }}
{{- range $key, $default := index . 1 }}
{{- $value := get $values $key }}
{{- if or (not (hasKey $values $key)) (kindIs "invalid" $value) }}
{{- $_ := set $values $key $default }}
{{- else if kindIs "map" $default }}
{{- include "preheat.fillFrom" (list $value $default) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "preheat.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "preheat" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "preheat.labels" -}}
{{ include "preheat.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "preheat.name" -}}
{{- $name := .Values.nameOverride | default "preheat" }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "preheat.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "preheat.name" .) }}
{{- end }}

{{- /* What changes nothing takes no Lease: a second one would do the same beside it. */ -}}
{{- define "preheat.replicas" -}}
{{- if or .Values.watchOnly .Values.dryRun }}1{{ else }}{{ .Values.replicas }}{{ end }}
{{- end }}

{{- /* How many bytes a quantity is. */ -}}
{{- define "preheat.bytes" -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[A-Za-z]*$" .) | float64) | int64 }}
{{- end }}

{{- /* A share of a volume; of an emptyDir, whose disk is the node's, as bytes of its limit. */ -}}
{{- define "preheat.retainSize" -}}
{{- $retain := .Values.retainSize }}
{{- if .Values.persistence.enabled }}{{ $retain }}
{{- else }}
{{- $limit := include "preheat.bytes" .Values.persistence.size | int64 }}
{{- if not (hasSuffix "%" $retain) }}
{{- if ge (include "preheat.bytes" $retain | int64) $limit }}
{{- fail (printf "retainSize %s is not less than persistence.size %s, at which the pod is evicted; do: --set retainSize=80%%" $retain .Values.persistence.size) }}
{{- end }}{{ $retain }}
{{- else }}
{{- $mebi := div (mul $limit (trimSuffix "%" $retain | int64)) 104857600 }}
{{- if lt $mebi 16 }}
{{- fail (printf "%s of persistence.size %s is less than the 16Mi that a history wants; do: --set persistence.size=10Gi" $retain .Values.persistence.size) }}
{{- end }}
{{- if mod $mebi 1024 }}{{ $mebi }}Mi{{ else }}{{ div $mebi 1024 }}Gi{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "preheat.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{- /* What only several values together can tell. */ -}}
{{- define "preheat.check" -}}
{{- with .Values.identity }}
{{- if and (eq .provider "eks-irsa") (not .roleArn) $.Values.serviceAccount.create }}
{{- fail "identity.provider is eks-irsa and identity.roleArn is missing; do: --set identity.roleArn=arn:aws:iam::ACCOUNT:role/NAME" }}
{{- end }}
{{- if and .roleArn (ne .provider "eks-irsa") }}
{{- fail (printf "identity.roleArn is of eks-irsa, and identity.provider is %s; do: --set identity.provider=eks-irsa, or leave the role out (Pod Identity's is told to EKS)" .provider) }}
{{- end }}
{{- if and (eq .provider "aks-workload-identity") (not .clientId) $.Values.serviceAccount.create }}
{{- fail "identity.provider is aks-workload-identity and identity.clientId is missing; do: --set identity.clientId=CLIENT-ID (az identity show --query clientId)" }}
{{- end }}
{{- if and .clientId (ne .provider "aks-workload-identity") }}
{{- fail (printf "identity.clientId is of aks-workload-identity, and identity.provider is %s; do: --set identity.provider=aks-workload-identity" .provider) }}
{{- end }}
{{- end }}
{{- if and .Values.watchOnly .Values.web.tlsSecret }}
{{- fail "watchOnly records and serves no page, and web.tlsSecret is set; do: leave web.tlsSecret out, and look at the recording with preheat view" }}
{{- end }}
{{- if and .Values.dryRun .Values.watchOnly }}
{{- fail "watchOnly only records, and dryRun decides as well; do: set one of them" }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount.create is false and serviceAccount.name is missing; do: --set serviceAccount.name=NAME, of one that is there" }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) (or .Values.serviceAccount.annotations .Values.identity.roleArn .Values.identity.clientId) }}
{{- fail "serviceAccount.create is false, so nothing annotates it; do: annotate it yourself (EKS: eks.amazonaws.com/role-arn, AKS: azure.workload.identity/client-id), and leave serviceAccount.annotations, identity.roleArn and identity.clientId out" }}
{{- end }}
{{- range $label, $_ := include "preheat.selector" . | fromYaml }}
{{- if hasKey (default dict $.Values.podLabels) $label }}
{{- fail (printf "podLabels has %s, by which the pods are found; do: leave it out (nameOverride changes the name)" $label) }}
{{- end }}
{{- end }}
{{- if not (or .Values.watchPools .Values.pools) }}
{{- fail "watchPools is false and pools is empty: there would be nothing to do; give pools, or leave watchPools true" }}
{{- end }}
{{- end }}
