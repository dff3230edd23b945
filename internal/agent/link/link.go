// Package link maintains the connection between an agent and the service: it reconnects until it succeeds, matches answers to requests, and delivers
// the service's pushes.
package link

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/hostproof"
)

// Time limits of a connection.
const (
	dialTime   = 20 * time.Second
	writeTime  = 10 * time.Second
	answerTime = 30 * time.Second
	pingEvery  = 15 * time.Second
	silenceMax = 45 * time.Second // without any frame, including pongs, for this long the connection is dead

	retryFirst   = time.Second
	retryLongest = 30 * time.Second
	retrySpread  = 0.25

	// overlap is how long the old connection stays open after a refresh for messages in flight.
	overlap = time.Minute
)

// Target is where the agent connects, and as which compute.
type Target struct {
	Endpoint string     // ws:// or wss://, with the path; parameters in it are kept
	Query    url.Values // FleetId, ComputeName, Authorization
	Header   http.Header
}

func (t Target) url() (string, error) {
	u, err := url.Parse(t.Endpoint)
	if err != nil {
		return "", err
	}
	query := u.Query()
	maps.Copy(query, t.Query)
	query.Set("AgentKind", "native")
	query.Set("AgentProto", "1")
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Config configures a Link.
type Config struct {
	// Target is called before each connection, so that it can fetch a new token.
	Target func(ctx context.Context) (Target, error)
	Hello  func() *agentproto.AgentHello
	// Connected is called when the service has answered AgentHello, Lost when that connection is lost, and Push for each push. They must not block.
	Connected func(agentproto.HelloAnswer)
	Lost      func()
	Push      func(agentproto.Push)
	// Revoked is called when the service refuses a connection because it has revoked this host. The link keeps trying.
	Revoked func()

	Trust  *x509.CertPool // authorities of the service's certificate; nil: those of the system
	Log    *slog.Logger
	Chance func() float64 // in [0, 1)
}

// Link is the agent's end of the connection.
type Link struct {
	config Config
	opened bool // a connection was opened before; only Run uses it

	mu      sync.Mutex
	current *connection // nil: not connected, or no hello yet
}

// New returns a link; Run connects it.
func New(config Config) *Link { return &Link{config: config} }

// ErrNotConnected is the error if there is no connection, or if it broke before the answer.
var ErrNotConnected = errors.New("not connected to the service")

// StatusError is the service's answer with a status other than 200.
type StatusError struct {
	Action string
	Status int
	Text   string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: the service answers %d: %s", e.Action, e.Status, e.Text)
}

// Final reports whether the same request would be refused again.
func (e *StatusError) Final() bool { return e.Status == 400 || e.Status == 401 || e.Status == 404 }

// Call sends a request and reads its answer. answer may be nil.
func (l *Link) Call(ctx context.Context, r agentproto.Request, answer agentproto.Answer) error {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	if c == nil {
		return ErrNotConnected
	}
	return c.call(ctx, r, answer)
}

// Run connects, and reconnects whenever the connection is lost, until the context ends.
func (l *Link) Run(ctx context.Context) {
	wait := time.Duration(0)
	for {
		began := time.Now()
		err := l.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errRevoked) {
			l.config.Revoked()
		}
		if lived := time.Since(began); lived > retryLongest {
			wait = 0
		}
		if wait == 0 { // spread over a second, since all hosts may have lost the service at the same moment
			wait = time.Duration(float64(retryFirst) * l.config.Chance())
		} else {
			wait = min(2*max(wait, retryFirst), retryLongest)
		}
		pause := time.Duration(float64(wait) * (1 + retrySpread*(2*l.config.Chance()-1)))
		what := "connection to the service is lost: the agent reconnects, and its server processes keep running"
		switch {
		case errors.Is(err, errRevoked):
			what = "the service has revoked this host: the agent ends its server processes, and tries again"
		case !l.opened:
			what = "the agent is not connected to the service yet, and tries again"
		}
		l.config.Log.Warn(what, "error", err, "pause", pause.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// session connects and returns when the connection, or the one that replaced it in a refresh, is lost.
func (l *Link) session(ctx context.Context) error {
	target, err := l.config.Target(ctx)
	if err != nil {
		return err
	}
	c, err := l.open(ctx, target)
	if err != nil {
		return err
	}
	l.opened = true
	for {
		select {
		case <-ctx.Done():
			l.lose(c)
			c.close("agent stops")
			return ctx.Err()
		case <-c.gone:
			l.lose(c)
			return c.err
		case refresh := <-c.refresh:
			next, err := l.open(ctx, target.refreshed(refresh))
			if err != nil {
				l.config.Log.Warn("the new connection that the service asked for failed: the agent keeps the old one", "error", err)
				continue
			}
			old := c
			time.AfterFunc(overlap, func() { old.close("replaced") })
			c = next
		}
	}
}

func (t Target) refreshed(r *agentproto.RefreshConnection) Target {
	query := url.Values{}
	maps.Copy(query, t.Query)
	query.Set("Authorization", r.AuthToken)
	return Target{Endpoint: r.RefreshConnectionEndpoint, Query: query, Header: t.Header}
}

// open connects and sends AgentHello. From then on, the connection is the current one.
func (l *Link) open(ctx context.Context, target Target) (*connection, error) {
	address, err := target.url()
	if err != nil {
		return nil, err
	}
	dialer := websocket.Dialer{HandshakeTimeout: dialTime, Proxy: http.ProxyFromEnvironment, TLSClientConfig: TLS(l.config.Trust)}
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	socket, answer, err := dialer.DialContext(dialing, address, target.Header)
	if err != nil {
		return nil, refused(target.Endpoint, answer, err)
	}
	c := &connection{socket: socket, link: l, calls: map[string]chan agentproto.Received{}, gone: make(chan struct{}), refresh: make(chan *agentproto.RefreshConnection, 1)}
	go c.read()
	go c.ping()
	var hello agentproto.HelloAnswer
	if err := c.call(ctx, l.config.Hello(), &hello); err != nil {
		c.close("no answer to hello")
		return nil, err
	}
	l.mu.Lock()
	l.current = c
	l.mu.Unlock()
	c.greet(hello)
	return c, nil
}

// greet calls Connected and then delivers the pushes that arrived after the answer to hello, because they may contain something newer.
func (c *connection) greet(hello agentproto.HelloAnswer) {
	c.link.config.Connected(hello)
	c.pushing.Lock()
	defer c.pushing.Unlock()
	for _, p := range c.early {
		c.link.config.Push(p)
	}
	c.greeted, c.early = true, nil
}

// push delivers a push, or queues it until Connected has returned.
func (c *connection) push(p agentproto.Push) {
	c.pushing.Lock()
	defer c.pushing.Unlock()
	if c.greeted {
		c.link.config.Push(p)
	} else {
		c.early = append(c.early, p)
	}
}

// errRevoked is the error for a host that the service has revoked.
var errRevoked = errors.New("this host was revoked")

// refused returns the error of a failed handshake. It leaves out the address, whose parameters contain the token.
func refused(endpoint string, answer *http.Response, err error) error {
	if answer == nil {
		return fmt.Errorf("connect to %s: %w", endpoint, err)
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
	if answer.StatusCode == hostproof.StatusRevoked {
		return fmt.Errorf("connect to %s: %w: %s", endpoint, errRevoked, strings.TrimSpace(string(text)))
	}
	return fmt.Errorf("connect to %s: HTTP %d: %s", endpoint, answer.StatusCode, strings.TrimSpace(string(text)))
}

func (l *Link) lose(c *connection) {
	l.mu.Lock()
	was := l.current == c
	if was {
		l.current = nil
	}
	l.mu.Unlock()
	if was {
		l.config.Lost()
	}
}

// connection is one WebSocket.
type connection struct {
	socket  *websocket.Conn
	link    *Link
	gone    chan struct{}
	err     error // why it is gone; read after gone
	refresh chan *agentproto.RefreshConnection

	writing sync.Mutex // of frames

	mu    sync.Mutex
	calls map[string]chan agentproto.Received // by RequestId; nil: gone

	pushing sync.Mutex // held while pushes are delivered, so that they stay in order
	greeted bool       // Connected has returned
	early   []agentproto.Push
}

func (c *connection) call(ctx context.Context, r agentproto.Request, answer agentproto.Answer) error {
	id := uuid.NewString()
	text, err := agentproto.EncodeRequest(id, r)
	if err != nil {
		return err
	}
	received := make(chan agentproto.Received, 1)
	c.mu.Lock()
	if c.calls == nil {
		c.mu.Unlock()
		return ErrNotConnected
	}
	c.calls[id] = received
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}()
	if err := c.write(text); err != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer: %w", r.Action(), ctx.Err())
	case <-c.gone:
		return ErrNotConnected
	case m := <-received:
		if m.StatusCode != 200 {
			return &StatusError{Action: r.Action(), Status: m.StatusCode, Text: m.ErrorMessage}
		}
		if answer == nil {
			return nil
		}
		return m.Into(answer)
	}
}

func (c *connection) write(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.socket.SetWriteDeadline(time.Now().Add(writeTime))
	err := c.socket.WriteMessage(websocket.TextMessage, text)
	if err != nil { // no later write would succeed
		c.end(err)
	}
	return err
}

// read handles incoming frames until the connection ends.
func (c *connection) read() {
	c.socket.SetReadLimit(agentproto.MessageMax)
	alive := func() { c.socket.SetReadDeadline(time.Now().Add(silenceMax)) }
	alive()
	c.socket.SetPongHandler(func(string) error { alive(); return nil })
	answerPing := c.socket.PingHandler()
	c.socket.SetPingHandler(func(text string) error { alive(); return answerPing(text) })
	for {
		kind, text, err := c.socket.ReadMessage()
		if err != nil {
			c.end(err)
			return
		}
		alive()
		if kind == websocket.TextMessage {
			c.take(text)
		}
	}
}

func (c *connection) take(text []byte) {
	m, err := agentproto.DecodeReceived(text)
	switch {
	case err != nil:
		c.link.config.Log.Warn("message of the service ignored: it cannot be read", "error", err)
	case m.Push == nil:
		c.mu.Lock()
		received := c.calls[m.RequestID]
		delete(c.calls, m.RequestID)
		c.mu.Unlock()
		if received != nil {
			received <- m
		}
	default:
		if refresh, ok := m.Push.(*agentproto.RefreshConnection); ok {
			select {
			case c.refresh <- refresh:
			default: // one is being handled
			}
			return
		}
		c.push(m.Push)
	}
}

func (c *connection) ping() {
	for every := time.NewTicker(pingEvery); ; {
		select {
		case <-c.gone:
			every.Stop()
			return
		case <-every.C:
			c.socket.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime))
		}
	}
}

// end closes the connection. It keeps only the first error, because that causes the others.
func (c *connection) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		return
	}
	c.calls, c.err = nil, err
	close(c.gone)
	c.socket.Close()
}

// close sends a close frame and stops reading.
func (c *connection) close(reason string) {
	c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, reason), time.Now().Add(time.Second))
	c.socket.Close()
}
