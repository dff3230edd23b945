package link

import (
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

// A process without a free descriptor accepts again once it has one.
func TestDescriptorsRunOut(t *testing.T) {
	a := newAuthority(t, cluster)
	var log logtest.Log
	l, err := Open(Options{Listen: "127.0.0.1:0", Identity: newIdentity(t, a, "n1", 0), Node: echo, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Advertised()) // waits in the system until it is accepted
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	none := usual
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve() }()
	waittest.Until(t, "the log tells", func() bool { return strings.Contains(log.String(), "cannot accept") })
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello, I am no node")); err != nil {
		t.Error(err)
	}
	waittest.Until(t, "the connection is refused for what it says", func() bool { return l.refusals(byHandshake) == 1 })
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
