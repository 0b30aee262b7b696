{{/* What several templates must agree on. `true` or nothing, so that `if include …` works. */}}

{{/* SQLite on a volume: one replica, no migrations job, nothing that scales. */}}
{{- define "hyperfleet.isEmbedded" -}}
{{- if not .Values.database.existingSecret }}true{{ end }}
{{- end }}

{{/* Callers are asked who they are. */}}
{{- define "hyperfleet.isAsking" -}}
{{- if or .Values.auth.tokensKey .Values.auth.issuers }}true{{ end }}
{{- end }}

{{/* These are said when it is rendered, rather than by a pod that does not start or a scrape that fails. */}}
{{- define "hyperfleet.requireGuard" -}}
{{- if not (or (include "hyperfleet.isAsking" .) .Values.insecureListen) }}
{{- fail "Pods can be reached by the whole cluster: give auth.tokensKey or auth.issuers, or, if something in front of them lets only the right ones through, insecureListen: true" }}
{{- end }}
{{- end }}

{{- define "hyperfleet.requireTokens" -}}
{{- if and .Values.auth.tokensKey (not .Values.auth.existingSecret) }}
{{- fail "auth.tokensKey is a key of a Secret: give auth.existingSecret" }}
{{- end }}
{{- end }}

{{- define "hyperfleet.requireScraper" -}}
{{- if and (include "hyperfleet.isAsking" .) (not .Values.serviceMonitor.bearerToken.existingSecret) (not (dig "metrics" "public" false .Values.settings)) }}
{{- fail "Prometheus has no token: give serviceMonitor.bearerToken.existingSecret, or settings.metrics.public: true for the figures of the server alone" }}
{{- end }}
{{- end }}

{{- define "hyperfleet.requireOneWriter" -}}
{{- if and (include "hyperfleet.isEmbedded" .) (gt (int (default 1 .Values.settings.workers)) 1) }}
{{- fail "settings.workers: more than one needs PostgreSQL: give database.existingSecret" }}
{{- end }}
{{- end }}

{{/* A pod first leaves the Service (5 s), then drains, then writes what it accepted (5 s); and 5 s to spare. */}}
{{- define "hyperfleet.gracePeriod" -}}
{{- add (int .Values.drainSeconds) 15 }}
{{- end }}

{{- define "hyperfleet.scheme" -}}
{{- if .Values.tls.existingSecret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{- define "hyperfleet.databaseVariable" -}}
- name: HYPERFLEET_DATABASE
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
{{- end }}

{{- define "hyperfleet.brokerVariable" -}}
- name: HYPERFLEET_PUBSUB_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.broker.existingSecret }}
      key: {{ .Values.broker.key }}
{{- end }}

{{/* The user is that of the Containerfile. */}}
{{- define "hyperfleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "hyperfleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
