package playerapi

import (
	"net/netip"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/clientaddress"
)

// Behind a proxy each client has a limit of its own; a client that makes up addresses has the limit of the last trusted one.
func TestLoginsPerAddress(t *testing.T) {
	x := newLobby(t, func(c *Config) {
		c.LoginsPerAddress, c.Transport.Proxies = 30, clientaddress.NewProxies(netip.MustParsePrefix("127.0.0.0/8"))
	})
	player := 0
	login := func(forwarded string) (int, map[string]any) {
		player++
		return x.call("", "Session.Login", devLogin(string(rune('a'+player%26))+time.Duration(player).String()), "X-Forwarded-For", forwarded)
	}
	for range 5 {
		x.wants(200, "")(login("198.51.100.1"))
	}
	x.wants(429, "RATE_LIMITED")(login("198.51.100.1"))
	x.wants(429, "RATE_LIMITED")(login("192.0.2.77, 198.51.100.1"))
	x.wants(200, "")(login("198.51.100.2"))
	x.pass(2 * time.Second)
	x.wants(200, "")(login("198.51.100.1"))
	x.wants(429, "RATE_LIMITED")(login("198.51.100.1"))
}
