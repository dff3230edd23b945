// Package linkclient is the game server's side of the server SDK protocol, small enough for thousands of clients in one process. It is for
// load, for faults that an official SDK would never commit, and for the Agones servers of a host, whose agent connects for all of them.
//
// It shares no code with the service's side, so that a misunderstanding of the protocol does not cancel itself out.
package linkclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Options identify the server process and the service.
type Options struct {
	URL string // ws://host:port/path or wss://…

	Process, Compute, Fleet, Token string
	SDKVersion, SDKLanguage        string // "5.5.0" and "Go" when empty

	// Query, if set, is sent as it is, instead of a query from the fields above.
	Query string

	TLS *tls.Config

	// Dial connects to the host of URL. nil: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// OnPush receives each message that does not answer a request. It runs on the reading goroutine: it may send, but must not
	// wait for an answer.
	OnPush func(*Client, Push)

	// OnClose is called once when the connection ends, with a *CloseError after a close frame, or else with the error of reading.
	OnClose func(*Client, error)

	// Deaf leaves the service's pings unanswered, as a hung process does.
	Deaf bool
}

// Client is one connection of one server process. Its methods may be used from any goroutine.
type Client struct {
	opt  Options
	conn net.Conn
	read reader
	ids  idSource

	writing sync.Mutex
	out     []byte

	mu      sync.Mutex
	waiting map[string]*call
	lost    error

	done chan struct{}
}

type call struct {
	answered func(Answer, error)
	next     *call // another request sent under the same RequestId
}

// ErrClosed is the error of requests whose connection was closed from this side.
var ErrClosed = errors.New("connection closed from this side")

// CloseError is a close frame from the service.
type CloseError struct {
	Code   int // 0 if the frame had none
	Reason string
}

func (e *CloseError) Error() string { return fmt.Sprintf("closed with code %d %s", e.Code, e.Reason) }

// Dial connects. A *RefusedError means that the service answered with another HTTP status than 101.
func Dial(ctx context.Context, opt Options) (*Client, error) {
	conn, read, err := handshake(ctx, &opt)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", opt.URL, err)
	}
	c := &Client{opt: opt, conn: conn, read: read, ids: newIDSource(), waiting: map[string]*call{}, done: make(chan struct{})}
	go c.readAll()
	return c, nil
}

// Go sends a request and returns. answered is called once, on the reading goroutine, or on this one if the connection
// is already gone. members is the rest of the JSON object, such as `"Port":7777`.
func (c *Client) Go(action, members string, answered func(Answer, error)) {
	c.GoWithID(c.ids.next(), action, members, answered)
}

// GoWithID is Go with a given RequestId, for repeating a request.
func (c *Client) GoWithID(id, action, members string, answered func(Answer, error)) {
	c.mu.Lock()
	if c.lost != nil {
		err := c.lost
		c.mu.Unlock()
		answered(Answer{}, err)
		return
	}
	c.waiting[id] = &call{answered: answered, next: c.waiting[id]}
	c.mu.Unlock()

	c.writing.Lock()
	defer c.writing.Unlock()
	c.out = beginFrame(c.out[:0])
	c.out = append(c.out, `{"Action":"`...)
	c.out = append(c.out, action...)
	c.out = append(c.out, `","RequestId":"`...)
	c.out = append(c.out, id...)
	c.out = append(c.out, '"')
	if members != "" {
		c.out = append(c.out, ',')
		c.out = append(c.out, members...)
	}
	c.out = append(c.out, '}')
	_, _ = c.conn.Write(endFrame(c.out, opText)) // the reading side notices a failure and ends all requests
}

// Do sends a request and waits for its answer. An answer with another status than 200 is a *StatusError. If the context ends before the request is
// written, the connection is dropped.
func (c *Client) Do(ctx context.Context, action, members string) (Answer, error) {
	return c.DoWithID(ctx, c.ids.next(), action, members)
}

