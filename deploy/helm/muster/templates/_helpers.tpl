{{- define "muster.name" -}}
{{- if contains "muster" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-muster" (.Release.Name | trunc 43 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: service
{{- end }}

{{- define "muster.agentSelector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{- define "muster.labels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "muster.settings" -}}
{{- $s := dict "public-url" .Values.publicURL }}
{{- if .Values.tls.secretName }}{{ $_ := set $s "tls-cert" "/etc/muster/tls/tls.crt" }}{{ $_ := set $s "tls-key" "/etc/muster/tls/tls.key" }}{{ end }}
{{- with .Values.trustedProxies }}{{ $_ := set $s "trusted-proxies" . }}{{ end }}
{{- if .Values.secretKey.secretName }}{{ $_ := set $s "secret-key-file" "/etc/muster/key/secret.key" }}{{ end }}
{{- if .Values.cluster.enabled }}{{ $_ := set $s "cluster-listen" ":8090" }}{{ end }}
{{- mergeOverwrite (deepCopy .Values.settings) $s | toPrettyJson }}
{{- end }}
