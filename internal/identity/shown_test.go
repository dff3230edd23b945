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

// A key without a secret, as one that is not there has none, is nobody's.
func TestProven(t *testing.T) {
	keys, err := OpenKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key, err := keys.Create(Backend, "")
	if err != nil {
		t.Fatal(err)
	}
	gone, err := keys.Create(Admin, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Revoke(gone.ID); err != nil {
		t.Fatal(err)
	}
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
