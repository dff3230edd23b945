//go:build unix

package sdnotify

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// systemd receives the messages to a service manager.
type systemd struct {
	t    *testing.T
	conn *net.UnixConn
}

func listenAt(t *testing.T, name string) *systemd {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &systemd{t, conn}
}

// next returns the next datagram.
func (s *systemd) next() string {
	s.t.Helper()
	buffer := make([]byte, 4096)
	_ = s.conn.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := s.conn.Read(buffer)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(buffer[:n])
}

func connect(t *testing.T, variables map[string]string) *Manager {
	t.Helper()
	m, err := Connect(func(name string) string { return variables[name] }, 7, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestStates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	at := listenAt(t, path)
	m := connect(t, map[string]string{"NOTIFY_SOCKET": path})
	m.Ready("serves")
	m.Reloading("begins again\nMAINPID=1")
	m.Stopping()
	for _, want := range []string{"READY=1\nSTATUS=serves", "RELOADING=1\nSTATUS=begins again MAINPID=1", "STOPPING=1\nSTATUS=stopping"} {
		if got := instant.ReplaceAllString(at.next(), ""); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// instant is when a reload began, of which Linux tells the time.
var instant = regexp.MustCompile(`MONOTONIC_USEC=[0-9]+\n`)

func TestNoManager(t *testing.T) {
	m := connect(t, nil)
	m.Ready("serves")
	m.Watch(t.Context(), nil) // returns at once
	m.Stopping()
	for _, variables := range []map[string]string{
		{"NOTIFY_SOCKET": "relative"}, {"NOTIFY_SOCKET": "/not/there"}, {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "-1"},
		{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "9223372036854775807"},
	} {
		if m, err := Connect(func(name string) string { return variables[name] }, 7, nil); err == nil {
			t.Errorf("%v: got %v, want an error", variables, m)
		}
	}
}

func TestWatchdogOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	listenAt(t, path)
	for pid, want := range map[string]time.Duration{"7": time.Second, "8": 0, "": time.Second} {
		if m := connect(t, map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": pid}); m.watchdog != want {
			t.Errorf("for process %q: %v, want %v", pid, m.watchdog, want)
		}
	}
}

// TestWatch: the watchdog is notified while the program works, even if its check is slow, and not while it fails or hangs.
func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	at := listenAt(t, path)
	m := connect(t, map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "40000"})
	ctx, stop := context.WithCancel(t.Context())
	answers := make(chan error)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Watch(ctx, func(context.Context) (string, error) { return "serves", <-answers })
	}()
	answers <- nil
	for at.next() != "WATCHDOG=1\nSTATUS=serves" { // before that, it may have been late
	}
	answers <- errors.New("the disk is broken")
	for got := ""; got != "STATUS=does not work: the disk is broken"; {
		if got = at.next(); strings.HasPrefix(got, "WATCHDOG") {
			t.Fatalf("fed after a failure: %q", got)
		}
	}
	if got := at.next(); got != "STATUS=does not work: it does not answer" { // the next call hangs
		t.Errorf("while the program hangs: %q", got)
	}
	answers <- nil
	got := at.next()
	for !strings.HasPrefix(got, "WATCHDOG=1") {
		got = at.next()
	}
	if got != "WATCHDOG=1\nSTATUS=serves" { // otherwise systemctl status would show the failure for good
		t.Errorf("when it works again: %q", got)
	}
	stop()
	<-ended
}

func TestAbstractSocket(t *testing.T) {
	at := listenAt(t, "@muster-sdnotify-"+strings.ReplaceAll(t.TempDir(), "/", "-"))
	m := connect(t, map[string]string{"NOTIFY_SOCKET": at.conn.LocalAddr().String()})
	m.Ready("")
	if got := at.next(); got != "READY=1" {
		t.Errorf("got %q", got)
	}
}
