package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/rate"
)

// Protocol is the use of a connection, named by ALPN.
type Protocol string

// The protocols between nodes that have certificates.
const (
	Raft Protocol = "muster-raft/1"
	Node Protocol = "muster-node/1"
	HTTP Protocol = "muster-http/1"

	joining Protocol = "muster-join/1"
)

const (
	// handshakeWait bounds a handshake, and the time for Raft to take an accepted connection.
	handshakeWait = 5 * time.Second

	// joinWait is the life of a joining node's connection, from its acceptance to the end of the answer.
	joinWait = 10 * time.Second

	// handshakeBytes is how much a peer may send before its handshake is complete. A hello and a certificate need 3 KiB.
	handshakeBytes = 64 << 10
)

// ConnectionsMax is how many connections of other nodes a node accepts by default. Each node has a handful of connections to every other node.
const ConnectionsMax = 1024

// limitsOf returns the limits for a total number of accepted connections.
func limitsOf(total int) connlimit.Limits {
	l := connlimit.Limits{Total: total, Unproven: total / 4, PerAddress: total / 8, PerNetwork: total / 4}
	l.Doors[connlimit.HTTP] = l.Total
	return l
}

// Options configures a Link.
type Options struct {
	Listen    string           // address of the port
	Port      *net.TCPListener // a bound port to use instead of Listen; Close closes it. Nil: Open binds Listen
	Advertise string           // address for other nodes; empty: the address that Listen has bound, which must then not be that of all interfaces
	Identity  *trust.Identity

	// Node serves a connection from another node. The connection is closed when Node returns. ctx ends with the connection and with the link; Close
	// waits for Node. Nil: such connections are refused.
	Node func(ctx context.Context, conn net.Conn, peer trust.NodeID)

	// HTTP is Node for connections with the protocol HTTP. Nil: such connections are refused, as by a release that does not know the protocol.
	HTTP func(ctx context.Context, conn net.Conn, peer trust.NodeID)

	// Join answers the request of a joining node. The peer is not authenticated: the request must prove its right. ctx ends when the connection's
	// time is up. An error closes the connection without an answer. Nil: such connections are refused.
	Join func(ctx context.Context, from netip.Addr, request []byte) (answer []byte, err error)

	// NodeAt returns the node that Raft expects at an address. If that is unknown (empty), any node of the cluster is accepted. May be nil.
	NodeAt func(address string) trust.NodeID

	// Moved returns a node's current address if it differs from the one that Raft knows, else "". May be nil.
	Moved func(trust.NodeID) string

	// Removed reports whether a node has left the cluster permanently; it gets no connection. Nil: none has.
	Removed func(trust.NodeID) bool

	Connections int // most accepted connections, at least 64; 0: ConnectionsMax

	Panics *panics.Guard // nil: panics are not confined
	Log    *slog.Logger  // nil: nothing is logged

	limits                  connlimit.Limits // zero: limitsOf(Connections)
	handshakeWait, joinWait time.Duration    // 0: those above
}

// Link is the bound port and all connections to other nodes, in both directions. All methods may be called concurrently.
type Link struct {
	options Options
	log     *slog.Logger
	port    *net.TCPListener
	tls     *tls.Config
	limits  *connlimit.Limiter
	joins   joins
	refused [refusals]atomic.Uint64
	noted   rate.Lines // about refused peers

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // accepted connections that this package serves

	mu     sync.Mutex
	conns  map[*conn]struct{}
	stream *stream                     // nil: Raft does not run
	from   map[trust.NodeID]netip.Addr // addresses from which nodes last connected, to this node or to the one that told it
	told   map[trust.NodeID]netip.Addr // what Learn was last told
}

// Open binds the port. From here on connections are accepted; they are served once Serve runs.
func Open(o Options) (*Link, error) {
	l := &Link{options: o, log: o.Log, conns: map[*conn]struct{}{}, from: map[trust.NodeID]netip.Addr{}, noted: rate.Lines{Most: 5, Period: 10 * time.Second}}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.options.handshakeWait, l.options.joinWait = cmp.Or(o.handshakeWait, handshakeWait), cmp.Or(o.joinWait, joinWait)
	if o.limits == (connlimit.Limits{}) {
		o.limits = limitsOf(cmp.Or(o.Connections, ConnectionsMax))
	}
	l.limits = connlimit.New(connlimit.Config{Limits: o.limits, Log: l.log.With("port", "cluster")})
	l.tls = l.serverConfig()
	l.ctx, l.cancel = context.WithCancel(context.Background())
	var err error
	if l.port = o.Port; l.port == nil {
		l.port, err = Bind(o.Listen)
	}
	if err == nil {
		l.options.Advertise, err = Advertise(l.port, o.Advertise)
	}
	if err != nil {
		l.cancel()
		if l.port != nil {
			err = errors.Join(err, l.port.Close())
		}
		return nil, err
	}
	return l, nil
}

