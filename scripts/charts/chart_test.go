package charts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../deploy/helm/muster"

type values = map[string]any

// one, three and all are values that the chart is rendered with.
var (
	one   = values{"publicURL": "https://muster.example.com"}
	three = values{"publicURL": "https://muster.example.com", "replicas": 3, "cluster": values{"enabled": true, "joinSecret": "muster-join"}}
	// agents runs agents of a service that runs elsewhere.
	agents = values{"publicURL": "https://muster.example.com", "replicas": 0, "agent": values{"enabled": true, "image": values{"repository": "example.com/game"}, "joinTokenSecret": "muster-hosts"}}
	all    = values{
		"publicURL": "https://muster.example.com", "replicas": 3, "cluster": values{"enabled": true, "joinSecret": "muster-join"}, "tls": values{"secretName": "muster-tls"}, "secretKey": values{"secretName": "muster-key"},
		"trustedProxies": "10.0.0.0/8",
		"files":          values{"secretName": "muster-files"}, "env": []any{values{"name": "AWS_REGION", "value": "eu-west-1"}}, "serviceAccount": values{"annotations": values{"role": "backups"}},
		"serviceMonitor": values{"enabled": true, "basicAuthSecret": "muster-metrics", "labels": values{"release": "prometheus"}},
		"service":        values{"type": "LoadBalancer", "annotations": values{"a": "b"}, "loadBalancerSourceRanges": []any{"192.0.2.0/24"}}, "imagePullSecrets": []any{values{"name": "pull"}},
		"networkPolicy": values{"clients": []any{values{"ipBlock": values{"cidr": "192.0.2.0/24"}}}}, "podAnnotations": values{"c": "d"}, "nodeSelector": values{"disk": "fast"},
		"tolerations": []any{values{"key": "games", "operator": "Exists"}}, "priorityClassName": "high", "persistence": values{"storageClassName": "local", "size": "100Gi"}, "settings": values{"player-flow": true, "limit-fleets": 50},
		"topologySpreadConstraints": []any{values{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}},
		"agent":                     values{"enabled": true, "image": values{"repository": "example.com/game"}, "joinTokenSecret": "muster-hosts", "args": []any{"--kill-timeout=1m"}, "nodeSelector": values{"games": "yes"}, "resources": values{"limits": values{"memory": "8Gi"}}},
	}
)

// render renders the chart as `helm template` does.
func render(with values) (map[string]string, error) {
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		return nil, err
	}
	cluster := *chartutil.DefaultCapabilities
	cluster.KubeVersion = chartutil.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
	merged, err := chartutil.ToRenderValues(c, with, chartutil.ReleaseOptions{Name: "muster", Namespace: "games", IsInstall: true}, &cluster)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, merged)
}

// manifests returns the rendered objects. Each is decoded into its type, which must have all of its fields.
func manifests(t *testing.T, with values) map[string]any {
	t.Helper()
	files, err := render(with)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]any{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, document := range strings.Split(text, "\n---\n") {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			var object any
			switch head.Kind {
			case "":
				continue
			case "ServiceAccount":
				object = &corev1.ServiceAccount{}
			case "ConfigMap":
				object = &corev1.ConfigMap{}
			case "Service":
				object = &corev1.Service{}
			case "StatefulSet":
				object = &appsv1.StatefulSet{}
			case "DaemonSet":
				object = &appsv1.DaemonSet{}
			case "PodDisruptionBudget":
				object = &policyv1.PodDisruptionBudget{}
			case "NetworkPolicy":
				object = &networkingv1.NetworkPolicy{}
			case "ServiceMonitor": // of the Prometheus operator
				object = &map[string]any{}
			default:
				t.Errorf("%s: kind %s is not checked", name, head.Kind)
			}
			if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
				t.Errorf("%s: %v\n%s", name, err, document)
			}
			key := head.Kind + "/" + head.Metadata.Name
			if objects[key] != nil {
				t.Errorf("%s is there twice", key)
			}
			objects[key] = object
		}
	}
	return objects
}

