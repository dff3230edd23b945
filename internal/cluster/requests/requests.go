// Package requests carries HTTP between the nodes of a cluster: bulk data that one node needs from another, and client requests that another node
// must answer. Its connections are separate from those of package exchange, so that a gigabyte of files does not delay commands.
//
// Package link provides connections whose peers have proved that they belong to the cluster, and drops those of silent nodes, so requests have no
// time limit here. Handlers bound the size of requests, and connectionsMax the number of connections to a node.
package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/tracing"
)

// Bounds.
const (
	connectionsMax = 32               // per node, separately for questions and forwarded requests; further requests wait
	idleMax        = 4                // idle connections kept per node
	idleFor        = time.Minute      // how long those are kept
	headWait       = 10 * time.Second // time for the head of a request
	headBytes      = 128 << 10
)

// Member is a node of the cluster.
type Member struct {
	ID, Address string
	Votes       bool
}

// Config configures a Net.
type Config struct {
	Self    string          // id of this node
	Members func() []Member // all members of the cluster, including this node; empty: not known yet
	Dial    func(ctx context.Context, address, node string) (net.Conn, error)
	Log     *slog.Logger
}

// Net sends requests to the other nodes and serves theirs. All methods may be called concurrently.
type Net struct {
	config    Config
	questions *http.Transport
	forwards  *http.Transport // separate, so that clients who read slowly do not delay the nodes' questions
	server    *http.Server
	accepted  accepted
	handlers  atomic.Pointer[handlers]
	serving   sync.WaitGroup
}

type handlers struct{ questions, forwarded http.Handler }

// New returns a Net. It starts to answer other nodes with Handle.
func New(c Config) *Net {
	n := &Net{config: c, accepted: accepted{conns: make(chan net.Conn), closed: make(chan struct{})}}
	n.questions, n.forwards = n.transport(), n.transport()
	n.server = &http.Server{
		Handler: http.HandlerFunc(n.serve), ReadHeaderTimeout: headWait, IdleTimeout: 2 * idleFor, MaxHeaderBytes: headBytes,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	n.serving.Go(func() { _ = n.server.Serve(&n.accepted) }) // it ends with Close
	return n
}

func (n *Net) transport() *http.Transport {
	return &http.Transport{
		DialContext: n.dial, DisableCompression: true, MaxConnsPerHost: connectionsMax, MaxIdleConnsPerHost: idleMax, IdleConnTimeout: idleFor,
		ExpectContinueTimeout: time.Second,
	}
}

// Handle sets the handlers for other nodes' questions, and for the client requests that they forward.
func (n *Net) Handle(questions, forwarded http.Handler) {
	n.handlers.Store(&handlers{questions, forwarded})
}

// Serve serves a connection of another node until it ends.
func (n *Net) Serve(ctx context.Context, conn net.Conn, _ trust.NodeID) {
	select {
	case n.accepted.conns <- conn:
		<-ctx.Done()
	case <-ctx.Done():
	case <-n.accepted.closed:
	}
}

// Close closes all connections in both directions.
func (n *Net) Close() {
	_ = n.server.Close() // it closes connections only
	n.serving.Wait()
	n.questions.CloseIdleConnections()
	n.forwards.CloseIdleConnections()
}

// Self returns the id of this node.
func (n *Net) Self() string { return n.config.Self }

// Members returns the members of the cluster.
func (n *Net) Members() []Member { return n.config.Members() }

// Others returns the ids of the other members.
func (n *Net) Others() (ids []string) {
	for _, m := range n.config.Members() {
		if m.ID != n.config.Self {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// URL returns the URL of a path at a node, for a request that Do sends.
func URL(node, path string) string { return "http://" + node + path }

// Do sends a request to the node in its URL, with the trace of the request's context.
func (n *Net) Do(r *http.Request) (*http.Response, error) {
	tracing.Inject(r.Context(), r.Header)
	return n.questions.RoundTrip(r)
}

var errNoMember = errors.New("it is not a node of the cluster")

func (n *Net) dial(ctx context.Context, _, address string) (net.Conn, error) {
	node, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	members := n.config.Members()
	at := slices.IndexFunc(members, func(m Member) bool { return m.ID == node && node != n.config.Self })
	if at < 0 {
		return nil, fmt.Errorf("node %s: %w", node, errNoMember)
	}
	return n.config.Dial(ctx, members[at].Address, node)
}

func (n *Net) serve(w http.ResponseWriter, r *http.Request) {
	h := n.handlers.Load()
	switch {
	case h == nil:
		http.Error(w, "the node is still starting", http.StatusServiceUnavailable)
	case r.Header.Get(forwardedBy) != "":
		n.serveForwarded(h.forwarded, w, r)
	default:
		h.questions.ServeHTTP(w, r)
	}
}

// accepted is a listener for connections that package link has accepted.
type accepted struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (a *accepted) Accept() (net.Conn, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

func (a *accepted) Close() error {
	a.once.Do(func() { close(a.closed) })
	return nil
}

func (a *accepted) Addr() net.Addr { return &net.TCPAddr{} }
