{{- define "backup-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "backup-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "backup-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "backup-operator.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "backup-operator.labels" -}}
{{ include "backup-operator.selector" . }}
app.kubernetes.io/part-of: kubectl-backup
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "backup-operator.image" -}}
{{ .Values.image.repository }}:{{ default (printf "v%s" .Chart.AppVersion) .Values.image.tag }}
{{- end -}}

{{- /* Values files of gobackup-operator name gobackup's own image, which is that of its engine. */ -}}
{{- define "backup-operator.namesGobackup" -}}
{{- if regexMatch "(^|/)gobackup(:|@|$)" .Values.backupJob.image }}true{{ end -}}
{{- end -}}

{{- define "backup-operator.gobackupImage" -}}
{{- if include "backup-operator.namesGobackup" . }}{{ .Values.backupJob.image }}{{ else }}huacnlee/gobackup:v3.1.1{{ end -}}
{{- end -}}

{{- define "backup-operator.runnerImage" -}}
{{- if and .Values.backupJob.image (not (include "backup-operator.namesGobackup" .)) -}}
{{ .Values.backupJob.image }}
{{- else -}}
{{ .Values.runnerImage.repository }}:{{ default (printf "v%s" .Chart.AppVersion) .Values.runnerImage.tag }}
{{- end -}}
{{- end -}}

{{- /*
Objects of one file of deploy/operator or deploy/webhook, with the release's names, namespace and labels. What the
operator looks for by name keeps its name. Called with (dict "root" $ "file" path).
*/ -}}
{{- define "backup-operator.objects" -}}
{{- $root := .root -}}
{{- $full := include "backup-operator.fullname" $root -}}
{{- $fixed := list "backup-operator-webhook" "backup-operator-webhook-cert" -}}
{{- $fixedKinds := list "MutatingWebhookConfiguration" "ValidatingWebhookConfiguration" -}}
{{- range $text := regexSplit "(?m)^---$" ($root.Files.Get .file) -1 }}
{{- $object := fromYaml $text -}}
{{- if $object.kind }}
{{- $kind := $object.kind -}}
{{- $meta := $object.metadata -}}
{{- if $meta.namespace }}{{ $_ := set $meta "namespace" $root.Release.Namespace }}{{ end -}}
{{- if not (or (has $kind $fixedKinds) (and (has $meta.name $fixed) (has $kind (list "Secret" "Service")))) -}}
{{- $_ := set $meta "name" (regexReplaceAll "^backup-operator" $meta.name $full) -}}
{{- end -}}
{{- $_ := set $meta "labels" (merge (default dict $meta.labels) (include "backup-operator.labels" $root | fromYaml)) -}}
{{- if $object.roleRef -}}
{{- $_ := set $object.roleRef "name" (regexReplaceAll "^backup-operator" $object.roleRef.name $full) -}}
{{- end -}}
{{- range $subject := $object.subjects -}}
{{- $_ := set $subject "name" (include "backup-operator.serviceAccount" $root) -}}
{{- $_ := set $subject "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- range $webhook := $object.webhooks -}}
{{- $_ := set $webhook.clientConfig.service "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- if eq $kind "FlowSchema" -}}
{{- range $rule := $object.spec.rules -}}
{{- range $subject := $rule.subjects -}}
{{- $_ := set $subject.serviceAccount "name" (include "backup-operator.serviceAccount" $root) -}}
{{- $_ := set $subject.serviceAccount "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $kind "Service" -}}
{{- $_ := set $object.spec "selector" (include "backup-operator.selector" $root | fromYaml) -}}
{{- end -}}
{{- if eq $kind "NetworkPolicy" -}}
{{- $_ := set $object.spec.podSelector "matchLabels" (include "backup-operator.selector" $root | fromYaml) -}}
{{- end -}}
{{- $scoped := and $root.Values.watchNamespaces (has $kind (list "ClusterRole" "ClusterRoleBinding")) (has $meta.name (list $full)) -}}
{{- if $scoped -}}
{{- range $namespace := $root.Values.watchNamespaces }}
{{- $copy := deepCopy $object -}}
{{- $_ := set $copy "kind" (trimPrefix "Cluster" $kind) -}}
{{- $_ := set $copy.metadata "namespace" $namespace -}}
{{- if $copy.roleRef }}{{ $_ := set $copy.roleRef "kind" "Role" }}{{ end }}
---
{{ toYaml $copy }}
{{- end }}
{{- else }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
