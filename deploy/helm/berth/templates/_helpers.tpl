{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* What selects the pods of a component: (dict "root" $ "component" "scheduler"). */}}
{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* A deployment: (dict "root" $ "component" NAME "values" .Values.NAME "args" LIST "port" N "config" CONFIGMAP).
A ConfigMap stands in /etc/berth/config. */}}
{{- define "berth.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: berth-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "berth.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels:
      {{- include "berth.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "berth.selector" . | nindent 8 }}
    spec:
      serviceAccountName: berth-{{ .component }}
      {{- with .values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets: {{ toJson . }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        {{- if (.root.Values.metrics).tokenSecret }}
        fsGroup: 65532
        {{- end }}
        runAsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    {{- include "berth.selector" . | nindent 20 }}
      {{- with .values.nodeSelector }}
      nodeSelector: {{ toJson . }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations: {{ toJson . }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            - {{ .component }}
            - --leader-elect
            - --leader-elect-resource-namespace={{ .root.Release.Namespace }}
            - --metrics-bind-address=0.0.0.0:{{ .port }}
            {{- if (.root.Values.metrics).tokenSecret }}
            - --metrics-token-file=/etc/berth/metrics/token
            {{- end }}
            {{- range concat .args .values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
          ports: [{name: metrics, containerPort: {{ .port }}}]
          livenessProbe: {httpGet: {path: /livez, port: metrics}, initialDelaySeconds: 5, failureThreshold: 4}
          readinessProbe: {httpGet: {path: /readyz, port: metrics}}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          resources: {{ toJson .values.resources }}
          {{- $token := (.root.Values.metrics).tokenSecret }}
          {{- if or $token .config }}
          volumeMounts:
            {{- if $token }}
            - {name: metrics-token, mountPath: /etc/berth/metrics, readOnly: true}
            {{- end }}
            {{- if .config }}
            - {name: config, mountPath: /etc/berth/config, readOnly: true}
            {{- end }}
      volumes:
        {{- if $token }}
        - {name: metrics-token, secret: {secretName: {{ $token | quote }}, defaultMode: 0440}}
        {{- end }}
        {{- if .config }}
        - {name: config, configMap: {name: {{ .config | quote }}}}
        {{- end }}
          {{- end }}
{{- end }}
