{{/* The policies apply in the namespaces that the operator serves. */}}
{{- define "warmpool.policyScope" -}}
{{- with .Values.watchNamespace -}}
matchResources:
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ . | quote }}
{{- end }}
{{- end }}
