package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/waittest"
)

// gate is output that is not read before it opens.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	text bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(b)
}

func (g *gate) has(part string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Contains(g.text.String(), part)
}

// TestLogs reads what game servers write, with the agent on their host: one that hosts game sessions, one that writes now and then, and one that floods.
func TestLogs(t *testing.T) {
	dir, address, keys := servedForTest(t, nil)
	ctx, url := t.Context(), "http://"+address
	sdk, check := clientForTest(t, url, keys[identity.Admin])
	fleet := fleetForTest(t, sdk)
	root := filepath.Join(dir, "game")
	check(os.Mkdir(root, 0o755))
	self, err := os.Executable()
	check(err)
	check(os.WriteFile(filepath.Join(root, "server"), []byte("#!/bin/sh\necho server begins\nexec '"+self+"' arena-server \"$@\"\n"), 0o755))
	check(os.WriteFile(filepath.Join(root, "quiet"), []byte("#!/bin/sh\necho quiet begins\nwhile :; do\n  if mv go gone 2>/dev/null; then cat gone; fi\n  sleep 0.1\ndone\n"), 0o755))
	check(os.WriteFile(filepath.Join(root, "flood"), []byte("#!/bin/sh\nwhile :; do echo flood flood flood flood flood flood flood flood; done\n"), 0o755))
	file := filepath.Join(dir, "runtime.json")
	check(os.WriteFile(file, []byte(`{"ServerProcesses":[{"LaunchPath":"server","Parameters":"--port {port}","ConcurrentExecutions":1},
		{"LaunchPath":"quiet","ConcurrentExecutions":1},{"LaunchPath":"flood","ConcurrentExecutions":1}]}`), 0o600))
	t.Setenv(asMuster, "1") // for the game server
	stop, done := agentForTest(t, keys[identity.Admin], dir, "--server", url, "--fleet", fleet, "--root", root, "--runtime-config", file, "--ports", "23000-23999")
	defer stop()
	processes, pid := map[string]string{}, 0 // ids by launch path; of the server
	waittest.Until(t, "three processes", func() bool {
		var state struct {
			Processes []struct {
				ID         string `json:"id"`
				LaunchPath string `json:"launchPath"`
				Record     struct{ PID int }
			} `json:"processes"`
		}
		text, _ := os.ReadFile(filepath.Join(dir, "agent", "agent.json"))
		_ = json.Unmarshal(text, &state)
		for _, p := range state.Processes {
			processes[p.LaunchPath] = p.ID
			if p.LaunchPath == "server" {
				pid = p.Record.PID
			}
		}
		return len(processes) == 3 && pid > 0
	})
	var session *types.GameSession
	waittest.Until(t, "a game session", func() bool {
		out, err := sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{FleetId: &fleet, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2)})
		if err == nil {
			session = out.GameSession
		}
		return err == nil
	})

	env := envOf(keys[identity.ReadOnly])
	logs := func(args ...string) (string, error) {
		return runForTest(t, env, append([]string{"logs", "--server", url}, args...)...)
	}
	quiet := fleet + "/rack-1/" + processes["quiet"]
	waittest.Until(t, "what the server has written", func() bool {
		out, err := logs(processes["server"])
		check(err)
		return strings.HasPrefix(out, "server begins\n")
	})
	if out, err := logs(*session.GameSessionId); err != nil || !strings.HasPrefix(out, "server begins\n") {
		t.Errorf("by game session: %s, %v", out, err)
	}

	// A reader that takes nothing harms neither others nor the agent, and goes on where it was, or later, once it reads.
	slow := &gate{open: make(chan struct{})}
	follow := func(to io.Writer, args ...string) (end func() error) {
		reading, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- run(reading, append([]string{"logs", "--public-url", url, "-f"}, args...), env, to)
		}()
		return func() error { cancel(); return <-ended }
	}
	endSlow := follow(slow, fleet+"/rack-1/"+processes["flood"])
	seen := &watched{want: "quiet begins", seen: make(chan struct{})}
	first := seen.seen
	endQuiet := follow(seen, "--tail", "1", quiet)
	<-first
	next := make(chan struct{})
	seen.mu.Lock()
	seen.want, seen.seen = "three\n", next
	seen.mu.Unlock()
	check(os.WriteFile(filepath.Join(root, "new"), []byte("one\n\x1b[2Jtwo €\nthree\n"), 0o600))
	check(os.Rename(filepath.Join(root, "new"), filepath.Join(root, "go")))
	<-next
	check(endQuiet())
	if got := seen.text.String(); got != "quiet begins\none\n�[2Jtwo €\nthree\n" {
		t.Errorf("followed: %q", got)
	}
	if out, err := logs("--raw", "--tail", "2", quiet); err != nil || out != "\x1b[2Jtwo €\nthree\n" {
		t.Errorf("the last two lines: %q, %v", out, err)
	}
	close(slow.open)
	waittest.Until(t, "the flood goes on for its reader, with what is left out marked", func() bool { return slow.has("output was left out here") })
	check(endSlow())

	// Errors.
	for want, args := range map[string][]string{
		"process unknown not found":                  {"unknown"},
		"no output of this server process: no such":  {fleet + "/rack-1/unknown"},
		"want a number of lines":                     {"--tail=-1", quiet},
		"not found, and no compute":                  {fleet + "/rack-2/" + processes["quiet"]},
		"the output of this server process is no lo": {fleet + "/rack-1/01234567-89ab-cdef-0123-456789abcdef"},
	} {
		if out, err := logs(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %s, %v; want %q", args, out, err, want)
		}
	}
	if out, err := runForTest(t, envOf(keys[identity.Client]), "logs", "--server", url, quiet); err == nil || !strings.Contains(err.Error(), "may not") {
		t.Errorf("with a game client's key: %s, %v", out, err)
	}

	// After its end, the agent has the output of a process; without the agent, the service has the last of it.
	var ended watched
	ended.want, ended.seen = "server begins", make(chan struct{})
	first = ended.seen
	endServer := make(chan error, 1)
	go func() {
		endServer <- run(ctx, []string{"logs", "--server", url, "-f", processes["server"]}, env, &ended)
	}()
	<-first
	server, err := os.FindProcess(pid)
	check(err)
	check(server.Kill())
	check(<-endServer) // the end of the process ends the output
	if out, err := logs(fleet + "/rack-1/" + processes["server"]); err != nil || !strings.HasPrefix(out, "server begins\n") {
		t.Errorf("after its end: %s, %v", out, err)
	}
	waittest.Until(t, "the agent tells the end", func() bool {
		out, err := runForTest(t, env, "explain", "--public-url", url, "game-session", *session.GameSessionId)
		check(err)
		return strings.Contains(out, "PROCESS_EXITED")
	})
	stop()
	check(<-done)
	if out, err := logs(*session.GameSessionId); err != nil || !strings.HasPrefix(out, "server begins\n") {
		t.Errorf("without the agent: %s, %v", out, err)
	}
	if out, err := logs(quiet); err == nil {
		t.Errorf("without the agent, of a process that never called ProcessReady: %s", out)
	}
}

// interrupting is output whose first write interrupts the command.
type interrupting struct{ interrupt context.CancelFunc }

func (w interrupting) Write(b []byte) (int, error) {
	w.interrupt()
	return len(b), nil
}

// TestLogsInterrupted: an interrupt is the way to stop following; without --follow, the output is not complete, and the exit status says so.
func TestLogsInterrupted(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the first part\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer service.Close()
	for _, follow := range []bool{false, true} {
		args := []string{"logs", "--server", service.URL, "p1"}
		if follow {
			args = append(args, "-f")
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := run(ctx, args, []string{"AWS_ACCESS_KEY_ID=AKTEST", "AWS_SECRET_ACCESS_KEY=secret"}, interrupting{cancel})
		if (err == nil) != follow {
			t.Errorf("follow %t: %v", follow, err)
		}
	}
}
