package clientaddress

import (
	"net/http/httptest"
	"net/netip"
	"testing"
)

// Only statements of trusted proxies about a client are believed, up to the first hop that is not a trusted proxy.
func TestClientAddress(t *testing.T) {
	proxies := NewProxies(netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("fe80::1/128"))
	for _, c := range []struct {
		from      string
		forwarded []string
		want      string
	}{
		{"203.0.113.5:1", nil, "203.0.113.5"},
		{"203.0.113.5:1", []string{"198.51.100.9"}, "203.0.113.5"},
		{"10.0.0.1:1", nil, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.9"}, "198.51.100.9"},
		{"[::ffff:10.0.0.1]:1", []string{"198.51.100.9:5555"}, "198.51.100.9"},
		{"10.0.0.1:1", []string{"192.0.2.66, 198.51.100.9, 10.1.1.1"}, "198.51.100.9"},
		{"10.0.0.1:1", []string{"192.0.2.66", "198.51.100.9,10.1.1.1"}, "198.51.100.9"},
		{"10.0.0.1:1", []string{"10.2.2.2, 10.1.1.1"}, "10.2.2.2"},
		{"10.0.0.1:1", []string{"198.51.100.9, unknown"}, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.9,"}, "10.0.0.1"},
		{"10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"[fd00::1]:1", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64"},
		{"[fd00::1]:1", []string{"[2001:db8:1:2::9]:443"}, "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:1", []string{"198.51.100.9"}, "198.51.100.9"},
		{"[fe80::2%eth0]:1", []string{"198.51.100.9"}, "fe80::/64"},
		{"10.0.0.1:1", []string{"198.51.100.9, fe80::1%eth0"}, "198.51.100.9"},
		{"[2001:db8:1:2::7%eth0]:1", nil, "2001:db8:1:2::/64"},
		{"@", nil, ""},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.RemoteAddr = c.from
		for _, x := range c.forwarded {
			r.Header.Add("X-Forwarded-For", x)
		}
		if got := proxies.Of(r); got != c.want {
			t.Errorf("from %s, forwarded for %q: %q, want %q", c.from, c.forwarded, got, c.want)
		}
	}
}