// Bind binds a port for Options.Port.
func Bind(address string) (*net.TCPListener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	port, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for other nodes on %q: %w", address, err)
	}
	return port.(*net.TCPListener), nil
}

// Advertise returns the address by which other nodes reach a port: advertise, or the bound address if that is empty.
func Advertise(port *net.TCPListener, advertise string) (string, error) {
	if port.Addr().(*net.TCPAddr).IP.IsUnspecified() && advertise == "" {
		return "", fmt.Errorf("listen for other nodes on %q: it is not an address at which other nodes can reach this one; set the address to advertise", port.Addr())
	}
	return cmp.Or(advertise, port.Addr().String()), nil
}

// Addr returns the bound address.
func (l *Link) Addr() net.Addr { return l.port.Addr() }

// Advertised returns the address by which other nodes reach this one.
func (l *Link) Advertised() string { return l.options.Advertise }

// Serve serves connections until Close. It returns nil after Close, otherwise the reason why the port is lost; established connections stay open.
func (l *Link) Serve() error {
	if err := listen.Accept(l.port, l.ctx.Done(), l.log.With("port", "cluster"), l.admit); err != nil {
		return fmt.Errorf("accept connections of other nodes on %s: %w", l.Addr(), err)
	}
	return nil
}

// Close closes the port and all connections, aborts dials in progress, and waits for the handlers.
func (l *Link) Close() error {
	l.cancel()
	err := l.port.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	l.drop(func(*conn) bool { return true })
	l.running.Wait()
	return err
}

// CloseNode closes all connections to a node. If the node has left the cluster, Options.Removed must already report it.
func (l *Link) CloseNode(id trust.NodeID) {
	l.mu.Lock()
	delete(l.from, id)
	l.mu.Unlock()
	l.drop(func(c *conn) bool { return c.node == id })
}

// From returns the addresses from which other nodes last connected.
func (l *Link) From() map[trust.NodeID]netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.from)
}

// Learn takes over what From returned at another node, for nodes that have moved and have not connected to this one since. Only what has changed since
// the last call counts, because a node may have connected to this one after it did to the other. The caller must not change told afterwards.
func (l *Link) Learn(told map[trust.NodeID]netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, at := range told {
		if l.told[node] != at {
			l.from[node] = at
		}
	}
	l.told = told
}

// CloseUntrusted closes all connections of nodes whose certificate the authority in force does not accept.
func (l *Link) CloseUntrusted() {
	l.drop(func(c *conn) bool { return c.node != "" && l.options.Identity.Trusts(c.ConnectionState()) != nil })
}

// drop closes the connections selected by which, without waiting for their peers.
func (l *Link) drop(which func(*conn) bool) {
	l.mu.Lock()
	var dropped []*conn
	for c := range l.conns {
		if which(c) {
			dropped = append(dropped, c)
		}
	}
	l.mu.Unlock()
	for _, c := range dropped {
		c.drop()
	}
}

// serverConfig decides by the offered protocol whether a peer needs a certificate.
func (l *Link) serverConfig() *tls.Config {
	nodes := l.options.Identity.Server()
	nodes.NextProtos = []string{string(Raft)}
	if l.options.Node != nil {
		nodes.NextProtos = append(nodes.NextProtos, string(Node))
	}
	if l.options.HTTP != nil {
		nodes.NextProtos = append(nodes.NextProtos, string(HTTP))
	}
	verify := nodes.VerifyConnection
	nodes.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol == "" {
			return errNoProtocol // the client does not use ALPN
		}
		return verify(s)
	}
	strangers := l.options.Identity.ServerForJoin()
	strangers.NextProtos = []string{string(joining)}
	return &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if l.options.Join != nil && slices.Equal(hello.SupportedProtos, strangers.NextProtos) {
			return strangers, nil
		}
		return nodes, nil
	}}
}

var errNoProtocol = errors.New("the peer names no protocol")
