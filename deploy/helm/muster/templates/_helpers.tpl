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

{{- /* Ports of the listeners for the studio's servers and operators, by name, if other machines are to reach them. */}}
{{- define "muster.internal" -}}
{{- range $name := list "partner" "operator" }}
{{- $address := index $.Values.settings (printf "%s-listen" $name) | default "" }}
{{- if not (regexMatch "^(localhost|127\\.|\\[::1\\])" $address) }}
{{- with regexFind "[0-9]+$" $address }}
{{ $name }}: {{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
