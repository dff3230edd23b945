package link

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/cluster/trust"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

const (
	// raftTimeout bounds each exchange of Raft, and thus how long a connection stays in use after a network failure from which TCP has not recovered.
	// Votes and entries are answered after a sync of the peer's disk; a snapshot has this long for each 256 KiB.
	raftTimeout = 3 * time.Second

	// raftInFlight disables the pipelining of entries. The library's pipeline hangs if a follower refuses an entry or a connection ends while the
	// next entry is being sent: heartbeats continue, but the follower gets no more entries, and the leader cannot be shut down. (Seen with v1.8.0;
	// the same in hashicorp/raft#612 and grafana/pyroscope#5518.) Only one append is in flight in any case.
	raftInFlight = 1

	// raftPool is how many idle connections to each node are kept, because heartbeats, entries and votes are sent concurrently.
	raftPool = 3
)

var errTransportOpen = errors.New("the transport of Raft is open already")

// Transport returns Raft's transport over this link; only one may exist at a time. Its Close closes Raft's connections, not the link.
func (l *Link) Transport() (raft.Transport, error) {
	s := &stream{link: l, accepted: make(chan *conn)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream != nil {
		s.cancel()
		return nil, errTransportOpen
	}
	l.stream = s
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxPool: raftPool, Timeout: raftTimeout, MaxRPCsInFlight: raftInFlight, MsgpackUseNewTimeFormat: true, Logger: journalraft.Logger(l.log),
	}), nil
}

// stream is a raft.StreamLayer.
type stream struct {
	link     *Link
	accepted chan *conn
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
}

// take passes an accepted connection to Raft, and reports whether Raft has taken it. A nil stream takes none.
func (s *stream) take(c *conn) bool {
	if s == nil {
		return false
	}
	late := time.NewTimer(s.link.options.handshakeWait)
	defer late.Stop()
	select {
	case s.accepted <- c:
		return s.ctx.Err() == nil // Close may have missed it
	case <-s.ctx.Done():
	case <-c.ctx.Done():
	case <-late.C:
	}
	return false
}

// Accept returns the next Raft connection from another node. It does not fail when the link ends, because Raft would retry continuously.
func (s *stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.accepted:
		return c, nil
	case <-s.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Dial connects to the node at an address.
func (s *stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	var node trust.NodeID
	at := string(address)
	if s.link.options.NodeAt != nil {
		node = s.link.options.NodeAt(at)
	}
	if s.link.options.Moved != nil && node != "" {
		at = cmp.Or(s.link.options.Moved(node), at)
	}
	c, err := s.link.dial(ctx, at, node, Raft, s)
	if err != nil {
		return nil, err
	}
	if s.ctx.Err() != nil { // Close may have missed it
		c.drop()
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close closes Raft's connections, of which Raft's own transport leaves some open.
func (s *stream) Close() error {
	s.cancel()
	s.link.mu.Lock()
	if s.link.stream == s {
		s.link.stream = nil
	}
	s.link.mu.Unlock()
	s.link.drop(func(c *conn) bool { return c.stream == s })
	return nil
}

// Addr returns the address by which other nodes reach this one.
func (s *stream) Addr() net.Addr { return advertised(s.link.options.Advertise) }

type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }
