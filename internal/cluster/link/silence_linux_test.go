package link

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// Both ends of a connection notice that the other one has vanished.
func TestSilenceIsNoticed(t *testing.T) {
	a := newAuthority(t, cluster)
	options := make(chan [4]int, 1)
	read := func(c net.Conn) (got [4]int) {
		raw, err := c.(*conn).below.tcp.SyscallConn()
		if err != nil {
			t.Error(err)
			return got
		}
		err = raw.Control(func(fd uintptr) {
			for i, option := range []int{unix.TCP_USER_TIMEOUT, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT} {
				if got[i], err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil {
					t.Error(err)
				}
			}
		})
		if err != nil {
			t.Error(err)
		}
		return got
	}
	n1 := open(t, newIdentity(t, a, "n1", 0), withEcho)
	n2 := open(t, newIdentity(t, a, "n2", 0), nil)
	dialed := mustDial(t, n2, n1)
	n1.mu.Lock()
	for c := range n1.conns {
		options <- read(c)
	}
	n1.mu.Unlock()
	want := [4]int{5000, 2, 1, 3}
	if got := read(dialed); got != want {
		t.Errorf("the dialer's end: %v, want %v", got, want)
	}
	if got := <-options; got != want {
		t.Errorf("the other end: %v, want %v", got, want)
	}
}
