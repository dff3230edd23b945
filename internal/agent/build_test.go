package agent

import (
	"bytes"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/buildfiles"
)

// store serves builds as the service does.
type store struct {
	*httptest.Server
	mu      sync.Mutex
	content map[string][]byte // by digest
	asked   map[string]int    // answers with content, by digest
	ticket  string
	holds   bool // content that is no manifest waits for its client to go
	held    int
}

func newStore(t *testing.T) *store {
	o := &store{content: map[string][]byte{}, asked: map[string]int{}, ticket: "t"}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

func (o *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	o.mu.Lock()
	content, ok := o.content[name]
	allowed, hold := r.URL.Query().Get("ticket") == o.ticket, o.holds && strings.Contains(r.URL.Path, "/parts/") && o.held > 0
	if o.holds && strings.Contains(r.URL.Path, "/parts/") {
		o.held++
	}
	if allowed && ok && !hold {
		o.asked[name]++
	}
	o.mu.Unlock()
	switch {
	case !allowed:
		w.WriteHeader(http.StatusForbidden)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case hold:
		<-r.Context().Done()
	default:
		_, _ = w.Write(content) // the client may have gone
	}
}

func (o *store) set(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// build adds a build with this binary as the game, and some more content.
func (o *store) build(t *testing.T, more string) *agentproto.Build {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	m := &buildfiles.Manifest{}
	for path, content := range map[string][]byte{"game/server": binary, "more": []byte(more)} {
		f, err := buildfiles.Split(bytes.NewReader(content), 1<<40, func(d buildfiles.Digest, part []byte) error {
			o.content[d.String()] = bytes.Clone(part)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		f.Path, f.Executable = path, path == "game/server"
		m.Files = append(m.Files, f)
	}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	digest := buildfiles.DigestOf(text).String()
	o.content[digest] = text
	return &agentproto.Build{BuildID: "build-" + more, Digest: digest, URL: o.URL + "/builds/v1/" + digest + "?ticket=t"}
}

// TestBuildsAreFetched: processes start from the build that the service names, and keep using it when the service names another one. It is removed after they have ended.
func TestBuildsAreFetched(t *testing.T) {
	o := newStore(t)
	first, second := o.build(t, "1"), o.build(t, "2")
	s := newService(t, play(1, "wait"))
	s.conf.Build = first
	dir := s.run(func(c *Config) { c.Root = filepath.Join(c.Root, "none") })
	at := func(b *agentproto.Build) string { return filepath.Join(dir, "builds", "builds", b.Digest) }
	there := func(b *agentproto.Build) bool { _, err := os.Stat(at(b)); return err == nil }
	old := s.some(agentproto.ProcessStarting, 1)[0]
	s.push(&agentproto.NotifyGameSessionActivated{ProcessID: old.ProcessID, GameSessionID: "gs-1"})
	s.some(agentproto.ProcessRunning, 1)

	next := agentproto.RuntimeConfiguration{ServerProcesses: []agentproto.ServerProcess{play(2, "wait")}, Build: second}
	s.set(func() { s.conf = next })
	s.push(&agentproto.UpdateRuntimeConfiguration{RuntimeConfiguration: next})
	s.some(processRetiring, 1)
	s.some(agentproto.ProcessStarting, 1) // it has the room that the old one leaves
	if !there(first) || !there(second) {
		t.Error("a build from which a process runs is gone")
	}
	s.push(&agentproto.ForceExitServerProcess{ProcessID: old.ProcessID})
	s.some(agentproto.ProcessStarting, 2)
	s.eventually("the first build is removed", func() bool { return !there(first) })
	if !there(second) {
		t.Error("the build that is wanted is gone")
	}
}

// TestOwnAuthority: the link, builds and uploads of logs trust a configured authority that the system does not trust.
func TestOwnAuthority(t *testing.T) {
	o := newStore(t)
	overTLS := httptest.NewTLSServer(o)
	defer overTLS.Close()
	if _, err := link.Client(nil).Get(overTLS.URL); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Fatalf("without the authority: %v", err)
	}
	uploads := make(chan string, 1)
	logs := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uploads <- r.Method
		w.WriteHeader(http.StatusCreated)
	}))
	defer logs.Close()
	s := newService(t, play(1, "wait"))
	plain := s.server
	defer plain.Close()
	s.server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	s.conf.Build = o.build(t, "1")
	s.conf.Build.URL = strings.Replace(s.conf.Build.URL, o.URL, overTLS.URL, 1)
	s.uploadURL = logs.URL

	file := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := link.Trust(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("none"))
	if _, err := link.Trust(file); err == nil || !strings.Contains(err.Error(), "at least one certificate") {
		t.Errorf("a file without a certificate: %v", err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: overTLS.Certificate().Raw})
	write(append(bytes.Clone(authority), authority[:100]...))
	if _, err := link.Trust(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file with a damaged certificate: %v", err)
	}
	write(authority)
	trust, err := link.Trust(file)
	if err != nil {
		t.Fatal(err)
	}
	s.run(func(c *Config) { c.Trust = trust })
	id := s.some(agentproto.ProcessStarting, 1)[0].ProcessID
	s.push(&agentproto.NotifyGameSessionActivated{ProcessID: id, GameSessionID: "g"})
	s.some(agentproto.ProcessRunning, 1)
	s.push(&agentproto.ForceExitServerProcess{ProcessID: id})
	if method := <-uploads; method != http.MethodPut {
		t.Errorf("uploaded with %s", method)
	}
}

