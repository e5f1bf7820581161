{{- define "mrs-serve.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "mrs-serve.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mrs-serve.secret" -}}
{{- .Values.keys.existingSecret | default (include "mrs-serve.name" .) -}}
{{- end -}}
