// Package requests carries HTTP between the nodes of a cluster: what one node needs of another in bulk, and requests of clients that another node has to
// answer. It has connections of its own beside those of package exchange, so that a gigabyte of files does not hold up commands.
//
// Package link gives it connections whose peers have proved that they belong to the cluster, and drops those of silent nodes. So a request has no time limit
// here. What it carries is bounded by its handler, and the number of connections to a node by connectionsMax.
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
	connectionsMax = 32               // to one node, for questions and for forwarded requests each; further requests wait
	idleMax        = 4                // connections to one node that are kept without a request
	idleFor        = time.Minute      // how long they are kept
	headWait       = 10 * time.Second // for the head of a request
	headBytes      = 128 << 10
)

// Member is a node of the cluster.
type Member struct {
	ID, Address string
	Votes       bool
}

// Config is what a Net needs.
type Config struct {
	Self    string          // id of this node
	Members func() []Member // of the cluster, this node among them; empty: not known yet
	Dial    func(ctx context.Context, address, node string) (net.Conn, error)
	Log     *slog.Logger
}

// Net sends requests to the other nodes, and serves theirs. All methods may be called at the same time.
type Net struct {
	config    Config
	questions *http.Transport
	forwards  *http.Transport // of its own: clients who read slowly must not hold up the questions of nodes
	server    *http.Server
	accepted  accepted
	handlers  atomic.Pointer[handlers]
	serving   sync.WaitGroup
}

type handlers struct{ questions, forwarded http.Handler }

// New makes a Net. It answers other nodes from Handle on.
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

// Handle sets what answers the questions of other nodes, and the requests of clients that they forward.
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

// Close ends all connections in both directions.
func (n *Net) Close() {
	_ = n.server.Close() // it closes connections only
	n.serving.Wait()
	n.questions.CloseIdleConnections()
	n.forwards.CloseIdleConnections()
}

// Self is the id of this node.
func (n *Net) Self() string { return n.config.Self }

// Members are those of the cluster.
func (n *Net) Members() []Member { return n.config.Members() }

// Others are the ids of the other members.
func (n *Net) Others() (ids []string) {
	for _, m := range n.config.Members() {
		if m.ID != n.config.Self {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// URL is that of a path at a node, for a request that Do sends.
func URL(node, path string) string { return "http://" + node + path }

// Do sends a request to the node of its URL, with the trace that the request's context belongs to.
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
		http.Error(w, "the node has only begun", http.StatusServiceUnavailable)
	case r.Header.Get(forwardedBy) != "":
		n.serveForwarded(h.forwarded, w, r)
	default:
		h.questions.ServeHTTP(w, r)
	}
}

// accepted is a listener of connections that package link has accepted.
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
