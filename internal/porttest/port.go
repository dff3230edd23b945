// Package porttest finds ports for programs that a test starts.
package porttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Free is a loopback address below the ports that the kernel gives to clients: a client that keeps trying to
// reach a service which is down would else at times be given that very port, and connect to itself, and a service that starts again
// would at times find its port taken by a client. Until the test is over it holds the UDP port of the same number, so that no other test,
// of any run, takes the port while it is free.
func Free(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(12000+rand.IntN(18000)))
		held, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			held.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { held.Close() })
		return address
	}
	t.Fatal("no free port between 12000 and 30000 in 100 attempts")
	return ""
}
