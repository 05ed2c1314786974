{{/* Namespace and name of this release, as "warmpool.owner" writes them. */}}
{{- define "warmpool.self" -}}
{{ .Release.Namespace }}/{{ .Release.Name }}
{{- end }}

{{/* Namespace and name of the release that an object in the cluster belongs to; empty if Helm did not create it. */}}
{{- define "warmpool.owner" -}}
{{- $annotations := .metadata.annotations | default dict }}
{{- with index $annotations "meta.helm.sh/release-name" }}
{{- printf "%s/%s" (index $annotations "meta.helm.sh/release-namespace") . }}
{{- end }}
{{- end }}

{{- define "warmpool.ownerInWords" -}}
{{- $annotations := .metadata.annotations | default dict }}
{{- with index $annotations "meta.helm.sh/release-name" -}}
the Helm release {{ . }} in namespace {{ index $annotations "meta.helm.sh/release-namespace" }}
{{- else -}}
a user who did not use Helm (kubectl apply -k config/default?)
{{- end }}
{{- end }}
