package identity

import (
	"net/http/httptest"
	"testing"

	"github.com/musterhq/muster/internal/domain/access"
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

// A key without a secret, such as one that does not exist, authenticates no caller.
func TestProven(t *testing.T) {
	record := access.Key{ID: "MUST1", Role: Backend}
	goneRecord := access.Key{ID: "MUST2", Role: Admin, Revoked: 5}
	keys := newTestKeys(t, record, goneRecord)
	key, gone := keys.CellSecret().AccessKey(&record), keys.CellSecret().AccessKey(&goneRecord)
	for _, c := range []struct {
		id, secret string
		want       bool
	}{
		{key.ID, key.Secret, true}, {key.ID, key.Secret + "x", false}, {key.ID, "", false}, {"", "", false}, {"MUST", "", false}, {gone.ID, gone.Secret, false},
	} {
		if got, ok := Proven(keys, c.id, c.secret); ok != c.want || ok != (got.ID == c.id && c.id != "") {
			t.Errorf("%q with %q: %v, %t, want %t", c.id, c.secret, got, ok, c.want)
		}
	}
}
