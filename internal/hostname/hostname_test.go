package hostname

import (
	"net/netip"
	"testing"
)

func TestHosts(t *testing.T) {
	for host, want := range map[string]struct{ loopback, unspecified bool }{
		"localhost":        {loopback: true},
		"127.0.0.1":        {loopback: true},
		"127.8.0.1":        {loopback: true},
		"::1":              {loopback: true},
		"::ffff:127.0.0.1": {loopback: true},
		"":                 {unspecified: true},
		"0.0.0.0":          {unspecified: true},
		"::":               {unspecified: true},
		"::ffff:0.0.0.0":   {unspecified: true},
		"192.0.2.1":        {},
		"2001:db8::1":      {},
		"127.0.0.1.":       {},
		"localhost.evil":   {},
		"muster":           {},
	} {
		if got := IsLoopback(host); got != want.loopback {
			t.Errorf("%q: loopback %t", host, got)
		}
		if got := IsUnspecified(host); got != want.unspecified {
			t.Errorf("%q: unspecified %t", host, got)
		}
	}
}

func TestNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.3/8": "10.0.0.0/8", "192.0.2.1": "192.0.2.1/32", "2001:db8::1/32": "2001:db8::/32", "::1": "::1/128",
		"::ffff:192.0.2.1": "192.0.2.1/32", "::ffff:172.16.1.0/108": "172.16.0.0/12", "::ffff:0:0/96": "0.0.0.0/0",
	} {
		if got, err := Network(text); err != nil || got != netip.MustParsePrefix(want) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10.0.0.0/33", "example.com", "10.0.0.0/8/8"} {
		if got, err := Network(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
