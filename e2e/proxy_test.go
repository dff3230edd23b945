package e2e

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
)

// network is a TCP relay in front of a service that can be cut, as networks are.
type network struct {
	address string // what clients connect to

	held sync.RWMutex // locked for reading while data passes to the service

	mu    sync.Mutex
	links map[*link]bool
	down  bool // new connections are closed at once
	mute  bool // data from the service is swallowed
	lost  int  // bytes swallowed
}

type link struct{ client, service *net.TCPConn }

func startNetwork(t *testing.T, to string) *network {
	t.Helper()
	l, err := net.Listen("tcp", porttest.Free(t))
	must(t, err)
	n := &network{address: l.Addr().String(), links: map[*link]bool{}}
	t.Cleanup(func() {
		l.Close()
		n.cut(false)
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go n.relay(conn.(*net.TCPConn), to)
		}
	}()
	return n
}

func (n *network) relay(client *net.TCPConn, to string) {
	defer client.Close()
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return
	}
	n.held.RLock()
	conn, err := net.Dial("tcp", to)
	n.held.RUnlock()
	if err != nil {
		return
	}
	l := &link{client, conn.(*net.TCPConn)}
	defer l.service.Close()
	n.mu.Lock()
	n.links[l] = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.links, l)
	}()
	go func() {
		_, _ = io.Copy(l.service, l.client)
		_ = l.service.CloseWrite()
	}()
	buf := make([]byte, 64<<10)
	for {
		k, err := l.service.Read(buf)
		n.mu.Lock()
		mute := n.mute
		if mute {
			n.lost += k
		}
		n.mu.Unlock()
		if !mute && k > 0 {
			if _, err := l.client.Write(buf[:k]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut breaks all connections, with a TCP reset or a normal TCP close, but never with a close frame.
func (n *network) cut(reset bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.links {
		if reset {
			_ = l.client.SetLinger(0) // close sends RST
		}
		l.client.Close()
		l.service.Close()
	}
}

func (n *network) set(down, mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down, n.mute = down, mute
}

// hold makes new connections wait, as behind a load balancer, until they are released. A server SDK whose attempt to come back
// fails at once makes the next one only 8 s later.
func (n *network) hold() (release func()) {
	n.held.Lock()
	return n.held.Unlock
}

func (n *network) swallowed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}
