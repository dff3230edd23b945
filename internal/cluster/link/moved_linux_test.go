package link

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/cluster/trust"
)

// A node whose name still resolves to its former address is reached at the address from which it connected, and only there.
func TestNodeThatHasMoved(t *testing.T) {
	authority := newAuthority(t, cluster)
	a, b := newIdentity(t, authority, "a", 0), newIdentity(t, authority, "b", 0)
	leader := open(t, a, withEcho)
	moved := open(t, b, func(o *Options) {
		o.Listen = "127.0.0.2:0"
		withEcho(o)
	})
	_, port, err := net.SplitHostPort(moved.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	name := "localhost:" + port // leads to 127.0.0.1
	if _, err := leader.Dial(t.Context(), name, "b", Node); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("before the node has connected: %v", err)
	}

	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	tcp, err := dialer.DialContext(t.Context(), "tcp", leader.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	config := b.Client("a")
	config.NextProtos = []string{string(Node)}
	inbound := tls.Client(tcp, config)
	defer inbound.Close()
	if line, err := greeted(inbound); err != nil || line != "b" {
		t.Fatalf("the node connects: %q, %v", line, err)
	}

	c, err := leader.Dial(t.Context(), name, "b", Node)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := greeted(c); err != nil || line != "a" {
		t.Errorf("the node that has moved: %q, %v", line, err)
	}
	c.Close()
	for what, dial := range map[string]struct {
		address string
		node    trust.NodeID
	}{"another node": {name, "c"}, "any node": {name, ""}, "an address without a name": {"127.0.0.1:" + port, "b"}} {
		if _, err := leader.Dial(t.Context(), dial.address, dial.node, Node); !errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "has connected from") {
			t.Errorf("%s: %v", what, err)
		}
	}
	moved.Close()
	if _, err := leader.Dial(t.Context(), name, "b", Node); !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "has connected from") {
		t.Errorf("when the node is gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := leader.Dial(ctx, name, "b", Node); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
	leader.CloseNode("b")
	if _, err := leader.Dial(t.Context(), name, "b", Node); err == nil || strings.Contains(err.Error(), "has connected from") {
		t.Errorf("a node that was removed: %v", err)
	}
}

// A node that has moved and has connected only to the leader since is reached by a third node, too, which the leader tells.
func TestNodeThatHasMovedElsewhere(t *testing.T) {
	authority := newAuthority(t, cluster)
	third := open(t, newIdentity(t, authority, "a", 0), withEcho)
	moved := open(t, newIdentity(t, authority, "b", 0), func(o *Options) {
		o.Listen = "127.0.0.2:0"
		withEcho(o)
	})
	_, port, err := net.SplitHostPort(moved.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	name := "localhost:" + port // leads to 127.0.0.1
	reached := func() error {
		c, err := third.Dial(t.Context(), name, "b", Node)
		if err == nil {
			c.Close()
		}
		return err
	}
	before, now := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	third.Learn(map[trust.NodeID]netip.Addr{"b": before})
	if err := reached(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("at its address before: %v", err)
	}
	third.Learn(map[trust.NodeID]netip.Addr{"b": now})
	if err := reached(); err != nil {
		t.Errorf("at its address now: %v", err)
	}

	// The node has connected since: what the leader repeats is older.
	third.Learn(map[trust.NodeID]netip.Addr{"b": before})
	third.mu.Lock()
	third.from["b"] = now
	third.mu.Unlock()
	third.Learn(map[trust.NodeID]netip.Addr{"b": before})
	if err := reached(); err != nil {
		t.Errorf("after the leader has repeated the old address: %v", err)
	}
	if got := third.From()["b"]; got != now {
		t.Errorf("this node tells others %v, want %v", got, now)
	}
	third.CloseNode("b")
	third.Learn(map[trust.NodeID]netip.Addr{"b": before})
	if got := third.From()["b"]; got.IsValid() {
		t.Errorf("a node that was removed is at %v", got)
	}
}
