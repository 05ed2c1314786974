{{/* Milliseconds of a duration such as 1m30s, whose syntax values.schema.json has checked. */}}
{{- define "warmpool.milliseconds" -}}
{{- $total := 0 }}
{{- range $part := regexFindAll "[0-9]+(ms|h|m|s)" . -1 }}
{{- $unit := regexFind "[a-z]+$" $part }}
{{- $factor := get (dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1) $unit }}
{{- $total = add $total (mul (trimSuffix $unit $part | int64) $factor) }}
{{- end }}
{{- $total }}
{{- end }}
