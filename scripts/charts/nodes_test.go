package charts

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// muster returns the binary that make build built.
func muster(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/muster")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no bin/muster: make build")
	}
	return path
}

// node is a process with the arguments and settings of a container, on loopback addresses and with its own directory.
type node struct {
	t    *testing.T
	env  []string
	args []string
	logs logs
	cmd  *exec.Cmd
	over chan struct{} // closed when cmd has ended
}

// logs collects what a process writes.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// run executes a muster command in the node's environment, as kubectl exec and docker compose exec do.
func (n *node) run(args ...string) (string, error) {
	cmd := exec.Command(muster(n.t), args...)
	cmd.Env = n.env
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	err := cmd.Run()
	return strings.TrimSpace(out.String() + errors.String()), err
}

// start starts the node, with a join token if it is not the first one, and waits until clients may use it.
func (n *node) start(join string) {
	n.t.Helper()
	if join != "" {
		n.env = append(n.env, "MUSTER_JOIN="+join)
	}
	n.cmd = exec.Command(muster(n.t), n.args...)
	n.cmd.Env, n.cmd.Stdout, n.cmd.Stderr = n.env, &n.logs, &n.logs
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan struct{})
	n.over = ended
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(ended) }(n.cmd)
	process := n.cmd.Process
	n.t.Cleanup(func() {
		_ = process.Kill()
		<-ended
		if n.t.Failed() {
			n.t.Log(n.logs.String())
		}
	})
	for begin := time.Now(); ; {
		said, err := n.run("health", "--ready")
		if err == nil {
			return
		}
		select {
		case <-ended:
			n.t.Fatalf("the node ended: %s", n.logs.String())
		case <-time.After(100 * time.Millisecond):
		}
		if time.Since(begin) > 3*time.Minute {
			n.t.Fatalf("not ready: %s", said)
		}
	}
}

// restart stops the node normally, and starts it with another join token.
func (n *node) restart(join string) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	<-n.over
	n.start(join)
}

// becomeCluster lets two nodes join the first one, with the commands in the guide.
func becomeCluster(t *testing.T, nodes [3]*node) {
	t.Helper()
	nodes[0].start("")
	for _, n := range nodes[1:] {
		token, err := nodes[0].run("cluster", "join-token")
		if err != nil {
			t.Fatalf("%v: %s", err, token)
		}
		n.start(token)
	}
	for _, n := range nodes {
		text, err := n.run("cluster", "status", "--json")
		var status struct {
			Members []struct{ Role string }
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &status)
		}
		if err != nil || len(status.Members) != 3 {
			t.Errorf("%v: %s", err, text)
		}
	}
}

func loopback(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestChartBecomesACluster starts processes with the arguments and settings of the chart's pods, and lets them join as described in NOTES.txt.
func TestChartBecomesACluster(t *testing.T) {
	var nodes [3]*node
	for i := range nodes {
		with := values{"publicURL": "https://muster.example.com", "replicas": i + 1, "cluster": values{"enabled": true}}
		if i > 0 {
			with["cluster"].(values)["joinSecret"] = "muster-join"
		}
		objects := manifests(t, with)
		var settings map[string]any
		if err := json.Unmarshal([]byte(objects["ConfigMap/muster"].(*corev1.ConfigMap).Data["muster.json"]), &settings); err != nil {
			t.Fatal(err)
		}
		dir, at := t.TempDir(), loopback(t)
		_, port, _ := net.SplitHostPort(at)
		settings["data"], settings["listen"], settings["cluster-listen"] = filepath.Join(dir, "data"), loopback(t), ":"+port
		text, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "muster.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c := objects["StatefulSet/muster"].(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0]
		n := &node{t: t, env: []string{"MUSTER_CONFIG=" + file}, args: c.Args}
		joins := false
		for _, e := range c.Env {
			switch e.Name {
			case "MUSTER_JOIN":
				joins = e.ValueFrom.SecretKeyRef.Name == "muster-join"
			case "MUSTER_CLUSTER_ADVERTISE":
				if want := "$(POD_NAME).muster-nodes.$(POD_NAMESPACE).svc.cluster.local:8090"; e.Value != want {
					t.Errorf("%s: %s, want %s", e.Name, e.Value, want)
				}
				n.env = append(n.env, e.Name+"="+at)
			}
		}
		if joins != (i > 0) {
			t.Errorf("node %d has a join token: %v", i, joins)
		}
		nodes[i] = n
	}
	becomeCluster(t, nodes)
	for _, n := range nodes {
		// The settings come from the environment and the file, so that a command in a running container knows them too.
		if text, _ := n.run("doctor"); !strings.Contains(text, "port of --cluster-listen") || strings.Contains(text, "failure  settings") {
			t.Errorf("%s", text)
		}
	}
}
