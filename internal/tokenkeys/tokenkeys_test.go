package tokenkeys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// No document leads the service to another host or away from TLS.
func TestOIDCKeepsToItsProvider(t *testing.T) {
	good := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }))
	defer good.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"keys over plain HTTP": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://127.0.0.1:1/keys"}`, "https://"+r.Host)
		},
		"the document of another issuer": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"issuer":"https://other.example","jwks_uri":%q}`, good.URL+"/keys")
		},
		"a redirect to another host": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, good.URL+"/.well-known/openid-configuration", http.StatusFound)
		},
		"a document that is too large": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat(" ", documentBytes+1)))
		},
		"a head that is too large": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Filler", strings.Repeat("a", 1<<20))
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"keys":[]}`, "https://"+r.Host, "https://"+r.Host+"/keys")
		},
	} {
		evil := httptest.NewTLSServer(answer)
		p := NewProvider(ProviderConfig{Issuer: evil.URL, Client: NewClient(evil.Client().Transport.(*http.Transport))})
		if _, err := p.Key(t.Context(), "one"); err == nil || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
		evil.Close()
	}
	for header, want := range map[string]time.Duration{
		"": 10 * time.Minute, "max-age=5": time.Minute, "public, max-age=3600": time.Hour, "max-age=9999999": 24 * time.Hour, "no-store": 10 * time.Minute,
	} {
		if got := freshFor(header); got != want {
			t.Errorf("Cache-Control %q: %s, want %s", header, got, want)
		}
	}
}

// Made-up key ids cause one request in 30 seconds, and a provider that is down is told from one that does not have a key.
func TestUnknownKeys(t *testing.T) {
	asked, down := 0, false
	x := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"keys":[]}`)
	}))
	defer x.Close()
	now := time.Unix(1_800_000_000, 0)
	p := NewProvider(ProviderConfig{Issuer: x.URL, JWKS: x.URL, Client: x.Client(), Now: func() time.Time { return now }})
	for i := range 1000 {
		if _, err := p.Key(t.Context(), fmt.Sprint("made up ", i)); !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
	}
	now, down = now.Add(keysAskedEvery), true
	for range 10 {
		if _, err := p.Key(t.Context(), "one"); err == nil || errors.Is(err, ErrUnknown) {
			t.Errorf("while the provider is down: %v", err)
		}
	}
	if asked != 2 {
		t.Errorf("%d requests to the provider, want 2", asked)
	}
}

// A file without valid signing keys is an error when the service starts. If a file becomes invalid later, the old keys stay in force.
func TestFileOfKeys(t *testing.T) {
	_, edwards, _ := ed25519.GenerateKey(rand.Reader)
	curve, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	long, _ := rsa.GenerateKey(rand.Reader, 2048)
	small, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	for name, content := range map[string]any{
		"no keys":         jose.JSONWebKeySet{},
		"no set":          []int{1},
		"no kid":          jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: edwards.Public()}}},
		"one kid twice":   jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: edwards.Public(), KeyID: "a"}, {Key: curve.Public(), KeyID: "a"}}},
		"a private key":   jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: edwards, KeyID: "a"}}},
		"a symmetric key": jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte("secret"), KeyID: "a"}}},
		"another curve":   jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: small.Public(), KeyID: "a"}}},
		"another alg":     jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: long.Public(), KeyID: "a", Algorithm: "PS256"}}},
		"for encryption":  jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: long.Public(), KeyID: "a", Use: "enc"}}},
	} {
		text, _ := json.Marshal(content)
		if keys, err := readSet(text); err == nil {
			t.Errorf("%s: taken as %v", name, keys)
		}
	}
	path := filepath.Join(t.TempDir(), "keys.json")
	write := func(text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(key any, id string) {
		text, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: id}}})
		write(text)
	}
	publish(edwards.Public(), "ed")
	f, err := OpenFile(path, "keys", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	known := func(id string) bool {
		f.checked = time.Time{} // as if some time had passed
		_, ok := f.Find(id)
		return ok
	}
	write([]byte("{"))
	if !known("ed") {
		t.Error("a typing error locks everybody out")
	}
	publish(curve.Public(), "new")
	if known("ed") || !known("new") {
		t.Error("the changed file is not in force")
	}
}
