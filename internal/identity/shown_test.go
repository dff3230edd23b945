package identity

import (
	"net/http/httptest"
	"testing"
)

func TestShown(t *testing.T) {
	for _, c := range []struct {
		header, id, secret string
		ok                 bool
	}{
		{"Bearer MUST1.abc", "MUST1", "abc", true},
		{"bearer  MUST1.a.b ", "MUST1", "a.b", true},
		{"Basic TVVTVDE6YWJj", "MUST1", "abc", true},
		{"Bearer MUST1", "MUST1", "", false},
		{"Basic !", "", "", false},
		{"Digest MUST1.abc", "", "", false},
		{"", "", "", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", c.header)
		if id, secret, ok := Shown(r); id != c.id || secret != c.secret || ok != c.ok {
			t.Errorf("%q: %q, %q, %t", c.header, id, secret, ok)
		}
	}
}
