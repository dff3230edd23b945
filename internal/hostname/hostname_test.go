package hostname

import "testing"

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
