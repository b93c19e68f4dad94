{{- define "tts.name" -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- end }}

{{- define "tts.labels" -}}
app.kubernetes.io/name: realtime-tts
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "tts.selector" -}}
app.kubernetes.io/name: realtime-tts
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tts.image" -}}
{{ required "image.repository: an image with realtime-tts and HAProxy" .Values.image.repository }}:{{ required "image.tag" .Values.image.tag }}
{{- end }}

{{- define "tts.keys" -}}
{{- with .Values.keysSecret }}
- name: REALTIME_TTS_API_KEYS
  valueFrom: {secretKeyRef: {name: {{ . }}, key: REALTIME_TTS_API_KEYS}}
{{- end }}
{{- end }}

{{/* What Prometheus shows to a server. */}}
{{- define "tts.scraper" -}}
{{- with .Values.keysSecret -}}
# The first key, alone: Prometheus sends it as it is.
authorization: {credentials: {name: {{ . }}, key: REALTIME_TTS_API_KEYS}}
{{- end }}
{{- end }}

{{- define "tts.environment" -}}
{{- include "tts.keys" . }}
- {name: HF_HOME, value: /models/huggingface}
- {name: XDG_CACHE_HOME, value: /models/cache}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Of every pod. */}}
{{- define "tts.pod" -}}
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Of a server's pod. */}}
{{- define "tts.server" -}}
{{- include "tts.pod" . }}
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
nodeSelector: {{- toYaml .Values.nodeSelector | nindent 2 }}
tolerations: {{- toYaml .Values.tolerations | nindent 2 }}
{{- end }}

{{/* Of a container with Ray, which writes to more than the volumes. */}}
{{- define "tts.ofRay" -}}
{{- toYaml (omit .Values.securityContext "readOnlyRootFilesystem") }}
{{- end }}

{{- define "tts.token" -}}
{{ required "ray.tokenSecret: a Secret with Ray's token, as auth_token" .Values.ray.tokenSecret }}
{{- end }}

{{- define "tts.mounts" -}}
- {name: models, mountPath: /models}
{{- if .Values.voices.existingClaim }}
- {name: voices, mountPath: /voices}
{{- end }}
{{- end }}

{{- define "tts.volumes" -}}
- name: models
  {{- if .Values.models.existingClaim }}
  persistentVolumeClaim: {claimName: {{ .Values.models.existingClaim }}}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- with .Values.voices.existingClaim }}
- name: voices
  persistentVolumeClaim: {claimName: {{ . }}}
{{- end }}
{{- end }}

{{/* Flags of `serve`, without what only one of the modes sets. */}}
{{- define "tts.flags" -}}
{{- $flags := .Values.serve -}}
{{- if .Values.voices.existingClaim }}{{ $flags = concat $flags (list "--voices-dir" "/voices") }}{{ end -}}
{{- toJson $flags -}}
{{- end }}

{{/* With the GPUs, also where the operator has taken all other limits out. */}}
{{- define "tts.limits" -}}
{{- $limits := deepCopy (.Values.resources.limits | default dict) -}}
{{- if .Values.gpus }}{{ $limits = set $limits .Values.gpuResource .Values.gpus }}{{ end -}}
{{- toYaml $limits -}}
{{- end }}
