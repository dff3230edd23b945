// Package listen is the one port of the service: HTTP, WebSocket and their TLS forms on a single address.
//
// A newcomer should need only one address. C++ and Unreal game servers use TLS even if their URL says ws://, others use plain HTTP, so the first
// byte of each connection decides.
package listen

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/rate"
)

const (
	// firstByteWait is the longest silence of a new connection. Load balancers and browsers open connections before they use them, so it is
	// generous; each waiting connection costs one small goroutine.
	firstByteWait = 10 * time.Second

	// headerWait bounds, separately, a TLS client's hello, the rest of the TLS handshake from its turn on, and the request header.
	headerWait = 10 * time.Second

	// requestWait bounds a request from its first byte to the end of its body, and answerWait from the end of its header until the client has
	// read the answer. Doors with large bodies or long answers set their own deadlines. Otherwise a stranger that sends or reads a byte a
	// minute would occupy memory forever. The largest body of 8 MiB needs no more than 140 KiB per second. Neither applies to a WebSocket.
	requestWait = 60 * time.Second
	answerWait  = 60 * time.Second

	// idleWait is longer than the 60 s and 90 s after which the SDKs' HTTP clients drop idle connections themselves, so that they rarely write to
	// a connection that the service is just closing.
	idleWait = 120 * time.Second

	// unprovenWait is the longest life of a connection without a credential, from its first byte to the end of the first accepted request. A
	// large request over a slow network may need all of requestWait.
	unprovenWait = requestWait

	// unprovenIdle bounds the time between two requests of such a connection, and the life of a WebSocket that was opened only to send the reason
	// of its refusal.
	unprovenIdle = 10 * time.Second

	headerBytesMax = 64 << 10

	// drainLook is the time between two looks at what Drain waits for.
	drainLook = 5 * time.Millisecond
)

// Config has the address, the handler and the limits of a Server.
type Config struct {
	Addr    string
	Handler http.Handler

	// Certificate is called in each TLS handshake. If it is nil, TLS connections are refused.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	// Challenges allows the protocol by which an ACME authority validates the host; Certificate returns the answer. RFC 8737.
	Challenges bool

	// Clients returns the authorities for client certificates; it is called in each TLS handshake. A certificate from another authority fails the
	// handshake; a client without a certificate is accepted. Nil: the service requests no certificates.
	Clients func() *x509.CertPool

	// ReleaseBuffers releases the TLS buffers of idle WebSockets: see handshake.go.
	ReleaseBuffers bool

	// Limits counts the connections of this port, together with those of others. Nil: no limits.
	Limits *connlimit.Limiter

	Panics *panics.Guard
	Log    *slog.Logger
}

// panicDoor is the label of panics outside of a handler.
const panicDoor = "listen"

// Server is a bound port. Open binds it, Serve serves it, Drain prepares its end, Stop ends it.
type Server struct {
	tcp    *net.TCPListener
	http   *http.Server
	tls    *tls.Config
	limits *connlimit.Limiter
	log    *slog.Logger

	releaseBuffers bool
	panics         *panics.Guard

	ready   chan net.Conn // identified as plain or TLS; net/http accepts them from here
	closing chan struct{} // closed when the port accepts no more connections
	closed  chan struct{} // closed when it passes no more of them to net/http
	turns   turns         // of TLS handshakes
	stop    sync.Once
	stopped sync.Once
	sniffs  sync.WaitGroup
	stats   counters

	draining atomic.Bool  // each answer is the last of its connection
	idle     atomic.Int64 // connections that have been answered and may send another request
	sniffing atomic.Int64 // connections that net/http does not know yet

	noCertificate *rate.Lines // about refused TLS clients

	mu       sync.Mutex
	waiting  map[*conn]struct{} // have not sent their first byte yet
	upgraded map[*conn]struct{} // taken over by a WebSocket door; net/http no longer tracks them
	dropping bool               // Stop is dropping the WebSockets: no new ones
}

// Stats counts connections since the start; Waiting and Upgraded are current numbers.
type Stats struct {
	Plain, TLS, Silent, TurnedAway uint64
	Waiting, Upgraded              int
}

type counters struct{ plain, tls, silent, turnedAway atomic.Uint64 }

// Open binds the address. From then on the port accepts connections; requests are answered once Serve runs.
func Open(cfg Config) (*Server, error) {
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", cfg.Addr, err)
	}
	s := &Server{
		noCertificate:  newWarnings(),
		tcp:            l.(*net.TCPListener),
		limits:         cfg.Limits,
		log:            cfg.Log,
		panics:         cfg.Panics,
		releaseBuffers: cfg.ReleaseBuffers,
		ready:          make(chan net.Conn),
		closing:        make(chan struct{}),
		closed:         make(chan struct{}),
		turns:          newTurns(),
		waiting:        map[*conn]struct{}{},
		upgraded:       map[*conn]struct{}{},
	}
	s.log = cmp.Or(s.log, slog.Default())
	if cfg.Certificate != nil {
		// No NextProtos: the game server SDKs do not offer ALPN, and they know no WebSocket upgrade for HTTP/2.
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cfg.Certificate}
		if cfg.Clients != nil {
			s.tls = askClients(s.tls, cfg.Clients)
		}
		if cfg.Challenges {
			s.tls = answerChallenges(s.tls)
		}
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	s.http = &http.Server{
		Handler:           ending{cfg.Handler, &s.draining},
		ConnContext:       connContext,
		Protocols:         &protocols,
		ReadHeaderTimeout: headerWait,
		ReadTimeout:       requestWait,
		WriteTimeout:      answerWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    headerBytesMax,
		ConnState:         s.connState,
		ErrorLog:          newErrorLog(s.log, s.panics),
	}
	return s, nil
}