// DoWithID is Do with a given RequestId.
func (c *Client) DoWithID(ctx context.Context, id, action, members string) (Answer, error) {
	type outcome struct {
		answer Answer
		err    error
	}
	got := make(chan outcome, 1)
	written := context.AfterFunc(ctx, c.Drop) // a message that is written only in part leaves no other use of the connection
	c.GoWithID(id, action, members, func(a Answer, err error) {
		a.Raw = append([]byte(nil), a.Raw...)
		got <- outcome{a, err}
	})
	written()
	select {
	case o := <-got:
		if o.err == nil && o.answer.Status != 200 {
			o.err = &StatusError{Action: action, Status: o.answer.Status, Message: o.answer.Error}
		}
		return o.answer, o.err
	case <-ctx.Done():
		return Answer{}, fmt.Errorf("%s: no answer: %w", action, ctx.Err())
	}
}

// Text sends any text as one message: garbage, or a hand-written request.
func (c *Client) Text(message string) error { return c.Frame(opText, []byte(message)) }

// Frame sends one final frame of any kind.
func (c *Client) Frame(opcode byte, payload []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.out = append(beginFrame(c.out[:0]), payload...)
	_, err := c.conn.Write(endFrame(c.out, opcode))
	return err
}

// Raw writes bytes to the connection as they are, frames or not.
func (c *Client) Raw(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.conn.Write(b)
	return err
}

// Ping sends a ping, as the C# SDK does before each request. It does not wait for the pong; Pongs counts them.
func (c *Client) Ping() error { return c.Frame(opPing, nil) }

// Pongs returns the number of received pongs.
func (c *Client) Pongs() int64 { return c.read.pongs.Load() }

// Drop closes the TCP connection without a close frame, as the Go SDK always does, even at a clean end. It does not wait:
// see Closed.
func (c *Client) Drop() {
	c.lose(ErrClosed)
	_ = c.tcp().Close() // it may already be closed
}

// Reset drops the connection with a TCP reset, as a killed host's network does.
func (c *Client) Reset() {
	if tcp, ok := c.tcp().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // if this fails, the connection is closed without a reset
	}
	c.Drop()
}

// Close sends a close frame, as the C++ SDK does with 1001, and then closes.
func (c *Client) Close(code int) {
	_ = c.Frame(opClose, []byte{byte(code >> 8), byte(code)}) // the connection ends anyway
	c.Drop()
}

// Closed is closed when the connection has ended and all requests have their answers or errors.
func (c *Client) Closed() <-chan struct{} { return c.done }

// tcp returns the connection below TLS, for closing it without a message.
func (c *Client) tcp() net.Conn {
	if t, ok := c.conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c.conn
}

func (c *Client) readAll() {
	err := c.read.messages(c.message, c.control)
	c.lose(err)
	_ = c.tcp().Close() // no close frame
	c.mu.Lock()
	waiting, lost := c.waiting, c.lost
	c.waiting = nil
	c.mu.Unlock()
	for _, w := range waiting {
		for ; w != nil; w = w.next {
			w.answered(Answer{}, lost)
		}
	}
	close(c.done)
	if c.opt.OnClose != nil {
		c.opt.OnClose(c, lost)
	}
}

// lose keeps the first reason why the connection ended.
func (c *Client) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = err
	}
}

func (c *Client) message(text []byte) {
	a, ok := readAnswer(text)
	if !ok {
		if c.opt.OnPush != nil {
			c.opt.OnPush(c, Push{Action: a.Action, Raw: text})
		}
		return
	}
	c.mu.Lock()
	w := c.waiting[a.RequestID]
	switch {
	case w == nil:
	case w.next == nil:
		delete(c.waiting, a.RequestID)
	default:
		c.waiting[a.RequestID] = w.next
	}
	c.mu.Unlock()
	if w != nil {
		w.answered(a, nil)
	}
}

// control handles a control frame. An error ends reading.
func (c *Client) control(opcode byte, payload []byte) error {
	switch opcode {
	case opPing:
		if c.opt.Deaf {
			return nil
		}
		return c.Frame(opPong, payload)
	case opClose:
		e := &CloseError{}
		if len(payload) >= 2 {
			e.Code, e.Reason = int(payload[0])<<8|int(payload[1]), string(payload[2:])
		}
		_ = c.Frame(opClose, payload) // the polite echo; the connection ends anyway
		return e
	}
	return nil
}
