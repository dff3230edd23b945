package connlimit

import (
	"net"
	"sync"
)

// AtMost returns a listener that has at most n connections at a time. It closes any further one at once, because a client that waited would not see why.
// It is for loopback listeners, whose clients need no Limiter.
func AtMost(l net.Listener, n int) net.Listener { return &listener{l, make(chan struct{}, n)} }

type listener struct {
	net.Listener
	places chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placed{c, sync.OnceFunc(func() { <-l.places })}, nil
		default:
			_ = c.Close()
		}
	}
}

type placed struct {
	net.Conn
	leave func()
}

func (c *placed) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}
