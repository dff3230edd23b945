package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/waittest"
)

func TestAgentFlags(t *testing.T) {
	root := t.TempDir()
	for want, args := range map[string][]string{
		"server: want":                {"--root", root},
		"fleet: want":                 {"--root", root, "--server", "https://muster.example.com"},
		`server "muster.example.com"`: {"--root", root, "--server", "muster.example.com", "--fleet", "f"},
		"root ":                       {"--root", filepath.Join(root, "none"), "--server", "https://muster.example.com"},
		"ports ":                      {"--root", root, "--ports", "80-90"},
		"want positive values":        {"--root", root, "--max-crashes", "0"},
		"run-as ":                     {"--root", root, "--run-as", "unknown-user"},
		"cgroup ":                     {"--root", root, "--cgroup", root},
	} {
		err := run(context.Background(), append([]string{"agent", "--state-dir", filepath.Join(root, "state")}, args...), nil, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	for host, want := range map[string]string{"rack-1.example.com": "rack-1examplecom", "": "host", "_": "host", strings.Repeat("a", 200): strings.Repeat("a", 128)} {
		if got := asComputeName(host); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
	for variable, want := range map[string]bool{"MUSTER_PORT": true, "MUSTER_PORT_QUERY": true, "MUSTER_AGENT_ROOT": true, "MUSTER_AGENT_RUTE": false, "MUSTER_PORTS": false} {
		if got := ofAgent(variable); got != want {
			t.Errorf("%s: %v, want %v", variable, got, want)
		}
	}
}

// TestAgentWithoutService: the agent runs a program that a file names, until it is stopped.
func TestAgentWithoutService(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	script, file, made := filepath.Join(dir, "server"), filepath.Join(dir, "runtime.json"), filepath.Join(dir, "made")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho port $1 > "+made+"\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"ServerProcesses":[{"LaunchPath":"/local/game/server","Parameters":"{port}","ConcurrentExecutions":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"agent", "--root", dir, "--runtime-config", file, "--state-dir", filepath.Join(dir, "state"), "--ports", "21000-21999", "--end-processes",
			"--log-level", "error"}, []string{"MUSTER_PORT=1"}, io.Discard)
	}()
	waittest.Until(t, "the program runs", func() bool {
		text, _ := os.ReadFile(made)
		return strings.HasPrefix(string(text), "port 21") && strings.HasSuffix(string(text), "\n")
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
