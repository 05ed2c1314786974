{{/* Name of the objects in the release's namespace. */}}
{{- define "warmpool.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Name of the Deployment and the Lease of one shard, or of the only operator: takes the context and the shard. */}}
{{- define "warmpool.operatorName" -}}
{{- list (include "warmpool.fullname" (first .)) (last .).name | compact | join "-" }}
{{- end }}

{{/* Name of the objects outside namespaces. It contains watchNamespace, so two releases that watch one namespace each do
not share an object. */}}
{{- define "warmpool.clusterName" -}}
{{- if .Values.watchNamespace }}
{{- printf "%s-%s" (include "warmpool.fullname" .) .Values.watchNamespace }}
{{- else }}
{{- include "warmpool.fullname" . }}
{{- end }}
{{- end }}

{{/* "true" if the release has objects outside namespaces: their installation needs rights in the whole cluster. */}}
{{- define "warmpool.clusterWide" -}}
{{- with .Values }}
{{- $roles := and .rbac.create (or .rbac.userRoles (not .watchNamespace)) }}
{{- if or .crds.enabled $roles .priorityClass.create .flowControl.enabled .admissionPolicies.claimDeletion .admissionPolicies.deleteProtection .admissionPolicies.podLabels -}}
true
{{- end }}
{{- end }}
{{- end }}

{{- define "warmpool.serviceAccountName" -}}
{{- default (include "warmpool.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "warmpool.priorityClassName" -}}
{{- if .Values.priorityClass.create }}
{{- default (include "warmpool.clusterName" .) .Values.priorityClass.name }}
{{- else }}
{{- .Values.priorityClass.name }}
{{- end }}
{{- end }}

{{- define "warmpool.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "warmpool.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "warmpool.labels" -}}
{{ include "warmpool.selector" . }}
app.kubernetes.io/part-of: warmpool
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ include "warmpool.chart" . }}
{{- end }}

{{- define "warmpool.image" -}}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}
