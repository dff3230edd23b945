package export

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/authorities"
)

// Bounds of a receiver.
const (
	dialWait    = 10 * time.Second
	writeWait   = 30 * time.Second // for so many bytes as are written at once
	writeAtOnce = 64 << 10
	closeWait   = 10 * time.Second // until a receiver has read what was sent
	saysMax     = 64 << 10         // bytes that a receiver may send, although syslog has no answers

	datagramPause = time.Millisecond       // between two datagrams
	refusalWait   = 200 * time.Millisecond // for the network to report that no program uses the port
)

// stream sends messages over TCP, with or without TLS, each behind its length (RFC 6587, RFC 5425).
//
// Syslog has no acknowledgements, and bytes that are written to a connection may never be read: a receiver that is killed leaves them in its buffers. So a stream
// closes its side of the connection, and waits until the receiver closes the other one in order. Receivers do so once they have read everything; if one dies with
// unread bytes, the network reports an error instead.
type stream struct {
	to                   Target
	head                 Header
	writeWait, closeWait time.Duration

	conn *connection // nil: there is none
}

type connection struct {
	net.Conn
	tcp  *net.TCPConn // below it
	over chan error   // receives the error with which the receiver's side ends
}

func (s *stream) send(ctx context.Context, docs []audit.Document) (rejected int, err error) {
	if s.conn == nil {
		if s.conn, err = dial(ctx, s.to); err != nil {
			return 0, err
		}
	}
	defer s.conn.abortWith(ctx)()
	var b []byte
	for i := range docs {
		m := s.head.message(docs[i])
		b = append(strconv.AppendInt(b, int64(len(m)), 10), ' ')
		if b = append(b, m...); len(b) >= writeAtOnce || i == len(docs)-1 {
			if err := s.conn.write(b, s.writeWait); err != nil {
				return 0, err
			}
			b = b[:0]
		}
	}
	return 0, nil
}

func (s *stream) confirm(ctx context.Context) error {
	c := s.conn
	if c == nil {
		return nil
	}
	defer s.drop()
	defer c.abortWith(ctx)()
	select {
	case err := <-c.over:
		return early(err)
	default:
	}
	if x, ok := c.Conn.(*tls.Conn); ok {
		if err := x.CloseWrite(); err != nil {
			return fmt.Errorf("end of the messages: %w", err)
		}
	}
	if err := c.tcp.CloseWrite(); err != nil {
		return fmt.Errorf("end of the messages: %w", err)
	}
	select {
	case err := <-c.over:
		// A receiver need not announce the end by TLS.
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return early(err)
		}
		return c.acknowledged(s.closeWait)
	case <-time.After(s.closeWait):
		return errors.New("the receiver does not close the connection after the last message, so it is unknown whether it has read them")
	}
}

// drop closes TCP, because closing TLS would wait for a receiver that does not read.
func (s *stream) drop() {
	if s.conn != nil {
		_ = s.conn.tcp.Close()
		s.conn = nil
	}
}

func early(err error) error { return fmt.Errorf("the receiver ended the connection: %w", err) }

func dial(ctx context.Context, to Target) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", to.address)
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: raw, tcp: raw.(*net.TCPConn), over: make(chan error, 1)}
	if to.network == "tls" {
		config, err := to.security()
		if err == nil {
			x := tls.Client(raw, config)
			err, c.Conn = x.HandshakeContext(ctx), x
		}
		if err != nil {
			raw.Close()
			return nil, err
		}
	}
	go c.read()
	return c, nil
}

// security reads the files of the target, which may have been replaced since the last connection.
func (t Target) security() (*tls.Config, error) {
	host, _, _ := net.SplitHostPort(t.address)
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		var err error
		if c.RootCAs, err = authorities.Read(t.ca); err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.pk)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// read waits until the receiver ends its side of the connection.
func (c *connection) read() {
	buffer := make([]byte, 1024)
	for said := 0; ; {
		n, err := c.Read(buffer)
		if said += n; said > saysMax && err == nil {
			err = fmt.Errorf("it sends more than %d bytes, and syslog has no answers", saysMax)
		}
		if err != nil {
			c.over <- err
			return
		}
	}
}

func (c *connection) write(b []byte, wait time.Duration) error {
	select {
	case err := <-c.over:
		return early(err)
	default:
	}
	if err := c.SetWriteDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	_, err := c.Write(b)
	return err
}

// abortWith makes reads and writes fail when ctx ends, until the returned function is called.
func (c *connection) abortWith(ctx context.Context) func() {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}

// acknowledged waits until the receiver's machine has acknowledged all that was sent. A receiver that ended at
// that moment, before it read everything, never does.
func (c *connection) acknowledged(wait time.Duration) error {
	for until := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		left, err := unacknowledged(c.tcp)
		switch {
		case err != nil:
			return early(err)
		case left == 0:
			return nil
		case time.Now().After(until):
			return early(fmt.Errorf("it has not acknowledged the last %d bytes", left))
		}
	}
}

// datagrams sends messages over UDP (RFC 5426). Their arrival is unknown; an error is noticed only if the machine reports that no program uses the port.
type datagrams struct {
	to   Target
	head Header
	conn net.Conn
}

func (s *datagrams) send(ctx context.Context, docs []audit.Document) (rejected int, err error) {
	if s.conn == nil {
		if s.conn, err = (&net.Dialer{Timeout: dialWait}).DialContext(ctx, "udp", s.to.address); err != nil {
			return 0, err
		}
	}
	for i := range docs {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if _, err := s.conn.Write(s.head.message(docs[i])); err != nil {
			return 0, err
		}
		time.Sleep(datagramPause)
	}
	return 0, nil
}

func (s *datagrams) confirm(context.Context) error {
	if s.conn == nil {
		return nil
	}
	defer s.drop()
	_ = s.conn.SetReadDeadline(time.Now().Add(refusalWait))
	_, err := s.conn.Read(make([]byte, 1))
	if errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return nil
}

func (s *datagrams) drop() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}