func TestLint(t *testing.T) {
	for name, with := range map[string]values{"one": one, "three": three, "all": all} {
		for _, m := range lint.AllWithKubeVersion(chartDir, with, "games", &chartutil.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		with values
		want []string
	}{
		{one, []string{"ConfigMap/muster", "NetworkPolicy/muster", "Service/muster", "Service/muster-nodes", "ServiceAccount/muster", "StatefulSet/muster"}},
		{three, []string{"ConfigMap/muster", "NetworkPolicy/muster", "PodDisruptionBudget/muster", "Service/muster", "Service/muster-nodes", "ServiceAccount/muster", "StatefulSet/muster"}},
		{agents, []string{"DaemonSet/muster-agent"}},
		{all, []string{"ConfigMap/muster", "DaemonSet/muster-agent", "NetworkPolicy/muster", "PodDisruptionBudget/muster", "Service/muster", "Service/muster-nodes", "ServiceAccount/muster", "ServiceMonitor/muster", "StatefulSet/muster"}},
	} {
		var got []string
		for key := range manifests(t, c.with) {
			got = append(got, key)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestPods checks the privileges of a pod, and the values that it gets by reference.
func TestPods(t *testing.T) {
	objects := manifests(t, all)
	set := objects["StatefulSet/muster"].(*appsv1.StatefulSet)
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	if *set.Spec.Replicas != 3 || set.Spec.ServiceName != "muster-nodes" || *pod.EnableServiceLinks || *pod.AutomountServiceAccountToken || !*pod.SecurityContext.RunAsNonRoot || !*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("%+v", set.Spec)
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe.HTTPGet.Scheme != corev1.URISchemeHTTPS || probe.HTTPGet.Port.StrVal != "muster" {
			t.Errorf("%+v", probe)
		}
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.PeriodSeconds*c.LivenessProbe.FailureThreshold < 300 {
		t.Errorf("a full disk would make pods restart without a pause: %+v", c.LivenessProbe)
	}
	var settings map[string]any
	if err := json.Unmarshal([]byte(objects["ConfigMap/muster"].(*corev1.ConfigMap).Data["muster.json"]), &settings); err != nil {
		t.Fatal(err)
	}
	if settings["data"] != nil || settings["listen"] != nil {
		t.Errorf("the environment has these settings, and each reload would say that the file's are without effect: %v", settings)
	}
	for name, want := range map[string]any{"player-flow": true, "limit-fleets": 50.0, "secret-key-file": "/etc/muster/key/secret.key", "tls-key": "/etc/muster/tls/tls.key", "cluster-listen": ":8090", "trusted-proxies": "10.0.0.0/8"} {
		if settings[name] != want {
			t.Errorf("%s: %v, want %v", name, settings[name], want)
		}
	}
	budget := objects["PodDisruptionBudget/muster"].(*policyv1.PodDisruptionBudget)
	if budget.Spec.MaxUnavailable.IntVal != 1 {
		t.Errorf("%+v", budget.Spec)
	}
	policy := objects["NetworkPolicy/muster"].(*networkingv1.NetworkPolicy)
	if len(policy.Spec.Ingress) != 2 || len(policy.Spec.Ingress[1].From) != 1 || policy.Spec.Ingress[1].From[0].PodSelector == nil {
		t.Errorf("%+v", policy.Spec)
	}
	if from := policy.Spec.Ingress[0].From; len(from) != 2 || from[0].IPBlock == nil || from[1].PodSelector == nil || from[1].PodSelector.MatchLabels["app.kubernetes.io/component"] != "service" {
		t.Errorf("clients and the service's own pods, whose commands use the public URL: %+v", from)
	}
}

// TestNodesStartTogether: a node alone is not ready before it has a majority, so none may wait until the one before is ready. Otherwise three nodes whose pods are gone, as after uninstalling, would never start again.
func TestNodesStartTogether(t *testing.T) {
	if got := manifests(t, three)["StatefulSet/muster"].(*appsv1.StatefulSet).Spec.PodManagementPolicy; got != appsv1.ParallelPodManagement {
		t.Errorf("pods start %s", got)
	}
}

// TestEndingPodsStillServe: a service sends new connections to a pod until all machines know that it ends.
func TestEndingPodsStillServe(t *testing.T) {
	if c := manifests(t, three)["StatefulSet/muster"].(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0]; c.Lifecycle == nil || c.Lifecycle.PreStop.Sleep == nil {
		t.Errorf("%+v", c.Lifecycle)
	}
	if c := manifests(t, one)["StatefulSet/muster"].(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0]; c.Lifecycle != nil {
		t.Errorf("no other pod takes connections, so an update of one node would only take longer: %+v", c.Lifecycle)
	}
}

// TestInternalListeners: the listeners for the studio's servers and operators are reachable, but only from within the Kubernetes cluster.
func TestInternalListeners(t *testing.T) {
	objects := manifests(t, values{
		"publicURL": "https://muster.example.com", "service": values{"type": "LoadBalancer"},
		"settings": values{"player-flow": true, "partner-listen": ":8444", "operator-listen": "[::]:8445"},
	})
	service, ok := objects["Service/muster-internal"].(*corev1.Service)
	if !ok {
		t.Fatal("no Service for the listeners")
	}
	var got []string
	for _, p := range service.Spec.Ports {
		got = append(got, fmt.Sprintf("%s %d %s", p.Name, p.Port, p.TargetPort.String()))
	}
	if want := []string{"operator 8445 operator", "partner 8444 partner"}; !slices.Equal(got, want) || service.Spec.Type != "" {
		t.Errorf("got %q, want %q: %+v", got, want, service.Spec)
	}
	ports := objects["StatefulSet/muster"].(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0].Ports
	if !slices.Contains(ports, corev1.ContainerPort{Name: "partner", ContainerPort: 8444, Protocol: "TCP"}) || !slices.Contains(ports, corev1.ContainerPort{Name: "operator", ContainerPort: 8445, Protocol: "TCP"}) {
		t.Errorf("%+v", ports)
	}
	rules := objects["NetworkPolicy/muster"].(*networkingv1.NetworkPolicy).Spec.Ingress
	if last := rules[len(rules)-1]; len(last.Ports) != 2 || len(last.From) != 1 || last.From[0].PodSelector == nil || last.From[0].NamespaceSelector != nil {
		t.Errorf("%+v", rules)
	}

	// kubectl port-forward reaches loopback addresses.
	objects = manifests(t, values{"publicURL": "https://muster.example.com", "settings": values{"operator-listen": "127.0.0.1:8445"}})
	if objects["Service/muster-internal"] != nil || len(objects["NetworkPolicy/muster"].(*networkingv1.NetworkPolicy).Spec.Ingress) != 1 {
		t.Errorf("%+v", objects)
	}
}

// TestFilesAndEnvironment checks files that settings name, and the environment for a bucket.
func TestFilesAndEnvironment(t *testing.T) {
	objects := manifests(t, all)
	pod := objects["StatefulSet/muster"].(*appsv1.StatefulSet).Spec.Template.Spec
	c := pod.Containers[0]
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "muster-files" }) ||
		!slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/muster/files" && m.ReadOnly }) {
		t.Errorf("no files: %+v, %+v", pod.Volumes, c.VolumeMounts)
	}
	if !slices.Contains(c.Env, corev1.EnvVar{Name: "AWS_REGION", Value: "eu-west-1"}) || objects["ServiceAccount/muster"].(*corev1.ServiceAccount).Annotations["role"] != "backups" {
		t.Errorf("%+v, %+v", c.Env, objects["ServiceAccount/muster"])
	}
}

// TestChartVersionWithBuildMetadata: Flux appends the commit to the version of a chart that it takes from Git, and labels contain no plus sign.
func TestChartVersionWithBuildMetadata(t *testing.T) {
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	c.Metadata.Version = "0.1.0+0123456789ab.1"
	merged, err := chartutil.ToRenderValues(c, one, chartutil.ReleaseOptions{Name: "muster", Namespace: "games"}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, merged)
	if err != nil {
		t.Fatal(err)
	}
	if text := files["muster/templates/statefulset.yaml"]; !strings.Contains(text, "helm.sh/chart: muster-0.1.0_0123456789ab.1\n") {
		t.Error(text)
	}
}

// TestImages: releases have tags such as v0.2.0.
func TestImages(t *testing.T) {
	objects := manifests(t, all)
	for _, pod := range []corev1.PodSpec{objects["StatefulSet/muster"].(*appsv1.StatefulSet).Spec.Template.Spec, objects["DaemonSet/muster-agent"].(*appsv1.DaemonSet).Spec.Template.Spec} {
		if _, tag, _ := strings.Cut(pod.Containers[0].Image, ":"); !strings.HasPrefix(tag, "v0.") {
			t.Errorf("image %s", pod.Containers[0].Image)
		}
	}
}

// TestAgent checks that the agent has only the privileges for running game servers as another user.
func TestAgent(t *testing.T) {
	pod := manifests(t, agents)["DaemonSet/muster-agent"].(*appsv1.DaemonSet).Spec.Template.Spec
	c := pod.Containers[0]
	if x := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "join" })].Secret; x.Optional == nil || !*x.Optional {
		t.Error("without the Secret of a token that has been used, hosts that have joined do not come back")
	}
	if pod.ShareProcessNamespace == nil || !*pod.ShareProcessNamespace {
		t.Error("the agent is the first process of its container, and reaps nothing that a game server leaves behind")
	}
	if slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--compute-name") }) {
		t.Errorf("names of machines in Kubernetes have dots, names of computes have none: %q", c.Args)
	}
	if len(c.SecurityContext.Capabilities.Add) > 0 || slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--run-as") }) {
		t.Errorf("%q, %+v", c.Args, c.SecurityContext)
	}
	with := values{"publicURL": "https://muster.example.com", "replicas": 0, "agent": values{"enabled": true, "image": values{"repository": "example.com/game"}, "joinTokenSecret": "muster-hosts", "runAs": "game"}}
	c = manifests(t, with)["DaemonSet/muster-agent"].(*appsv1.DaemonSet).Spec.Template.Spec.Containers[0]
	for _, needed := range []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "KILL", "SETGID", "SETUID"} {
		if !slices.Contains(c.SecurityContext.Capabilities.Add, needed) {
			t.Errorf("no %s: %+v", needed, c.SecurityContext.Capabilities)
		}
	}
	if !slices.Contains(c.Args, "--run-as=game") {
		t.Errorf("%q", c.Args)
	}
}