// challengeProtocol is the only protocol that an ACME authority offers. RFC 8737, 3.
const challengeProtocol = "acme-tls/1"

// answerChallenges accepts the challenge protocol from clients that offer it. If it were offered to all clients, the handshake of clients that
// offer only other protocols would fail. net/http closes the connection after the handshake.
func answerChallenges(base *tls.Config) *tls.Config {
	challenge, answering := base.Clone(), base.Clone()
	challenge.NextProtos, challenge.GetConfigForClient = []string{challengeProtocol}, nil
	answering.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Equal(hello.SupportedProtos, challenge.NextProtos) {
			return challenge, nil
		}
		if base.GetConfigForClient != nil {
			return base.GetConfigForClient(hello)
		}
		return nil, nil
	}
	return answering
}

// Addr returns the bound address, with the actual port if port 0 was configured.
func (s *Server) Addr() net.Addr { return s.tcp.Addr() }

// Serve answers until Stop. It returns nil after Stop, or the reason why the port is lost.
func (s *Server) Serve() error {
	lost := make(chan error, 1)
	go func() { lost <- s.acceptAll() }()
	err := s.http.Serve(funnel{s})
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		err = nil // Stop, or the reason below
	}
	s.close()
	if acceptErr := <-lost; acceptErr != nil {
		return fmt.Errorf("accept on %s: %w", s.Addr(), acceptErr)
	}
	return err
}

// Drain closes the port to new connections, which clients can then safely open to another node, and announces the end of each HTTP connection with its
// next answer. It returns once no client could send a request to a connection that Stop is about to close, or ctx ends. Without it, Stop closes idle
// connections at once, and loses the requests that are on their way to it. Many clients repeat such a request only if it cannot have been carried out.
func (s *Server) Drain(ctx context.Context) {
	s.draining.Store(true)
	s.stopAccepting()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for s.idle.Load() > 0 || s.sniffing.Load() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// Stop closes the port, lets HTTP requests finish until ctx ends, and then drops every WebSocket at TCP level.
//
// It sends no close frame: for C++ and old Go game servers, the normal codes 1000 and 1001 mean "never reconnect", while every SDK reconnects
// after a lost connection. WebSockets are dropped last, so that the immediate first attempt to reconnect comes as close to the next start as
// possible.
func (s *Server) Stop(ctx context.Context) error {
	s.close()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("HTTP requests still running were cut off: %w", err)
		_ = s.http.Close() // reports the listener's close error only
	}
	s.mu.Lock()
	s.dropping = true
	dropped := make([]*conn, 0, len(s.upgraded))
	for c := range s.upgraded {
		dropped = append(dropped, c)
	}
	s.mu.Unlock()
	for _, c := range dropped {
		_ = c.Close() // it does not matter if its peer has closed it
	}
	s.sniffs.Wait()
	return err
}

// Stats reports the port's counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	waiting, upgraded := len(s.waiting), len(s.upgraded)
	s.mu.Unlock()
	return Stats{
		Plain: s.stats.plain.Load(), TLS: s.stats.tls.Load(),
		Silent: s.stats.silent.Load(), TurnedAway: s.stats.turnedAway.Load(),
		Waiting: waiting, Upgraded: upgraded,
	}
}

func (s *Server) stopAccepting() {
	s.stop.Do(func() {
		close(s.closing)
		_ = s.tcp.Close() // a failure does not matter: the process is about to end
	})
}

// close stops accepting and closes the connections that net/http does not know yet.
func (s *Server) close() {
	s.stopAccepting()
	s.stopped.Do(func() {
		close(s.closed)
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.waiting {
			_ = c.TCPConn.Close() // wakes its goroutine, which removes it from the set
		}
	})
}

// connOf returns the accepted connection below a connection of net/http.
func connOf(nc net.Conn) *conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	return nc.(*conn)
}

type connKey struct{}

// connContext allows handlers to record that a connection has presented a credential, see connlimit.Prove.
func connContext(ctx context.Context, nc net.Conn) context.Context {
	c := connOf(nc)
	ctx = context.WithValue(ctx, connKey{}, c)
	if c.counted != nil {
		ctx = connlimit.With(ctx, c.counted)
	}
	return ctx
}

// ending announces the end of all connections while the port drains, and of those that have been open for long without a credential, so that their
// clients do not send the next request to a connection that is being closed.
type ending struct {
	http.Handler
	draining *atomic.Bool
}

func (e ending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); e.draining.Load() || ok && c.agedUnproven() {
		w.Header().Set("Connection", "close")
	}
	e.Handler.ServeHTTP(w, r)
}

// connState tracks the state of connections, and which ones net/http has handed over. conn itself notices the close.
func (s *Server) connState(nc net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		connOf(nc).answered(false)
		return
	case http.StateIdle:
		connOf(nc).answered(true)
		return
	case http.StateHijacked:
	default:
		return
	}
	if t, ok := nc.(*tls.Conn); ok && s.releaseBuffers {
		forgetHandshake(t) // net/http has stopped its own read before it hands over the connection
		t.NetConn().(*conn).secured = t
	}
	c := connOf(nc)
	c.hijacked()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dropping:
		_ = c.TCPConn.Close() // too late; its handler's first read fails
	case !c.closed:
		s.upgraded[c] = struct{}{}
	}
}
