package localdoor

import (
	"net"
	"sync"
)

// limited limits the connections of a listener.
func limited(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, places: make(chan struct{}, connectionsMax)}
}

type limitedListener struct {
	net.Listener
	places chan struct{}
}

// Accept closes connections beyond the limit at once.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &limitedConn{Conn: c, leave: func() { <-l.places }}, nil
		default:
			_ = c.Close()
		}
	}
}

// limitedConn releases its slot once.
type limitedConn struct {
	net.Conn
	leave func()
	once  sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}
