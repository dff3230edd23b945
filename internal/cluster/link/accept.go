package link

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/musterhq/muster/internal/cluster/trust"
)

// panicDoor is the label of panics.
const panicDoor = "cluster"

// admit takes an accepted connection; it must not block.
func (l *Link) admit(tcp *net.TCPConn) {
	below := newMeter(tcp)
	c := &conn{Conn: tls.Server(below, l.tls), below: below}
	if c.counted = l.limits.Admit(addressOf(tcp), below.reset, nil); c.counted == nil {
		l.refused[byLimit].Add(1)
		below.reset()
		return
	}
	if !l.add(c) {
		c.drop()
		return
	}
	go func() {
		defer l.running.Done()
		defer l.options.Panics.Confine(panicDoor, c.drop)
		l.serve(c)
	}()
}

func addressOf(tcp *net.TCPConn) netip.Addr {
	if a, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{} // the connection is already gone
}

func (l *Link) serve(c *conn) {
	began := time.Now()
	noticeSilence(c.below.tcp)
	err := c.SetDeadline(began.Add(l.options.handshakeWait))
	if err == nil {
		err = c.Handshake()
	}
	if err != nil {
		l.note(c, err)
		c.drop()
		return
	}
	state := c.ConnectionState()
	if p := Protocol(state.NegotiatedProtocol); p != joining {
		l.serveNode(c, trust.Peer(state), p)
		return
	}
	if err := l.serveJoin(c, began); err != nil {
		l.note(c, err)
		c.drop()
		return
	}
	_ = c.Close() // the answer was sent
}

func (l *Link) serveNode(c *conn, node trust.NodeID, p Protocol) {
	l.mu.Lock()
	s := l.stream
	l.mu.Unlock()
	if p != Raft {
		s = nil
	}
	err := c.established(node, p, s)
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		l.note(c, err)
		c.drop()
		return
	}
	c.counted.Busy(true) // so that it is not closed in favour of a new one
	c.counted.Prove()
	if p == Raft {
		if !s.take(c) {
			c.drop()
		}
		return
	}
	if p == HTTP {
		l.options.HTTP(c.ctx, c, node)
	} else {
		l.options.Node(c.ctx, c, node)
	}
	_ = c.Close() // the handler may have closed it
}

// refusal is the reason for refusing a peer.
type refusal int

const (
	byLimit       refusal = iota // too many connections
	byHandshake                  // no TLS, unknown protocol, too slow, or too much data
	byCertificate                // not a certificate of a node of the cluster
	byRemoval                    // the node has left the cluster
	byJoin                       // an invalid join request, or one too many
	refusals
)

var refusalNames = [refusals]string{"limit", "handshake", "certificate", "removed", "join"}

// note counts a refused peer. It logs those that may be nodes, because an operator can help.
func (l *Link) note(c *conn, err error) {
	why := byHandshake
	removed, isRemoved := errors.AsType[*removedError](err)
	request, isRequest := errors.AsType[*joinError](err)
	switch {
	case l.ctx.Err() != nil:
		return // the link is closing
	case isRemoved:
		why, err = byRemoval, removed
	case isRequest:
		why, err = byJoin, request
	case ofCertificate(err):
		why = byCertificate
	}
	l.refused[why].Add(1)
	if why == byHandshake {
		l.log.Debug("a connection to the cluster's port was refused", "address", c.RemoteAddr(), "error", err)
	} else if write, silent := l.noted.Note(time.Now()); write {
		l.log.Warn("a connection to the cluster's port was refused", "address", c.RemoteAddr(), "error", err, "unlogged", silent)
	}
}

func ofCertificate(err error) bool {
	for _, known := range []error{trust.ErrUntrusted, trust.ErrExpired, trust.ErrNotYetValid, trust.ErrOtherCluster, trust.ErrOtherNode} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