// TestNotesWithoutTLS: a service without a certificate and without a proxy installs well, and then refuses all clients.
func TestNotesWithoutTLS(t *testing.T) {
	for _, c := range []struct {
		more values
		want bool
	}{
		{values{}, true},
		{values{"tls": values{"secretName": "muster-tls"}}, false},
		{values{"trustedProxies": "10.0.0.0/8"}, false},
		{values{"settings": values{"require-tls": "off"}}, false},
		{values{"publicURL": "http://muster.games.svc"}, false}, // for plain HTTP within the Kubernetes cluster
		{values{"settings": values{"tls-acme-email": "ops@example.com"}}, false},
	} {
		if c.more["publicURL"] == nil {
			c.more["publicURL"] = "https://muster.example.com"
		}
		files, err := render(c.more)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(files["muster/templates/NOTES.txt"], "refuses requests from other machines"); got != c.want {
			t.Errorf("%v: warned %v, want %v", c.more, got, c.want)
		}
	}
}

// TestRefusals: values that would not work are refused, with the name of what is wrong.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		with values
		want string
	}{
		{values{}, "publicURL"},
		{values{"publicURL": "muster.example.com"}, "publicURL"},
		{values{"publicURL": "https://m.example.com", "replicas": 3}, "cluster.enabled"},
		{values{"publicURL": "https://m.example.com", "replicas": 3, "cluster": values{"enabled": true}}, "cluster.joinSecret"},
		{values{"publicURL": "https://m.example.com", "replicas": 9}, "replicas"},
		{values{"publicURL": "https://m.example.com", "replica": 1}, "replica"},
		{values{"publicURL": "https://m.example.com", "settings": values{"listen": ":1"}}, "'listen'"},
		{values{"publicURL": "https://m.example.com", "service": values{"loadBalancerSourceRanges": []any{"192.0.2.0/24"}}}, "service.loadBalancerSourceRanges"}, // Kubernetes would refuse it halfway through an upgrade
		{values{"publicURL": "https://m.example.com", "agent": values{"enabled": true}}, "agent.image.repository"},
		{values{"publicURL": "https://m.example.com", "agent": values{"enabled": true, "image": values{"repository": "x"}}}, "agent.joinTokenSecret"},
	} {
		if _, err := render(c.with); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want an error about %s", c.with, err, c.want)
		}
	}
}
