package hostproof

import (
	"crypto/ed25519"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProof(t *testing.T) {
	public, private, _ := ed25519.GenerateKey(nil)
	other, _, _ := ed25519.GenerateKey(nil)
	claim := Claim{Host: "h", At: 1, Method: http.MethodGet, Path: "/x/agent", Server: "muster.example.com", IP: "10.0.0.1"}
	r := httptest.NewRequest(http.MethodGet, "http://inside/agent", nil)
	if Present(r) {
		t.Error("a request without the header carries a proof")
	}
	header := Sign(private, claim)
	r.Header.Set("Authorization", header)
	p, err := Read(r)
	if err != nil || !Present(r) || p.Claim != claim {
		t.Fatalf("%+v, %v", p, err)
	}
	if !p.Signed(public) || p.Signed(other) || p.Signed(nil) {
		t.Error("the signature does not tell the keys apart")
	}
	if !p.For(r, "muster.example.com", "/x/agent") || p.For(r, "muster.example.com", "/agent") || p.For(r, "other.example.com", "/x/agent") {
		t.Error("the claim of a proxied request")
	}
	claim.Server, claim.Path = "inside", "/agent"
	r.Header.Set("Authorization", Sign(private, claim))
	if p, _ = Read(r); !p.For(r, "", "") {
		t.Error("the claim of a direct request")
	}
	r.Method = http.MethodPost
	if p.For(r, "", "") {
		t.Error("a claim for GET holds for POST")
	}
	payload, signature, _ := strings.Cut(strings.TrimPrefix(header, scheme), ".")
	changed := Sign(private, Claim{Host: "other"})
	changedPayload, _, _ := strings.Cut(strings.TrimPrefix(changed, scheme), ".")
	for what, text := range map[string]string{"no dot": scheme + payload, "no base64": scheme + "*." + signature, "no JSON": scheme + "AAAA." + signature, "too long": scheme + strings.Repeat("A", HeaderMax)} {
		r.Header.Set("Authorization", text)
		if _, err := Read(r); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	r.Header.Set("Authorization", scheme+changedPayload+"."+signature)
	if p, err := Read(r); err != nil || p.Signed(public) {
		t.Errorf("another claim with the signature: %v", err)
	}
}

func TestTokens(t *testing.T) {
	token, id, hash := NewToken()
	if gotID, gotHash, ok := ReadToken(token); !ok || gotID != id || gotHash != hash || strings.Contains(hash, token) {
		t.Errorf("%s: %s, %s, %v; want %s, %s", token, gotID, gotHash, ok, id, hash)
	}
	if again, _, _ := NewToken(); again == token {
		t.Error("two tokens are equal")
	}
	for _, wrong := range []string{"", "muster-join.", "muster-join.0123456789abcdef.", "0123456789abcdef.secret", "muster-join.01.secret", token + strings.Repeat("x", 64)} {
		if _, _, ok := ReadToken(wrong); ok {
			t.Errorf("%q has the form of a token", wrong)
		}
	}
}
