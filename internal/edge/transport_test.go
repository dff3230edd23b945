package edge

import (
	"crypto/tls"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/musterhq/muster/internal/clientaddress"
)

func TestTransport(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("127.0.0.2/32")}
	for _, c := range []struct {
		name, from      string
		tls, behind     bool
		said            []string
		secure, private bool
	}{
		{name: "TLS", from: "203.0.113.9:5", tls: true, secure: true, private: true},
		{name: "plain from elsewhere", from: "203.0.113.9:5"},
		{name: "plain from elsewhere with an https public URL", from: "203.0.113.9:5", behind: true},
		{name: "a header that any client can send", from: "203.0.113.9:5", said: []string{"https"}},
		{name: "plain from this machine", from: "127.0.0.1:5", private: true},
		{name: "the same in IPv6", from: "[::1]:5", private: true},
		{name: "the same, mapped", from: "[::ffff:127.0.0.1]:5", private: true},
		{name: "this machine, which no proxy may contradict", from: "127.0.0.1:5", said: []string{"http"}, private: true},
		{name: "a proxy after TLS", from: "10.1.2.3:5", said: []string{"https"}, secure: true, private: true},
		{name: "a mapped proxy after TLS", from: "[::ffff:10.1.2.3]:5", said: []string{"https"}, secure: true, private: true},
		{name: "a proxy of a WebSocket after TLS", from: "[fd00::1]:5", said: []string{"WSS"}, secure: true, private: true},
		{name: "a proxy without TLS", from: "10.1.2.3:5", said: []string{"http"}, behind: true},
		{name: "a chain with TLS all the way", from: "10.1.2.3:5", said: []string{"https, https"}, secure: true, private: true},
		{name: "a chain that begins without TLS", from: "10.1.2.3:5", said: []string{"http, https"}},
		{name: "a client's own header before the proxy's", from: "10.1.2.3:5", said: []string{"https", "http"}},
		{name: "an empty header", from: "10.1.2.3:5", said: []string{""}, behind: true},
		{name: "a proxy that says nothing, behind an https public URL", from: "10.1.2.3:5", behind: true, secure: true, private: true},
		{name: "a proxy that says nothing", from: "10.1.2.3:5"},
		{name: "a proxy with TLS to this process, and none to its client", from: "10.1.2.3:5", tls: true, said: []string{"http"}, behind: true},
		{name: "a proxy on this machine that does the same", from: "127.0.0.2:5", tls: true, said: []string{"http"}},
		{name: "a proxy with TLS on both sides", from: "10.1.2.3:5", tls: true, said: []string{"https"}, secure: true, private: true},
		{name: "a proxy with TLS to this process that says nothing", from: "10.1.2.3:5", tls: true, secure: true, private: true},
		{name: "TLS of a client that claims to be none", from: "203.0.113.9:5", tls: true, said: []string{"http"}, secure: true, private: true},
		{name: "a proxy on this machine without TLS", from: "127.0.0.2:5", said: []string{"http"}},
		{name: "a proxy on this machine that says nothing", from: "127.0.0.2:5", private: true},
		{name: "no address", from: ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.from
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		for _, x := range c.said {
			r.Header.Add("X-Forwarded-Proto", x)
		}
		x := Transport{Proxies: clientaddress.NewProxies(proxies...), BehindTLS: c.behind}
		if got := x.Secure(r); got != c.secure {
			t.Errorf("%s: secure %t, want %t", c.name, got, c.secure)
		}
		if got := x.Private(r); got != c.private {
			t.Errorf("%s: private %t, want %t", c.name, got, c.private)
		}
	}
}