// TestBuildOfAnInterruptedAgent stops the agent in the middle of a fetch: the next one continues with the parts that are stored.
func TestBuildOfAnInterruptedAgent(t *testing.T) {
	o := newStore(t)
	b := o.build(t, "1")
	o.holds = true
	s := newService(t, play(1, "wait"))
	s.conf.Build = b
	dir := dirs(t)
	stop := s.runIn(dir, nil)
	s.eventually("a part and the wait for the next one", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.asked) >= 2 && o.held >= 2 })
	s.eventually("the heartbeat says that the build is on its way", func() bool {
		return s.beat != nil && len(s.beat.Launches) == 1 && s.beat.Launches[0].State == agentproto.LaunchFetching
	})
	stop()
	o.set(func() { o.holds = false })
	s.set(func() { s.beat = nil })
	s.runIn(dir, nil)
	s.some(agentproto.ProcessStarting, 1)
	o.set(func() {
		if o.asked[b.Digest] != 1 {
			t.Errorf("the manifest was fetched %d times", o.asked[b.Digest])
		}
	})
}

// TestURLThatExpired: the agent asks the service for another URL, and reports meanwhile why nothing runs.
func TestURLThatExpired(t *testing.T) {
	o := newStore(t)
	b := o.build(t, "1")
	o.ticket = "new"
	s := newService(t, play(1, "wait"))
	s.conf.Build = b
	s.run(nil)
	s.eventually("the reason", func() bool {
		return s.beat != nil && len(s.beat.Launches) == 1 && strings.Contains(s.beat.Launches[0].Reason, "build build-1 cannot be fetched") &&
			strings.Contains(s.beat.Launches[0].Reason, "expired")
	})
	s.set(func() {
		fresh := *b
		fresh.URL = strings.Replace(b.URL, "ticket=t", "ticket=new", 1)
		s.conf.Build = &fresh
	})
	s.some(agentproto.ProcessStarting, 1)
}

// TestPathsInBuilds: a launch path cannot leave the build.
func TestPathsInBuilds(t *testing.T) {
	o := newStore(t)
	s := newService(t, agentproto.ServerProcess{LaunchPath: "../../../root/game/server", ConcurrentExecutions: 1})
	s.conf.Build = o.build(t, "1")
	s.run(nil)
	if end := s.ended(""); end.TerminationReason != agentproto.InvalidPath {
		t.Errorf("%+v", end)
	}
}
