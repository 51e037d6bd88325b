{{- define "streamer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "streamer.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "streamer.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "streamer.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "streamer.selector" -}}
app.kubernetes.io/name: {{ include "streamer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "streamer.labels" -}}
{{ include "streamer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "streamer.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "streamer.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "streamer.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The service's own config: what the values say, and with executors what Spark must know of them. */}}
{{- define "streamer.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.executors.enabled -}}
{{- $name := include "streamer.fullname" . -}}
{{- $conf := dict
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.container.image" (include "streamer.image" .)
  "spark.kubernetes.container.image.pullPolicy" .Values.image.pullPolicy
  "spark.kubernetes.authenticate.driver.serviceAccountName" (include "streamer.account" .)
  "spark.kubernetes.driver.pod.name" (printf "%s-0" $name)
  "spark.kubernetes.executor.podTemplateFile" "/etc/streamer/service/executor.yaml"
  "spark.kubernetes.executor.podNamePrefix" $name
  "spark.executor.instances" (toString .Values.executors.instances)
  "spark.executor.cores" (toString .Values.executors.cores)
  "spark.executor.memory" .Values.executors.memory
  "spark.executor.memoryOverhead" .Values.executors.memoryOverhead
  "spark.driver.host" (printf "%s-driver.%s.svc" $name .Release.Namespace)
  "spark.driver.bindAddress" "0.0.0.0"
  "spark.driver.port" "7078"
  "spark.driver.blockManager.port" "7079"
-}}
{{- $spark := dict "master" "k8s://https://kubernetes.default.svc" "environment" "installed" "conf" $conf -}}
{{- $config = mergeOverwrite (dict "spark" $spark) $config -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "streamer.claim" -}}
accessModes: [{{ .Values.persistence.accessMode }}]
{{- with .Values.persistence.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.persistence.size }}
{{- end -}}

{{- define "streamer.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "streamer.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "streamer.executorLabels" -}}
app.kubernetes.io/name: {{ include "streamer.name" . }}-executor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "streamer.scheme" -}}
{{- if dig "http" "cert_file" "" .Values.config -}} https {{- else -}} http {{- end -}}
{{- end -}}

{{/* Both paths are answered to whoever asks, with `basic_auth` and `bearer_auth` too. */}}
{{- define "streamer.alive" -}}
httpGet:
  path: /ping
  port: http
  scheme: {{ include "streamer.scheme" . | upper }}
{{- end -}}

{{- define "streamer.ready" -}}
httpGet:
  path: {{ .Values.probes.readiness.path }}
  port: http
  scheme: {{ include "streamer.scheme" . | upper }}
{{- end -}}
