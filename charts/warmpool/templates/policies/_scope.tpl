{{/* Where the policies hold: where the operator works. */}}
{{- define "warmpool.policyScope" -}}
{{- with .Values.watchNamespace -}}
matchResources:
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ . | quote }}
{{- end }}
{{- end }}
